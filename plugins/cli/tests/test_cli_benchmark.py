"""`karenina benchmark validate`: which templates can be used, and which give their answer away."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from karenina_core import Benchmark, Question, RegexRubricTrait, Rubric

Run = Callable[..., Result]
Files = Callable[..., Path]
KEYS = {"name", "usable", "questions", "findings", "counts", "problems", "warnings", "trust"}
ROW = {"id", "state", "reason", "finished", "language", "isolation", "findings", "warnings"}


def template(description: str, expected: str = "Paris", **more: Any) -> dict[str, Any]:
    field = {"name": "capital", "type": "str", "description": description, "ground_truth": expected}
    return {"fields": [{**field, "verify_with": {"type": "ExactMatch"}, **more}]}


TELLING = template("The capital, which should be Paris")
PYTHON = """\
from pathlib import Path

Path("it-ran").write_text("yes")


class Answer(BaseAnswer):
    capital: str = VerifiedField(
        description="The capital, such as Paris", ground_truth="Paris", verify_with=ExactMatch()
    )
"""
TRAIT = {
    "@type": "Rating",
    "name": "Brief",
    "bestRating": 1,
    "worstRating": 0,
    "additionalType": "karenina:GlobalRegexTrait",
    "additionalProperty": [{"@type": "PropertyValue", "name": "pattern", "value": "^.{1,80}$"}],
}


def validate(run: Run, *arguments: object) -> tuple[dict[str, Any], int]:
    result = run("benchmark", "validate", *arguments, "--json")
    document = json.loads(result.stdout)
    assert set(document) - {"proofs"} == KEYS  # other packages add what they find
    assert all(set(row) == ROW for row in document["questions"])
    return document, result.exit_code


def states(document: dict[str, Any]) -> dict[str, str]:
    return {row["id"]: row["state"] for row in document["questions"]}


@pytest.mark.parametrize("name", ["new", "create", "init"])
def test_whoever_wants_to_make_a_benchmark_is_said_what_to_type(name: str, run: Run) -> None:
    refused = run("benchmark", name, "x")
    assert refused.exit_code == 2
    assert "karenina init my-benchmark" in refused.stderr
    assert "karenina benchmark import questions.csv -o questions.jsonld" in refused.stderr
    assert [run(*line, "--help").exit_code for line in (("init",), ("benchmark", "import"))] == [0, 0]


def test_a_sound_benchmark(run: Run, write_benchmark: Files) -> None:
    path = write_benchmark("q0", "q1")
    result = run("benchmark", "validate", path, "--strict")
    assert result.exit_code == 0
    assert "Capitals: 2 questions, 2 templates can be used" in result.stdout
    assert "No template gives its answer away." in result.stdout
    assert result.stdout.endswith(f"Next: karenina verify {path} --model PROVIDER/NAME\n")
    document, code = validate(run, path)
    assert code == 0
    assert document["usable"] is True
    assert states(document) == {"q0": "ok", "q1": "ok"}
    assert document["counts"] == {"leak": 0, "hint": 0, "note": 0}
    assert document["questions"][0]["isolation"] == "no-code"
    assert document["trust"] is None


def test_a_template_that_gives_its_answer_away_is_reported_and_fails_a_strict_check(
    run: Run, write_benchmark: Files
) -> None:
    path = write_benchmark("q0", template=TELLING)
    shown = run("benchmark", "validate", path)
    assert "Next:" not in shown.stdout
    assert shown.exit_code == 0
    assert re.search(r"Leaks: .*\n.*\n +q0 +capital +description +the description of 'capital' says", shown.stdout)
    assert "Findings: 1 leak" in shown.stdout
    document, code = validate(run, path, "--strict")
    assert code == 4
    assert document["usable"] is True
    (finding,) = document["questions"][0]["findings"]
    assert finding["message"].startswith("the description of 'capital' says that 'Paris' is right: ")
    assert {key: finding[key] for key in ("field", "where", "severity")} == {
        "field": "capital",
        "where": "description",
        "severity": "leak",
    }


def test_hints_do_not_fail_a_strict_check(run: Run, write_benchmark: Files) -> None:
    path = write_benchmark("q0", template=template("One of Paris, Rome or Oslo"))
    document, code = validate(run, path, "--strict")
    assert code == 0
    assert document["counts"] == {"leak": 0, "hint": 1, "note": 0}


def test_other_warnings_of_a_template_are_notes_and_what_is_a_finding_is_reported_once(
    run: Run, write_benchmark: Files
) -> None:
    two = [{**template("The capital, which should be Paris")["fields"][0], "name": name} for name in ("a", "b")]
    strategy = {"type": "field_check", "field": "b"}
    path = write_benchmark("q0", template={"fields": two, "verify_strategy": strategy})
    document, _ = validate(run, path)
    (row,) = document["questions"]
    (warning,) = row["warnings"]
    assert warning.startswith("verify_strategy leaves out 'a': ")
    assert document["counts"]["note"] == 1 + sum(finding["severity"] == "note" for finding in row["findings"])
    shown = run("benchmark", "validate", path).stdout
    assert re.search(r"Notes\n.*\n +q0 +verify_strategy leaves out 'a'", shown)
    assert shown.count("verify_strategy leaves out") == 1


def test_texts_that_a_primitive_accepts_without_ground_truth_are_not_to_be_told(
    run: Run, write_benchmark: Files
) -> None:
    accepts = {"type": "ContainsAny", "substrings": ["Paris", "Lutetia"]}
    printed = template("The capital, also called Lutetia", "N/A", verify_with=accepts)
    document, code = validate(run, write_benchmark("q0", template=printed), "--strict")
    assert code == 4
    (finding,) = document["questions"][0]["findings"]
    assert finding["message"].startswith("the description of 'capital' names the expected value, 'Lutetia'")
    assert document["questions"][0]["warnings"] == []
    kept = template("The capital, N/A where none is given", "N/A", verify_with=accepts)
    assert validate(run, write_benchmark("q0", template=kept), "--strict")[1] == 0


def test_an_extraction_hint_is_read_too(run: Run, write_benchmark: Files) -> None:
    path = write_benchmark("q0", template=template("The capital", extraction_hint="Paris, not Lyon"))
    document, _ = validate(run, path)
    assert [finding["where"] for finding in document["questions"][0]["findings"]] == ["hint"]


def test_a_template_that_cannot_be_used_is_exit_code_1_with_its_line(run: Run, write_benchmark: Files) -> None:
    path = write_benchmark("q0", template='{\n  "fields": [}\n')
    document, code = validate(run, path)
    assert code == 1
    assert states(document) == {"q0": "unusable"}
    assert "line 2" in document["questions"][0]["reason"]
    shown = run("benchmark", "validate", path)
    assert re.search(r"Templates that cannot be used\n.*\n +q0 +line 2", shown.stdout)
    assert "1 question, 0 templates can be used, 1 cannot" in shown.stdout
    assert "No template was checked." in shown.stdout
    broken = "class Answer(BaseAnswer):\n    x: int = nowhere\n"
    trusted, code = validate(run, write_benchmark("q0", template=broken, language="python"), "--trust", "--strict")
    assert code == 1
    assert "line 2: x: int = nowhere" in trusted["questions"][0]["reason"]


def test_code_is_checked_in_a_sandbox(run: Run, write_benchmark: Files) -> None:
    harmless = (
        "class Answer(BaseAnswer):\n    city: str = Field(description='a city')\n"
        "    def verify(self):\n        return self.city == 'Paris'\n"
    )
    document, code = validate(run, write_benchmark("q0", template=harmless, language="python"), "--strict")
    assert (code, states(document), document["trust"]) == (0, {"q0": "ok"}, None)
    assert document["questions"][0]["isolation"].startswith("sandbox-")
    document, code = validate(run, write_benchmark("q0", template=PYTHON, language="python"))
    assert (code, states(document)) == (1, {"q0": "unusable"})
    assert "PermissionError" in document["questions"][0]["reason"]
    assert not Path("it-ran").exists()


def test_without_a_sandbox_code_is_run_only_with_trust(
    run: Run, write_benchmark: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARENINA_DISABLE", "sandbox-runtime")
    path = write_benchmark("q0", template=PYTHON, language="python")
    shown = run("benchmark", "validate", path)
    assert shown.exit_code == 0
    assert not Path("it-ran").exists()
    assert re.search(r"Templates not checked\n.*\n +q0 +Python code; needs --trust", shown.stdout)
    line = f"karenina benchmark validate --trust {path}"
    assert line in shown.stdout
    document, code = validate(run, path)
    assert (code, states(document)) == (0, {"q0": "not_checked"})
    assert document["trust"] == f"{line} --json"
    result = run(*document["trust"].split()[1:])
    assert Path("it-ran").exists()
    trusted = json.loads(result.stdout)
    assert states(trusted) == {"q0": "ok"}
    assert trusted["questions"][0]["isolation"] == "in-process"
    assert trusted["counts"]["leak"] == 1
    assert trusted["trust"] is None


def test_what_was_not_checked_does_not_pass_a_strict_check(
    run: Run, write_benchmark: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARENINA_DISABLE", "sandbox-runtime")
    path = write_benchmark("q0", template=PYTHON, language="python")
    assert run("benchmark", "validate", path, "--strict").exit_code == 4


def test_missing_templates_and_unfinished_questions_are_listed(run: Run) -> None:
    questions = [Question(id="q0", question="Which city?"), Question(id="q1", question="Which?", finished=False)]
    path = Benchmark.create("Cities").with_questions(questions).save("cities.jsonld")
    found, code = validate(run, path)
    assert code == 0
    assert validate(run, path, "--strict")[1] == 4, "nothing can be judged"
    rubric = Rubric(regex_traits=[RegexRubricTrait(name="cited", pattern="x")])
    scored = Benchmark.create("Scored", rubric=rubric).with_questions(questions).save("scored.jsonld")
    assert validate(run, scored, "--strict")[1] == 0
    assert [(row["id"], row["state"], row["finished"]) for row in found["questions"]] == [
        ("q0", "no_template", True),
        ("q1", "no_template", False),
    ]
    shown = run("benchmark", "validate", path).stdout
    assert re.search(r"Questions without a template\n.*\n +q0 +\w.*template", shown)
    assert re.search(r"Questions that are not finished\n.*\n +q1", shown)


def test_questions_are_chosen_as_for_verify(run: Run, write_benchmark: Files) -> None:
    path = write_benchmark("q0", "q1", "q2")
    assert list(states(validate(run, path, "--questions", "q2,0")[0])) == ["q0", "q2"]
    refused = run("benchmark", "validate", path, "--questions", "7")
    assert refused.exit_code == 1
    assert "there is no position 7" in refused.stderr


def test_clashing_traits_and_warnings_of_the_loader_are_reported(run: Run, write_benchmark: Files) -> None:
    path = write_benchmark("q0", rating=[TRAIT])
    document = json.loads(path.read_text("utf-8"))
    own = {**TRAIT, "additionalType": "karenina:QuestionSpecificRegexTrait"}
    document["dataFeedElement"][0]["item"]["rating"] = [own]
    path.write_text(json.dumps(document), "utf-8")
    result = run("benchmark", "validate", path)
    assert result.exit_code == 1
    assert "Error: question q0: " in result.stderr
    scenario = Path(__file__).parents[2] / "jsonld" / "tests" / "data" / "scenario.jsonld"
    shown = run("benchmark", "validate", scenario)
    assert shown.exit_code == 0
    assert re.search(r"Warnings of the benchmark\n.*scenario", shown.stdout)


def test_options_that_are_always_first_are_reported_for_the_whole_benchmark(run: Run, write_benchmark: Files) -> None:
    field: dict[str, Any] = {"type": "literal", "literal_values": ["Paris", "Rome", "Oslo", "Bern"]}
    path = write_benchmark(*(f"q{number}" for number in range(6)), template=template("The capital", **field))
    document, code = validate(run, path, "--strict")
    assert code == 0
    (finding,) = document["findings"]
    assert (finding["field"], finding["where"], finding["severity"]) == (None, "enum_order", "hint")
    assert re.search(r"\(all\) +enum_order +the expected value is the first option in 6 of 6", run(
        "benchmark", "validate", path
    ).stdout)  # fmt: skip


@pytest.mark.parametrize("arguments", [(), ("missing.jsonld",)])
def test_wrong_use_is_explained(arguments: tuple[str, ...], run: Run) -> None:
    result = run("benchmark", "validate", *arguments)
    assert result.exit_code == (1 if arguments else 2)
    assert "missing.jsonld" in result.stderr if arguments else "BENCHMARK" in result.stderr


def test_output_is_printed_as_data(run: Run, write_benchmark: Files) -> None:
    path = write_benchmark("q0", template=template("The capital \x1b[31m Paris\x1b[0m"))
    assert "\x1b" not in run("benchmark", "validate", path).stdout


def test_the_bundled_examples_pass_a_strict_check(run: Run) -> None:
    for name in ("examples/pharmacology.jsonld", "plugins/demo/karenina_demo/data/demo.jsonld"):
        result = run("benchmark", "validate", Path(__file__).parents[3] / name, "--trust", "--strict")
        assert result.exit_code == 0, result.stdout
        assert "No template gives its answer away." in result.stdout


def test_help_imports_neither_the_linter_nor_the_runner() -> None:
    call = """
import contextlib, io, sys
from karenina_cli import main
sys.argv = ["karenina", *sys.argv[1:]]
with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
    main()
assert "benchmark" in shown.getvalue()
heavy = ("karenina_template.lint.lint", "karenina_runs", "pydantic")
loaded = [name for name in sys.modules if name.startswith(heavy)]
print(loaded)
"""
    for words in (["--help"], ["benchmark", "--help"], ["benchmark", "validate", "--help"]):
        ran = subprocess.run(
            [sys.executable, "-c", call, *words], capture_output=True, text=True, timeout=30, check=True
        )
        assert ran.stdout.strip() == "[]"
