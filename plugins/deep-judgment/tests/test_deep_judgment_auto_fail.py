"""DeepJudgmentAutoFail: when it fails an answer, when it does not run, and what it refuses before a run."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import karenina_deep_judgment.strategy
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_deep_judgment.auto_fail import DeepJudgmentAutoFail

from karenina_core import (
    ArtifactKeys,
    Category,
    Karenina,
    ModelConfig,
    Question,
    Stage,
    VerificationConfig,
    VerificationContext,
    VerificationResult,
    hookimpl,
)
from karenina_core.errors import ConfigError, Problem
from karenina_core.pipeline.assemble import bare_result
from karenina_core.pipeline.engine import Engine
from karenina_core.testing import application

PERFORMED, MISSING = ArtifactKeys.DEEP_JUDGMENT_PERFORMED, ArtifactKeys.ATTRIBUTES_WITHOUT_EXCERPTS
ABSTAINED = ArtifactKeys.ABSTENTION_DETECTED
FULL = VerificationConfig(deep_judgment_mode="full")


class Last(Stage):
    """Takes the place of the stage that assembles the result."""

    produces = (ArtifactKeys.FINAL_RESULT,)
    final = True

    def should_run(self, context: VerificationContext) -> bool:
        return True

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact(ArtifactKeys.FINAL_RESULT, bare_result(context))


def item(
    performed: bool | None = True,
    missing: list[str] | None = None,
    abstained: bool | None = None,
    verdict: bool | None = True,
    config: VerificationConfig = FULL,
) -> VerificationContext:
    about = VerificationContext(question=Question(question="Which?"), config=config)
    for key, value in ((PERFORMED, performed), (MISSING, missing), (ABSTAINED, abstained)):
        if value is not None:
            about.set_artifact(key, value)
    about.record(field=verdict, verdict=verdict)
    return about


def trail_of(about: VerificationContext) -> tuple[str, str]:
    entry = asyncio.run(Engine([DeepJudgmentAutoFail(), Last()]).run(about)).trail[0]
    return entry.status, entry.reason


def test_its_declaration() -> None:
    stage = DeepJudgmentAutoFail
    assert stage.category is Category.ENHANCEMENT
    assert list(stage.requires) == [PERFORMED, MISSING, "verify_result", "field_verification_result"]
    assert (list(stage.produces), list(stage.result_fields), list(stage.after)) == ([], [], ["EmbeddingCheck"])
    assert list(stage.features) == ["deep_judgment"]


def test_an_attribute_without_an_excerpt_fails_the_verdict_and_is_named() -> None:
    about = item(missing=["target", "dose"])
    assert trail_of(about) == ("ran", "")
    assert (about.verdict.field, about.verdict.verdict) == (False, False)
    assert str(about.outcome) == "auto_failed(DeepJudgmentAutoFail)"
    assert about.effects[-1].reason == "without an excerpt: target, dose"
    assert about.completed_without_errors


def test_a_wrong_answer_stays_a_wrong_answer() -> None:
    about = item(missing=["target"], verdict=False)
    trail_of(about)
    assert str(about.outcome) == "failed"


SKIPPED: list[tuple[Mapping[str, Any], str]] = [
    ({"performed": False, "missing": ["target"]}, "deep judgment was not performed"),
    ({"performed": None}, "deep judgment was not performed"),
    ({"missing": []}, "every attribute has an excerpt"),
    ({"missing": None}, "every attribute has an excerpt"),
    ({"missing": ["target"], "abstained": True}, "the model abstained"),
    (
        {"missing": ["target"], "config": VerificationConfig(deep_judgment_mode="reasoning_only")},
        "the mode reasoning_only looks for no excerpts",
    ),
]


@pytest.mark.parametrize(("facts", "reason"), SKIPPED)
def test_it_does_not_run(facts: Mapping[str, Any], reason: str) -> None:
    about = item(**facts)
    assert trail_of(about) == ("skipped", reason)
    assert (about.verdict.verdict, len(about.effects)) == (True, 1)


def test_it_does_not_run_after_an_error() -> None:
    about = item(missing=["target"])
    about.mark_error("the judge is away", kind="server", stage="ParseTemplate")
    assert trail_of(about)[0] == "skipped"
    assert str(about.outcome) == "error(server)"


@given(
    st.booleans(),
    st.lists(st.sampled_from(["a", "b"]), max_size=2),
    st.sampled_from([None, True, False]),
    st.sampled_from(["full", "reasoning_only"]),
    st.booleans(),
)
@settings(database=None, deadline=None, derandomize=True)
def test_it_fires_exactly_when_something_is_missing_and_nothing_speaks_against_it(
    performed: bool, missing: list[str], abstained: bool | None, mode: Any, verdict: bool
) -> None:
    about = item(performed, missing, abstained, verdict, VerificationConfig(deep_judgment_mode=mode))
    ran = trail_of(about)[0] == "ran"
    assert ran is (performed and bool(missing) and abstained is not True and mode == "full")
    assert about.verdict.verdict is (False if ran else verdict)


# What is refused before a run

Verify = Callable[..., VerificationResult]


def problems(app: Karenina, **settings: Any) -> list[Problem]:
    return list(DeepJudgmentAutoFail().check_config(VerificationConfig(**settings), app))


def everything() -> Karenina:
    return application(installed=["deep-judgment", "search-tavily", "openai_endpoint"])


def test_a_run_without_search_needs_no_search_tool(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAVILY_API_KEY", raising=False)
    for mode in ("disabled", "reasoning_only", "full"):
        assert problems(everything(), deep_judgment_mode=mode) == []
    assert problems(application(), deep_judgment_mode="disabled", deep_judgment_search_tool="nonsense") == []


def test_an_unknown_search_tool_is_reported_with_the_closest_one() -> None:
    (found,) = problems(
        everything(), deep_judgment_enabled=True, deep_judgment_search_enabled=True, deep_judgment_search_tool="tavly"
    )
    assert found.path == "deep_judgment_search_tool"
    assert "did you mean 'tavily'" in found.message


def test_a_missing_key_is_reported_before_anything_is_paid_for(monkeypatch: pytest.MonkeyPatch) -> None:
    judge = ModelConfig(model_name="j", interface="openai_endpoint", endpoint_base_url="http://127.0.0.1:9/v1")
    without_models = {"deep_judgment_enabled": True, "deep_judgment_search_enabled": True}
    searching: dict[str, Any] = {**without_models, "parsing_models": [judge]}
    monkeypatch.delenv("TAVILY_API_KEY", raising=False)
    (found,) = problems(everything(), **searching)
    assert found.path == "deep_judgment_search_tool"
    assert "set TAVILY_API_KEY" in found.message
    assert problems(everything(), **searching, deep_judgment_search_tool=lambda query: []) == []
    assert problems(everything(), **without_models) == [], "a plan asks for no key"
    monkeypatch.setenv("TAVILY_API_KEY", "x")
    assert problems(everything(), **searching) == []


def test_a_missing_strategy_is_reported() -> None:
    (found,) = problems(application(), deep_judgment_enabled=True)
    assert found.path == "deep_judgment_enabled"
    assert "install karenina-deep-judgment" in found.message
    assert problems(application(karenina_deep_judgment.strategy), deep_judgment_enabled=True) == []


def test_a_run_is_refused_before_its_first_call(verify: Verify, judge: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("TAVILY_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="TAVILY_API_KEY"):
        verify(deep_judgment_search_enabled=True)
    with pytest.raises(ConfigError, match="did you mean 'tavily'"):
        verify(deep_judgment_search_enabled=True, deep_judgment_search_tool="tavili")
    assert judge.asked == []


# In a pipeline


class Abstention:
    """A plugin whose stage says that the model abstained."""

    @hookimpl
    def karenina_register_stages(self, registry: Any) -> None:
        class Abstained(Stage):
            category = Category.PRE_PARSE_CHECK
            requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
            produces = (ABSTAINED,)

            def execute(self, context: VerificationContext) -> None:
                context.set_artifact(ABSTAINED, True)

        registry.add(Abstained)


class Override:
    """A plugin whose stage turns a verdict to True, as EmbeddingCheck may."""

    @hookimpl
    def karenina_register_stages(self, registry: Any) -> None:
        class EmbeddingCheck(Stage):
            category = Category.ENHANCEMENT
            requires = (ArtifactKeys.FIELD_VERIFICATION_RESULT,)

            def execute(self, context: VerificationContext) -> None:
                context.record(field=True, verdict=True, reason="means the same")

        registry.add(EmbeddingCheck)


NOTHING: Mapping[str, list[str]] = {"target": [], "dose": []}


@pytest.mark.parametrize("mode", ["full", "reasoning_only"])
def test_where_parsing_is_skipped_the_result_still_says_what_was_asked_for(
    mode: Any, verify: Verify, judge: Any
) -> None:
    result = verify(Abstention(), deep_judgment_mode=mode)
    reasons = {entry.stage: entry.reason for entry in result.trail if entry.status == "skipped"}
    assert reasons["ParseTemplate"] == "the model abstained"
    assert reasons["DeepJudgmentAutoFail"] == "deep judgment was not performed"
    assert result.deep_judgment is not None
    assert (result.deep_judgment.deep_judgment_mode, result.deep_judgment.deep_judgment_performed) == (mode, False)
    assert judge.steps == []


def test_it_has_the_last_word_after_an_override(verify: Verify, judge: Any) -> None:
    judge.replies["excerpts"] = [NOTHING]
    judge.replies["parameters"] = [{"target": "MCL1", "dose": 1}]
    result = verify(Override())
    assert [row.stage for row in result.ledger] == ["VerifyTemplate", "EmbeddingCheck", "DeepJudgmentAutoFail"]
    assert str(result.outcome) == "auto_failed(DeepJudgmentAutoFail)"


def test_nothing_of_it_is_there_without_deep_judgment(verify: Verify, judge: Any) -> None:
    result = verify(deep_judgment_enabled=False)
    assert result.deep_judgment is None
    assert "DeepJudgmentAutoFail" not in [entry.stage for entry in result.trail]
    assert judge.steps == []


def test_the_evidence_survives_being_written_and_read(verify: Verify) -> None:
    part = verify().deep_judgment
    assert part is not None
    assert json.loads(json.dumps(dict(part.extracted_excerpts))) == part.extracted_excerpts
