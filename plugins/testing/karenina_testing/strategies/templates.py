"""Strategies for answer templates: as data, and as handles without a runtime."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from functools import cache
from typing import Any

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from karenina_vocabulary.handle import RegexVerdict

from ..fakes import FakeFilled, FakeHandle
from .values import SHARE, SWITCH

EXPECTED: tuple[Mapping[str, Any], ...] = ({"fact": "42"}, {"drug": "aspirin", "safe": True, "dose": 7}, {})
WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=12, max_size=12)
KINDS: Mapping[str, tuple[SearchStrategy[Any], Mapping[str, Any]]] = {
    "str": (WORD, {"type": "ExactMatch"}),
    "bool": (SWITCH, {"type": "BooleanMatch"}),
    "int": (st.integers(-(10**9), 10**9), {"type": "NumericExact"}),
    "float": (st.floats(-1e6, 1e6), {"type": "NumericTolerance", "tolerance": 0.5, "mode": "absolute"}),
    "list_str": (
        st.lists(WORD, min_size=1, max_size=3, unique=True),
        {"type": "SetContainment", "mode": "exact"},
    ),
    "literal": (st.sampled_from(["up", "down"]), {"type": "LiteralMatch"}),
    "date": (st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)).map(str), {"type": "DateMatch"}),
}
"""Type of a field -> its ground truths, and a primitive for which the ground truth itself is right."""


def _field(kind: str) -> SearchStrategy[dict[str, Any]]:
    truths, primitive = KINDS[kind]
    fixed = {
        "type": kind,
        "description": f"a {kind} that the response states",
        "verify_with": dict(primitive),
        **({"literal_values": ["up", "down"]} if kind == "literal" else {}),
    }
    return st.fixed_dictionaries(
        {**{key: st.just(value) for key, value in fixed.items()}, "ground_truth": truths, "weight": WEIGHT},
        optional={"extraction_hint": st.just("look at the end of the response")},
    )


WEIGHT = st.sampled_from([1.0, 0.5, 3.0])


@cache
def template_specs() -> SearchStrategy[dict[str, Any]]:
    """A template as data, `{"fields": [...]}`: one to four fields that are right when they equal their ground truth."""
    return st.lists(st.one_of(*map(_field, KINDS)), min_size=1, max_size=4).map(
        lambda fields: {"fields": [{"name": f"fact_{number}", **field} for number, field in enumerate(fields)]}
    )


FOUND = st.builds(
    lambda success: RegexVerdict(True, success, {"dose": success}, {"dose": {}}, {"dose": ["7 mg"][:success]}), SWITCH
)


@cache
def template_handles() -> SearchStrategy[FakeHandle]:
    """Handles with and without fields, patterns and partial credit; every now and then one whose code fails."""
    return st.builds(
        FakeHandle,
        expected=st.sampled_from(EXPECTED),
        patterns=st.just(RegexVerdict(False, True)) | FOUND,
        credit=SHARE,
        failure=st.sampled_from([None, None, None, "verify() raised ZeroDivisionError (line 7: 1 / 0)"]),
    )


def fillings_of(handle: FakeHandle) -> SearchStrategy[FakeFilled]:
    """The ways to fill one template."""
    wrong = {str: "43", bool: False, int: 8}
    values = {name: st.sampled_from([value, wrong[type(value)], None]) for name, value in handle.expected.items()}
    return st.fixed_dictionaries(values).map(lambda data: FakeFilled(handle=handle, data=data))


@cache
def filled_templates() -> SearchStrategy[FakeFilled]:
    """A filled template, each of its fields right, wrong or not found."""
    return template_handles().flatmap(fillings_of)
