"""DeepJudgmentRubricAutoFail: when it fails an answer, when it does not run, and which plans it is in."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_deep_judgment.rubric_auto_fail import DeepJudgmentRubricAutoFail
from karenina_testing.fakes import example_of

from karenina_core import (
    AgenticRubricTrait,
    ArtifactKeys,
    Category,
    LLMRubricTrait,
    ModelConfig,
    Question,
    RegexRubricTrait,
    Rubric,
    Stage,
    VerificationConfig,
    VerificationContext,
    VerificationResult,
    hookimpl,
    run_single_model_verification,
)
from karenina_core.errors import PortError
from karenina_core.pipeline.assemble import bare_result
from karenina_core.pipeline.engine import Engine
from karenina_core.pipeline.stage import PlanRequest
from karenina_core.pipeline.stage_plan import StageOrchestrator
from karenina_core.testing import ScriptedCall, ScriptedLLM, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.rubric import RubricTrait

ABSTAINED = ArtifactKeys.ABSTENTION_DETECTED
CLEAR = LLMRubricTrait(name="Clarity", kind="score")
CITES = RegexRubricTrait(name="Cites", pattern=r"\[\d+\]")
LOOKED = AgenticRubricTrait(name="Looked", description="Runs.", kind="boolean")


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
    missing: Sequence[str] | None = None,
    abstained: bool | None = None,
    verdict: bool | None = None,
    mode: Any = "template_and_rubric",
) -> VerificationContext:
    about = VerificationContext(question=Question(question="Which?"), mode=mode)
    if performed is not None:
        about.set_result_field("deep_judgment_rubric_performed", performed)
    if missing is not None:
        about.set_result_field("traits_without_valid_excerpts", list(missing))
    if abstained is not None:
        about.set_artifact(ABSTAINED, abstained)
    if verdict is not None:
        about.record(field=verdict, verdict=verdict)
    return about


def trail_of(about: VerificationContext) -> tuple[str, str]:
    entry = asyncio.run(Engine([DeepJudgmentRubricAutoFail(), Last()]).run(about)).trail[0]
    return entry.status, entry.reason


def test_its_declaration() -> None:
    stage = DeepJudgmentRubricAutoFail
    assert stage.category is Category.RUBRIC
    assert (list(stage.requires), list(stage.produces), list(stage.result_fields)) == (["raw_llm_response"], [], [])
    assert list(stage.features) == [], "no feature has to be switched on for it"
    assert {"RubricEvaluation", "AgenticRubricEvaluation"} < set(stage.after)


def test_a_trait_without_a_quotation_fails_the_verdict_and_is_named_and_the_fields_stay_right() -> None:
    about = item(missing=["Clarity", "Safe Response"], verdict=True)
    assert trail_of(about) == ("ran", "")
    assert (about.verdict.field, about.verdict.verdict) == (True, False)
    assert str(about.outcome) == "auto_failed(DeepJudgmentRubricAutoFail)"
    assert about.effects[-1].reason == "without an excerpt: Clarity, Safe Response"
    assert about.completed_without_errors


def test_it_also_fails_an_answer_of_which_only_the_rubric_is_evaluated() -> None:
    about = item(missing=["Clarity"], mode="rubric_only")
    assert str(about.outcome) == "scored"
    trail_of(about)
    assert str(about.outcome) == "auto_failed(DeepJudgmentRubricAutoFail)"
    assert about.verdict.field is None


def test_a_wrong_answer_stays_a_wrong_answer() -> None:
    about = item(missing=["Clarity"], verdict=False)
    trail_of(about)
    assert str(about.outcome) == "failed"


SKIPPED: list[tuple[Mapping[str, Any], str]] = [
    ({"performed": False, "missing": ["Clarity"]}, "no trait was judged deeply"),
    ({"performed": None}, "no trait was judged deeply"),
    ({"missing": []}, "no trait was found to lack an excerpt"),
    ({"missing": None}, "no trait was found to lack an excerpt"),
    ({"missing": ["Clarity"], "abstained": True}, "the model abstained"),
]


@pytest.mark.parametrize(("facts", "reason"), SKIPPED)
def test_it_does_not_run(facts: Mapping[str, Any], reason: str) -> None:
    about = item(verdict=True, **facts)
    assert trail_of(about) == ("skipped", reason)
    assert (about.verdict.verdict, len(about.effects)) == (True, 1)


def test_it_does_not_run_after_an_error() -> None:
    about = item(missing=["Clarity"])
    about.mark_error("the judge is away", kind="server", stage="RubricEvaluation")
    assert trail_of(about)[0] == "skipped"
    assert str(about.outcome) == "error(server)"


@given(
    st.sampled_from([None, True, False]),
    st.lists(st.sampled_from(["a", "b"]), max_size=2, unique=True),
    st.sampled_from([None, True, False]),
    st.sampled_from([None, True, False]),
)
@settings(database=None, deadline=None, derandomize=True)
def test_it_fires_exactly_when_something_is_missing_and_nothing_speaks_against_it(
    performed: bool | None, missing: list[str], abstained: bool | None, verdict: bool | None
) -> None:
    about = item(performed, missing, abstained, verdict)
    ran = trail_of(about)[0] == "ran"
    assert ran is (performed is True and bool(missing) and abstained is not True)
    assert about.verdict.verdict is (False if ran else verdict)
    assert about.verdict.field is verdict


# In a plan


def plan(mode: Any, *traits: RubricTrait, features: Sequence[str] = ()) -> list[str]:
    class Others:
        """Replacements of the stages that it follows, with their data."""

        @hookimpl
        def karenina_register_stages(self, registry: Any) -> None:
            for stage in OTHERS:
                registry.add(stage)

    request = PlanRequest(mode=mode, features=frozenset(features), rubric=Rubric.from_traits(traits))
    app = application(Others(), installed=["deep-judgment-rubric-auto-fail"])
    return [stage.name for stage in StageOrchestrator.for_request(request, app=app).stages]


class GenerateAnswer(Stage):
    category = Category.GENERATION
    produces = (ArtifactKeys.RAW_LLM_RESPONSE,)

    def execute(self, context: object) -> None:
        """Does nothing."""


class VerifyTemplate(Stage):
    category = Category.TEMPLATE
    produces = (ArtifactKeys.VERIFY_RESULT, ArtifactKeys.FIELD_VERIFICATION_RESULT)
    included_when = staticmethod(lambda request: request.evaluates_template)

    def execute(self, context: object) -> None:
        """Does nothing."""


class RubricEvaluation(Stage):
    category = Category.RUBRIC
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (ArtifactKeys.RUBRIC_RESULT,)

    def execute(self, context: object) -> None:
        """Does nothing."""


class AgenticRubricEvaluation(Stage):
    category = Category.RUBRIC
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (ArtifactKeys.AGENTIC_TRAIT_SCORES,)

    def execute(self, context: object) -> None:
        """Does nothing."""


class AbstentionCheck(Stage):
    """Later in category than it ever is: what is read comes first all the same."""

    category = Category.RUBRIC
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (ABSTAINED,)

    def execute(self, context: object) -> None:
        """Does nothing."""


OTHERS = (GenerateAnswer, VerifyTemplate, RubricEvaluation, AgenticRubricEvaluation, AbstentionCheck, Last)
NAME = "DeepJudgmentRubricAutoFail"


@pytest.mark.parametrize("mode", ["template_and_rubric", "rubric_only"])
def test_it_is_in_every_plan_that_evaluates_a_rubric_without_deep_judgment_of_templates(mode: Any) -> None:
    names = plan(mode, CLEAR, LOOKED)
    assert names.index(NAME) == len(names) - 2, "only the stage that assembles the result comes later"
    assert NAME in plan(mode, CITES)


def test_it_is_in_no_plan_without_traits_that_could_be_judged_deeply() -> None:
    assert NAME not in plan("template_only", CLEAR)
    assert NAME not in plan("rubric_only", LOOKED)


# Through the whole pipeline

INSTALLED = (
    *("validate-template", "generate-answer", "parse-template", "verify-template", "standard-judgment"),
    *("declarative-runtime", "primitives", "finalize-result", "local-executor", "abstention-check"),
    *("rubric-evaluation", "trait-llm", "trait-regex", "deep-judgment", "deep-judgment-rubric-auto-fail"),
)
ANSWER = "Venetoclax targets BCL2."
SAFE = LLMRubricTrait(name="Safe", kind="boolean")
TEMPLATE = {
    "name": "target",
    "type": "str",
    "description": "The target",
    "ground_truth": "BCL2",
    "verify_with": {"type": "ExactMatch"},
}

REPLIES: Mapping[str, Mapping[str, Any]] = {
    "parsing": {"target": "BCL2"},
    "abstention_detection": {"answer": None, "disclaimer": ANSWER, "abstention_detected": True},
}
"""What the judge says where an example of the schema will not do."""


def verified(
    offered: Mapping[str, Any], *traits: RubricTrait, mode: Any = "template_and_rubric", **settings: Any
) -> VerificationResult:
    """One answer by the real stages; `offered` is what is quoted by trait: a text, an error, or replies in turn."""

    def reply(call: ScriptedCall) -> Any:
        if call.task == "generation":
            return ANSWER
        if call.task != "dj_rubric_excerpt_extraction":
            assert call.output is not None
            return {**example_of(call.output.schema), **REPLIES.get(call.task, {})}
        found = next(quoted for name, quoted in offered.items() if f"Trait: {name}\n" in call.text)
        if isinstance(found, Exception):
            raise found
        if isinstance(found, Iterator):
            return next(found)
        return {"excerpts": [{"text": found, "explanation": None, "confidence": "high"}] if found else []}

    model = ModelConfig(model_name="m", interface="scripted", max_retries=0, retry_policy=ONCE)
    template = json.dumps({"fields": [TEMPLATE]})
    return run_single_model_verification(
        Question(question="Which?", answer_template=template, template_language="karenina-template"),
        model,
        evolve(model, model_name="judge"),
        rubric=Rubric.from_traits(traits),
        evaluation_mode=mode,
        config=VerificationConfig(**{"deep_judgment_rubric_mode": "enable_all", **settings}),
        app=application(ScriptedLLM(reply, channels=["json_schema"]), installed=INSTALLED),
    )


ONCE = RetryPolicy(server=AttemptPolicy(1))
AWAY = PortError("the judge is away", kind="server")


def test_a_right_answer_of_which_a_trait_finds_nothing_to_quote_does_not_pass() -> None:
    """Although deep judgment of templates is off; and its fields are right all the same."""
    result = verified({"Safe": "", "Clarity": ANSWER}, SAFE, CLEAR, CITES)
    assert str(result.outcome) == f"auto_failed({NAME})"
    assert result.template is not None
    assert (result.template.verify_result, result.template.field_verification_result) == (False, True)
    assert (result.ledger[-1].stage, result.ledger[-1].reason) == (NAME, "without an excerpt: Safe")
    assert result.deep_judgment_rubric is not None
    assert list(result.deep_judgment_rubric.traits_without_valid_excerpts) == ["Safe"]
    assert result.rubric is not None
    assert result.rubric.llm_trait_scores == {"Safe": None, "Clarity": 1}
    assert result.rubric.regex_trait_scores == {"Cites": False}
    assert result.rubric.trait_states["Safe"]["state"] == "missing"


def test_an_answer_of_which_only_the_rubric_is_evaluated_fails_in_the_same_way() -> None:
    result = verified({"Safe": "Never said."}, SAFE, mode="rubric_only")
    assert (str(result.outcome), result.template) == (f"auto_failed({NAME})", None)


@pytest.mark.parametrize("mode", ["template_and_rubric", "rubric_only"])
@pytest.mark.parametrize("on_invented", ["fail", "error"])
def test_invented_quotations_are_a_caveat_and_an_error_of_the_judge_where_the_run_says_so(
    mode: Any, on_invented: Any
) -> None:
    result = verified(
        {"Safe": "Never said.", "Clarity": ANSWER}, SAFE, CLEAR, mode=mode, deep_judgment_on_invented=on_invented
    )
    assert str(result.outcome) == (f"auto_failed({NAME})" if on_invented == "fail" else "error(judge)")
    assert result.metadata.caveats == ("invented_quotations",)
    reason = result.ledger[-1].reason if on_invented == "fail" else str(result.metadata.error)
    assert "only invented quotations: Safe" in reason
    assert result.rubric is not None
    assert result.rubric.llm_trait_scores == {"Safe": None, "Clarity": 1}


def test_a_text_that_has_nothing_to_quote_is_no_error_of_the_judge() -> None:
    nothing = {"excerpts": [{"text": "", "explanation": "no risk is named", "confidence": "none"}]}
    result = verified({"Safe": iter([nothing])}, SAFE, deep_judgment_on_invented="error")
    assert (str(result.outcome), result.metadata.caveats) == (f"auto_failed({NAME})", ())
    assert result.ledger[-1].reason == "without an excerpt: Safe"


def test_an_answer_with_a_quotation_for_every_trait_passes() -> None:
    assert str(verified({"Safe": ANSWER, "Clarity": ANSWER}, SAFE, CLEAR).outcome) == "passed"
    assert str(verified({"Safe": ANSWER}, SAFE, mode="rubric_only").outcome) == "scored"


@pytest.mark.parametrize("mode", ["template_and_rubric", "rubric_only"])
def test_a_judge_that_is_away_for_a_while_fails_no_answer_and_costs_no_other_trait_its_score(mode: Any) -> None:
    result = verified({"Safe": AWAY, "Clarity": ANSWER}, SAFE, CLEAR, CITES, mode=mode)
    assert str(result.outcome) == ("passed" if mode == "template_and_rubric" else "scored")
    assert result.rubric is not None
    assert result.rubric.llm_trait_scores == {"Safe": None, "Clarity": 1}
    assert result.rubric.regex_trait_scores == {"Cites": False}
    assert {name: state["state"] for name, state in result.rubric.trait_states.items()} == {
        "Safe": "error",
        "Clarity": "ok",
        "Cites": "ok",
    }
    part = result.deep_judgment_rubric
    assert part is not None
    assert (list(part.traits_without_valid_excerpts), part.total_traits_evaluated) == ([], 1)
    assert "the judge is away" in part.trait_metadata["Safe"]["error"]
    assert part.total_deep_judgment_model_calls == 4


@pytest.mark.parametrize("mode", ["template_and_rubric", "rubric_only"])
def test_a_judge_that_cannot_be_read_in_the_end_fails_no_answer(mode: Any) -> None:
    """Although what it quoted before is not in the answer, and might well have been its last word."""
    replies = iter([{"excerpts": [{"text": "Never said.", "explanation": None, "confidence": "high"}]}, "no", "no"])
    result = verified({"Safe": replies, "Clarity": ANSWER}, SAFE, CLEAR, mode=mode)
    assert str(result.outcome) == ("passed" if mode == "template_and_rubric" else "scored")
    assert result.rubric is not None
    assert result.rubric.trait_states["Safe"]["state"] == "error"
    part = result.deep_judgment_rubric
    assert part is not None
    assert (list(part.traits_without_valid_excerpts), part.total_excerpt_retries) == ([], 1)
    reasons = {entry.stage: entry.reason for entry in result.trail if entry.status == "skipped"}
    assert reasons[NAME] == "no trait was found to lack an excerpt"


def test_a_model_that_abstained_is_not_failed_for_the_lack_of_quotations() -> None:
    result = verified({"Safe": ""}, SAFE, abstention_enabled=True)
    assert str(result.outcome) == "abstained"
    reasons = {entry.stage: entry.reason for entry in result.trail if entry.status == "skipped"}
    assert reasons[NAME] == "the model abstained"


@pytest.mark.parametrize("both", [False, True])
def test_a_trait_that_asks_for_deep_judgment_gets_it_by_default_and_both_scores_where_they_are_wanted(
    both: bool,
) -> None:
    asks = evolve(SAFE, deep_judgment_enabled=True)
    mode = VerificationConfig().deep_judgment_rubric_mode
    settings = {"deep_judgment_rubric_mode": mode, "deep_judgment_rubric_standard_scores": both}
    part = verified({"Safe": ANSWER}, asks, CLEAR, **settings).deep_judgment_rubric
    assert part is not None
    assert part.deep_judgment_rubric_scores == {"Safe": True}
    assert set(part.standard_rubric_scores) == ({"Safe", "Clarity"} if both else {"Clarity"})


def test_where_no_trait_is_judged_deeply_it_says_so() -> None:
    result = verified({}, SAFE, deep_judgment_rubric_mode="disabled")
    reasons = {entry.stage: entry.reason for entry in result.trail if entry.status == "skipped"}
    assert (str(result.outcome), reasons[NAME]) == ("passed", "no trait was judged deeply")


def test_quotations_for_rubrics_are_counted_by_the_settings_for_rubrics() -> None:
    """Whatever the settings for templates say."""
    words = f"{ANSWER} It is taken daily."
    many = ["Venetoclax", "targets", "BCL2", "Venetoclax targets", "targets BCL2"]

    def reply(call: ScriptedCall) -> Any:
        if call.task == "generation":
            return words
        if call.task == "dj_rubric_excerpt_extraction":
            return {"excerpts": [{"text": text, "explanation": None, "confidence": "high"} for text in many]}
        assert call.output is not None
        return example_of(call.output.schema)

    model = ModelConfig(model_name="m", interface="scripted")
    settings_of_templates: dict[str, Any] = {
        "deep_judgment_max_excerpts_per_attribute": 1,
        "deep_judgment_excerpt_retry_attempts": 0,
    }
    result = run_single_model_verification(
        Question(question="Which?"),
        model,
        evolve(model, model_name="judge"),
        rubric=Rubric(llm_traits=[evolve(SAFE, deep_judgment_enabled=True)]),
        evaluation_mode="rubric_only",
        config=VerificationConfig(**settings_of_templates),
        app=application(ScriptedLLM(reply, channels=["json_schema"]), installed=INSTALLED),
    )
    assert result.deep_judgment_rubric is not None
    assert len(result.deep_judgment_rubric.extracted_rubric_excerpts["Safe"]) == len(many)
