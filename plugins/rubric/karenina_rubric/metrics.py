"""Metric traits: the judge says of each instruction whether the answer has it; the counting is done here."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import define, field
from karenina_deep_judgment.quotations.matching import Source
from karenina_judging.asking import ask_judge, check_reply, presented, unable_judges
from karenina_judging.judgment import INVENTED_QUOTATIONS
from karenina_judging.untrusted_text import UNTRUSTED_NOTE
from karenina_vocabulary.evaluators import TraitCase, TraitEvaluator, TraitScore
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traits import MetricRubricTrait

from karenina_core import Karenina, VerificationConfig, hookimpl
from karenina_core.errors import ContradictionError, FillError, ParseError, Problem

from .metrics_counts import (
    Finding,
    Found,
    Instruction,
    confusion,
    contradictions,
    findings_in,
    findings_schema,
    instructions_of,
    metrics_of,
    with_lists,
)

__all__ = ["MetricEvaluator", "karenina_register_traits"]

ROLE = """\
You go through a list of instructions, each of which describes a piece of content, and find out for each whether a \
text has that content. Every instruction stands alone: what you find for one says nothing about another. Do not count \
and do not grade; others do that from what you report. Do not use knowledge of your own to fill in what the text \
leaves out."""
COVERED = """\
For each instruction whose key begins with "tp_":
- "excerpts": the passages of the text that give what the instruction asks for. Copy each character by character, \
without omissions and without adding anything. Where there is none, the list is empty.
- "covered": true exactly when there is such a passage. Synonyms, abbreviations, paraphrases and other ways to write \
the same value count. A passage that denies it, or says that it is not known, does not."""
WRONG = """\
- "wrong_attempts": passages that try to give what this instruction asks for and get it wrong: another value, name or \
claim in its place. Copy them in the same way. That a sentence is not asked for by any instruction does not make it a \
wrong attempt; most texts have none, and then the list is empty. Content may be given correctly in one passage and \
wrongly in another; report both."""
PRESENT = """\
For each instruction whose key begins with "tn_" (it describes content that the text should do without):
- "excerpts": the passages of the text that have this content, copied in the same way. Where there is none, the list \
is empty.
- "present": true exactly when there is such a passage, by the same rules. A passage that denies the content, or warns \
of it, does not have it."""
LARGE = 20_000
"""Characters; quotations are looked up in longer texts in a thread, so that other items continue meanwhile."""
LAST = "Write the quotations down before you decide, and make the two agree."


class MetricEvaluator(TraitEvaluator[MetricRubricTrait]):
    """Scores metric traits, each with one call of the judge.

    The judge gives one verdict per instruction, with quotations. Counts follow from the verdicts: `tp + fn` is always
    the number of TP instructions, and in `full_matrix` `fp + tn` that of TN instructions. In `tp_only`, `fp` is the
    number of passages that try to give what an instruction asks for and are wrong.

    The value is `{"tp", "fn", "fp", "tn" (full_matrix only), metric: float, ...}`. The details are `confusion`, a text
    for everything that is counted, and `instructions`: for each `{"instruction", "bucket", "excerpts"}`, in `tp_only`
    also `wrong_attempts`; quotations are `{"text", "found"}`, where `found` says whether the text really has them, by
    the look-up of deep judgment. The judge is asked once to correct verdicts that do not agree with their quotations,
    and of quotations that are not in the text. Those never count: wrong attempts that are not there are dropped, and
    where the judge says that the answer has something and quotes nothing of it that is there, the score is `invalid`.
    Invented ones are the caveat `invented_quotations`.
    """

    name = "metric"
    trait_class = MetricRubricTrait
    asks_judge = True

    def check_config(
        self, traits: Sequence[MetricRubricTrait], config: VerificationConfig, app: Karenina
    ) -> Iterable[Problem]:
        yield from (Problem("rubric", text) for trait in traits if (text := trait.ambiguity()))
        remedy = "leave the metric traits out (rubric_trait_names)"
        yield from unable_judges(app, config.parsing_models, PromptTask.RUBRIC_METRIC_TRAIT, remedy)

    async def score(self, trait: MetricRubricTrait, case: TraitCase) -> TraitScore:
        """Raises PortError where the judge could not be reached. A reply that is no use makes the score invalid, one
        that holds no data leaves it missing."""
        instructions = instructions_of(trait)
        reader = _Reader(instructions, findings_schema(trait, instructions), Source(case.given.text))
        try:
            await case.in_turn(lambda: self._ask(trait, case, reader))
        except ParseError as error:
            if reader.findings is None and reader.problem:
                return TraitScore(state="invalid", reason=reader.problem)
            if reader.findings is None:
                return TraitScore(state="missing", reason=f"the judge's reply could not be read: {error}")
        return _score(trait, reader.findings or (), reader.is_there)

    async def _ask(self, trait: MetricRubricTrait, case: TraitCase, reader: _Reader) -> None:
        full = trait.evaluation_mode == "full_matrix"
        steps = f"{COVERED}\n\n{PRESENT}" if full else f"{COVERED}\n{WRONG}"
        about = f"{trait.name}: {trait.description}" if trait.description else trait.name
        listed = "\n".join(f"{one.key}: {' '.join(one.text.split())}" for one in reader.instructions)
        texts = (
            f"{ROLE}\n\n{steps}\n\n{LAST}\n\n{UNTRUSTED_NOTE}",
            (
                f"{presented(case.context.question_text, case.given)}\n\n"
                f"What to look for: {about}\n\nThe instructions:\n{listed}\n\n"
                f"Report for every key what you found in the {case.label}."
            ),
        )
        task = PromptTask.RUBRIC_METRIC_TRAIT
        await ask_judge(case.context, task, texts, reader.schema, validate=reader.read)


@define
class _Reader:
    """Reads the judge's replies. Remembers the last one that fits the schema, and what was wrong with other ones."""

    instructions: tuple[Instruction, ...]
    schema: Mapping[str, Any]
    source: Source
    """What is examined."""
    looked_up: dict[str, bool] = field(factory=dict)
    findings: tuple[Finding, ...] | None = None
    problem: str = ""

    async def read(self, data: Mapping[str, Any]) -> tuple[Finding, ...]:
        """Raises FillError for what does not fit; for verdicts that do not agree with their quotations, and quotations
        that are not in the text, the first time."""
        completed = with_lists(data, self.schema)
        try:
            check_reply(completed, self.schema)
        except FillError as error:
            self.problem = str(error)
            raise
        is_first, self.findings = self.findings is None, findings_in(completed, self.instructions, self.schema)
        if len(self.source.text) > LARGE:
            await asyncio.to_thread(self._look_up, self.findings)
        else:
            self._look_up(self.findings)
        if is_first and (problems := contradictions(self.findings, self.is_there)):
            raise ContradictionError("\n".join(problems))
        return self.findings

    def is_there(self, quotation: str) -> bool:
        return self.looked_up[quotation]

    def _look_up(self, findings: Iterable[Finding]) -> None:
        for text in (text for finding in findings for text in (*finding.excerpts, *finding.wrong_attempts)):
            if text not in self.looked_up:
                self.looked_up[text] = self.source.find(text) is not None


