"""Strategies for what benchmarks are made of: questions, rubrics and answer templates."""

from __future__ import annotations

import datetime
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

from attrs import evolve
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from karenina_vocabulary.handle import RegexVerdict
from karenina_vocabulary.record_traits import TemplateKind
from karenina_vocabulary.traits import (
    METRICS,
    AgenticRubricTrait,
    CallableRubricTrait,
    LLMRubricTrait,
    MetricRubricTrait,
    RegexRubricTrait,
    Trait,
)

from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.question import Question
from karenina_core.values.rubric import DynamicRubric, Rubric

from ..fakes import FakeFilled, FakeHandle
from .values import FULL_TEXT, MAYBE_TEXT, NAME, OBJECT, SHARE, SWITCH, TEXT

PATTERNS = ("", "a", "^$", r"\bno\b", "(?i)yes|no", r"\d+(\.\d+)?", "[^\\s]+", "é|漢", "(a)(?P<name>b)?")
TEMPLATE_KIND = TemplateKind({"type": "object", "properties": {"clear": {"type": "boolean"}}, "required": ["clear"]})
CODE = b"an opaque pickle: nothing may run it"
COMMON: dict[str, SearchStrategy[Any]] = {"name": NAME, "description": MAYBE_TEXT, "summary": MAYBE_TEXT}

# How a trait is scored: the fields that say so.
BOOLEAN: SearchStrategy[dict[str, Any]] = st.just({"kind": "boolean"})
SCORE: SearchStrategy[dict[str, Any]] = st.builds(
    lambda low, steps: {"kind": "score", "min_score": low, "max_score": low + steps},
    st.just(0) | st.integers(-5, 5),
    st.integers(1, 10),
)
LITERAL: SearchStrategy[dict[str, Any]] = st.builds(
    lambda names, description: {"kind": "literal", "classes": dict.fromkeys(names, description)},
    st.permutations(["poor", "fair", "good"]) | st.lists(NAME, min_size=2, max_size=4, unique_by=str.casefold),
    st.none() | FULL_TEXT,
)
TEMPLATE: SearchStrategy[dict[str, Any]] = st.just({"kind": TEMPLATE_KIND})
INSTRUCTIONS = st.lists(FULL_TEXT, min_size=1, max_size=3)
CONTEXT_MODES: SearchStrategy[dict[str, Any]] = st.sampled_from(
    [
        {"context_mode": mode, "materialize_trace": written}
        for mode in ("workspace_only", "trace_and_workspace", "trace_only")
        for written in (False, True)
        if not (written and mode == "workspace_only")
    ]
)
EXPECTED: tuple[Mapping[str, Any], ...] = ({"fact": "42"}, {"drug": "aspirin", "safe": True, "dose": 7}, {})
WORD = st.text("abcdefghijklmnopqrstuvwxyz", min_size=12, max_size=12)
KINDS: Mapping[str, tuple[SearchStrategy[Any], Mapping[str, Any]]] = {
    "str": (WORD, {"type": "ExactMatch"}),
    "bool": (SWITCH, {"type": "BooleanMatch"}),
    "int": (st.integers(-(10**9), 10**9), {"type": "NumericExact"}),
    "float": (st.floats(-1e6, 1e6), {"type": "NumericTolerance", "tolerance": 0.5, "mode": "absolute"}),
    "list_str": (st.lists(WORD, min_size=1, max_size=3, unique=True), {"type": "SetContainment", "mode": "exact"}),
    "literal": (st.sampled_from(["up", "down"]), {"type": "LiteralMatch"}),
    "date": (st.dates(datetime.date(1900, 1, 1), datetime.date(2100, 1, 1)).map(str), {"type": "DateMatch"}),
}
"""Type of a field -> its ground truths, and a primitive for which the ground truth itself is right."""
WEIGHT = st.sampled_from([1.0, 0.5, 3.0])
FOUND = st.builds(
    lambda success: RegexVerdict(True, success, {"dose": success}, {"dose": {}}, {"dose": ["7 mg"][:success]}), SWITCH
)


@cache
def llm_traits() -> SearchStrategy[LLMRubricTrait]:
    """Boolean, scored, literal and template kinds."""
    return st.builds(
        lambda scored, direction, **more: LLMRubricTrait(**scored, **direction, **more),
        BOOLEAN | SCORE | LITERAL,
        st.fixed_dictionaries({"higher_is_better": SWITCH, "deep_judgment_enabled": SWITCH}),
        include_ground_truth=SWITCH,
        **COMMON,
    ) | st.builds(lambda **more: LLMRubricTrait(kind=TEMPLATE_KIND, **more), **COMMON)


@cache
def regex_traits() -> SearchStrategy[RegexRubricTrait]:
    """Patterns that compile."""
    return st.builds(
        RegexRubricTrait,
        pattern=st.sampled_from(PATTERNS),
        case_sensitive=SWITCH,
        invert_result=SWITCH,
        higher_is_better=SWITCH,
        **COMMON,
    )


