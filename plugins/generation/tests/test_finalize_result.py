"""FinalizeResult: a part exists where its evaluation was asked for or performed, and nothing is lost on the way."""

from __future__ import annotations

import asyncio
from functools import partial
from typing import Any

import pytest
from attrs import fields
from karenina_calls.usage_totals import usage_metadata
from karenina_generation.finalize import FinalizeResult

from karenina_core import Category, Question, Stage, VerificationConfig, VerificationContext, VerificationResult
from karenina_core.pipeline.assemble import USAGE
from karenina_core.pipeline.engine import Engine
from karenina_core.ports.model_client import CallRecord
from karenina_core.values.result import all_parts

OWN = {
    "usage_metadata",
    "verify_result",
    "field_verification_result",
    "deep_judgment_mode",
    "deep_judgment_search_enabled",
}
"""Fields that the final stage itself decides."""
SETTABLE = [
    (part, a.name)
    for part, cls in all_parts().items()
    for a in fields(cls)
    if not a.name.startswith("_") and a.name not in OWN
]


def context(**facts: Any) -> VerificationContext:
    return VerificationContext(question=Question(question="Why?", raw_answer="BCL2", keywords=["k"]), **facts)


def finalized(about: VerificationContext) -> VerificationResult:
    return asyncio.run(Engine([FinalizeResult()]).run(about))


def test_its_declaration() -> None:
    stage = FinalizeResult()
    assert (stage.category, stage.final, stage.requires, stage.produces) == (
        Category.FINALIZATION,
        True,
        (),
        ("final_result",),
    )


@pytest.mark.parametrize(
    ("mode", "template"), [("template_only", True), ("template_and_rubric", True), ("rubric_only", False)]
)
def test_parts_by_mode(mode: Any, template: bool) -> None:
    result = finalized(context(mode=mode))
    assert (result.template is not None) is template
    assert (result.rubric, result.deep_judgment, result.deep_judgment_rubric) == (None, None, None)
    assert result.metadata.evaluation_mode == mode


@pytest.mark.parametrize("switch", ["rubric_evaluation_performed", "agentic_rubric_evaluation_performed"])
def test_the_rubric_part_is_there_when_something_was_scored(switch: str) -> None:
    about = context(mode="rubric_only")
    about.set_result_field(switch, True)
    about.set_result_field("regex_trait_scores", {"cites": False})
    result = finalized(about)
    assert result.rubric is not None
    assert result.rubric.regex_trait_scores == {"cites": False}


def test_deep_judgment_is_there_when_it_was_asked_for() -> None:
    config = VerificationConfig(deep_judgment_enabled=True)
    assert finalized(context(config=config)).deep_judgment is not None
    assert finalized(context(config=config, mode="rubric_only")).deep_judgment is None
    about = context()
    about.set_result_field("deep_judgment_rubric_performed", True)
    assert finalized(about).deep_judgment_rubric is not None


@pytest.mark.parametrize("mode", ["full", "reasoning_only"])
@pytest.mark.parametrize("search", [True, False])
@pytest.mark.parametrize("parsing", ["skipped", "failed"])
def test_deep_judgment_says_what_was_asked_for_although_nothing_was_parsed(
    mode: Any, search: bool, parsing: str
) -> None:
    search = search and mode == "full"
    about = context(config=VerificationConfig(deep_judgment_mode=mode, deep_judgment_search_enabled=search))
    if parsing == "failed":
        about.mark_error("the judge's reply does not fit", kind="judge", stage="ParseTemplate")
    part = finalized(about).deep_judgment
    assert part is not None
    assert (part.deep_judgment_mode, part.deep_judgment_search_enabled) == (mode, search)
    assert (part.deep_judgment_performed, part.extracted_excerpts, part.deep_judgment_model_calls) == (False, {}, 0)


MARKERS: dict[str, Any] = {
    "tuple": ("x",),
    "Mapping": {"x": "marker"},
    "bool": True,
    "float": 0.7,
    "int": 7,
    "str": "marker",
}


