"""ParseTemplate: the judge extracts facts from the answer into the template."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from attrs import evolve
from karenina_judging.asking import text_to_judge
from karenina_judging.judgment import (
    INVENTED_QUOTATIONS,
    NOT_PERFORMED,
    READS,
    Judgment,
    code_alone,
    fillable,
    own_strategy,
)
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.handle import TemplateHandle
from karenina_vocabulary.kinds import StrategyRegistry, TemplateRuntimeRegistry, runtime_of
from karenina_vocabulary.planned_calls import PlannedCall, asks_judge

from karenina_core import (
    Category,
    Karenina,
    Question,
    Rubric,
    Skip,
    Stage,
    VerificationConfig,
    VerificationContext,
    feature,
    hookimpl,
)
from karenina_core.errors import AgentResponseError, ParseError, PortError
from karenina_core.pipeline.stage import in_mode
from karenina_core.values.question import TemplateSource

from .language.grounding import ungrounded

UNGROUNDED = "ungrounded_values"
"""The caveat of a result with extracted values that do not occur in the text."""
ABSTENTION_BESIDE_VALUES = "abstention_beside_values"
"""The caveat of a result whose judge claims an abstention and extracts every field all the same."""

INVENTED = "attributes_with_invented_excerpts"
BEYOND = "values_beyond_excerpts"


class ParseTemplate(Stage):
    """Fills the template with the judgment strategy of the run; if no field needs a judge, without one."""

    category = Category.TEMPLATE
    requires = (ArtifactKeys.RAW_ANSWER, ArtifactKeys.ANSWER, ArtifactKeys.RAW_LLM_RESPONSE)
    reads = READS
    produces = (
        ArtifactKeys.PARSED_ANSWER,
        ArtifactKeys.PARSING_MODEL_STR,
        ArtifactKeys.TEMPLATE_EVALUATOR,
        *NOT_PERFORMED,
    )
    result_fields = (
        *("parsed_llm_response", "evaluation_input", "used_full_trace", "trace_extraction_error"),
        *("judge_channel", "judge_repairs", "ungrounded_values", INVENTED, BEYOND, *NOT_PERFORMED),
    )
    extends = ("caveats",)
    included_when = in_mode("template_only", "template_and_rubric") & ~feature("agentic_parsing")

    def calls(
        self, question: Question, rubric: Rubric | None, config: VerificationConfig, app: Karenina
    ) -> Iterable[PlannedCall]:
        """Those of the strategy, where the template has fields for a judge."""
        if own := _strategy_of_language(app, question.template):
            yield from app.registry(StrategyRegistry).make(own).calls(question, config)
            return
        least, most = asks_judge(question.template)
        if not most:
            return
        strategy = app.registry(StrategyRegistry).make(_strategy(config))
        for call in strategy.calls(question, config):
            yield call if least else evolve(call, least=0)

    def should_run(self, context: VerificationContext) -> bool | Skip:
        allowed = super().should_run(context)
        return fillable(context) if allowed else allowed

    async def execute(self, context: VerificationContext) -> None:
        handle = context.get_artifact(ArtifactKeys.ANSWER)
        # What code reads off the trace is another text.
        given = text_to_judge(context, full_trace=context.config.use_full_trace_for_template, keep=True)
        if not handle.fields():
            if given.error is not None:
                context.warn(f"code alone reads this template's answers, though {given.error}")
            judgment = Judgment(filled=await handle.build({}))
            context.set_artifact(ArtifactKeys.PARSING_MODEL_STR, code_alone(handle))
            context.set_artifact(ArtifactKeys.TEMPLATE_EVALUATOR, None)
        else:
            name = own_strategy(handle) or _strategy(context.config)
            context.set_artifact(ArtifactKeys.PARSING_MODEL_STR, str(context.task.parsing))
            context.set_artifact(ArtifactKeys.TEMPLATE_EVALUATOR, name)
            if given.error is not None:
                raise AgentResponseError(f"there is nothing to judge: {given.error}")
            try:
                judgment = await context.app.registry(StrategyRegistry).make(name).fill(context, handle, given)
            except PortError as error:
                if isinstance(error, ParseError):
                    context.set_result_field("judge_channel", error.channel)
                    context.set_result_field("judge_repairs", error.repairs)
                _keep_evidence(context, error.evidence)
                raise
        values = judgment.filled.values()
        context.set_artifact(ArtifactKeys.PARSED_ANSWER, judgment.filled)
        context.set_result_field("parsed_llm_response", values)
        nowhere = ungrounded(handle.fields(), values, given.text)
        context.set_result_field("ungrounded_values", nowhere)
        if nowhere:
            context.extend_result_field("caveats", [UNGROUNDED])
        if judgment.bound:
            quoted = judgment.evidence[ArtifactKeys.EXTRACTED_EXCERPTS]
            context.set_result_field(BEYOND, _beyond(handle, values, quoted, given.text))
        performed, detected = map(context.get_result_field, ("abstention_check_performed", "abstention_detected"))
        undecided = bool(performed) and detected is None
        if undecided and not judgment.filled.nulls and any(field.verified for field in handle.fields()):
            context.extend_result_field("caveats", [ABSTENTION_BESIDE_VALUES])
            context.warn("the judge takes the answer for an abstention, but every field of the template has a value")
        context.set_result_field("judge_channel", judgment.channel)
        context.set_result_field("judge_repairs", judgment.repairs)
        _keep_evidence(context, judgment.evidence)


def _strategy(config: VerificationConfig) -> str:
    return "deep_judgment" if "deep_judgment" in config.features else "standard"


def _strategy_of_language(app: Karenina, template: TemplateSource | None) -> str | None:
    """The strategy that alone can fill templates of this language, as their runtime says; see `own_strategy`."""
    if template is None:
        return None
    runtimes = (runtime_of(app, name) for name in app.registry(TemplateRuntimeRegistry))
    return next((own_strategy(runtime) for runtime in runtimes if template.language in runtime.languages), None)


def _beyond(handle: TemplateHandle, values: Mapping[str, Any], quoted: Mapping[str, Any], text: str) -> tuple[str, ...]:
    """The fields with excerpts that do not hold their value: the passages count, as they are in the text."""
    passages = {
        name: "\n".join(text[row["start"] : row["end"]] for row in rows if row["text"]) for name, rows in quoted.items()
    }
    return tuple(
        name
        for about in handle.fields()
        if (passage := passages.get(about.name))
        for name in ungrounded([about], values, passage)
    )


def _keep_evidence(context: VerificationContext, evidence: Mapping[str, Any]) -> None:
    for key, default in NOT_PERFORMED.items():
        context.set_artifact_and_result(key, evidence.get(key, default))
    if invented := evidence.get(INVENTED, ()):
        context.set_result_field(INVENTED, invented)
        context.extend_result_field("caveats", [INVENTED_QUOTATIONS])


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(ParseTemplate)