@cache
def callable_traits() -> SearchStrategy[CallableRubricTrait]:
    """Traits whose code is inert bytes, or missing."""
    return st.builds(
        lambda scored, **more: CallableRubricTrait(**scored, **more),
        BOOLEAN | BOOLEAN.map(lambda scored: scored | {"invert_result": True}) | SCORE | LITERAL,
        callable_code=st.sampled_from([CODE, None]),
        **COMMON,
    )


def _metric(mode: Literal["tp_only", "full_matrix"], **more: SearchStrategy[Any]) -> SearchStrategy[MetricRubricTrait]:
    return st.builds(
        MetricRubricTrait,
        evaluation_mode=st.just(mode),
        metrics=st.lists(st.sampled_from(METRICS[mode]), min_size=1, unique=True),
        tp_instructions=INSTRUCTIONS,
        repeated_extraction=SWITCH,
        **more,
        **COMMON,
    )


@cache
def metric_traits() -> SearchStrategy[MetricRubricTrait]:
    """Both evaluation modes, with some of their metrics."""
    return _metric("tp_only") | _metric("full_matrix", tn_instructions=INSTRUCTIONS)


@cache
def agentic_traits() -> SearchStrategy[AgenticRubricTrait]:
    """Every context mode and kind."""
    return st.builds(
        lambda scored, mode, **more: AgenticRubricTrait(**scored, **mode, **more),
        BOOLEAN | SCORE | LITERAL | TEMPLATE,
        CONTEXT_MODES,
        name=NAME,
        description=FULL_TEXT,
        summary=MAYBE_TEXT,
        max_turns=st.integers(1, 30),
        timeout_seconds=st.integers(1, 600),
    )


@cache
def traits() -> SearchStrategy[Trait]:
    """A trait of any of the five types."""
    return st.one_of(llm_traits(), regex_traits(), callable_traits(), metric_traits(), agentic_traits())


@cache
def rubrics() -> SearchStrategy[Rubric]:
    """Up to four traits whose names differ; perhaps none."""
    return st.lists(traits(), max_size=4, unique_by=lambda trait: trait.name).map(Rubric.from_traits)


DESCRIBED = st.builds(lambda trait, summary: evolve(trait, summary=summary), traits(), FULL_TEXT) | traits().filter(
    lambda trait: bool((trait.summary or trait.description or "").strip())
)


@cache
def dynamic_rubrics() -> SearchStrategy[DynamicRubric]:
    """Up to four traits whose names differ, each with a summary or a description of what it is about; perhaps none."""
    return st.lists(DESCRIBED, max_size=4, unique_by=lambda trait: trait.name).map(DynamicRubric.from_traits)


def _distinct(*rubrics: Rubric | None) -> bool:
    """Whether no name occurs twice, as a run demands it of the rubrics that apply to one question."""
    names = [name for rubric in rubrics if rubric is not None for name in rubric.names()]
    return len(set(names)) == len(names)


@cache
def questions() -> SearchStrategy[Question]:
    """A question with any of what can belong to it. Its template's source is text that no runtime has looked at."""
    return st.builds(
        lambda identity, **facts: Question(**facts, **identity),
        st.just({}) | NAME.map(lambda name: {"id": name}),
        question=FULL_TEXT,
        raw_answer=TEXT,
        answer_template=MAYBE_TEXT,
        template_language=st.sampled_from(["python", "karenina-template"]),
        finished=st.sampled_from([None, True, False]),
        placeholder_template=SWITCH,
        keywords=st.lists(TEXT, max_size=3),
        question_rubric=st.none() | rubrics(),
        question_dynamic_rubric=st.none() | dynamic_rubrics(),
        few_shot_examples=st.lists(st.fixed_dictionaries({"question": TEXT, "answer": TEXT}), max_size=3),
        answer_notes=MAYBE_TEXT,
        author=st.sampled_from([None, {"name": "A. Author"}]),
        custom_metadata=OBJECT,
    ).filter(lambda question: _distinct(question.question_rubric, question.question_dynamic_rubric))


@cache
def benchmarks() -> SearchStrategy[BenchmarkData]:
    """Up to three questions whose ids differ, and perhaps rubrics for all of them."""
    return st.builds(
        BenchmarkData,
        name=FULL_TEXT,
        description=TEXT,
        questions=st.lists(questions(), max_size=3, unique_by=lambda question: question.id),
        rubric=st.none() | rubrics(),
        dynamic_rubric=st.none() | dynamic_rubrics(),
        metadata=OBJECT,
    ).filter(
        lambda benchmark: all(
            _distinct(*rubrics, benchmark.rubric, benchmark.dynamic_rubric)
            for rubrics in [(), *((q.question_rubric, q.question_dynamic_rubric) for q in benchmark)]
        )
    )


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


@cache
def template_specs() -> SearchStrategy[dict[str, Any]]:
    """A template as data, `{"fields": [...]}`: one to four fields that are right when they equal their ground truth."""
    return st.lists(st.one_of(*map(_field, KINDS)), min_size=1, max_size=4).map(
        lambda fields: {"fields": [{"name": f"fact_{number}", **field} for number, field in enumerate(fields)]}
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
