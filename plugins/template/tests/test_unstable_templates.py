"""Templates whose code says something else each time: found by running it twice, and reported."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

Make = Callable[..., Any]
BEGINNING = """
import itertools
import random

calls = itertools.count()

class Answer(BaseAnswer):
    target: str = Field(description="x")

    def verify(self):
"""
UNSTABLE = {
    "a state that is kept": "return next(calls) % 2 == 0",
    "a change of its own object": "type(self).seen = not getattr(type(self), 'seen', False); return self.seen",
    "an error the second time": "return {0: True}[next(calls)]",
}
STABLE = {
    "a comparison": "return self.target == 'BCL2'",
    "a change of the extracted value": "self.target = self.target.lower(); return self.target == 'bcl2'",
}


@pytest.mark.parametrize("body", UNSTABLE.values(), ids=UNSTABLE)
def test_code_that_gives_another_result_is_a_caveat_and_its_first_result_counts(
    body: str, context: Make, run: Make
) -> None:
    about = context(f"{BEGINNING}        {body}\n")
    run(about)
    assert str(about.outcome) == "passed"
    assert about.get_result_field("caveats") == ["unstable_template"]
    assert any("verify() gave another result when it was run again" in warning for warning in about.warnings)


@pytest.mark.parametrize("body", STABLE.values(), ids=STABLE)
def test_code_that_says_the_same_is_not(body: str, context: Make, run: Make) -> None:
    about = context(f"{BEGINNING}        {body}\n")
    run(about)
    assert str(about.outcome) == "passed"
    assert about.get_result_field("caveats", []) == []


def test_templates_without_code_of_their_own_are_asked_once(context: Make, run: Make) -> None:
    about = context()
    run(about)
    assert about.get_result_field("caveats", []) == []


PATTERNS = """
import itertools

calls = itertools.count()

class Answer(BaseAnswer):
    target: str = VerifiedField(description="x", ground_truth="BCL2", verify_with=ExactMatch())

"""
HOOK = """
    def ground_truth(self):
        self.regex = {{"a": {{"pattern": {}, "expected": "BCL2", "match_type": "contains"}}}}
"""
OWN = """
    def verify_regex(self, raw_trace):
        return {{"success": {}, "results": {{"a": True}}, "details": {{}}}}
"""
OF_PATTERNS = {
    "other patterns": (HOOK.format("'BCL2' + '|x' * next(calls)"), True),
    "the same patterns": (HOOK.format("'BCL2'"), False),
    "another success": (OWN.format("next(calls) % 2 == 0"), True),
    "an error the second time": (OWN.format("{0: True}[next(calls)]"), True),
    "the same success": (OWN.format("True"), False),
}


@pytest.mark.parametrize(("body", "unstable"), OF_PATTERNS.values(), ids=OF_PATTERNS)
def test_patterns_that_change_are_a_caveat_too(body: str, unstable: bool, context: Make, run: Make) -> None:
    about = context(PATTERNS + body)
    run(about)
    assert str(about.outcome) == "passed"
    assert about.get_result_field("caveats", []) == ["unstable_template"] * unstable
    assert any("self.regex gave another result" in warning for warning in about.warnings) is unstable
