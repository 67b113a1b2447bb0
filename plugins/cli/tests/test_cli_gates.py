"""Gates of `karenina verify` and `karenina resume`: exit code 4, and what they say."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import pytest
from click.testing import Result

from karenina_core.testing import Reply, ScriptedServer

Run = Callable[..., Result]
Files = Callable[..., Path]
ANSWERS = {"q0": "Paris", "q1": "Paris", "q2": "Rome"}


@pytest.fixture
def verify(run: Run, write_benchmark: Files, write_answers: Files) -> Callable[..., Result]:
    """Two of three recorded answers are right."""
    path, answers = write_benchmark(*ANSWERS), write_answers(**ANSWERS)

    def execute(*options: object) -> Result:
        return run("verify", path, "--answering-interface", "manual", "--manual-traces", answers, *options)

    return execute


@pytest.mark.parametrize(
    ("options", "passes"),
    [
        (["--min-pass-rate", "0.6"], True),
        (["--min-pass-rate", "0.7"], False),
        (["--min-coverage", "1"], True),
        (["--must-pass", "q0", "--must-pass", "q1"], True),
        (["--must-pass", "q0", "--must-pass", "q2"], False),
        (["--max-errors", "0"], True),
        (["--replicates", "2", "--min-pass-per-question", "1/2"], False),
        (["--replicates", "2", "--min-pass-per-question", "1/2", "--questions", "0-1"], True),
        (["--min-pass-rate", "0.6", "--must-pass", "q2"], False),
    ],
)
def test_a_gate_decides_the_exit_code(options: list[str], passes: bool, verify: Callable[..., Result]) -> None:
    result = verify(*options, "--out", "out")
    assert result.exit_code == (0 if passes else 4), result.stderr
    assert "Gates" in result.stdout
    assert ("FAILED" in result.stdout) == ("gate failed: " in result.stderr) == (not passes)


def test_the_document_has_them(verify: Callable[..., Result]) -> None:
    document = json.loads(verify("--min-pass-rate", "0.5", "--must-pass", "q2", "--json", "--out", "out").stdout)
    assert [(gate["name"], gate["about"], gate["passed"]) for gate in document["gates"]] == [
        ("pass rate", "manual:manual, judged by manual:manual", True),
        ("must pass", "q2", False),
    ]
    assert "2 of 3 items pass (66.7 %), at least 50.0 % required" in document["gates"][0]["message"]
    assert "gates" not in json.loads(verify("--json", "--out", "without", "--export", "junit.xml").stdout)
    suites = ElementTree.parse("junit.xml").getroot()
    assert (suites.get("tests"), suites.get("failures"), suites.get("errors")) == ("3", "1", "0")


@pytest.mark.parametrize(
    ("options", "code", "message"),
    [
        (["--must-pass", "q9"], 1, "the run has no question 'q9'"),
        (["--must-pass", "q2", "--questions", "0-1"], 1, "the run has no question 'q2'"),
        (["--must-pass", "keyword:x"], 1, "no question of the run has the keyword 'x'"),
        (["--min-pass-per-question", "2/3"], 1, "add --replicates 3"),
        (["--min-pass-per-question", "3/2"], 2, "write K/N, such as 8/10"),
        (["--max-errors", "many"], 2, "write a number, or a share such as 5%"),
        (["--max-errors", "101%"], 2, "write a number"),
        (["--min-pass-rate", "80"], 2, "0<=x<=1"),
    ],
)
def test_a_gate_that_makes_no_sense_is_refused_before_a_model_is_asked(
    options: list[str], code: int, message: str, run: Run, served: Any, write_benchmark: Files
) -> None:
    with ScriptedServer(lambda request: Reply.error(500)) as server:
        result = run("verify", write_benchmark(*ANSWERS), *served(server.url), *options)
        assert (result.exit_code, server.count) == (code, 0)
    assert message in result.stderr


def test_errors_are_allowed_as_far_as_the_gate_says_and_a_resumed_run_by_its_own_gates(
    run: Run, served: Any, write_benchmark: Files
) -> None:
    broken = True

    def script(request: Any) -> Any:
        if broken and "(q2)" in request.text:
            return Reply.error(401)
        return {"capital": "Paris"} if request.schema else "Paris."

    path = write_benchmark(*ANSWERS)
    with ScriptedServer(script) as server:
        flags = served(server.url)
        assert run("verify", path, *flags, "--out", "plain").exit_code == 3
        assert run("verify", path, *flags, "--out", "one", "--max-errors", "1").exit_code == 0
        assert run("verify", path, *flags, "--out", "share", "--max-errors", "34%").exit_code == 0
        none = run("verify", path, *flags, "--out", "none", "--max-errors", "33%")
        assert (none.exit_code, "1 error in 3 items, at most 33.0 % allowed" in none.stderr) == (4, True)
        gates = ("--min-pass-rate", "0.9", "--must-pass", "q2")
        undecided = run("verify", path, *flags, "--out", "out", *gates)
        assert undecided.exit_code == 4
        assert undecided.stderr.count("cannot be decided: ") == 2
        broken = False
        resumed = run("resume", "out", "--retry-failed", *gates, "--json")
        assert resumed.exit_code == 0, resumed.stderr
        assert [gate["passed"] for gate in json.loads(resumed.stdout)["gates"]] == [True, True]
        assert run("resume", "out", "--must-pass", "q7").exit_code == 1


def test_a_run_is_gated_by_an_earlier_one(
    verify: Callable[..., Result], run: Run, write_benchmark: Files, write_answers: Files
) -> None:
    right = dict.fromkeys(ANSWERS, "Paris")
    assert verify("--out", "worse").exit_code == 0
    path, answers = write_benchmark(*right), write_answers(**right)
    again = ("verify", path, "--answering-interface", "manual", "--manual-traces", answers)
    assert run(*again, "--out", "before", "--baseline", "worse", "--max-drop", "0").exit_code == 0
    write_answers(**ANSWERS)
    for options, code, said in (
        (["--max-drop", "0.34"], 0, "-33.3 pp on 3 questions"),
        (["--max-drop", "0.33"], 4, "a drop of at most 33.0 pp allowed"),
        (["--fail-on-regression"], 4, "no result of 3 questions could be significant"),
        (["--fail-on-regression", "--set", "plugins.compare.undecided=warn"], 0, "undecided = 'warn'"),
    ):
        found = verify("--out", f"out-{len(list(Path().iterdir()))}", "--baseline", "before", *options)
        assert (found.exit_code, said in found.stdout) == (code, True), found.stderr


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--max-drop", "0.1"], "add --baseline DIR"),
        (["--baseline", "nowhere"], "has no effect alone"),
        (["--baseline", "nowhere", "--max-drop", "0.1"], "--baseline: "),
        (["--baseline", "nowhere", "--max-drop", "-1"], "'max_drop' must be >= 0"),
    ],
)
def test_a_baseline_that_is_not_there_is_refused_before_anything_is_asked(
    options: list[str], message: str, verify: Callable[..., Result]
) -> None:
    refused = verify("--out", "out", *options)
    assert (refused.exit_code, message in refused.stderr, Path("out").exists()) == (1, True, False)


def test_annotations_name_gates_and_questions(verify: Callable[..., Result]) -> None:
    result = verify("--out", "out", "--replicates", "2", "--min-pass-rate", "0.9", "--annotations", "github")
    lines = [line for line in result.stderr.splitlines() if line.startswith("::")]
    assert lines[0].startswith("::error title=pass rate gate failed::")
    assert lines[1].startswith("::warning title=failed%3A q2::manual:manual: ")
    assert lines[1].endswith(" (2 times)")
    assert len(lines) == 2
