"""The published pipeline: its stage lists, by name and order, and its table of artifacts."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest

from karenina_core import AgenticRubricTrait, Karenina, LLMRubricTrait, RegexRubricTrait, Rubric, StageOrchestrator
from karenina_core.testing import application

RUBRIC = Rubric(
    llm_traits=[LLMRubricTrait(name="conciseness", description="Is the response concise?", kind="boolean")],
    regex_traits=[RegexRubricTrait(name="has_citations", description="Has bracket citations", pattern=r"\[\d+\]")],
)
AGENTIC = AgenticRubricTrait(name="tests_pass", description="Do the tests pass?", kind="boolean")
BEGIN = ["ValidateTemplate", "GenerateAnswer", "RecursionLimitAutoFail", "TraceValidationAutoFail"]
TEMPLATE = ["ParseTemplate", "VerifyTemplate", "EmbeddingCheck"]
BY_AGENT = ["AgenticParseTemplate", *TEMPLATE[1:]]
RUBRIC_STAGES = ["RubricEvaluation", "DeepJudgmentRubricAutoFail"]
AGENTIC_STAGES = ["RubricEvaluation", "AgenticRubricEvaluation", "DeepJudgmentRubricAutoFail"]
BOTH = Rubric(llm_traits=RUBRIC.llm_traits, agentic_traits=[AGENTIC])
ALL_CHECKS = {"abstention_enabled": True, "sufficiency_enabled": True, "deep_judgment_enabled": True}

LISTS: list[tuple[dict[str, Any], list[str]]] = [
    ({"evaluation_mode": "template_only"}, [*BEGIN, *TEMPLATE, "FinalizeResult"]),
    (
        {"evaluation_mode": "template_only", **ALL_CHECKS},
        [*BEGIN, "AbstentionCheck", "SufficiencyCheck", *TEMPLATE, "DeepJudgmentAutoFail", "FinalizeResult"],
    ),
    (
        {"evaluation_mode": "template_and_rubric", "rubric": RUBRIC},
        [*BEGIN, *TEMPLATE, *RUBRIC_STAGES, "FinalizeResult"],
    ),
    ({"evaluation_mode": "rubric_only", "rubric": RUBRIC}, [*BEGIN[1:], *RUBRIC_STAGES, "FinalizeResult"]),
    (
        {"evaluation_mode": "template_and_rubric", "rubric": RUBRIC, "abstention_enabled": True},
        [*BEGIN, "AbstentionCheck", *TEMPLATE, *RUBRIC_STAGES, "FinalizeResult"],
    ),
    ({"evaluation_mode": "template_only", "features": ["agentic_parsing"]}, [*BEGIN, *BY_AGENT, "FinalizeResult"]),
    (
        {"evaluation_mode": "template_and_rubric", "rubric": BOTH},
        [*BEGIN, *TEMPLATE, *AGENTIC_STAGES, "FinalizeResult"],
    ),
    (
        {"evaluation_mode": "template_and_rubric", "rubric": BOTH, "features": ["agentic_parsing"]},
        [*BEGIN, *BY_AGENT, *AGENTIC_STAGES, "FinalizeResult"],
    ),
    (
        {"evaluation_mode": "rubric_only", "rubric": BOTH, "features": ["agentic_parsing"]},
        [*BEGIN[1:], *AGENTIC_STAGES, "FinalizeResult"],
    ),
]
COUNTS = [8, 11, 10, 6, 11, 8, 11, 11, 7]


def names(orchestrator: StageOrchestrator) -> list[str]:
    return [stage.name for stage in orchestrator.stages]


@pytest.mark.parametrize(
    ("request_", "expected", "count"), [(r, e, c) for (r, e), c in zip(LISTS, COUNTS, strict=True)]
)
def test_published_lists(built_in_app: Karenina, request_: dict[str, Any], expected: list[str], count: int) -> None:
    orchestrator = StageOrchestrator.from_config(**request_, app=built_in_app)
    assert names(orchestrator) == expected
    assert len(expected) == count
    assert orchestrator.validate_dependencies() == []


@pytest.mark.parametrize(("request_", "expected"), LISTS)
def test_they_do_not_depend_on_the_names_of_plugins(
    built_in: dict[str, Any], request_: dict[str, Any], expected: list[str]
) -> None:
    plugins = [*built_in.values()]
    random.Random(7).shuffle(plugins)
    assert names(StageOrchestrator.from_config(**request_, app=application(*plugins))) == expected


def test_the_full_matrix(built_in_app: Karenina) -> None:
    """Which stages each mode has, with every option on and a rubric of both kinds of traits."""
    rows = {
        mode: names(StageOrchestrator.from_config(mode, BOTH, **ALL_CHECKS, app=built_in_app))  # type: ignore[arg-type]
        for mode in ("template_only", "template_and_rubric", "rubric_only")
    }
    middle = [*TEMPLATE, "DeepJudgmentAutoFail"]
    checks = ["AbstentionCheck", "SufficiencyCheck"]
    assert rows["template_only"] == [*BEGIN, *checks, *middle, "FinalizeResult"]
    assert rows["template_and_rubric"] == [*BEGIN, *checks, *middle, *AGENTIC_STAGES, "FinalizeResult"]
    assert rows["rubric_only"] == [*BEGIN[1:], "AbstentionCheck", *AGENTIC_STAGES, "FinalizeResult"]


def test_agentic_traits_alone_bring_the_agentic_stage_alone(built_in_app: Karenina) -> None:
    orchestrator = StageOrchestrator.from_config("rubric_only", Rubric(agentic_traits=[AGENTIC]), app=built_in_app)
    assert names(orchestrator) == [*BEGIN[1:], "AgenticRubricEvaluation", "FinalizeResult"]
    assert orchestrator.validate_dependencies() == []


@pytest.mark.parametrize("mode", ["template_only", "template_and_rubric"])
def test_without_traits_there_are_no_rubric_stages(built_in_app: Karenina, mode: Any) -> None:
    for rubric in (None, Rubric()):
        assert names(StageOrchestrator.from_config(mode, rubric, app=built_in_app)) == LISTS[0][1]


LISTING = """\
Dependency validation: PASSED

