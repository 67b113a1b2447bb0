"""Tables and lists of a result to which several stages add."""

from __future__ import annotations

from typing import Any

import pytest

from karenina_core import Question, Stage
from karenina_core.errors import ContractError
from karenina_core.pipeline.context import VerificationContext


class Adds(Stage):
    extends = ("trait_states", "dynamic_rubric_promoted_traits", "sample.rows")

    def execute(self, context: object) -> None:
        """Does nothing."""


def context(**fields: Any) -> VerificationContext:
    made = VerificationContext(question=Question(question="?"))
    for name, value in fields.items():
        made.set_result_field(name, value)
    return made


def test_entries_are_added_to_those_that_are_there_and_alone_where_none_are() -> None:
    made = context(trait_states={"a": 1}, dynamic_rubric_promoted_traits=("a",))
    with made.acting(Adds()):
        made.extend_result_field("trait_states", {"b": 2})
        made.extend_result_field("dynamic_rubric_promoted_traits", ["b"])
        made.extend_result_field("sample.rows", [1])
        made.extend_result_field("sample.rows", [2])
    assert made.get_result_field("trait_states") == {"a": 1, "b": 2}
    assert list(made.get_result_field("dynamic_rubric_promoted_traits")) == ["a", "b"]
    assert made.get_result_field("sample.rows") == [1, 2]


def test_no_entry_of_another_stage_is_overwritten() -> None:
    made = context(trait_states={"a": 1})
    with made.acting(Adds()), pytest.raises(ContractError, match="adds 'a' to 'trait_states', which has it already"):
        made.extend_result_field("trait_states", {"a": 2, "b": 3})
    assert made.get_result_field("trait_states") == {"a": 1}


def test_only_declared_fields_are_extended_and_only_by_what_they_hold() -> None:
    made = context(trait_states={"a": 1})
    with made.acting(Adds()):
        with pytest.raises(ContractError, match=r"add it to Adds\.extends"):
            made.extend_result_field("trait_scales", {"b": {}})
        with pytest.raises(ContractError, match="add a table to a table"):
            made.extend_result_field("trait_states", ["b"])
        with pytest.raises(ContractError, match="add a table to a table"):
            made.extend_result_field("dynamic_rubric_promoted_traits", "text")


@pytest.mark.parametrize("other", ["result_fields", "revises"])
def test_a_field_is_extended_or_set_but_not_both(other: str) -> None:
    with pytest.raises(ContractError, match="Both extends 'trait_states' and sets it too"):
        type(
            "Both",
            (Stage,),
            {"extends": ("trait_states",), other: ("trait_states",), "execute": lambda self, context: None},
        )
