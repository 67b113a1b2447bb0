"""`karenina show`: one item explained, and a line for each of many."""

from __future__ import annotations

import io
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import Result
from hypothesis import HealthCheck, Phase, given, settings
from karenina_cli.output import print_parts
from karenina_cli.show.explanation import explained
from karenina_testing import strategies
from karenina_vocabulary.evaluation_parts import TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.values.convert import unstructure
from karenina_core.values.result import GenerationPart, LedgerEntry, MetadataPart, TrailEntry

Run = Callable[..., Result]
USAGE = {
    "generation": {
        "calls": 1,
        "attempts": 3,
        "replies": 1,
        "input_tokens": 20,
        "output_tokens": 5,
        "cost_usd": None,
        "model": "m",
    },
    "total": {"calls": 1, "attempts": 3, "replies": 1, "input_tokens": 20, "output_tokens": 5, "cost_usd": 0.25},
}
EFFECT = {"field": False, "verdict": False, "outcome": "failed"}


def result_of(question: str, replicate: int = 1, model: str = "small", answer: str = "Rome.") -> VerificationResult:
    metadata = MetadataPart(
        question_id=question,
        template_id="t",
        result_id=f"{question}-{model}-{replicate}",
        question_text="What is the capital of France?",
        raw_answer="Paris",
        answering=ModelIdentity("openai_endpoint", model),
        parsing=ModelIdentity("litellm", "judge"),
        outcome="failed",
        replicate=replicate,
        warnings=("verify_granular failed: x",),
    )
    template = TemplatePart(
        template_verification_performed=True,
        parsed_gt_response={"capital": "Paris", "river": "Seine", "note": None},
        parsed_llm_response={"capital": "Rome", "river": None, "note": "said in passing"},
        field_results={"capital": False, "river": None},
        verify_result=False,
        regex_validation_results={"cites": False},
        regex_validation_details={"cites": {"pattern": r"\[\d\]", "matches_found": [], "match_count": 0}},
    )
    return VerificationResult(
        metadata=metadata,
        generation=GenerationPart(raw_llm_response=answer, usage_metadata=USAGE),
        template=template,
        rubric=RubricPart(llm_trait_scores={"brief": 3}, trait_states={"brief": {"state": "ok"}}),
        ledger=(
            LedgerEntry("VerifyTemplate", {"field": False, "verdict": False, "outcome": "failed"}, "wrong: capital"),
        ),
        trail=(TrailEntry("VerifyTemplate", "ran", "", 0.5), TrailEntry("Guard", "skipped", "no limit was reached")),
    )


@pytest.fixture
def write_run(tmp_path: Path) -> Callable[..., Path]:
    def write(*results: VerificationResult) -> Path:
        folder = tmp_path / "run"
        folder.mkdir()
        lines = [json.dumps(unstructure(result)) for result in results]
        (folder / "results.jsonl").write_text("\n".join(lines) + "\n", "utf-8")
        return folder

    return write


def test_a_line_for_each(run: Run, write_run: Callable[..., Path]) -> None:
    folder = write_run(result_of("q-one"), result_of("q-two", 2))
    for path in (folder, folder / "results.jsonl"):
        result = run("show", path)
        assert result.exit_code == 0
        row = (
            r"q-one +openai_endpoint:small +litellm:judge +1 +failed +wrong: capital \(expected Paris, extracted Rome\)"
        )
        assert re.search(row, result.stdout)
        assert re.search(r"q-two +openai_endpoint:small +litellm:judge +2 ", result.stdout)


def test_a_check_on_the_trace_that_fails_is_not_called_an_extraction(run: Run, write_run: Callable[..., Path]) -> None:
    result = result_of("q-one")
    assert result.template is not None
    expected = {"cites": True, "capital": "Paris"}
    template = evolve(
        result.template,
        parsed_gt_response=expected,
        parsed_llm_response={"capital": "Rome"},
        field_results={"cites": False, "capital": False},
        regex_validation_results=None,
    )
    shown = run("show", write_run(evolve(result, template=template))).stdout
    assert "wrong: cites (expected true, the check on the trace says otherwise), capital (expected Paris, " in shown