@pytest.mark.parametrize(("part", "name"), SETTABLE)
def test_every_result_field_arrives_in_its_part(part: str, name: str) -> None:
    about = context(config=VerificationConfig(deep_judgment_enabled=True))
    declared = str(next(a.type for a in fields(all_parts()[part]) if a.name == name))
    marker = MARKERS[next(kind for kind in MARKERS if kind in declared)]
    about.set_result_field(name, marker)
    for switch in ("rubric_evaluation_performed", "deep_judgment_rubric_performed"):
        if name != switch:
            about.set_result_field(switch, True)
    assert getattr(getattr(finalized(about), part), name) == marker


@pytest.mark.parametrize("name", ["evaluation_input", "used_full_trace", "trace_extraction_error"])
def test_root_fields(name: str) -> None:
    about = context()
    marker = True if name == "used_full_trace" else "marker"
    about.set_result_field(name, marker)
    assert getattr(finalized(about), name) == marker


def test_fields_of_other_packages_arrive_by_plugin() -> None:
    about = context()
    about.set_result_field("sample.score", 1)
    about.set_result_field("sample.note", "x")
    about.set_result_field("other.score", 2)
    assert finalized(about).extensions == {"sample": {"score": 1, "note": "x"}, "other": {"score": 2}}


@pytest.mark.parametrize("verdict", [True, False, None])
def test_the_verdict_is_that_of_the_ledger(verdict: bool | None) -> None:
    about = context()
    about.record(field=verdict, verdict=verdict, reason="because")
    result = finalized(about)
    assert result.template is not None
    assert (result.template.verify_result, result.template.field_verification_result) == (verdict, verdict)
    assert [row.reason for row in result.ledger] == ["because"]
    stated = {"field": verdict, "verdict": verdict} if verdict is not None else {}
    assert {k: v for k, v in result.ledger[0].effect.items() if k != "outcome"} == stated


def test_an_item_with_an_error_is_an_error_and_keeps_its_verdict() -> None:
    about = context()
    about.record(verdict=True)
    about.mark_error("the rubric failed", kind="judge", stage="RubricEvaluation")
    result = finalized(about)
    assert (str(result.outcome), result.metadata.error) == ("error(judge)", "the rubric failed")
    assert result.template is not None
    assert result.template.verify_result is True
    assert not result.metadata.completed_without_errors


def test_who_and_what() -> None:
    about = context(run_name="mine")
    result = finalized(about)
    metadata = result.metadata
    assert (metadata.question_text, metadata.raw_answer, metadata.keywords) == ("Why?", "BCL2", ("k",))
    assert (metadata.run_name, metadata.replicate, metadata.template_id) == ("mine", 1, "no_template")
    assert metadata.result_id == about.task.result_id("mine")
    assert metadata.timestamp == about.started.isoformat()
    assert about.started.utcoffset() is not None
    assert metadata.execution_time > 0


def test_it_runs_after_an_error_and_after_everything_else() -> None:
    class Failing(Stage):
        def execute(self, context: VerificationContext) -> None:
            raise ValueError("no")

    about = context()
    result = asyncio.run(Engine([Failing(), FinalizeResult()]).run(about))
    assert [(entry.stage, entry.status) for entry in result.trail] == [("Failing", "failed"), ("FinalizeResult", "ran")]


CALL = CallRecord(task="parsing", model="j", attempts=2, retries={"timeout": 1}, seconds=0.5)
EARLIER = {"generation": {"calls": 1, "model": "m"}, "total": {"calls": 1}}


class FailingEnd(FinalizeResult):
    def execute(self, context: VerificationContext) -> None:
        raise ValueError("no")


@pytest.mark.parametrize("earlier", [{}, EARLIER])
@pytest.mark.parametrize("end", [FinalizeResult, FailingEnd])
def test_what_keeps_the_calls_says_what_they_took(end: type[Stage], earlier: dict[str, Any]) -> None:
    about = context(calls=[CALL], services={USAGE: partial(usage_metadata, [CALL])})
    about.set_result_field("usage_metadata", earlier)
    generation = asyncio.run(Engine([end()]).run(about)).generation
    assert generation.usage_metadata == usage_metadata([CALL], earlier if end is FinalizeResult else {})
    assert generation.usage_metadata["total"]["attempts"] == 2


def test_without_it_the_usage_is_what_a_stage_has_set() -> None:
    assert finalized(context(calls=[CALL])).generation.usage_metadata == {}
    about = context()
    about.set_result_field("usage_metadata", EARLIER)
    assert finalized(about).generation.usage_metadata == EARLIER
