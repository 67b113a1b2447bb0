"""Metric traits as values: what cannot be counted is refused when the trait is made."""

from __future__ import annotations

from typing import Any

import pytest

from karenina_core import MetricRubricTrait

FULL: dict[str, Any] = {"evaluation_mode": "full_matrix", "tn_instructions": ["a dose"]}


def made(**facts: Any) -> MetricRubricTrait:
    return MetricRubricTrait(**{"name": "m", "metrics": ["f1"], "tp_instructions": ["the target"], **facts})


@pytest.mark.parametrize("blank", ["", " ", "\n\t"])
@pytest.mark.parametrize("side", ["tp_instructions", "tn_instructions"])
def test_blank_instructions_are_refused(side: str, blank: str) -> None:
    with pytest.raises(ValueError, match="instructions may not be blank"):
        made(**{**FULL, side: ["the target", blank]})


@pytest.mark.parametrize(
    ("facts", "said"),
    [
        ({"tp_instructions": []}, "tp_instructions may not be empty"),
        ({"evaluation_mode": "full_matrix"}, "full_matrix needs tn_instructions"),
        ({"metrics": []}, "metrics must be some of precision, recall, f1"),
        ({"metrics": ["accuracy"]}, "metrics must be some of precision, recall, f1"),
        ({**FULL, "metrics": ["tp"]}, "specificity, accuracy"),
        ({"evaluation_mode": "other"}, "tp_only or full_matrix, not 'other'"),
        ({"evaluation_mode": ["x"]}, r"tp_only or full_matrix, not \['x'\]"),
        ({"metrics": "f1"}, "metrics must be a list of texts, not 'f1'"),
        ({"metrics": None}, "metrics must be a list of texts, not None"),
        ({"metrics": [["f1"]]}, "metrics must be a list of texts"),
        ({"tp_instructions": "the target"}, "tp_instructions must be a list of texts, not 'the target'"),
        ({"tp_instructions": [3]}, r"tp_instructions must be a list of texts, not \[3\]"),
        ({"tn_instructions": {"a dose": 1}}, "tn_instructions must be a list of texts"),
    ],
)
def test_traits_that_cannot_be_counted_are_refused(facts: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=f"trait 'm': .*{said}"):
        made(**facts)


def test_a_metric_that_is_repeated_is_kept_once() -> None:
    assert made(metrics=["f1", "recall", "f1"]).metrics == ("f1", "recall")


def test_an_instruction_on_both_sides_can_be_kept_and_not_scored() -> None:
    """A file may hold such a trait; in `tp_only` the second list has no effect."""
    both = {**FULL, "tn_instructions": ["a dose", "THE target "]}
    assert "'THE target ' is both a TP and a TN instruction; remove one" in made(**both).ambiguity()
    assert made(**FULL).ambiguity() == made(tn_instructions=["the target"]).ambiguity() == ""


@pytest.mark.parametrize("facts", [{}, FULL, {**FULL, "metrics": ["accuracy", "specificity"]}])
def test_traits_that_can_be_counted_are_made(facts: dict[str, Any]) -> None:
    assert made(**facts).tp_instructions == ("the target",)
