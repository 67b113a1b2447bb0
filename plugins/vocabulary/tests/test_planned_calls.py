"""What stages say of their calls before a run."""

from __future__ import annotations

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_vocabulary.planned_calls import PlannedCall, asks_judge, size, spanned

from karenina_core.values.question import TemplateSource

TRACE, JUDGED = {"name": "a", "is_trace": True}, {"name": "b", "is_trace": False}
CLASS = "class Answer(BaseAnswer):\n"


def declared(*fields: Any) -> str:
    return json.dumps({"fields": fields})


@pytest.mark.parametrize(
    ("language", "text", "expected"),
    [
        ("karenina-template", declared(TRACE, JUDGED), (1, 1)),
        ("karenina-template", declared(TRACE), (0, 0)),
        ("karenina-template", declared({"name": "b"}), (1, 1)),
        ("karenina-template", '{"is_trace": ', (0, 0)),
        ("karenina-template", '{"fields": 3, "is_trace": 1}', (0, 0)),
        ("python", f"{CLASS}    capital: str = Field()\n", (1, 1)),
        ("python", f"{CLASS}    def verify(self):\n        return bool(x := 1)\n", (0, 0)),
        ("python", f"{CLASS}    cited: bool = VerifiedField(verify_with=TraceRegex('x'))\n", (0, 1)),
        ("another", "whatever", (0, 1)),
    ],
)
def test_whether_a_template_asks_a_judge_is_read_off_its_text(
    language: str, text: str, expected: tuple[int, int]
) -> None:
    assert asks_judge(TemplateSource(text, language)) == expected
    assert asks_judge(None) == (0, 0)


calls = st.builds(
    PlannedCall,
    task=st.sampled_from(["a", "b"]),
    least=st.integers(0, 3),
    most=st.none() | st.integers(3, 5),
)


@given(st.lists(calls, max_size=4), st.lists(calls, max_size=4))
def test_of_two_ways_there_are_at_least_those_of_the_lesser_and_at_most_those_of_the_greater(
    certain: list[PlannedCall], possible: list[PlannedCall]
) -> None:
    found = {call.task: call for call in spanned(certain, possible)}
    assert set(found) == {call.task for call in (*certain, *possible)}
    for task, call in found.items():
        counts = [sum(one.least for one in side if one.task == task) for side in (certain, possible)]
        mosts = [one.most for one in possible if one.task == task]
        assert call.least == min(counts)
        assert (call.most is None) == (None in mosts)
        assert call.most is None or call.most >= max(*counts, sum(most or 0 for most in mosts))


def test_sizes_are_bytes() -> None:
    assert size("abc", None, "é", "", "\ud800") == 6
