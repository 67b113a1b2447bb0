"""The judgment strategy `deep_judgment`: evidence first, then reasoning, then values or a score."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karenina_judging.judgment import Judgment
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.evaluators import TraitCase, TraitScore
from karenina_vocabulary.handle import TemplateHandle
from karenina_vocabulary.rubric_config import TraitEvidenceRules
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traces import EvaluationInput
from karenina_vocabulary.traits import LLMRubricTrait

from karenina_core import VerificationContext
from karenina_core.errors import ContractError, KareninaError, ParseError, PortError, one_line
from karenina_core.log import get_logger
from karenina_core.pipeline.engine import stops_item
from karenina_core.ports.model_client import CallRecord

from .auto_fail import unsupported
from .rubric_steps import TraitWork, judged
from .template_steps import Case, Evidence, assessed, parsed, quoted, reasoned

__all__ = ["DeepJudgment"]

log = get_logger("karenina.deep_judgment")


class DeepJudgment:
    """Fills a template or scores a trait in steps, each a call of its own to the judge.

    Mode `full`: quotations per attribute that are looked up in the text, optionally what a search says about them,
    reasoning from them, the values. Mode `reasoning_only`: reasoning from the text, the values. A trait in the same
    way, with quotations or from the text, as its rules say.
    """

    name = "deep_judgment"

    async def fill(self, context: VerificationContext, handle: TemplateHandle, given: EvaluationInput) -> Judgment:
        case = Case(context, handle, given)
        made = len(context.parsing.calls)
        done: list[str] = []
        evidence = Evidence()
        try:
            if context.config.deep_judgment_mode != "reasoning_only":
                gathered = await quoted(case)
                evidence = Evidence(excerpts=gathered.excerpts, without=gathered.without, invented=gathered.invented)
                done.append("excerpts")
                if gathered.invented and context.config.deep_judgment_on_invented == "error":
                    raise ParseError(unsupported((), gathered.invented))
                if context.config.deep_judgment_search_enabled:
                    evidence = await assessed(case, evidence)
                    done += ["excerpt_hallucination_assessment"] if evidence.risks is not None else []
            evidence = await _reasoned(case, evidence, done)
            result = await parsed(case, evidence)
            done.append("parameters")
        except KareninaError as error:
            if done:
                context.warn(f"deep judgment ended early; done were: {', '.join(done)}")
            if isinstance(error, PortError):
                error.evidence = _artifacts(evidence, done, context.parsing.calls[made:])
            raise
        return Judgment(
            filled=result.parsed,
            channel=result.channel,
            repairs=result.repairs,
            evidence=_artifacts(evidence, done, context.parsing.calls[made:]),
        )

    async def score(self, trait: LLMRubricTrait, case: TraitCase, rules: TraitEvidenceRules) -> TraitScore:
        """The score of a boolean or score trait. What failed is in the score's state; raises ContractError for others.

        The state is `missing` where quotations were wanted and none was found, `invalid` where the judge gave no score
        of the trait to the end, and `error` where it could not be reached, or not be read in an earlier step, and
        where anything else was raised. Whatever was found until then is in the score's evidence.
        """
        if trait.kind not in ("boolean", "score"):
            raise ContractError(f"deep judgment scores boolean and score traits; {trait.name!r} is another kind")
        work = TraitWork(trait, case, rules)
        try:
            return await judged(work)
        except BaseException as error:  # adapters, instructions and tools are anybody's code; what was found is ours
            if stops_item(error):
                raise
            if not isinstance(error, KareninaError):
                log.warning("deep judgment of a trait ended early", trait=trait.name, error=one_line(error))
            return TraitScore.failed(error, evidence=work.evidence(error))


def _artifacts(evidence: Evidence, done: list[str], calls: Sequence[CallRecord]) -> dict[str, Any]:
    """What deep judgment leaves behind, also where it did not come to its end."""
    asked = sum(call.task == PromptTask.DJ_TEMPLATE_EXCERPT_EXTRACTION for call in calls)
    return {
        ArtifactKeys.DEEP_JUDGMENT_PERFORMED: True,
        ArtifactKeys.EXTRACTED_EXCERPTS: {
            name: [excerpt.row() for excerpt in rows] for name, rows in evidence.excerpts.items()
        },
        ArtifactKeys.ATTRIBUTE_REASONING: dict(evidence.reasoning),
        ArtifactKeys.DEEP_JUDGMENT_STAGES_COMPLETED: done,
        ArtifactKeys.DEEP_JUDGMENT_MODEL_CALLS: sum(1 + call.repairs for call in calls),
        ArtifactKeys.DEEP_JUDGMENT_EXCERPT_RETRY_COUNT: max(0, asked - 1),
        ArtifactKeys.ATTRIBUTES_WITHOUT_EXCERPTS: list(evidence.without),
        ArtifactKeys.HALLUCINATION_RISK_ASSESSMENT: None if evidence.risks is None else dict(evidence.risks),
        "attributes_with_invented_excerpts": list(evidence.invented),
    }


async def _reasoned(case: Case, evidence: Evidence, done: list[str]) -> Evidence:
    """Reasoning that cannot be read is left out: the values then come from the quotations and the text itself."""
    from_text = case.context.config.deep_judgment_mode == "reasoning_only"
    try:
        evidence = await reasoned(case, evidence, from_text=from_text)
    except ParseError as error:
        case.context.warn(f"deep judgment continues without reasoning: {error}")
        return evidence
    done.append("reasoning")
    return evidence
