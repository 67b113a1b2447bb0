"""Regular expressions over the raw trace."""

from __future__ import annotations

from typing import Any

import pytest
from karenina_template.language.searches import pattern_problems, run_patterns

TRACE = "--- AI Message ---\nBCL2 binds BAX (see [1] and [2])."


@pytest.mark.parametrize(
    ("check", "passed"),
    [
        ({"pattern": r"BCL\d", "expected": "BCL2"}, True),
        ({"pattern": r"\[\d\]", "expected": "[1]"}, False),
        ({"pattern": r"\[\d\]", "expected": "[1]", "match_type": "contains"}, True),
        ({"pattern": r"\[\d\]", "expected": "[3]", "match_type": "contains"}, False),
        ({"pattern": r"\[\d\]", "expected": 2, "match_type": "count"}, True),
        ({"pattern": r"\[\d\]", "expected": 3, "match_type": "count"}, False),
        ({"pattern": r"B\w+", "expected": ["BAX", "BCL2"], "match_type": "all"}, True),
        ({"pattern": r"B\w+", "expected": ["BAX", "BIM"], "match_type": "all"}, False),
        ({"pattern": r"nothing", "expected": "nothing"}, False),
        ({"pattern": r"B\w+", "expected": "BAX", "match_type": "nearly"}, False),
        ({"pattern": r"AI Message", "expected": "AI Message"}, True),
    ],
)
def test_the_kinds_of_checks(check: dict[str, Any], passed: bool) -> None:
    verdict = run_patterns({"one": check}, TRACE)
    assert verdict.performed
    assert verdict.success is passed
    assert verdict.results == {"one": passed}
    assert ("success_reason" in verdict.details["one"]) is passed
    assert ("failure_reason" in verdict.details["one"]) is not passed


def test_the_details_tell_what_was_found() -> None:
    verdict = run_patterns({"refs": {"pattern": r"\[\d\]", "expected": 2, "match_type": "count"}}, TRACE)
    assert verdict.extractions == {"refs": ["[1]", "[2]"]}
    detail = dict(verdict.details["refs"])
    assert detail.pop("success_reason")
    assert detail == {
        "pattern": r"\[\d\]",
        "expected": 2,
        "match_type": "count",
        "matches_found": ["[1]", "[2]"],
        "match_count": 2,
        "match_start": TRACE.index("[1]"),
        "match_end": TRACE.index("[1]") + 3,
        "full_match": "[1]",
    }


def test_capture_groups_replace_the_match() -> None:
    assert run_patterns({"g": {"pattern": r"(B)CL2", "expected": "B"}}, TRACE).success
    assert run_patterns({"g": {"pattern": r"(?:B)CL2", "expected": "BCL2"}}, TRACE).success
    assert run_patterns({"g": {"pattern": r"(B)(C)L2", "expected": "BCL2"}}, TRACE).extractions == {"g": [["B", "C"]]}


@pytest.mark.parametrize("bad", [{"pattern": "(", "expected": "x"}, {"expected": "x"}, {"pattern": "a"}, "a", None])
def test_a_check_that_cannot_run_fails_alone(bad: Any) -> None:
    verdict = run_patterns({"bad": bad, "good": {"pattern": "BAX", "expected": "BAX"}}, TRACE)
    assert verdict.results == {"bad": False, "good": True}
    assert verdict.success is False
    assert "error" in verdict.details["bad"]


def test_no_checks_succeed_without_being_performed() -> None:
    verdict = run_patterns({}, TRACE)
    assert (verdict.performed, verdict.success, verdict.results) == (False, True, {})


@pytest.mark.parametrize(
    ("checks", "message"),
    [
        ([], "must be a dict of checks by name, not list"),
        ({"a": "BCL2"}, "self.regex['a']: must be a dict with pattern"),
        ({"a": {}}, "'pattern' is missing"),
        ({"a": {"pattern": "x"}}, "'expected' is missing"),
        ({"a": {"pattern": "(", "expected": "x"}}, "not a regular expression"),
        ({"a": {"pattern": 3, "expected": "x"}}, "not a regular expression"),
        ({"a": {"pattern": "(a)(b)", "expected": "ab"}}, "2 capture groups"),
        ({"a": {"pattern": "(B)CL2", "expected": "BCL2"}}, "write (?:...) instead"),
        ({"a": {"pattern": "(B)CL2", "expected": ["BCL2"], "match_type": "all"}}, "gives ['B']"),
        ({"a": {"pattern": "a", "expected": "a", "match_type": "contain"}}, "did you mean 'contains'?"),
        ({"a": {"pattern": "a", "expected": "a", "match_type": ["exact"]}}, "unknown match_type"),
        ({"a": {"pattern": "a", "expected": "1", "match_type": "count"}}, "of type int for match_type 'count'"),
        ({"a": {"pattern": "a", "expected": "a", "match_type": "all"}}, "of type list or tuple"),
    ],
)
def test_problems_are_found_before_a_run(checks: Any, message: str) -> None:
    assert any(message in problem for problem in pattern_problems(checks))


def test_good_checks_have_no_problems() -> None:
    good = {
        "a": {"pattern": "a", "expected": "a"},
        "b": {"pattern": "(a)", "expected": "a", "match_type": "contains"},
        "c": {"pattern": "(a)(b)", "expected": 2, "match_type": "count"},
        "d": {"pattern": "a", "expected": ["a"], "match_type": "all"},
        "e": {"pattern": "(BCL2) binds", "expected": "BCL2"},
        "f": {"pattern": "(BCL2|BAX)", "expected": ["BCL2", "BAX"], "match_type": "all"},
    }
    assert pattern_problems(good) == []
