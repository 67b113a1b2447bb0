"""The steps of deep judgment for one trait: which question each of them puts to the judge, and what is kept of it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar
from weakref import WeakKeyDictionary

from attrs import define, field
from karenina_judging.asking import closed_object, presented
from karenina_judging.judgment import INVENTED_QUOTATIONS
from karenina_judging.scoring import read_score, score_schema
from karenina_judging.untrusted_text import untrusted
from karenina_vocabulary.evaluators import TraitCase, TraitEvidence, TraitScore
from karenina_vocabulary.rubric_config import TraitEvidenceRules
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traits import LLMRubricTrait

from karenina_core.errors import ParseError, PortError
from karenina_core.pipeline.engine import stops_item

from . import rubric_prompts as prompts
from .excerpts import Excerpt, ExcerptRules, Gathered, Rejected, gather
from .prompts import ASSESSMENT, as_data, assessing, refused
from .replies import (
    RISKS,
    Offered,
    Read,
    assessments_schema,
    excerpts_schema,
    read_assessments,
    read_excerpts,
    read_reasoning,
    reasoning_schema,
    replied,
)
from .searching import AT_ONCE, looked_up, to_assess, with_assessments

if TYPE_CHECKING:
    from .quotations.matching import Source

T = TypeVar("T")
LIST = "excerpts"
"""The property of a reply that holds the quotations: names of traits may hold anything, names of properties may not."""
UNSUPPORTED = "no quotation from the answer supports a score"
INVENTED = "every quotation that the judge gave is invented"


@define(eq=False)
class _Shared:
    """What the traits of one answer have in common."""

    source: Source
    """The text that is quoted from, prepared once."""
    searches: asyncio.Semaphore = field(factory=lambda: asyncio.Semaphore(AT_ONCE))


_shared: WeakKeyDictionary[TraitCase, _Shared] = WeakKeyDictionary()
"""By answer, for as long as the answer is being evaluated."""


@define(eq=False)
class TraitWork:
    """One trait that is being judged, and what is known about it so far: also where the judgment ends early."""

    trait: LLMRubricTrait
    case: TraitCase
    rules: TraitEvidenceRules
    gathered: Gathered | None = None
    excerpts: tuple[Excerpt, ...] = ()
    reasoning: str = ""
    done: list[str] = field(factory=list)
    calls: int = 0
    """Calls of the judge about this trait, those to correct a reply included."""
    attempts: int = 0
    """How often the judge was asked for quotations."""
    warnings: list[str] = field(factory=list)
    """Warnings for the result. Traits end in any order: the caller that has all of them passes them on."""

    @property
    def shared(self) -> _Shared:
        from .quotations.matching import Source  # its patterns take longer to compile than all else here

        return _shared.setdefault(self.case, _Shared(Source(self.case.given.text)))

    @property
    def about(self) -> str:
        """The trait for a prompt."""
        criteria = (self.trait.description or "").strip() or "Only the name of the trait is given; take it literally."
        return f"Trait: {self.trait.name}\nCriteria:\n{criteria}"

    @property
    def quotations(self) -> tuple[Excerpt, ...]:
        """Those that were accepted, without explanations of why there is none."""
        return tuple(excerpt for excerpt in self.excerpts if excerpt.text)

    @property
    def risk(self) -> dict[str, Any] | None:
        """The risks of the quotations in their order, and the highest; None where none of them was assessed."""
        risks = [excerpt.hallucination_risk for excerpt in self.quotations]
        known = [risk for risk in risks if risk is not None]
        return {"overall_risk": max(known, key=RISKS.index), "per_excerpt_risks": risks} if known else None

    async def ask(self, task: str, texts: Sequence[str], schema: Mapping[str, Any], read: Read[T]) -> T:
        """What `read` makes of the judge's reply, in a place of the item. Raises ParseError and PortError."""
        alike = f"{task} {json.dumps(schema)}" if len(texts) > 2 else ""
        try:
            result = await self.case.in_turn(partial(replied, self.case.context, task, texts, schema, read), alike)
        except BaseException as error:
            # An adapter's exceptions become PortErrors: other exceptions are raised before the call.
            if isinstance(error, PortError):
                self.calls += 1 + error.repairs
            elif not isinstance(error, Exception):
                self.calls += 1
            raise
        self.calls += 1 + result.repairs
        found: T = result.parsed
        return found

    def evidence(self, error: BaseException | None = None) -> TraitEvidence:
        """What there is so far. `error` is what the judgment ended with."""
        gathered = self.gathered
        lacks = gathered is not None and not self.quotations
        metadata: dict[str, Any] = {
            "stages_completed": list(self.done),
            "model_calls": self.calls,
            "had_excerpts": bool(self.quotations),
            "excerpt_retry_count": max(0, self.attempts - 1),
            "excerpt_validation_failed": lacks and gathered is not None and bool(gathered.rejected),
        }
        if self.warnings:
            metadata["warnings"] = list(self.warnings)
        if error is not None:
            metadata["error"] = TraitScore.failed(error).reason
        return TraitEvidence(
            excerpts=tuple(excerpt.row() for excerpt in self.excerpts),
            reasoning=self.reasoning,
            risk=self.risk,
            metadata=metadata,
            lacks_excerpts=lacks,
        )