def _score(trait: MetricRubricTrait, findings: Sequence[Finding], found: Found) -> TraitScore:
    full = trait.evaluation_mode == "full_matrix"
    shown = [_shown(finding, found, full) for finding in findings]
    unfounded = [finding for finding in findings if finding.is_unfounded(found)]
    quoted = (text for finding in findings for text in (*finding.excerpts, *finding.wrong_attempts))
    caveats = () if all(map(found, quoted)) else (INVENTED_QUOTATIONS,)
    if unfounded:
        keys = ", ".join(finding.instruction.key for finding in unfounded)
        reason = f"the judge says that the answer has it and quotes nothing of it that is there: {keys}"
        return TraitScore(state="invalid", reason=reason, details={"instructions": shown}, caveats=caveats)
    lists = confusion(findings, found, once=trait.repeated_extraction)
    counts = {name: len(texts) for name, texts in lists.items() if full or name != "tn"}
    return TraitScore(
        value={**counts, **metrics_of(counts, trait.metrics)},
        details={"confusion": lists, "instructions": shown},
        caveats=caveats,
    )


def _shown(finding: Finding, found: Found, full: bool) -> dict[str, Any]:
    """A finding as plain data."""

    def looked_up(quotations: Iterable[str]) -> list[dict[str, Any]]:
        return [{"text": quotation, "found": found(quotation)} for quotation in quotations]

    wrong = {} if full else {"wrong_attempts": looked_up(finding.wrong_attempts)}
    return {
        "instruction": finding.instruction.text,
        "bucket": finding.bucket,
        "excerpts": looked_up(finding.excerpts),
        **wrong,
    }


@hookimpl
def karenina_register_traits(registry: Any) -> None:
    registry.add(MetricEvaluator)
