"""A result is written at once where it can be, and the line is the same as piece by piece."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from decimal import Decimal
from enum import Enum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import pytest
from attrs import evolve, frozen
from hypothesis import given, settings
from karenina_runs.results import lines
from karenina_runs.results.lines import record
from karenina_testing import strategies
from karenina_vocabulary.evaluation_parts import TemplatePart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.errors import FillError
from karenina_core.values.model_config import Secret
from karenina_core.values.result import GenerationPart, LedgerEntry, MetadataPart

ME = ModelIdentity("x", "m")


class Colour(Enum):
    RED = "red"


class Word(str):
    """A text that is none of JSON's own."""


@frozen
class Pair:
    first: Any
    secret: Secret


def result(value: Any) -> VerificationResult:
    """One that has a value in all kinds of places that take any."""
    about = MetadataPart(
        question_id="q", template_id="t", result_id="0" * 16, question_text="Why?", answering=ME, parsing=ME
    )
    return VerificationResult(
        metadata=about,
        generation=GenerationPart(trace_messages=[{"role": "user", "content": value}], usage_metadata={"total": value}),
        template=TemplatePart(parsed_llm_response={"f": value, "g": [value, {"h": (value,)}]}),
        ledger=(LedgerEntry("stage", {"verdict": True}),),
        extensions={"plugin": {"key": value}},
    )


VALUES = {
    "atoms": ["a", 1, 1.5, 1e-05, True, None, "\ud800", 'a "quoted" text'],
    "tuple": ("a", ("b",)),
    "names that are no texts": {1: "a", None: "b", 1.5: "d"},
    "enum": [Colour.RED, {Colour.RED: "a"}],
    "word": [Word("w"), {Word("w"): Word("v")}],
    "mapping": MappingProxyType({"a": 1}),
    "set": {"b", "a"},
    "bytes": b"ab",
    "own class": Pair(Pair({"b", "a"}, Secret("s3cret")), Secret("s3cret")),
    "date": datetime(2024, 1, 2, tzinfo=UTC),
    "decimal": Decimal("1.50"),
    "path": Path("a"),
    "error": FillError("no"),
}


@pytest.mark.parametrize("name", VALUES)
def test_a_value_is_written_at_once_as_it_is_by_parts(name: str) -> None:
    found = result(VALUES[name])
    line = record(found)
    assert line == lines._by_parts(found)
    assert "s3cret" not in line
    json.loads(line)


@given(strategies.results())
@settings(deadline=None)
def test_every_result_is_written_at_once_as_it_is_by_parts(found: VerificationResult) -> None:
    assert record(found) == lines._by_parts(found)


def test_most_results_are_written_at_once() -> None:
    assert lines._at_once(result(VALUES["atoms"]))


@pytest.mark.parametrize("levels", [100, 140, 160, 300, 600, 900])
def test_how_deep_a_value_may_be_nested_does_not_depend_on_how_it_is_written(levels: int) -> None:
    value: Any = "deep"
    for _ in range(levels):
        value = [value]
    found = evolve(result(1), extensions={"plugin": {"key": value}})
    assert record(found) == lines._by_parts(found)
    json.loads(record(found))
