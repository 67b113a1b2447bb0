"""The judgment strategy `deep_judgment`: evidence first, then reasoning, then values or a score."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen
from karenina_judging.asking import ask_judge
from karenina_judging.judgment import Judgment, extraction_hints
from karenina_judging.untrusted_text import untrusted
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.evaluators import TraitCase, TraitScore
from karenina_vocabulary.handle import TemplateHandle
from karenina_vocabulary.planned_calls import PlannedCall
from karenina_vocabulary.rubric_config import TraitEvidenceRules
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traces import EvaluationInput
from karenina_vocabulary.traits import LLMRubricTrait

from karenina_core import Question, VerificationConfig, VerificationContext
from karenina_core.errors import ContractError, KareninaError, ParseError, PortError, one_line
from karenina_core.log import get_logger
from karenina_core.pipeline.engine import stops_item
from karenina_core.ports import ParsePortResult
from karenina_core.ports.model_client import CallRecord

from . import planned, prompts
from .auto_fail import unsupported
from .excerpts import Excerpt, ExcerptRules, Gathered, Rejected, gather
from .replies import (
    RISKS,
    Offered,
    assessments_schema,
    excerpts_schema,
    read_assessments,
    read_excerpts,
    read_texts,
    replied,
    texts_schema,
)
from .rubric_steps import TraitWork, judged
from .searching import looked_up, to_assess, with_assessments

log = get_logger("karenina.deep_judgment")


@frozen
class Case:
    """One answer and the template that is to be filled from it."""

    context: VerificationContext
    handle: TemplateHandle
    given: EvaluationInput

    @property
    def names(self) -> tuple[str, ...]:
        """The attributes: what the judge extracts, whether it is verified or not."""
        return tuple(found.name for found in self.handle.fields())

    @property
    def question(self) -> str:
        return f"Question:\n{self.context.question_text}"

    @property
    def label(self) -> str:
        return "trace" if self.given.used_full_trace else "response"

    @property
    def text(self) -> str:
        return f"The {self.label}:\n{untrusted(self.given.text, self.label)}"

    def fields(self, names: Sequence[str] | None = None) -> str:
        """The fields as a list for the judge; all of them, or those of these names."""
        rows = ["Fields:"]
        for about in self.handle.fields():
            if names is None or about.name in names:
                hint = f" Hint: {about.hint}" if self.context.config.include_extraction_hints and about.hint else ""
                rows.append(f"- {about.name} ({about.type}): {about.description}{hint}")
        return "\n".join(rows)


@frozen(kw_only=True)
class Evidence:
    """What is known about the attributes, step by step."""

    excerpts: Mapping[str, tuple[Excerpt, ...]] = field(factory=dict)
    without: tuple[str, ...] = ()
    invented: tuple[str, ...] = ()
    """Those of them for which the judge gave quotations, none of which is in the text."""
    risks: Mapping[str, str] | None = None
    reasoning: Mapping[str, str] = field(factory=dict)
    """Only attributes with a reasoning."""

    def shown(self, names: Sequence[str], *, reasoning: bool) -> str:
        """The evidence as JSON, by attribute: it quotes the answer and strangers, so it is marked as data."""
        rows = {}
        for name in names:
            about: dict[str, Any] = {}
            if self.excerpts or self.without:
                about["quotations"] = [excerpt.shown() for excerpt in self.excerpts.get(name, ()) if excerpt.text]
                about["why_none"] = next((e.explanation for e in self.excerpts.get(name, ()) if not e.text), None)
            if reasoning:
                about["reasoning"] = self.reasoning.get(name)
            rows[name] = {key: value for key, value in about.items() if value is not None}
        return prompts.as_data(rows, "evidence")


async def quoted(case: Case) -> Gathered:
    """Step 1: quotations for every attribute, looked up in the text that the judge read. Raises ParseError."""
    config = case.context.config
    rules = ExcerptRules(
        most=config.deep_judgment_max_excerpts_per_attribute,
        threshold=config.deep_judgment_fuzzy_match_threshold,
        retries=config.deep_judgment_excerpt_retry_attempts,
        deterministic=case.context.parsing.config.temperature == 0,
    )

    async def asked(names: Sequence[str], rejected: Sequence[Rejected]) -> Mapping[str, Sequence[Offered]]:
        rows = [{"field": r.name, "text": r.shown} for r in rejected]
        again = prompts.refused(
            rows, case.label, "Give others for these fields; where there is none, say so as described."
        )
        parts = [case.question, case.text, case.fields(names), again]
        texts = prompts.EXCERPTS, "\n\n".join(part for part in parts if part)
        task, schema = PromptTask.DJ_TEMPLATE_EXCERPT_EXTRACTION, excerpts_schema(names, rules.most)
        result = await replied(case.context, task, texts, schema, lambda data: read_excerpts(data, names))
        found: Mapping[str, Sequence[Offered]] = result.parsed
        return found

    from .quotations.matching import Source  # its patterns take longer to compile than all else here

    return await gather(asked, case.names, Source(case.given.text), rules)


async def assessed(case: Case, evidence: Evidence) -> Evidence:
    """Step 1b: every quotation is searched for, and what was found is assessed in one call.

    Whatever fails here is a warning: the verdict does not depend on it. `risks` stays None where nothing was assessed.
    An attribute has the highest risk of its assessed quotations; `high` where it has no quotation at all, because
    nothing in the answer speaks for it; none where its searches failed, because that says nothing about the answer.
    """
    context = case.context
    excerpts, warnings = await looked_up(context.app, context.config.deep_judgment_search_tool, evidence.excerpts)
    for warning in warnings:
        context.warn(f"deep judgment: {warning}")
    evidence = evolve(evidence, excerpts=excerpts)
    found = to_assess(excerpts)
    if not found:
        return evidence
    rows = {key: {"field": name, **excerpt.shown()} for key, (name, excerpt) in found.items()}
    names, texts = tuple(found), (prompts.ASSESSMENT, prompts.assessing(context.question_text, rows))
    task, schema = PromptTask.DJ_TEMPLATE_HALLUCINATION, assessments_schema(names)
    try:
        assessments = await replied(context, task, texts, schema, lambda data: read_assessments(data, names))
    except PortError as error:
        context.warn(f"deep judgment: the search results were not assessed ({error})")
        return evidence
    excerpts = with_assessments(excerpts, found, assessments.parsed)
    risks = dict.fromkeys(evidence.without, RISKS[-1])
    for name, rows_ in excerpts.items():
        if known := [e.hallucination_risk for e in rows_ if e.hallucination_risk]:
            risks[name] = max(known, key=RISKS.index)
    return evolve(evidence, excerpts=excerpts, risks={name: risks[name] for name in case.names if name in risks})


async def reasoned(case: Case, evidence: Evidence, *, from_text: bool) -> Evidence:
    """Step 2: what follows for every attribute, from the quotations or from the text itself. Raises ParseError."""
    if from_text:
        task, system, basis = PromptTask.DJ_TEMPLATE_REASONING_ONLY, prompts.REASONING_ONLY, case.text
    else:
        task, system = PromptTask.DJ_TEMPLATE_REASONING, prompts.REASONING
        basis = f"Evidence from the {case.label}:\n{evidence.shown(case.names, reasoning=False)}"
    texts = system, f"{case.question}\n\n{basis}\n\n{case.fields()}"
    schema = texts_schema(case.names, "What the evidence says about this field and which value follows.")
    found = await replied(case.context, task, texts, schema, lambda data: read_texts(data, case.names))
    return evolve(evidence, reasoning={name: text for name, text in found.parsed.items() if text})


async def parsed(case: Case, evidence: Evidence) -> ParsePortResult:
    """Step 3: the template is filled. The text itself is shown where some attribute has no reasoning. Raises
    ParseError."""
    parts = [case.question, f"Evidence:\n{evidence.shown(case.names, reasoning=True)}"]
    if not all(evidence.reasoning.get(name) for name in case.names):
        parts.append(case.text)
    parts += extraction_hints(case.context, case.handle)
    texts = prompts.PARSING, "\n\n".join(parts)
    schema, build, expected = case.handle.schema(), case.handle.build, case.handle.ground_truth()
    return await ask_judge(case.context, PromptTask.PARSING, texts, schema, validate=build, expected=expected)


class DeepJudgment:
    """Fills a template or scores a trait in steps, each a call of its own to the judge.

    Mode `full`: quotations per attribute that are looked up in the text, optionally what a search says about them,
    reasoning from them, the values. Mode `reasoning_only`: reasoning from the text, the values. A trait in the same
    way, with quotations or from the text, as its rules say.
    """

    name = "deep_judgment"

    def calls(self, question: Question, config: VerificationConfig) -> Iterable[PlannedCall]:
        return planned.template_calls(question, config)

    def trait_calls(
        self, question: Question, rules: TraitEvidenceRules, config: VerificationConfig
    ) -> Iterable[PlannedCall]:
        return planned.trait_calls(question, rules, config)

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
            try:
                from_text = context.config.deep_judgment_mode == "reasoning_only"
                evidence = await reasoned(case, evidence, from_text=from_text)
                done.append("reasoning")
            except ParseError as error:  # the values then come from the quotations and the text itself
                context.warn(f"deep judgment continues without reasoning: {error}")
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
            bound=context.config.deep_judgment_bind_values,
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
        except BaseException as error:  # adapters, instructions and tools are third-party code; what was found is kept
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