@pytest.mark.parametrize("given", ["q-one", "q-o"])
def test_everything_about_one(given: str, run: Run, write_run: Callable[..., Path]) -> None:
    shown = run("show", write_run(result_of("q-one"), result_of("q-two")), given).stdout
    for expected in (
        r"^Question q-one\n  What is the capital of France\?$",
        r"^Reference answer\n  Paris$",
        r"^Answer of openai_endpoint:small, replicate 1\n  Rome\.$",
        r"^Outcome: failed: wrong: capital \(expected Paris, extracted Rome\); not found: river .*$",
        r'capital +"Paris" +"Rome" +wrong',
        r'river +"Seine" +not found',
        r'note +"said in passing" +not compared',
        r"cites +failed +\\\[\\d\\\] +\[\]",
        r"brief +llm score +3 +ok",
        r'VerifyTemplate +\{"field": false, "verdict": false, "outcome": "failed"\} +wrong: capital',
        r"VerifyTemplate +ran +0\.500",
        r"Guard +skipped +0\.000 +no limit was reached",
        r"generation +m +1 +2 +20 +5 +unknown",
        r"total +1 +2 +20 +5 +\$0\.2500",
        r"^Warning: verify_granular failed: x$",
    ):
        assert re.search(expected, shown, re.M), expected
    assert "q-two" not in shown


def test_json_is_the_result_with_its_question(run: Run, write_run: Callable[..., Path]) -> None:
    folder = write_run(result_of("q-one"), result_of("q-two"), result_of("q-two", 2))
    one = json.loads(run("show", folder, "q-one", "--json").stdout)
    assert one["question"] == {
        "id": "q-one",
        "text": "What is the capital of France?",
        "raw_answer": "Paris",
        "keywords": [],
    }
    assert one["template"]["parsed_llm_response"]["capital"] == "Rome"
    assert [
        document["metadata"]["replicate"] for document in json.loads(run("show", folder, "q-two", "--json").stdout)
    ] == [1, 2]
    assert len(json.loads(run("show", folder, "--json").stdout)) == 3


def test_models_and_replicates_narrow_it_down(run: Run, write_run: Callable[..., Path]) -> None:
    folder = write_run(result_of("q", 1, "small"), result_of("q", 2, "small"), result_of("q", 1, "large"))

    def shown(*flags: object) -> list[tuple[str, int]]:
        documents = json.loads(run("show", folder, *flags, "--json").stdout)
        documents = documents if isinstance(documents, list) else [documents]
        return [(d["metadata"]["answering"]["model_name"], d["metadata"]["replicate"]) for d in documents]

    assert shown("q", "--model", "large") == [("large", 1)]
    assert shown("--replicate", 2) == [("small", 2)]
    assert shown("q", "--model", "judge", "--replicate", 1) == [("small", 1), ("large", 1)]
    assert run("show", folder, "q").stdout.count("\nOutcome: ") == 2  # the two replicates are alike


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["q-ona"], "did you mean 'q-one'?"),
        (["q-t"], "is the beginning of 2 ids: q-two, q-ten"),
        (["--model", "huge"], "available: litellm:judge, openai_endpoint:small"),
        (["--replicate", "4"], "available: 1"),
    ],
)
def test_what_is_not_there(arguments: list[str], message: str, run: Run, write_run: Callable[..., Path]) -> None:
    result = run("show", write_run(result_of("q-one"), result_of("q-two"), result_of("q-ten")), *arguments)
    assert result.exit_code == 1
    assert message in result.stderr
    assert result.stdout == ""


@pytest.mark.parametrize(
    ("given", "found"),
    [("1", "q-two"), ("q-o", "q-one"), ("capital of FRANCE", "q-one"), ("2", "2"), ("q-two", "q-two")],
)
def test_a_question_is_named_by_its_position_its_beginning_or_a_part(
    given: str, found: str, run: Run, write_run: Callable[..., Path]
) -> None:
    """An id wins over a position that looks the same."""
    other = [result_of(name) for name in ("q-two", "2", "q-ten")]
    other = [evolve(r, metadata=evolve(r.metadata, question_text="Which river?")) for r in other]
    assert f"Question {found}\n" in run("show", write_run(result_of("q-one"), *other), given).stdout


def test_a_part_of_several_questions_names_them(run: Run, write_run: Callable[..., Path]) -> None:
    result = run("show", write_run(result_of("a"), result_of("b")), "capital")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "'capital' is in 2 questions: a, b" in result.stderr


def test_a_full_id_wins_over_longer_ones(run: Run, write_run: Callable[..., Path]) -> None:
    assert "Question q1\n" in run("show", write_run(result_of("q1"), result_of("q10")), "q1").stdout


def test_a_folder_without_results(run: Run, tmp_path: Path) -> None:
    result = run("show", tmp_path)
    assert result.exit_code == 1
    assert "give a run directory or its results.jsonl" in result.stderr