async def judged(work: TraitWork) -> TraitScore:
    """All steps. Raises ParseError and PortError; what was found until then is in `work`."""
    if work.rules.excerpts:
        await quoted(work)
        if not work.quotations:
            why = next((f": {e.explanation}" for e in work.excerpts if e.explanation), "")
            invented = work.gathered is not None and bool(work.gathered.invented)
            return TraitScore(
                state="missing",
                reason=INVENTED if invented else f"{UNSUPPORTED}{why}",
                evidence=work.evidence(),
                caveats=(INVENTED_QUOTATIONS,) if invented else (),
            )
        if work.rules.search:
            await assessed(work)
    await reasoned(work)
    return await scored(work)


async def quoted(work: TraitWork) -> None:
    """Step 1: quotations that bear on the trait, looked up in the text that is scored. One of them is enough; that
    there is none has to be explained. Raises ParseError where the last reply could not be read."""
    case, rules = work.case, work.rules
    wanted = ExcerptRules(
        most=rules.max_excerpts,
        threshold=rules.threshold,
        retries=rules.retries,
        deterministic=case.context.parsing.config.temperature == 0,
        enough=1,
        explained=True,
    )

    async def asked(names: Sequence[str], rejected: Sequence[Rejected]) -> Mapping[str, Sequence[Offered]]:
        work.attempts += 1
        shown = presented(case.context.question_text, case.given)
        rows = [found.shown for found in rejected]
        again = refused(rows, case.label, "Give others; where there is none, say so as described.")
        if work.attempts > 1 and not rows:
            again = prompts.AGAIN
        own = f"{work.about}\n\n{again}" if again else work.about
        offered = await work.ask(
            PromptTask.DJ_RUBRIC_EXCERPT_EXTRACTION,
            (prompts.EXCERPTS, shown, own),
            excerpts_schema((LIST,), rules.max_excerpts),
            lambda data: read_excerpts(data, (LIST,)),
        )
        return dict.fromkeys(names, offered[LIST])

    name = work.trait.name
    work.gathered = await gather(asked, (name,), work.shared.source, wanted)
    work.excerpts = work.gathered.excerpts.get(name, ())
    work.done.append("excerpt_extraction")


async def assessed(work: TraitWork) -> None:
    """Step 1b: every quotation is searched for, and what was found is assessed in one call. Failures are warnings."""
    context, name = work.case.context, work.trait.name
    tool = context.config.deep_judgment_rubric_search_tool
    excerpts, warnings = await looked_up(context.app, tool, {name: work.excerpts}, work.shared.searches)
    work.warnings += warnings
    work.excerpts = excerpts[name]
    found = to_assess(excerpts)
    if not found:
        return
    rows = {key: excerpt.shown() for key, (_, excerpt) in found.items()}
    try:
        assessments = await work.ask(
            PromptTask.DJ_RUBRIC_HALLUCINATION,
            (ASSESSMENT, assessing(context.question_text, rows)),
            assessments_schema(tuple(found)),
            lambda data: read_assessments(data, tuple(found)),
        )
    except BaseException as error:  # whatever it is, the score does not depend on it
        if stops_item(error):
            raise
        work.warnings.append(f"the search results were not assessed ({TraitScore.failed(error).reason})")
        return
    work.excerpts = with_assessments(excerpts, found, assessments)[name]
    work.done.append("hallucination_assessment")


async def reasoned(work: TraitWork) -> None:
    """Step 2: what follows, from the quotations or, where none were wanted, from the text itself."""
    case = work.case
    if work.rules.excerpts:
        rows: dict[str, Any] = {"quotations": [excerpt.shown(results=False) for excerpt in work.quotations]}
        if work.risk is not None:
            rows["overall_risk"] = work.risk["overall_risk"]
        shown = as_data(rows, "evidence")
        basis = f"Question:\n{case.context.question_text}\n\nQuotations from the {case.label}:\n{shown}"
        texts: Sequence[str] = (prompts.REASONING, f"{basis}\n\n{work.about}")
    else:
        shown = presented(case.context.question_text, case.given)
        texts = (prompts.REASONING_FROM_TEXT, shown, work.about)
    parts = await work.ask(
        PromptTask.DJ_RUBRIC_REASONING,
        texts,
        reasoning_schema(),
        read_reasoning,
    )
    work.reasoning = "\n\n".join(f"{name.capitalize()}:\n{text}" for name, text in parts.items())
    work.done.append("reasoning_generation")


async def scored(work: TraitWork) -> TraitScore:
    """Step 3: the score that follows from the reasoning. A reply that is no score to the end is `invalid`."""
    trait = work.trait
    judgment = untrusted(work.reasoning, "judgment")
    try:
        score = await work.ask(
            PromptTask.DJ_RUBRIC_SCORE_EXTRACTION,
            (prompts.SCORE, f"{work.about}\n\nJudgment:\n{judgment}\n\n{prompts.scale(trait)}"),
            closed_object({"score": score_schema(trait)}),
            lambda data: read_score(trait, data.get("score")),
        )
    except ParseError as error:
        return TraitScore(state="invalid", reason=str(error), evidence=work.evidence(error))
    work.done.append("score_extraction")
    return TraitScore(value=score, evidence=work.evidence())
