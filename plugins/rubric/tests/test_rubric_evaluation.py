"""RubricEvaluation: every trait gets a score, or a state that says why not; no trait costs another one its score."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from hypothesis import example, given, settings
from hypothesis import strategies as st
from karenina_rubric.evaluation import RubricEvaluation
from karenina_testing.strategies import rubrics
from karenina_vocabulary.evaluators import TraitEvidence
from karenina_vocabulary.record_traits import TemplateKind

from karenina_core import (
    AgenticRubricTrait,
    ArtifactKeys,
    Benchmark,
    CallableRubricTrait,
    Category,
    DynamicRubric,
    Karenina,
    LLMRubricTrait,
    MetricRubricTrait,
    ModelConfig,
    Question,
    RegexRubricTrait,
    Rubric,
    RubricTrait,
    Skip,
    Stage,
    StageOrchestrator,
    TraitScore,
    VerificationConfig,
    VerificationResultSet,
    hookimpl,
)
from karenina_core.errors import ConfigError, PortError
from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.testing import ScriptedLLM, application
from karenina_core.values.convert import structure, unstructure
from karenina_core.values.result import VerificationResult
from karenina_core.values.rubric import TRAIT_LISTS

Make = Callable[..., Any]
LAW = settings(database=None, deadline=None, derandomize=True, max_examples=settings().max_examples // 2)
CITED = RegexRubricTrait(name="cited", pattern=r"\[\d+\]")
KIND = TemplateKind({"type": "object", "properties": {"a": {"type": "string"}}, "required": ["a"]})


def boolean(name: str, **facts: Any) -> LLMRubricTrait:
    return LLMRubricTrait(name=name, kind="boolean", **facts)


@frozen(kw_only=True)
class ToneTrait(RubricTrait):
    """A type of trait that another package brings."""

    type_name = "tone"


ALL = Rubric(
    llm_traits=[
        boolean("clear"),
        LLMRubricTrait(name="depth", kind="score", min_score=0, max_score=10),
        LLMRubricTrait(name="tone class", kind="literal", classes={"Dry": None, "Warm": None}),
        LLMRubricTrait(name="record", kind=KIND),
    ],
    regex_traits=[CITED],
    callable_traits=[
        CallableRubricTrait(name="length", kind="score", min_score=0, max_score=9, callable_code=b"code"),
        CallableRubricTrait(name="size", kind="literal", classes={"S": None, "L": None}, callable_code=b"code"),
    ],
    metric_traits=[MetricRubricTrait(name="named", metrics=["recall"], tp_instructions=["COX-1"])],
    extra_traits=[ToneTrait(name="mood")],
)
METRICS = {"tp": 1, "fn": 0, "recall": 1.0}
LISTS = {"tp": ["COX-1"], "fn": []}
GOOD: dict[str, dict[str, Any]] = {
    "llm": {
        "clear": TraitScore(value=True),
        "depth": TraitScore(value=0, details={"scale": "open"}),
        "tone class": TraitScore(value=1, label="Warm"),
        "record": TraitScore(value={"a": "x"}),
    },
    "callable": {"length": TraitScore(value=2.5), "size": TraitScore(value=0)},
    "metric": {"named": TraitScore(value=METRICS, details={"confusion": LISTS, "passages": 1})},
    "tone": {"mood": TraitScore(value=["calm", 3])},
}


class Leaving(dict[str, Any]):
    """A table that cannot be read."""

    def items(self) -> Any:
        raise SystemExit(3)


def evaluators(scripted: Make, **changes: Mapping[str, Any]) -> list[Any]:
    return [scripted(name, {**does, **changes.get(name, {})}) for name, does in GOOD.items()]


def test_scores_of_every_type_are_where_results_keep_them(scored: Make, scripted: Make) -> None:
    done = scored(ALL, *evaluators(scripted))
    rubric = done.rubric
    assert rubric.rubric_evaluation_performed is True
    assert rubric.rubric_evaluation_strategy == "batch"
    assert rubric.llm_trait_scores == {"clear": True, "depth": 0, "tone class": 1, "record.a": "x"}
    assert rubric.llm_trait_labels == {"tone class": "Warm"}
    assert rubric.regex_trait_scores == {"cited": True}
    assert rubric.callable_trait_scores == {"length": 2.5, "size": 0}
    assert rubric.metric_trait_scores == {"named": METRICS}
    assert rubric.metric_trait_confusion_lists == {"named": LISTS}
    assert rubric.extra_trait_scores == {"tone": {"mood": ["calm", 3]}}
    assert rubric.trait_details == {"depth": {"scale": "open"}, "named": {"passages": 1}}
    assert rubric.trait_scales == {trait.name: trait.scale() for trait in ALL}
    assert rubric.trait_provenance == dict.fromkeys(ALL.names(), "global")
    assert set(done.states.values()) == {"ok"}
    assert (str(done.result.outcome), done.result.metadata.warnings) == ("scored", ())
    assert done.trail["RubricEvaluation"] == ("ran", "9 of 9 traits have a score")
    assert done.result.deep_judgment_rubric is None


def test_the_artifacts_hold_every_score_once(scripted: Make, scored: Make) -> None:
    seen: dict[str, Any] = {}
    reader = artifact_reader(seen)
    scored(ALL, reader, *evaluators(scripted))
    assert seen["rubric_result"] == {
        **{"clear": True, "depth": 0, "tone class": 1, "record.a": "x", "cited": True, "length": 2.5, "size": 0},
        "mood": ["calm", 3],
    }
    assert seen["llm_trait_labels"] == {"tone class": "Warm"}
    assert seen["metric_results"] == {"named": METRICS}
    assert seen["metric_confusion_lists"] == {"named": LISTS}


def artifact_reader(seen: dict[str, Any]) -> Any:
    class Reader(Stage):
        category = Category.RUBRIC
        requires = ("rubric_result", "llm_trait_labels", "metric_confusion_lists", "metric_results")

        def execute(self, context: Any) -> None:
            seen.update({key: context.get_artifact(key) for key in self.requires})

    return Reader


# One trait's failure is its own


def test_an_evaluator_that_fails_costs_only_its_own_traits_their_scores(scored: Make, scripted: Make) -> None:
    done = scored(ALL, *evaluators(scripted, llm={"clear": PortError("the judge is away", kind="auth")}))
    assert done.rubric.llm_trait_scores == {"clear": None, "depth": None, "tone class": -1, "record": None}
    assert done.rubric.llm_trait_labels == {"tone class": "[EVALUATION_ERROR: the judge is away]"}
    assert done.rubric.regex_trait_scores == {"cited": True}
    assert done.rubric.metric_trait_scores == {"named": METRICS}
    assert done.rubric.extra_trait_scores == {"tone": {"mood": ["calm", 3]}}
    assert {name for name, state in done.states.items() if state == "error"} == {t.name for t in ALL.llm_traits}
    (warning,) = done.result.metadata.warnings
    assert warning.startswith("4 of 9 traits have no score (clear: the judge is away; ")
    assert str(done.result.outcome) == "scored"


def test_where_every_evaluator_fails_there_still_is_a_result_with_states(scored: Make, scripted: Make) -> None:
    failing = {name: dict.fromkeys(does, RuntimeError("out of order")) for name, does in GOOD.items() if name != "tone"}
    done = scored(Rubric(**{**fields_of(ALL), "regex_traits": ()}), *evaluators(scripted, **failing, tone={"mood": 1j}))
    assert done.rubric.rubric_evaluation_performed is True
    assert set(done.states.values()) == {"error"}
    assert done.reason("clear").startswith("RuntimeError: out of order (")
    assert done.rubric.callable_trait_scores == {"length": None, "size": -1}
    assert done.rubric.metric_trait_scores == {"named": None}
    assert done.rubric.extra_trait_scores == {"tone": {"mood": None}}
    assert not done.result.metadata.completed_without_errors


def fields_of(rubric: Rubric) -> dict[str, Any]:
    return {name: getattr(rubric, name) for name in TRAIT_LISTS}


def test_an_evaluator_that_cannot_be_made_is_refused_before_a_run(scored: Make, scripted: Make) -> None:
    with pytest.raises(ConfigError, match="no plugin scores traits of the type 'tone' \\('mood'\\)"):
        scored(ALL, *[e for e in evaluators(scripted) if e.name != "tone"])


@pytest.mark.parametrize(
    ("given", "state", "words"),
    [
        (None, "missing", "gave no score for it"),
        ("yes", "error", "str instead of a TraitScore"),
        (TraitScore(value=None), "error", "no score, and no reason"),
        (TraitScore(value={1, 2}), "error", "that JSON cannot hold: set is not plain data"),
        (TraitScore(value=float("nan")), "invalid", "that JSON cannot hold"),
        (TraitScore(value=float("-inf")), "invalid", "that JSON cannot hold"),
        (TraitScore(value=10**400), "invalid", "a number beyond those of floats"),
        (TraitScore(value=-(10**5000)), "invalid", "that JSON cannot hold"),
        (TraitScore(value=True, state="fine"), "error", "the state 'fine'"),  # type: ignore[arg-type]  # the mistake
        (TraitScore(value=True, state=["ok"]), "error", "the state \\['ok'\\]"),  # type: ignore[arg-type]  # as well
        (TraitScore(value=True, state="error"), "error", "could not be evaluated"),
        (TraitScore(value=True, state="invalid"), "invalid", "is not a score of this trait"),
        (TraitScore(value=3), "invalid", "gave 3, which is not true or false"),
        (TraitScore(value="true"), "invalid", "gave 'true', which is not true or false"),
    ],
)
def test_what_is_no_score_of_a_trait_never_becomes_one(
    scored: Make, scripted: Make, given: Any, state: str, words: str
) -> None:
    rubric = Rubric(llm_traits=[boolean("odd"), boolean("even")])
    done = scored(rubric, scripted("llm", {"odd": given, "even": TraitScore(value=False)}))
    assert done.rubric.llm_trait_scores == {"odd": None, "even": False}
    assert done.states == {"odd": state, "even": "ok"}
    assert re.search(words, done.reason("odd"))


@pytest.mark.parametrize(
    ("trait", "value"),
    [
        (LLMRubricTrait(name="x", kind="score"), 0),
        (LLMRubricTrait(name="x", kind="score"), 2.5),
        (LLMRubricTrait(name="x", kind="score"), True),
        (LLMRubricTrait(name="x", kind="literal", classes={"A": None, "B": None}), -1),
        (LLMRubricTrait(name="x", kind="literal", classes={"A": None, "B": None}), "A"),
        (LLMRubricTrait(name="x", kind=KIND), {}),
        (LLMRubricTrait(name="x", kind=KIND), True),
        (CallableRubricTrait(name="x", kind="score", min_score=0, max_score=1, callable_code=b""), 1.5),
        (MetricRubricTrait(name="x", metrics=["f1"], tp_instructions=["y"]), {"f1": "high"}),
        (MetricRubricTrait(name="x", metrics=["f1"], tp_instructions=["y"]), 1.0),
    ],
)
def test_values_outside_a_trait_s_scale_are_invalid_and_never_moved_into_it(
    scored: Make, scripted: Make, trait: Any, value: Any
) -> None:
    done = scored(Rubric.from_traits([trait]), scripted(trait.type_name, {"x": TraitScore(value=value)}))
    literal = getattr(trait, "kind", "") == "literal"
    assert done.states == {"x": "invalid"}
    assert getattr(done.rubric, f"{trait.type_name}_trait_scores") == {"x": -1 if literal else None}
    assert done.rubric.llm_trait_labels == ({"x": repr(value)} if literal else {})


@frozen(kw_only=True)
class LevelTrait(RubricTrait):
    """A type of another package that says what its scores are."""

    type_name = "level"
    given: Any = None

    def scale(self) -> Any:
        if isinstance(self.given, Exception):
            raise self.given
        return {**super().scale(), **self.given} if isinstance(self.given, Mapping) else self.given


CLASSES = {"kind": "literal", "classes": ["low", "high"]}


@pytest.mark.parametrize(
    ("given_scale", "value", "wanted"),
    [
        ({"kind": "score", "min": 0, "max": 5}, 99, "a number from 0 to 5"),
        ({"min": 0, "max": 5}, 99, "a number from 0 to 5"),
        ({"min": 0, "max": 5}, True, "a number from 0 to 5"),
        ({"kind": "boolean"}, 1, "true or false"),
        (CLASSES, 2, "the index of a class, from 0 to 1"),
        (CLASSES, -1, "the index of a class, from 0 to 1"),
        (CLASSES, "low", "the index of a class, from 0 to 1"),
    ],
)
def test_a_score_outside_of_its_own_scale_is_invalid_in_the_result_and_in_reports(
    scored: Make, scripted: Make, given_scale: Any, value: Any, wanted: str
) -> None:
    rubric = Rubric(extra_traits=[LevelTrait(name="x", given=given_scale), LevelTrait(name="y", given={})])
    done = scored(rubric, scripted("level", {name: TraitScore(value=value) for name in "xy"}))
    assert done.states == {"x": "invalid", "y": "ok"}
    assert done.reason("x") == f"the evaluator of 'level' gave {value!r}, which is not {wanted}"
    assert done.rubric.extra_trait_scores == {"level": {"x": None, "y": value}}
    assert {row["trait_name"]: row["state"] for row in done.rubric.rows()} == done.states
    assert done.rubric.trait_errors.keys() == {"x"}


@pytest.mark.parametrize(
    ("given_scale", "value"),
    [({"min": 0, "max": 5}, 2.5), ({"kind": "boolean"}, False), (CLASSES, 1), ({"kind": "shade"}, "red"), ({}, [1])],
)
def test_a_score_on_its_own_scale_is_kept(scored: Make, scripted: Make, given_scale: Any, value: Any) -> None:
    rubric = Rubric(extra_traits=[LevelTrait(name="x", given=given_scale)])
    done = scored(rubric, scripted("level", {"x": TraitScore(value=value)}))
    assert (done.states, done.rubric.get_trait_by_name("x")) == ({"x": "ok"}, (value, "level"))


@pytest.mark.parametrize("given_scale", [ValueError("no ruler"), "tall", {"min": {1}}])
def test_a_scale_that_cannot_be_read_costs_only_its_own_trait(scored: Make, scripted: Make, given_scale: Any) -> None:
    rubric = Rubric(extra_traits=[LevelTrait(name="x", given=given_scale), LevelTrait(name="y", given={})])
    done = scored(rubric, scripted("level", {name: TraitScore(value=3) for name in "xy"}))
    assert done.states == {"x": "error", "y": "ok"}
    assert done.reason("x").startswith("the scale ")
    assert done.rubric.trait_scales["x"] == {"type": "level"}


def test_labels_of_types_without_a_table_of_labels_are_kept_with_the_details(scored: Make, scripted: Make) -> None:
    does = {
        "a": TraitScore(value=1, label="high"),
        "b": TraitScore(state="invalid", reason="no level", label="lukewarm"),
        "c": TraitScore(value=0, label="low", details={"label": "LOW", "n": 2}),
        "d": TraitScore(value=7),
    }
    done = scored(Rubric(extra_traits=[LevelTrait(name=name, given=CLASSES) for name in does]), scripted("level", does))
    assert done.rubric.trait_details == {
        "a": {"label": "high"},
        "b": {"label": "lukewarm"},
        "c": {"label": "LOW", "n": 2},
        "d": {"label": "7"},
    }
    assert done.rubric.llm_trait_labels == {}
    assert {row["trait_name"]: row["trait_label"] for row in done.rubric.rows()} == {
        "a": "high",
        "b": "lukewarm",
        "c": "LOW",
        "d": "7",
    }


def test_labels_of_literal_traits_say_why_there_is_no_class(scored: Make, scripted: Make) -> None:
    names = ["named", "other", "silent", "broken", "skipped"]
    classes = {"Dry": None, "Warm": None}
    rubric = Rubric(llm_traits=[LLMRubricTrait(name=name, kind="literal", classes=classes) for name in names])
    does = {
        "named": TraitScore(value=0, label="dry"),
        "other": TraitScore(state="invalid", label="lukewarm"),
        "broken": TraitScore(state="error", reason="no route"),
        "skipped": TraitScore(state="skipped"),
    }
    done = scored(rubric, scripted("llm", does))
    assert done.rubric.llm_trait_labels == {
        "named": "Dry",
        "other": "lukewarm",
        "silent": "[MISSING_FROM_RESPONSE]",
        "broken": "[EVALUATION_ERROR: no route]",
    }
    assert done.rubric.llm_trait_scores == {"named": 0, "other": -1, "silent": -1, "broken": -1}
    assert done.states["skipped"] == "skipped"


def test_scores_of_traits_that_were_not_asked_about_are_dropped_with_a_warning(scored: Make) -> None:
    done = scored(Rubric(llm_traits=[boolean("a")]), Inventive())
    assert done.rubric.llm_trait_scores == {"a": True}
    assert "scored traits that it was not given: 'b'" in done.result.metadata.warnings[0]


def test_an_evaluator_that_gives_back_no_table_fails_alone(scored: Make) -> None:
    done = scored(Rubric(llm_traits=[boolean("a")], regex_traits=[CITED]), Inventive(back=[TraitScore(value=True)]))
    assert done.states == {"a": "error", "cited": "ok"}
    assert "returned list instead of scores by name" in done.reason("a")


@pytest.mark.parametrize("error", [SystemExit(3), asyncio.CancelledError(), StopAsyncIteration(), MemoryError()])
def test_whatever_an_evaluator_raises_stays_its_own(scored: Make, scripted: Make, error: BaseException) -> None:
    done = scored(Rubric(llm_traits=[boolean("a")], regex_traits=[CITED]), scripted("llm", {"a": error}))
    assert done.states == {"a": "error", "cited": "ok"}
    assert type(error).__name__ in done.reason("a")


def test_one_trait_s_own_cancellation_costs_no_other_trait_its_score(scored: Make) -> None:
    done = scored(Rubric(llm_traits=[boolean("a"), boolean("b")]), OneByOne())
    assert done.states == {"a": "error", "b": "ok"}


def test_a_cancelled_item_ends_at_once_and_its_evaluators_with_it(scripted: Make, scored: Make) -> None:
    ended: list[str] = []

    async def wait(trait: Any, case: Any) -> None:
        try:
            await asyncio.sleep(30)
        finally:
            ended.append(trait.name)

    async def cancelled() -> None:
        case = cancelled_case(scripted("llm", {"a": wait}), scripted("tone", {"t": wait}))
        task = asyncio.ensure_future(case)
        await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(task, 30)

    asyncio.run(cancelled())
    assert sorted(ended) == ["a", "t"]


async def cancelled_case(*plugins: Any) -> Any:
    rubric = Rubric(llm_traits=[boolean("a")], extra_traits=[ToneTrait(name="t")])
    context = VerificationContext(
        question=Question(question="?"), mode="rubric_only", rubric=rubric, app=application(*plugins)
    )
    context.set_artifact("raw_llm_response", "text")
    await RubricEvaluation().execute(context)


class Inventive:
    """Gives back what it was made with: by default a score of a trait that does not exist."""

    name = "llm"
    trait_class = LLMRubricTrait
    asks_judge = True

    def __init__(self, back: Any = None) -> None:
        self.back = {name: TraitScore(value=True) for name in "ab"} if back is None else back

    def check_config(self, traits: Any, config: Any, app: Any) -> Any:
        return ()

    async def evaluate(self, traits: Any, case: Any) -> Any:
        return self.back

    @hookimpl
    def karenina_register_traits(self, registry: Any) -> None:
        registry.add(self)


class OneByOne(Inventive):
    """Scores traits one by one; the first one lets a cancellation of its own out."""

    async def evaluate(self, traits: Any, case: Any) -> Any:
        async def one(trait: Any) -> TraitScore:
            if trait.name == "a":
                raise asyncio.CancelledError
            return TraitScore(value=True)

        return await case.each(traits, one)


class Interrupting(dict[str, Any]):
    def items(self) -> Any:
        raise KeyboardInterrupt


class Mute(str):
    def __str__(self) -> str:
        raise SystemExit(4)


class Speechless(Exception):
    def __str__(self) -> str:
        raise ValueError("no words")


@pytest.mark.parametrize(
    "score",
    [
        TraitScore(value=Leaving(a=1)),
        TraitScore(state="error", reason=Mute("x")),
        TraitScore(state="invalid", reason="x", label=Mute("x")),
    ],
)
def test_a_score_that_cannot_even_be_looked_at_costs_no_other_trait_its_score(
    scored: Make, scripted: Make, score: Any
) -> None:
    done = scored(
        Rubric(llm_traits=[boolean("a"), boolean("b")]), scripted("llm", {"a": score, "b": TraitScore(value=True)})
    )
    assert done.states == {"a": "error", "b": "ok"}
    assert "something that cannot be read: SystemExit" in done.reason("a")


def test_an_error_without_words_is_reported_by_its_type(scored: Make, scripted: Make) -> None:
    done = scored(Rubric(llm_traits=[boolean("a")], regex_traits=[CITED]), scripted("llm", {"a": Speechless()}))
    assert done.states == {"a": "error", "cited": "ok"}
    assert re.fullmatch(r"Speechless \(\S*conftest\.py:\d+ in evaluate\)", done.reason("a"))


def test_names_of_no_trait_are_reported_although_they_cannot_be_written(scored: Make) -> None:
    class Nameless:
        def __repr__(self) -> str:
            raise SystemExit(5)

    done = scored(Rubric(llm_traits=[boolean("a")]), Inventive(back={"a": TraitScore(value=True), Nameless(): 1}))
    assert done.states == {"a": "ok"}
    assert "that it was not given: Nameless" in done.result.metadata.warnings[0]


def test_the_user_s_own_interrupt_ends_the_item(scripted: Make) -> None:
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cancelled_case(scripted("llm", {"a": KeyboardInterrupt()})))
    with pytest.raises(KeyboardInterrupt):
        asyncio.run(cancelled_case(scripted("llm", {"a": TraitScore(value=Interrupting(a=1))})))


def test_where_there_is_no_answer_there_is_nothing_to_evaluate() -> None:
    context = VerificationContext(
        question=Question(question="?"), mode="rubric_only", rubric=Rubric(regex_traits=[CITED]), app=application()
    )
    assert RubricEvaluation().should_run(context) == Skip("there is no answer")


# What results can hold


@pytest.mark.parametrize("details", [Leaving(a=1), ["a"], None, "text"])
def test_details_that_cannot_be_read_cost_no_score_and_are_reported(scored: Make, scripted: Make, details: Any) -> None:
    done = scored(Rubric(llm_traits=[boolean("a")]), scripted("llm", {"a": TraitScore(value=True, details=details)}))
    assert done.rubric.llm_trait_scores == {"a": True}
    assert done.rubric.trait_details == {"a": {"not_kept": ["everything"]}}


def test_details_that_no_file_can_hold_are_named(scored: Make, scripted: Make) -> None:
    deep: Any = 1
    for _ in range(300):
        deep = [deep]
    details: Any = {"deep": deep, "big": 10**400, "nan": [float("nan")], "odd": Leaving(a=1), "set": {1}, 3: "three"}
    done = scored(Rubric(llm_traits=[boolean("a")]), scripted("llm", {"a": TraitScore(value=True, details=details)}))
    assert done.rubric.trait_details == {"a": {"3": "three", "not_kept": ["deep", "big", "nan", "odd", "set"]}}


def test_reasons_labels_and_texts_in_details_are_cut(scored: Make, scripted: Make) -> None:
    long = "x" * 1_000_000
    literal = LLMRubricTrait(name="b", kind="literal", classes={"Dry": None, "Warm": None})
    does = {
        "a": TraitScore(state="error", reason=long, details={"text": long, "list": [long]}),
        "b": TraitScore(state="invalid", reason=long, label=long),
    }
    done = scored(Rubric(llm_traits=[boolean("a"), literal]), scripted("llm", does))
    cut = "x" * 999 + "…"
    assert (done.reason("a"), done.reason("b"), done.rubric.llm_trait_labels["b"]) == (cut, cut, cut)
    detail = "x" * 9_999 + "…"
    assert done.rubric.trait_details == {"a": {"text": detail, "list": [detail]}}


HUGE = st.integers(min_value=2**1024).flatmap(lambda n: st.sampled_from([n, -n]))


@settings(LAW, max_examples=settings().max_examples // 8)  # each is a score of every type
@given(HUGE)
@example(2**1024)
@example(-(2**1024))
@example(10**400)
@example(10**5000)
def test_a_number_beyond_floats_is_no_score_of_any_type(scored: Make, scripted: Make, number: int) -> None:
    for trait in ALL:
        if trait.type_name == "regex":
            continue
        value = {"a": number} if trait.name in ("record", "named") else number
        done = scored(Rubric.from_traits([trait]), scripted(trait.type_name, {trait.name: TraitScore(value=value)}))
        assert done.states == {trait.name: "invalid"}, trait
    done = scored(
        Rubric(extra_traits=[ToneTrait(name="t")]), scripted("tone", {"t": TraitScore(value=[{"x": number}])})
    )
    assert done.rubric.extra_trait_scores == {"tone": {"t": None}}


ODD = "a\ud800\u2028\0"


def test_what_is_read_from_a_file_is_what_the_run_returned(scripted: Make, tmp_path: Path) -> None:
    literal = LLMRubricTrait(name="class", kind="literal", classes={"Dry": None, "Warm": None})
    rubric = Rubric(
        llm_traits=[boolean("ok"), literal, LLMRubricTrait(name="record", kind=KIND)],
        extra_traits=[ToneTrait(name="mood"), ToneTrait(name="away")],
    )
    llm = {
        "ok": TraitScore(value=True, details={ODD: [ODD, (1, 2)], "z": -0.0}, evidence=evidence(reasoning=ODD)),
        "class": TraitScore(state="invalid", reason=ODD, label=ODD),
        "record": TraitScore(value={"a": ODD}),
    }
    tone = {"mood": TraitScore(value={ODD: ODD}, label=ODD), "away": TraitScore(state="error", reason=ODD)}
    model = ModelConfig(model_name="m", interface="scripted")
    config = VerificationConfig(
        answering_models=[model],
        parsing_models=[model],
        evaluation_mode="rubric_only",
        deep_judgment_rubric_mode="enable_all",
    )
    app = application(
        ScriptedLLM("text"), scripted("llm", llm), scripted("tone", tone, asks_judge=False), installed=RUN
    )
    benchmark = Benchmark.create("b").with_questions([Question(id="q", question="Which?")]).with_rubric(rubric)
    results = asyncio.run(benchmark.arun_verification(config, app=app, run_dir=tmp_path / "run"))
    assert list(VerificationResultSet.load(tmp_path / "run")) == list(results)
    (result,) = results
    assert result.rubric is not None
    assert result.rubric.llm_trait_scores["record.a"] == "a\ufffd\u2028\0"


def test_a_judge_s_failure_in_odd_letters_is_read_as_it_was_reported(scripted: Make, tmp_path: Path) -> None:
    def judge(call: Any) -> Any:
        if call.task == "rubric_dynamic_presence_check":
            raise RuntimeError(ODD * 1000)
        return "text"

    model = ModelConfig(model_name="m", interface="scripted")
    config = VerificationConfig(answering_models=[model], parsing_models=[model], evaluation_mode="rubric_only")
    app = application(ScriptedLLM(judge), scripted("llm", {"b": RuntimeError(ODD * 1000)}), installed=RUN)
    benchmark = Benchmark.create("b").with_questions([Question(id="q", question="Which?")])
    benchmark = benchmark.with_rubric(Rubric(llm_traits=[boolean("b")]))
    benchmark = benchmark.with_dynamic_rubric(DynamicRubric(llm_traits=[boolean("a", summary="it")]))
    results = asyncio.run(benchmark.arun_verification(config, app=app, run_dir=tmp_path / "run"))
    assert list(VerificationResultSet.load(tmp_path / "run")) == list(results)


RUN = {"rubric-evaluation", "generate-answer", "finalize-result", "local-executor", "jsonl"}


# Laws over any rubric

FAULTS: tuple[Any, ...] = (
    "ok",
    "omit",
    RuntimeError("out of ink"),
    "rubbish",
    TraitScore(value=object()),
    TraitScore(state="error", value=1),
    TraitScore(value=10**6),
)


@frozen(eq=False)
class Plotting:
    """Scores `ok` traits rightly and does with the others what was drawn; what raises, raises for its whole type."""

    name: str
    plot: Mapping[str, Any]
    asks_judge = True
    trait_class = ToneTrait  # of any type: it is not read

    def check_config(self, traits: Any, config: Any, app: Any) -> Any:
        return ()

    async def evaluate(self, traits: Any, case: Any) -> Any:
        async def one(trait: Any) -> Any:
            outcome = self.plot[trait.name]
            if isinstance(outcome, Exception):
                raise outcome
            return TraitScore(value=right_score(trait)) if outcome == "ok" else outcome

        found = await case.each([trait for trait in traits if self.plot[trait.name] != "omit"], one)
        return dict(found)

    @hookimpl
    def karenina_register_traits(self, registry: Any) -> None:
        registry.add(self)


def right_score(trait: Any) -> Any:
    if trait.type_name == "metric":
        return METRICS
    kind = getattr(trait, "kind", "boolean")
    if isinstance(kind, TemplateKind):
        return {"clear": True}
    return {"boolean": True, "literal": 0}.get(kind, trait.min_score if kind == "score" else True)


@st.composite
def plots(draw: st.DrawFn) -> tuple[Rubric, dict[str, Any]]:
    rubric = draw(rubrics().filter(lambda r: any(t.type_name != "agentic" and t.usable for t in r)))
    rubric = Rubric.from_traits([t for t in rubric if t.type_name != "agentic"])
    faults = draw(st.lists(st.sampled_from(FAULTS), min_size=len(rubric), max_size=len(rubric)))
    return rubric, dict(zip(rubric.names(), faults, strict=True))


@LAW
@given(plots())
def test_any_traits_may_fail_in_any_way_and_every_other_one_keeps_its_score(
    scored: Make, plotted: tuple[Rubric, dict[str, Any]]
) -> None:
    rubric, plot = plotted
    done = scored(rubric, *(Plotting(name, plot) for name in ("llm", "callable", "metric")))
    assert list(done.states) == rubric.names()  # exactly one state each, and no other trait
    for trait in rubric:
        table = getattr(done.rubric, f"{trait.type_name}_trait_scores")
        found = {name: value for name, value in table.items() if name.partition(".")[0] == trait.name}
        kind = getattr(trait, "kind", "")
        if trait.type_name == "regex":  # the real evaluator, whatever the others do
            assert done.states[trait.name] == "ok"
        elif plot[trait.name] == "ok":
            assert done.states[trait.name] == "ok"
            right = right_score(trait)
            wanted = {f"{trait.name}.clear": True} if isinstance(kind, TemplateKind) else {trait.name: right}
            assert found == wanted
        else:
            assert done.states[trait.name] in ("missing", "error", "invalid")
            assert done.reason(trait.name)
            assert found == {trait.name: -1 if kind == "literal" else None}
    names = {name.partition(".")[0] for kind in ("llm", "regex", "callable", "metric") for name in tables(done, kind)}
    assert names == set(rubric.names())
    failed = "error" in done.states.values() and "ok" not in done.states.values()
    assert done.result.outcome == ("error" if failed else "scored")
    assert structure(json.loads(json.dumps(unstructure(done.result))), VerificationResult) == done.result


def tables(done: Any, kind: str) -> Mapping[str, Any]:
    table: Mapping[str, Any] = getattr(done.rubric, f"{kind}_trait_scores")
    return table


# What is scored


ROWS = (
    {"role": "assistant", "content": "I will look it up."},
    {"role": "tool", "content": "COX-1 [3]"},
    {"role": "assistant", "content": "It inhibits an enzyme."},
)
TRACE = CachedAnswer(raw_llm_response="LOOKED UP COX-1 [3]\nIt inhibits an enzyme.", trace_messages=ROWS)


@pytest.mark.parametrize(("full", "found"), [(True, True), (False, False)])
def test_the_whole_trace_is_scored_or_the_final_message(scored: Make, full: bool, found: bool) -> None:
    done = scored(Rubric(regex_traits=[CITED]), answer=TRACE, config={"use_full_trace_for_rubric": full})
    assert done.rubric.regex_trait_scores == {"cited": found}
    assert done.rubric.rubric_used_full_trace is full
    # Without a template, this is the text that the result shows.
    assert done.result.used_full_trace is full
    assert done.result.evaluation_input == (TRACE.raw_llm_response if full else "It inhibits an enzyme.")
    assert done.result.trace_extraction_error is None
    assert done.rubric.rubric_evaluation_strategy is None


def test_where_there_is_nothing_to_read_every_trait_says_so(scored: Make, scripted: Make) -> None:
    answer = CachedAnswer(raw_llm_response="COX-1 [3]", trace_messages=ROWS[:2])
    rubric = Rubric(llm_traits=[boolean("clear")], regex_traits=[CITED])
    config = {"use_full_trace_for_rubric": False}
    done = scored(rubric, scripted("llm", GOOD["llm"]), answer=answer, config=config)
    reason = "there is nothing to score: the last message of the trace is not from the answering model"
    assert done.states == {"clear": "error", "cited": "error"}
    assert {done.reason(name) for name in done.states} == {reason}
    assert done.rubric.regex_trait_scores == {"cited": None}
    assert done.result.trace_extraction_error is not None
    assert str(done.result.outcome) == "error(agent)"


TEMPLATE = {
    "answer_template": json.dumps(
        {
            "fields": [
                {
                    "name": "target",
                    "type": "str",
                    "description": "the target",
                    "ground_truth": "COX-1",
                    "verify_with": {"type": "ExactMatch"},
                }
            ]
        }
    ),
    "template_language": "karenina-template",
}


@pytest.mark.parametrize("full", [True, False])
@pytest.mark.parametrize(("target", "outcome"), [("COX-1", "passed"), ("COX-2", "failed")])
def test_failing_traits_and_unreadable_traces_never_change_a_template_s_outcome(
    scored: Make, scripted: Make, full: bool, target: str, outcome: str
) -> None:
    done = scored(
        Rubric(llm_traits=[boolean("clear")]),
        scripted("llm", {"clear": PortError("away", kind="auth")}),
        evaluation_mode="template_and_rubric",
        question=TEMPLATE,
        replies={"parsing": {"target": target}},
        config={"use_full_trace_for_rubric": full},
    )
    assert str(done.result.outcome) == outcome
    assert done.states == {"clear": "error"}
    assert done.result.metadata.completed_without_errors
    assert done.result.used_full_trace is False  # that of the template's judge
    assert done.rubric.rubric_used_full_trace is full


def test_traits_are_scored_although_the_model_abstained(scored: Make) -> None:
    refusal = {
        "answer": None,
        "disclaimer": "I cannot answer that",
        "reasoning": "it declines",
        "abstention_detected": True,
    }
    done = scored(
        Rubric(regex_traits=[CITED]),
        answer="I cannot answer that [1].",
        evaluation_mode="template_and_rubric",
        question=TEMPLATE,
        replies={"abstention_detection": refusal},
        features=["abstention"],
    )
    assert str(done.result.outcome) == "abstained"
    assert done.rubric.regex_trait_scores == {"cited": True}


def test_traits_are_scored_although_the_agent_reached_its_limit(scored: Make) -> None:
    answer = CachedAnswer(raw_llm_response="COX-1 [3]", recursion_limit_reached=True)
    done = scored(Rubric(regex_traits=[CITED]), answer=answer, evaluation_mode="template_and_rubric", question=TEMPLATE)
    assert str(done.result.outcome).startswith("auto_failed")
    assert done.rubric.regex_trait_scores == {"cited": True}


INVALID = CachedAnswer(raw_llm_response="COX-1 [3]", trace_messages=ROWS[:2], answering_mcp_servers=("tools",))


@pytest.mark.parametrize(
    ("full", "trail"), [(True, ("ran", "1 of 1 traits have a score")), (False, ("skipped", "the trace is not valid"))]
)
def test_an_invalid_trace_is_scored_only_where_all_of_it_is_used(
    scored: Make, scripted: Make, full: bool, trail: tuple[str, str]
) -> None:
    """Dynamic traits are no exception: where the stage is skipped, the judge is not asked about them."""
    for dynamic in (False, True):
        cls = DynamicRubric if dynamic else Rubric
        rubric = cls(regex_traits=[RegexRubricTrait(name="cited", pattern=r"\[3\]", summary="citations")])
        done = scored(rubric, answer=INVALID, config={"use_full_trace_for_rubric": full})
        assert done.result.checks.trace_validation_failed is True
        assert done.trail["RubricEvaluation"] == trail
        assert (done.result.rubric is not None) is full


def test_after_an_error_nothing_is_scored(scored: Make) -> None:
    question = {**TEMPLATE, "template_language": "prolog"}
    done = scored(Rubric(regex_traits=[CITED]), evaluation_mode="template_and_rubric", question=question)
    assert done.trail["RubricEvaluation"][0] == "skipped"
    assert done.result.rubric is None


# Places


def test_evaluators_work_at_the_same_time_and_share_the_places_of_the_item(scored: Make, scripted: Make) -> None:
    now, most = 0, 0

    async def busy() -> TraitScore:
        nonlocal now, most
        now += 1
        most = max(most, now)
        await asyncio.sleep(0.02)
        now -= 1
        return TraitScore(value=True)

    def ask(trait: Any, case: Any) -> Any:
        return case.each([trait, *(ToneTrait(name=f"{trait.name}{n}") for n in range(5))], lambda t: case.in_turn(busy))

    async def first(trait: Any, case: Any) -> TraitScore:
        scores: dict[str, TraitScore] = await ask(trait, case)
        return scores[trait.name]

    rubric = Rubric(llm_traits=[boolean("a")], extra_traits=[ToneTrait(name="t")])
    done = scored(
        rubric, scripted("llm", {"a": first}), scripted("tone", {"t": first}), config={"rubric_concurrency": 3}
    )
    assert set(done.states.values()) == {"ok"}
    assert most == 3


# Deep judgment


def evidence(**facts: Any) -> TraitEvidence:
    metadata = {
        "stages_completed": ["excerpt_extraction"],
        "model_calls": 3,
        "had_excerpts": True,
        "excerpt_retry_count": 1,
        "excerpt_validation_failed": False,
    }
    quoted = {"text": "COX-1", "confidence": "high", "similarity_score": 1.0}
    risk = {"overall_risk": "low", "per_excerpt_risks": ["low"]}
    return TraitEvidence(**{"excerpts": (quoted,), "reasoning": "so", "risk": risk, "metadata": metadata, **facts})


def test_what_deep_judgment_found_is_kept_beside_the_scores(scored: Make, scripted: Make) -> None:
    bare = evidence(excerpts=(), reasoning="", risk=None, lacks_excerpts=True)
    does = {
        "deep": TraitScore(value=True, evidence=evidence()),
        "bare": TraitScore(state="error", reason="nothing to quote", evidence=bare),
        "away": TraitScore(state="error", reason="the judge is away"),
        "class": TraitScore(value=1),
        "record": TraitScore(value={"a": "x"}),
    }
    classes = {"Dry": None, "Warm": None}
    rubric = Rubric(
        llm_traits=[
            *(boolean(name) for name in ("deep", "bare", "away")),
            LLMRubricTrait(name="class", kind="literal", classes=classes),
            LLMRubricTrait(name="record", kind=KIND),
        ],
        regex_traits=[CITED],
    )
    done = scored(rubric, scripted("llm", does), config={"deep_judgment_rubric_mode": "enable_all"})
    deep = done.deep
    assert deep.deep_judgment_rubric_performed is True
    quoted = {"text": "COX-1", "confidence": "high", "similarity_score": 1.0}
    assert deep.extracted_rubric_excerpts == {"deep": [quoted], "bare": []}
    assert deep.rubric_trait_reasoning == {"deep": "so"}
    assert deep.deep_judgment_rubric_scores == {"deep": True, "bare": None, "away": None}
    assert deep.standard_rubric_scores == {"class": 1, "record.a": "x"}
    assert deep.trait_metadata["deep"]["model_calls"] == 3
    assert "error" not in deep.trait_metadata["deep"]
    assert deep.trait_metadata["bare"]["error"] == "nothing to quote"
    assert deep.trait_metadata["away"] == {
        **{"stages_completed": [], "model_calls": 0, "had_excerpts": False},
        **{"excerpt_retry_count": 0, "excerpt_validation_failed": False, "error": "the judge is away"},
    }
    assert deep.traits_without_valid_excerpts == ("bare",)
    assert deep.rubric_hallucination_risk_assessment == {"deep": {"overall_risk": "low", "per_excerpt_risks": ["low"]}}
    totals = (deep.total_deep_judgment_model_calls, deep.total_traits_evaluated, deep.total_excerpt_retries)
    assert totals == (6, 1, 2)
    assert done.rubric.llm_trait_scores == {
        **{"deep": True, "bare": None, "away": None},
        **{"class": 1, "record.a": "x"},
    }
    assert done.rubric.regex_trait_scores == {"cited": True}  # with traits that are judged deeply, too


def test_standard_scores_of_traits_that_were_judged_deeply_are_kept_beside_them(scored: Make, scripted: Make) -> None:
    away = TraitScore(state="error", reason="the judge is away")
    does = {
        "deep": TraitScore(value=True, evidence=evidence(), standard=TraitScore(value=False)),
        "bare": TraitScore(value=True, evidence=evidence(), standard=away),
        "odd": TraitScore(value=True, evidence=evidence(), standard=TraitScore(value="no boolean")),
        "alone": TraitScore(value=True, evidence=evidence()),
    }
    rubric = Rubric(llm_traits=[boolean(name) for name in does])
    done = scored(rubric, scripted("llm", does), config={"deep_judgment_rubric_mode": "enable_all"})
    assert done.deep.deep_judgment_rubric_scores == dict.fromkeys(does, True) == done.rubric.llm_trait_scores
    assert done.deep.standard_rubric_scores == {"deep": False, "bare": None, "odd": None}
    warnings = [text for text in done.result.metadata.warnings if "no standard score" in text]
    assert warnings[0] == ("deep judgment of 'bare': there is no standard score to compare with (the judge is away)")
    assert "'odd'" in warnings[1]


def test_deep_judgment_was_performed_whatever_became_of_the_traits(scored: Make, scripted: Make) -> None:
    does = {name: TraitScore(state="error", reason="the judge is away") for name in ("a", "b")}
    rubric = Rubric(llm_traits=[boolean("a"), boolean("b")])
    deep = scored(rubric, scripted("llm", does), config={"deep_judgment_rubric_mode": "enable_all"}).deep
    assert (deep.deep_judgment_rubric_performed, deep.total_deep_judgment_model_calls) == (True, 0)
    assert deep.deep_judgment_rubric_scores == {"a": None, "b": None}
    assert [row["stages_completed"] for row in deep.trait_metadata.values()] == [[], []]
    assert deep.traits_without_valid_excerpts == ()
    assert scored(rubric, scripted("llm", does)).result.deep_judgment_rubric is None, "no trait was to be judged deeply"
    does["b"] = TraitScore(state="skipped", reason="absent")
    deep = scored(rubric, scripted("llm", does), config={"deep_judgment_rubric_mode": "enable_all"}).deep
    assert list(deep.trait_metadata) == ["a"], "nothing was judged of a trait that was skipped"


def test_warnings_of_deep_judgment_are_in_the_order_of_the_traits_and_equal_ones_occur_once(
    scored: Make, scripted: Make
) -> None:
    """Although the traits end in another order."""

    def after(seconds: float, *warnings: str) -> Any:
        async def score(trait: Any, case: Any) -> TraitScore:
            await asyncio.sleep(seconds)
            return TraitScore(value=True, evidence=evidence(metadata={"warnings": list(warnings)}))

        return score

    does = {"a": after(0.03, "no search", "slow"), "b": after(0.0, "first done"), "c": after(0.01, "no search")}
    done = scored(Rubric(llm_traits=[boolean(name) for name in does]), scripted("llm", does))
    assert list(done.result.metadata.warnings) == [
        "deep judgment of 'a', 'c': no search",
        "deep judgment of 'a': slow",
        "deep judgment of 'b': first done",
    ]


def test_evidence_that_no_file_can_hold_costs_no_score(scored: Make, scripted: Make) -> None:
    does = {
        "a": TraitScore(value=True, evidence=evidence(metadata={"when": object()}), details={"x": object(), "y": 1})
    }
    done = scored(Rubric(llm_traits=[boolean("a")]), scripted("llm", does))
    assert done.rubric.llm_trait_scores == {"a": True}
    assert done.rubric.trait_details == {"a": {"y": 1, "not_kept": ["x"]}}
    assert "could not be kept" in done.deep.trait_metadata["a"]["error"]


@pytest.mark.parametrize(
    "facts",
    [
        *({"metadata": metadata} for metadata in ({"when": object()}, ["x"], Leaving(a=1))),
        *({"excerpts": ("COX-1",)}, {"excerpts": 3}, {"reasoning": 3}, {"risk": "low"}, {"risk": {"n": 10**400}}),
    ],
)
def test_of_evidence_that_cannot_be_kept_it_is_known_whether_quotations_were_missing(
    scored: Make, scripted: Make, facts: dict[str, Any]
) -> None:
    does = {
        "a": TraitScore(value=True, evidence=evidence(**facts, lacks_excerpts=True)),
        "b": TraitScore(value=True, evidence=evidence(**facts)),
    }
    done = scored(Rubric(llm_traits=[boolean("a"), boolean("b")]), scripted("llm", does))
    assert done.rubric.llm_trait_scores == {"a": True, "b": True}
    assert "could not be kept" in done.deep.trait_metadata["b"]["error"]
    assert done.deep.traits_without_valid_excerpts == ("a",)


# The plan


def test_it_is_in_a_plan_where_some_trait_is_not_an_agent_s() -> None:
    app = Karenina.installed()
    agentic = AgenticRubricTrait(name="x", kind="boolean", description="does it run")

    def names(rubric: Rubric) -> list[str]:
        return [s.name for s in StageOrchestrator.from_config("template_and_rubric", rubric, app=app).stages]

    assert "RubricEvaluation" in names(Rubric(regex_traits=[CITED]))
    assert "RubricEvaluation" in names(Rubric(extra_traits=[ToneTrait(name="t")]))
    assert "RubricEvaluation" in names(Rubric(regex_traits=[CITED], agentic_traits=[agentic]))
    assert "RubricEvaluation" not in names(Rubric(agentic_traits=[agentic]))


def test_agents_traits_are_left_to_their_own_stage(scored: Make) -> None:
    class Agents(Stage):
        category = Category.RUBRIC
        produces = (ArtifactKeys.AGENTIC_TRAIT_SCORES,)
        after = ("RubricEvaluation",)

        def scores(self, type_name: str) -> bool:
            return type_name == "agentic"

        def execute(self, context: Any) -> None:
            context.set_artifact(ArtifactKeys.AGENTIC_TRAIT_SCORES, {})

    agentic = AgenticRubricTrait(name="x", kind="boolean", description="does it run")
    done = scored(Rubric(regex_traits=[CITED], agentic_traits=[agentic]), Agents)
    assert done.states == {"cited": "ok"}


# Where nothing has a score


@pytest.mark.parametrize(
    ("given_kind", "kind"), [("timeout", "timeout"), ("budget", "budget"), ("nonsense", "stage"), (None, "stage")]
)
def test_an_item_without_any_score_is_an_error_of_the_kind_of_the_first_trait(
    scripted: Make, given_kind: str | None, kind: str
) -> None:
    failed = TraitScore(state="error", reason="it broke", **({} if given_kind is None else {"kind": given_kind}))
    scores = {
        "a": TraitScore(state="invalid", reason="odd"),
        "b": failed,
        "c": TraitScore(state="error", reason="later"),
    }
    (result,) = run_of_traits(scripted, scores)
    assert result.outcome == "error"
    assert (result.metadata.outcome_detail, result.metadata.completed_without_errors) == (kind, False)
    assert result.metadata.error == "no trait has a score (b: it broke; c: later)"
    assert all(entry.status != "failed" for entry in result.trail)


@pytest.mark.parametrize(
    "scores",
    [
        {"a": TraitScore(value=True), "b": TraitScore(state="error", reason="it broke")},
        {"a": TraitScore(state="invalid", reason="odd"), "b": TraitScore(state="missing")},
        {"a": TraitScore(state="skipped", reason="not due")},
    ],
)
def test_one_score_is_enough_and_without_an_error_nothing_is_one(scripted: Make, scores: dict[str, TraitScore]) -> None:
    (result,) = run_of_traits(scripted, scores)
    assert (str(result.outcome), result.metadata.error) == ("scored", None)


def test_errors_of_a_port_keep_their_kind(scripted: Make) -> None:
    (result,) = run_of_traits(scripted, {"a": PortError("too slow", kind="timeout")})
    assert str(result.outcome) == "error(timeout)"
    assert result.rubric is not None
    assert result.rubric.trait_states["a"] == {"state": "error", "reason": "too slow", "kind": "timeout"}


def run_of_traits(scripted: Make, scores: dict[str, Any]) -> VerificationResultSet:
    model = ModelConfig(model_name="m", interface="scripted")
    config = VerificationConfig(answering_models=[model], parsing_models=[model], evaluation_mode="rubric_only")
    app = application(ScriptedLLM("text"), scripted("llm", scores), installed=RUN)
    benchmark = Benchmark.create("b").with_questions([Question(id="q", question="Which?")])
    benchmark = benchmark.with_rubric(Rubric(llm_traits=[boolean(name) for name in scores]))
    return asyncio.run(benchmark.arun_verification(config, app=app))
