"""The judgment strategy `deep_judgment`: evidence first, then reasoning, then values."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from karenina_core import ArtifactKeys, VerificationContext, hookimpl
from karenina_core.errors import KareninaError, ParseError, PortError
from karenina_core.pipeline.judgment import Judgment
from karenina_core.pipeline.trace import EvaluationInput
from karenina_core.ports.client import CallRecord
from karenina_core.templates.handle import TemplateHandle

from .template_steps import Case, Evidence, assessed, parsed, quoted, reasoned

__all__ = ["DeepJudgment", "karenina_register_strategies"]


class DeepJudgment:
    """Fills a template in steps, each a call of its own to the judge.

    Mode `full`: quotations per attribute that are looked up in the text, optionally what a search says about them,
    reasoning from them, the values. Mode `reasoning_only`: reasoning from the text, the values.
    """

    name = "deep_judgment"

    async def fill(self, context: VerificationContext, handle: TemplateHandle, given: EvaluationInput) -> Judgment:
        case = Case(context, handle, given)
        made = len(context.parsing.calls)
        done: list[str] = []
        evidence, retries = Evidence(), 0
        try:
            if context.config.deep_judgment_mode != "reasoning_only":
                gathered = await quoted(case)
                evidence, retries = Evidence(excerpts=gathered.excerpts, without=gathered.without), gathered.retries
                done.append("excerpts")
                if context.config.deep_judgment_search_enabled:
                    evidence = await assessed(case, evidence)
                    done += ["excerpt_hallucination_assessment"] if evidence.risks is not None else []
            evidence = await _reasoned(case, evidence, done)
            result = await parsed(case, evidence)
            done.append("parameters")
        except KareninaError as error:
            if done:
                context.warn(f"deep judgment ended early; done were: {', '.join(done)}")
            if done and isinstance(error, PortError):
                error.evidence = _artifacts(evidence, done, context.parsing.calls[made:], retries)
            raise
        return Judgment(
            filled=result.parsed,
            channel=result.channel,
            repairs=result.repairs,
            evidence=_artifacts(evidence, done, context.parsing.calls[made:], retries),
        )


def _artifacts(evidence: Evidence, done: list[str], calls: Sequence[CallRecord], retries: int) -> dict[str, Any]:
    """What deep judgment leaves behind, also where it did not come to its end."""
    return {
        ArtifactKeys.DEEP_JUDGMENT_PERFORMED: True,
        ArtifactKeys.EXTRACTED_EXCERPTS: {
            name: [excerpt.row() for excerpt in rows] for name, rows in evidence.excerpts.items()
        },
        ArtifactKeys.ATTRIBUTE_REASONING: dict(evidence.reasoning),
        ArtifactKeys.DEEP_JUDGMENT_STAGES_COMPLETED: done,
        ArtifactKeys.DEEP_JUDGMENT_MODEL_CALLS: sum(1 + call.repairs for call in calls),
        ArtifactKeys.DEEP_JUDGMENT_EXCERPT_RETRY_COUNT: retries,
        ArtifactKeys.ATTRIBUTES_WITHOUT_EXCERPTS: list(evidence.without),
        ArtifactKeys.HALLUCINATION_RISK_ASSESSMENT: None if evidence.risks is None else dict(evidence.risks),
    }


async def _reasoned(case: Case, evidence: Evidence, done: list[str]) -> Evidence:
    """Reasoning that cannot be read is left out: the values then come from the quotations and the text itself."""
    from_text = case.context.config.deep_judgment_mode == "reasoning_only"
    try:
        evidence = await reasoned(case, evidence, from_text=from_text)
    except ParseError as error:
        case.context.warn(f"deep judgment goes on without reasoning: {error}")
        return evidence
    done.append("reasoning")
    return evidence


@hookimpl
def karenina_register_strategies(registry: Any) -> None:
    registry.add(DeepJudgment)