Artifact flow:
  ValidateTemplate
    produces: ['RawAnswer', 'Answer', 'template_validation_error']
  GenerateAnswer
    produces: ['raw_llm_response', 'recursion_limit_reached', 'answering_model_str', 'answering_mcp_servers']
  RecursionLimitAutoFail
    reads: ['recursion_limit_reached']
  TraceValidationAutoFail
    reads: ['raw_llm_response']
    produces: ['trace_validation_failed', 'trace_validation_error', 'mcp_enabled']
  ParseTemplate
    reads: ['RawAnswer', 'Answer', 'raw_llm_response']
    produces: ['parsed_answer', 'parsing_model_str', 'template_evaluator', 'deep_judgment_performed', \
'extracted_excerpts', 'attribute_reasoning', 'deep_judgment_stages_completed', 'deep_judgment_model_calls', \
'deep_judgment_excerpt_retry_count', 'attributes_without_excerpts', 'hallucination_risk_assessment']
  VerifyTemplate
    reads: ['parsed_answer', 'raw_llm_response']
    produces: ['field_verification_result', 'regex_verification_results', 'regex_extraction_results', \
'verify_result', 'verify_granular_result']
  EmbeddingCheck
    reads: ['parsed_answer', 'field_verification_result', 'regex_verification_results']
    produces: ['embedding_check_performed', 'embedding_similarity_score', 'embedding_model_used', \
'embedding_override_applied']
  FinalizeResult
    produces: ['final_result']"""


def listing(orchestrator: StageOrchestrator) -> str:
    errors = orchestrator.validate_dependencies()
    lines = [f"Dependency validation: {errors or 'PASSED'}", "", "Artifact flow:"]
    for stage in orchestrator.stages:
        lines.append(f"  {stage.name}")
        if stage.requires:
            lines.append(f"    reads: {stage.requires}")
        if stage.produces:
            lines.append(f"    produces: {stage.produces}")
    return "\n".join(lines)


def test_the_published_table_of_artifacts(built_in_app: Karenina) -> None:
    assert listing(StageOrchestrator.from_config(evaluation_mode="template_only", app=built_in_app)) == LISTING


def test_without_the_embedding_plugin_its_stage_is_missing_and_nothing_else(built_in: dict[str, Any]) -> None:
    others = {name: plugin for name, plugin in built_in.items() if name != "embedding-check"}
    orchestrator = StageOrchestrator.from_config(app=Karenina(others))
    assert names(orchestrator) == [name for name in LISTS[0][1] if name != "EmbeddingCheck"]
    without = LISTING.split("  EmbeddingCheck")[0] + "  FinalizeResult" + LISTING.split("  FinalizeResult")[1]
    assert listing(orchestrator) == without


@pytest.mark.parametrize(("request_", "expected"), LISTS)
def test_the_installed_application_plans_the_published_lists(request_: dict[str, Any], expected: list[str]) -> None:
    """Whatever else is installed: the published stages are there, in their order."""
    found = names(StageOrchestrator.from_config(**request_, app=Karenina.installed()))
    assert [name for name in found if name in expected] == expected


FEATURES = ("abstention", "sufficiency", "deep_judgment", "embedding_check", "agentic_parsing")
RUBRICS = (None, Rubric(), RUBRIC, Rubric(agentic_traits=[AGENTIC]), BOTH)


@pytest.mark.parametrize("mode", ["template_only", "template_and_rubric", "rubric_only"])
def test_every_combination_of_features_and_traits_is_a_valid_plan(built_in_app: Karenina, mode: Any) -> None:
    """In the published order, with everything produced that is required; each stage once, the final one last."""
    published = [*BEGIN, "AbstentionCheck", "SufficiencyCheck", "AgenticParseTemplate", *TEMPLATE]
    published += ["DeepJudgmentAutoFail", "RubricEvaluation"]
    published += ["AgenticRubricEvaluation", "DeepJudgmentRubricAutoFail", "FinalizeResult"]
    for size in range(len(FEATURES) + 1):
        for features in itertools.combinations(FEATURES, size):
            for rubric in RUBRICS:
                plan = StageOrchestrator.from_config(mode, rubric, features=features, app=built_in_app)
                assert plan.validate_dependencies() == [] or (mode == "rubric_only" and not rubric), (features, rubric)
                found = names(plan)
                assert found == [name for name in published if name in found]
                assert ("AbstentionCheck" in found) is ("abstention" in features)
                assert ("SufficiencyCheck" in found) is ("sufficiency" in features and mode != "rubric_only")
                assert ("DeepJudgmentAutoFail" in found) is ("deep_judgment" in features and mode != "rubric_only")
                assert ("EmbeddingCheck" in found) is (mode != "rubric_only")
                parses = [name for name in found if name in ("ParseTemplate", "AgenticParseTemplate")]
                by = "AgenticParseTemplate" if "agentic_parsing" in features else "ParseTemplate"
                assert parses == ([] if mode == "rubric_only" else [by])
                agentic = mode != "template_only" and rubric is not None and bool(rubric.agentic_traits)
                assert ("AgenticRubricEvaluation" in found) is agentic
