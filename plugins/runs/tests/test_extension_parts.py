"""What an extension is made of: results with more traits, the stages that score them, models that are added."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from karenina_calls.usage_totals import usage_sum
from karenina_runs.amend.extension import rebuilt_with
from karenina_runs.amend.extension_rows import merged, scoring_of
from karenina_runs.config.config_file import Flags, load_config
from karenina_runs.config.config_models import ModelFlags
from karenina_vocabulary.evaluation_parts import ChecksPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import (
    ArtifactKeys,
    Category,
    LLMRubricTrait,
    ModelIdentity,
    Rubric,
    Stage,
    VerificationContext,
    VerificationResult,
    hookimpl,
)
from karenina_core.errors import ConfigError, PlanError
from karenina_core.pipeline.stage import PlanRequest
from karenina_core.testing import application
from karenina_core.values.result import GenerationPart, LedgerEntry, MetadataPart, TrailEntry

STAGES = ("RubricEvaluation", "DeepJudgmentRubricAutoFail")
ABOUT = MetadataPart(
    question_id="q",
    template_id="t",
    result_id="r",
    question_text="?",
    answering=ModelIdentity("i", "a"),
    parsing=ModelIdentity("i", "j"),
    outcome="passed",
    execution_time=2.0,
    timestamp="2026-01-01T00:00:00+00:00",
    retry_counts={"timeout": 1},
    warnings=("slow",),
)
VERIFIED = LedgerEntry("VerifyTemplate", {"field": True, "verdict": True})
NOT_QUOTED = LedgerEntry(STAGES[1], {"verdict": False, "outcome": "auto_failed"}, "without an excerpt: kind")
LIMITED = LedgerEntry("RecursionLimitAutoFail", {"verdict": False, "outcome": "auto_failed"}, "too long")
ROW = VerificationResult(
    metadata=ABOUT,
    generation=GenerationPart(raw_llm_response="It is BCL2."),
    template=TemplatePart(verify_result=True),
    rubric=RubricPart(rubric_evaluation_performed=True, llm_trait_scores={"brief": True}),
    ledger=(VERIFIED,),
    trail=tuple(TrailEntry(name, "ran") for name in ("VerifyTemplate", "RubricEvaluation", "FinalizeResult")),
)
STATES = {"kind": {"state": "ok", "reason": ""}}
SCORED = VerificationResult(
    metadata=evolve(ABOUT, execution_time=1.0, retry_counts={"timeout": 2, "server": 1}, warnings=("odd", "slow")),
    rubric=RubricPart(rubric_evaluation_performed=True, llm_trait_scores={"kind": False}, trait_states=STATES),
)


def with_kind(row: VerificationResult, scored: VerificationResult, mode: Any = "template_and_rubric") -> Any:
    return merged(row, scored, ["kind"], STAGES, mode)


# Results


def test_scores_are_added_and_the_rest_stays() -> None:
    found = with_kind(ROW, SCORED)
    assert found.rubric.llm_trait_scores == {"brief": True, "kind": False}
    assert found.metadata.retry_counts == {"timeout": 3, "server": 1}
    assert found.metadata.warnings == ("slow", "odd")
    assert found.metadata.execution_time == 3.0
    same: Any = {"execution_time": 0.0, "retry_counts": {}, "warnings": ()}
    assert evolve(found.metadata, **same) == evolve(ABOUT, **same, evaluation_mode="template_and_rubric")
    assert (found.template, found.ledger, found.checks) == (ROW.template, ROW.ledger, ROW.checks)


def test_numbers_of_evidence_are_added_up() -> None:
    parts = [
        DeepJudgmentRubricPart(total_deep_judgment_model_calls=2, rubric_trait_reasoning={name: name})
        for name in ("brief", "kind")
    ]
    found = with_kind(evolve(ROW, deep_judgment_rubric=parts[0]), evolve(SCORED, deep_judgment_rubric=parts[1]))
    assert found.deep_judgment_rubric.total_deep_judgment_model_calls == 4
    assert found.deep_judgment_rubric.rubric_trait_reasoning == {"brief": "brief", "kind": "kind"}
    assert with_kind(ROW, evolve(SCORED, deep_judgment_rubric=parts[1])).deep_judgment_rubric == parts[1]


def test_a_trait_that_fails_the_answer_does_so_in_a_result_that_is_there() -> None:
    found = with_kind(ROW, evolve(SCORED, ledger=(NOT_QUOTED,)))
    assert (found.metadata.outcome, found.metadata.outcome_detail) == ("auto_failed", STAGES[1])
    assert found.template.verify_result is False
    assert found.ledger == (VERIFIED, NOT_QUOTED)


def test_guards_have_spoken_already() -> None:
    found = with_kind(ROW, evolve(SCORED, ledger=(LIMITED,)))
    assert (found.metadata.outcome, found.ledger) == ("passed", (VERIFIED,))


def test_an_answer_that_declines_is_not_failed_for_what_it_does_not_quote() -> None:
    row = evolve(ROW, checks=ChecksPart(abstention_detected=True), metadata=evolve(ABOUT, outcome="abstained"))
    found = with_kind(row, evolve(SCORED, ledger=(NOT_QUOTED,)))
    assert (found.metadata.outcome, found.ledger) == ("abstained", (VERIFIED,))


def test_traits_that_nobody_came_to_score_have_the_error() -> None:
    broken = evolve(SCORED, rubric=None, metadata=evolve(SCORED.metadata, error="RubricEvaluation: broken"))
    found = with_kind(ROW, broken)
    assert found.rubric.trait_errors == {"kind": "RubricEvaluation: broken"}
    assert found.rubric.llm_trait_scores == {"brief": True}
    assert (found.metadata.outcome, found.metadata.error) == ("passed", None)
    assert "the traits that were added: RubricEvaluation: broken" in found.metadata.warnings


def test_traits_of_an_answer_that_is_not_scored_stay_absent() -> None:
    found = with_kind(evolve(ROW, rubric=None), evolve(SCORED, rubric=None))
    assert found.rubric is None


def test_the_trail_tells_of_both_times() -> None:
    ran = TrailEntry("RubricEvaluation", "ran", "1 of 1 traits have a score", 0.5)
    more = evolve(SCORED, trail=(TrailEntry("GenerateAnswer", "ran"), ran, TrailEntry("FinalizeResult", "ran")))
    assert [entry.stage for entry in with_kind(ROW, more).trail] == [entry.stage for entry in ROW.trail]
    without = evolve(ROW, trail=tuple(entry for entry in ROW.trail if entry.stage != "RubricEvaluation"))
    assert [entry.stage for entry in with_kind(without, more).trail] == [entry.stage for entry in ROW.trail]
    skipped = evolve(ROW, trail=(TrailEntry("RubricEvaluation", "skipped", "no traits"),))
    assert with_kind(skipped, more).trail == (ran,)
    assert with_kind(evolve(ROW, trail=()), more).trail == (ran,)


def test_usage_is_added_by_task_and_in_total() -> None:
    def row(calls: int, cost: float | None = 0.5) -> dict[str, Any]:
        return {"calls": calls, "attempts": calls, "cost_usd": cost, "channel": "text", "usage_unavailable": False}

    before = {"generation": {**row(1), "cached": True}, "rubric": row(2), "total": row(2)}
    found = usage_sum(before, {"generation": {**row(1), "cached": True}, "rubric": row(1), "other": row(4, None)})
    assert found["generation"]["cached"] is True
    assert (found["rubric"]["calls"], found["rubric"]["cost_usd"], found["rubric"]["channel"]) == (3, 1.0, "text")
    assert (found["total"]["calls"], found["total"]["cost_usd"]) == (7, None)
    assert usage_sum({}, {}) == {}


# Stages


class Costly(Stage):
    """Runs in every plan, and asks somebody."""

    def execute(self, context: VerificationContext) -> None:
        raise AssertionError

    @staticmethod
    @hookimpl
    def karenina_register_stages(registry: Any) -> None:
        registry.add(Costly)


class OfTemplates(Stage):
    category = Category.RUBRIC
    requires = (ArtifactKeys.PARSED_ANSWER,)

    def execute(self, context: VerificationContext) -> None:
        raise AssertionError

    @staticmethod
    @hookimpl
    def karenina_register_stages(registry: Any) -> None:
        registry.add(OfTemplates)


KIND = Rubric.from_traits([LLMRubricTrait(name="kind", kind="boolean", description="Whether it is kind.")])


def test_only_stages_that_traits_need_score_them() -> None:
    scoring = scoring_of(application(Costly, installed=True), {"q": KIND})
    names = [stage.name for stage in scoring.plans[PlanRequest(rubric=KIND).traits].stages]
    assert names == [
        *("GenerateAnswer", "RecursionLimitAutoFail", "TraceValidationAutoFail"),
        *("RubricEvaluation", "DeepJudgmentRubricAutoFail", "FinalizeResult"),
    ]
    assert scoring.stages == {"RubricEvaluation", "DeepJudgmentRubricAutoFail"}
    assert scoring.traits == ["kind"]


def test_a_stage_of_traits_that_needs_the_template_cannot_be_had_alone() -> None:
    with pytest.raises(PlanError, match=r"OfTemplates.*requires"):
        scoring_of(application(OfTemplates, installed=True), {"q": KIND})


# Models


def manifest_of(*judges: str) -> dict[str, Any]:
    def model(name: str) -> dict[str, Any]:
        return {"id": name, "model_name": name, "interface": "openai_endpoint", "endpoint_base_url": "http://x/v1"}

    return {
        "config": {"answering_models": [model("a")], "parsing_models": list(map(model, judges))},
        "tables": {"answering": ["a"], "parsing": list(judges)},
        "plugin_settings": {},
        "blocked_plugins": [],
    }


def added(*names: str, **facts: Any) -> Flags:
    return Flags(parsing=ModelFlags(role="parsing", models=names, **facts))


def judges(path: Path | None = None, sets: tuple[str, ...] = (), flags: Flags | None = None) -> list[tuple[str, ...]]:
    config = rebuilt_with(manifest_of("j"), path, sets, flags or Flags()).config
    return [(str(model.id), str(model.model_name), str(model.endpoint_base_url)) for model in config.parsing_models]


THERE = ("j", "j", "http://x/v1")


def test_models_follow_those_that_are_there(tmp_path: Path) -> None:
    new = {"interface": "openai_endpoint", "base_url": "http://y/v1"}
    assert judges() == [THERE]
    assert judges(flags=added("k", **new)) == [THERE, ("k", "k", "http://y/v1")]
    assert judges(flags=added("a")) == [THERE, ("a", "a", "http://x/v1")]
    file = tmp_path / "more.toml"
    file.write_text('[models.k]\nmodel_name = "kk"\ninterface = "openai_endpoint"\nendpoint_base_url = "http://z/v1"\n')
    assert judges(file, flags=added("k")) == [THERE, ("k", "kk", "http://z/v1")]
    assert judges(file, flags=added("k", **new)) == [THERE, ("k", "kk", "http://y/v1")]
    assert judges(file, ('run.parsing_models=["j", "a"]',), added("k"))[1:] == [
        ("a", "a", "http://x/v1"),
        ("k", "kk", "http://z/v1"),
    ]


@pytest.mark.parametrize("name", ["plain", "provider/name.1"])
def test_a_model_is_called_as_in_a_run_that_begins_with_it(name: str) -> None:
    flags = added(name)
    answering = ModelFlags(role="answering", models=("a",), interface="openai_endpoint", base_url="http://x/v1")
    begun = load_config(flags=evolve(flags, answering=answering)).config.parsing_models[0]
    extended = rebuilt_with(manifest_of("j"), None, (), flags).config.parsing_models[1]
    assert (extended, extended.identity) == (begun, begun.identity)


def test_a_model_that_is_there_is_not_added() -> None:
    with pytest.raises(ConfigError, match="--parsing-model: j is already in the run"):
        judges(flags=added("j"))
    with pytest.raises(ConfigError, match="name one with --parsing-model"):
        judges(flags=added(base_url="http://y/v1"))


# Rows without a template


def only_traits(outcome: str, detail: str | None = None, **states: str) -> VerificationResult:
    told = {name: {"state": state, "reason": "why", "kind": "auth"} for name, state in states.items()}
    error = "no trait has a score" if outcome == "error" else None
    about = evolve(ABOUT, outcome=outcome, outcome_detail=detail, error=error, completed_without_errors=error is None,
                   evaluation_mode="rubric_only")  # fmt: skip
    part = RubricPart(trait_states=told, llm_trait_scores={name: state == "ok" for name, state in told.items()})
    return evolve(ROW, metadata=about, rubric=part, template=None, ledger=(), deep_judgment_rubric=None)


@pytest.mark.parametrize(
    ("row", "more", "outcome"),
    [
        (only_traits("error", "auth", a="error"), only_traits("scored", b="ok"), "scored"),
        (only_traits("error", "auth", a="error"), only_traits("error", "auth", b="error"), "error(auth)"),
        (only_traits("scored", a="ok"), only_traits("error", "auth", b="error"), "scored"),
        (only_traits("scored", a="skipped"), only_traits("error", "auth", b="error"), "error(auth)"),
        # What has nothing to do with traits stays what it is.
        (only_traits("error", "agent"), only_traits("scored", b="ok"), "error(agent)"),
    ],
)
def test_a_row_of_traits_alone_is_an_error_as_long_as_none_has_a_score(
    row: VerificationResult, more: VerificationResult, outcome: str
) -> None:
    about = merged(row, more, ["b"], STAGES, "rubric_only").metadata
    assert str(merged(row, more, ["b"], STAGES, "rubric_only").outcome) == outcome
    assert about.completed_without_errors is (about.error is None) is (outcome == "scored")