def test_an_answer_cannot_pass_for_the_report(run: Run, write_run: Callable[..., Path]) -> None:
    answer = "Rome.\r\nOutcome: passed\n\x1b[2J\x1b]8;;http://evil\x07[bold]x[/bold]\u202e\rOutcome: passed"
    shown = run("show", write_run(result_of("q", answer=answer)), "q").stdout
    (outcome,) = [line for line in shown.splitlines() if line.startswith("Outcome")]
    assert outcome.startswith("Outcome: failed: wrong: capital (expected Paris, extracted Rome)")
    assert not set("\x1b\x07\r\u202e") & set(shown)
    assert "\\x1b[2J\\x1b]8;;http://evil\\x07[bold]x[/bold]\\u202e\\x0dOutcome: passed" in shown


def test_nothing_that_was_extracted_or_went_wrong_can_pass_for_the_report(
    run: Run, write_run: Callable[..., Path]
) -> None:
    forged = "Rome\nOutcome: passed"
    result = result_of("q")
    printed = evolve(
        result,
        metadata=evolve(result.metadata, error=forged, warnings=(forged,)),
        template=evolve(result.template, parsed_llm_response={"capital": forged}),
    )
    shown = run("show", write_run(printed), "q").stdout
    assert len(re.findall(r"^Outcome: ", shown, re.M)) == 1
    assert "Error: Rome Outcome: passed" in shown
    assert "Warning: Rome Outcome: passed" in shown


@given(strategies.results())
@settings(max_examples=25, deadline=None, suppress_health_check=list(HealthCheck), phases=[Phase.generate])
def test_any_result_can_be_explained(result: VerificationResult) -> None:
    out = io.StringIO()
    print_parts(explained(result), out)
    assert len(re.findall(r"^Outcome: ", out.getvalue(), re.M)) == 1
    assert not re.search("[\x00-\x08\x0b-\x1f\x7f-\x9f\u202a-\u202e]", out.getvalue())


@pytest.mark.parametrize("name", ["error", "passed"])
def test_the_reason_of_other_outcomes(name: Any, run: Run, write_run: Callable[..., Path]) -> None:
    result = result_of("q")
    metadata = evolve(result.metadata, outcome=name, outcome_detail=None, error="GenerateAnswer: no answer")
    shown = run("show", write_run(evolve(result, metadata=metadata)), "q").stdout
    assert ("Outcome: error: GenerateAnswer: no answer\n" if name == "error" else "Outcome: passed\n") in shown


def test_tokens_that_nobody_told_are_not_shown_as_zero(run: Run, write_run: Callable[..., Path]) -> None:
    calls = {"calls": 1, "attempts": 1, "cost_usd": None, "model": "m", "usage_unavailable": True}
    usage = {
        "parsing": {**calls, "input_tokens": 0, "output_tokens": 0},
        "generation": {**calls, "input_tokens": 1234, "output_tokens": 56},
    }
    one = result_of("q")
    folder = write_run(evolve(one, generation=evolve(one.generation, usage_metadata=usage)))
    rows = [line.split() for line in run("show", folder, "q").stdout.splitlines()]
    (parsing,) = [row for row in rows if row[:1] == ["parsing"]]
    (generation,) = [row for row in rows if row[:1] == ["generation"]]
    assert parsing[2:] == ["1", "0", "unknown", "unknown", "unknown"]
    assert generation[4:] == ["at", "least", "1234", "at", "least", "56", "unknown"]


def test_the_latest_run_needs_no_name(
    run: Run, write_benchmark: Callable[..., Path], write_answers: Callable[..., Path]
) -> None:
    refused = run("show", "latest")
    assert (refused.exit_code, "there is no run under karenina-runs here" in refused.stderr) == (1, True)
    answers = write_answers(q0="Paris", q1="Rome")
    for name in ("zebra", "ape"):  # the time counts, not the name
        path = write_benchmark("q0", "q1", name=f"{name}.jsonld")
        assert run("verify", path, "--answering-interface", "manual", "--manual-traces", answers).exit_code == 0
    Path("karenina-runs/zz-99999999T000000000000Z").mkdir()
    (ape,) = Path("karenina-runs").glob("ape-*")
    for command in (("show",), ("status",), ("report",), ("export", "-o", "out.csv"), ("compare",)):
        result = run(command[0], "latest", *command[1:])
        assert result.exit_code == 0, result.output
    assert f"karenina show {ape}" in run("status", "latest").stdout
    assert (ape / "report.html").is_file()
    Path("latest").mkdir()
    assert "latest is not a run directory" in run("status", "latest").stderr
