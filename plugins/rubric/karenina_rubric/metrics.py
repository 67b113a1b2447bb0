"""Metric traits: the judge says of each instruction whether the answer has it; the counting is done here."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import define, field, frozen
from karenina_judging.asking import ask_judge, check_reply, closed_object, presented, unable_judges
from karenina_judging.judgment import INVENTED_QUOTATIONS
from karenina_judging.untrusted_text import UNTRUSTED_NOTE
from karenina_vocabulary.evaluators import TraitCase, TraitEvaluator, TraitScore
from karenina_vocabulary.planned_calls import PlannedCall, size
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traits import MetricRubricTrait

from karenina_core import Karenina, Question, VerificationConfig, hookimpl
from karenina_core.errors import ContradictionError, FillError, ParseError, Problem

if TYPE_CHECKING:
    from karenina_deep_judgment.quotations.matching import Source

BUCKETS = ("tp", "fn", "fp", "tn")
MOST_QUOTATIONS = 32
"""Of one list. A weak model can repeat itself until its tokens are used up, and a schema that a server enforces ends
that; answers rarely say one thing more than a few times."""
QUOTATIONS = {"type": "array", "items": {"type": "string"}, "maxItems": MOST_QUOTATIONS}
Found = Callable[[str], bool]
"""Whether a quotation is in the text."""
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
"""Characters; quotations are looked up in longer texts in a thread, so that other items continue meanwhile. Chosen,
not measured."""
LAST = "Write the quotations down before you decide, and make the two agree."


@frozen
class Instruction:
    """One thing that the judge looks for."""

    key: str
    """`tp_1`, `tp_2`, ..., `tn_1`, ...: what it is called in prompt and reply."""
    text: str

    @property
    def is_wanted(self) -> bool:
        """Whether a good answer has it; False for what a good answer does not have."""
        return self.key.startswith("tp_")


@frozen
class Finding:
    """What the judge found about one instruction."""

    instruction: Instruction
    holds: bool
    """Whether the answer has it."""
    excerpts: tuple[str, ...]
    wrong_attempts: tuple[str, ...] = ()

    @property
    def bucket(self) -> str:
        if self.instruction.is_wanted:
            return "tp" if self.holds else "fn"
        return "fp" if self.holds else "tn"

    def shown(self, found: Found) -> str:
        """Its entry in the list of its bucket: the passage of the answer, or the instruction."""
        return next(filter(found, self.excerpts), self.instruction.text) if self.holds else self.instruction.text

    def is_unfounded(self, found: Found) -> bool:
        """Whether the judge says that the answer has it and cannot quote it."""
        return self.holds and not any(map(found, self.excerpts))


def instructions_of(trait: MetricRubricTrait) -> tuple[Instruction, ...]:
    """The instructions that are asked about, in order; equal ones once where the trait removes repeats."""
    lists = {"tp": trait.tp_instructions, "tn": trait.tn_instructions if _full(trait) else ()}
    return tuple(
        Instruction(f"{name}_{number}", text)
        for name, texts in lists.items()
        for number, text in enumerate(_kept(texts, once=trait.repeated_extraction), 1)
    )


def findings_schema(trait: MetricRubricTrait, instructions: Iterable[Instruction]) -> dict[str, Any]:
    """The JSON Schema of the reply: quotations first, and then the verdict, for every instruction."""
    wrong = {} if _full(trait) else {"wrong_attempts": QUOTATIONS}
    wanted = closed_object({"excerpts": QUOTATIONS, **wrong, "covered": {"type": "boolean"}})
    unwanted = closed_object({"excerpts": QUOTATIONS, "present": {"type": "boolean"}})
    return closed_object({one.key: wanted if one.is_wanted else unwanted for one in instructions})


def with_lists(data: Mapping[str, Any], schema: Mapping[str, Any]) -> dict[str, Any]:
    """The reply with an empty list for every list of quotations that it left out or gave as null."""
    completed = dict(data)
    for key, part in schema["properties"].items():
        given = data.get(key)
        if isinstance(given, Mapping):
            lists = [name for name, kind in part["properties"].items() if kind is QUOTATIONS]
            completed[key] = {**given, **{name: [] for name in lists if given.get(name) is None}}
    return completed


def findings_in(
    data: Mapping[str, Any], instructions: Iterable[Instruction], schema: Mapping[str, Any]
) -> tuple[Finding, ...]:
    """The findings in a reply that fits the schema; what was not asked for is left out."""
    asked = {key: part["properties"] for key, part in schema["properties"].items()}
    findings = []
    for one in instructions:
        found = {name: value for name, value in data[one.key].items() if name in asked[one.key]}
        holds = found["covered" if one.is_wanted else "present"]
        wrong = _kept(found.get("wrong_attempts", ()), once=False)
        findings.append(Finding(one, holds, _kept(found["excerpts"], once=True), wrong))
    return tuple(findings)


def contradictions(findings: Iterable[Finding], found: Found) -> list[str]:
    """Verdicts that do not fit their own quotations, and quotations that are not there, in words for the judge."""
    doubts: list[str] = []
    for finding in findings:
        key, verdict = finding.instruction.key, "covered" if finding.instruction.is_wanted else "present"
        if finding.holds and not finding.excerpts:
            doubts.append(f"{key}: {verdict} is true, but excerpts quotes nothing; quote the passage, or say false")
        elif not finding.holds and finding.excerpts:
            doubts.append(f"{key}: {verdict} is false, but excerpts quotes passages; say true, or leave it empty")
        advice = "is not in the text; copy passages character by character, or say false"
        absent = [text for text in finding.excerpts if finding.holds and not found(text)]
        doubts += [f"{key}: {text!r:.200} {advice}" for text in absent]
        advice = "in wrong_attempts is not in the text; copy it as it is there, or leave it out"
        doubts += [f"{key}: {text!r:.200} {advice}" for text in finding.wrong_attempts if not found(text)]
        advice = "is in excerpts and in wrong_attempts; it is either right or wrong"
        wrong = {_plain(attempt) for attempt in finding.wrong_attempts}
        doubts += [f"{key}: {text!r:.200} {advice}" for text in finding.excerpts if _plain(text) in wrong]
    return doubts


def confusion(findings: Sequence[Finding], found: Found, *, once: bool) -> dict[str, list[str]]:
    """The four buckets, one entry for everything that is counted. `once` counts equal wrong attempts once; those that
    are not in the text never count."""
    buckets: dict[str, list[str]] = {name: [] for name in BUCKETS}
    for finding in findings:
        buckets[finding.bucket].append(finding.shown(found))
    attempts = [text for finding in findings for text in finding.wrong_attempts if found(text)]
    buckets["fp"] += _kept(attempts, once=once)
    return buckets


def metrics_of(counts: Mapping[str, int], names: Iterable[str]) -> dict[str, float]:
    """The metrics of these names. A ratio of nothing to nothing is 0.

    precision = tp / (tp + fp), recall = tp / (tp + fn), specificity = tn / (tn + fp),
    accuracy = (tp + tn) / (tp + tn + fp + fn), f1 = the harmonic mean of precision and recall.
    """
    tp, fn, fp, tn = (counts.get(name, 0) for name in BUCKETS)
    precision, recall = _ratio(tp, tp + fp), _ratio(tp, tp + fn)
    known = {
        "precision": precision,
        "recall": recall,
        "f1": _ratio(2 * precision * recall, precision + recall),
        "specificity": _ratio(tn, tn + fp),
        "accuracy": _ratio(tp + tn, tp + tn + fp + fn),
    }
    return {name: known[name] for name in names}


def _ratio(part: float, whole: float) -> float:
    return part / whole if whole else 0.0


def _full(trait: MetricRubricTrait) -> bool:
    return trait.evaluation_mode == "full_matrix"


def _kept(texts: Iterable[str], *, once: bool) -> tuple[str, ...]:
    """The texts without white space around them and without blank ones; of equal ones the first, where `once`.

    Case does not count.
    """
    trimmed = [text.strip() for text in texts if text.strip()]
    if not once:
        return tuple(trimmed)
    first: dict[str, str] = {}
    for text in trimmed:
        first.setdefault(text.casefold(), text)
    return tuple(first.values())


def _plain(text: str) -> str:
    """A text for comparisons, in which case and the kind of white space do not count."""
    return " ".join(text.split()).casefold()


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

    def calls(
        self, traits: Sequence[MetricRubricTrait], question: Question, config: VerificationConfig, app: Karenina
    ) -> Iterable[PlannedCall]:
        sends = size(question.question, *(model.system_prompt for model in config.parsing_models))
        for trait in traits:
            asked = size(*(one.text for one in instructions_of(trait)))
            yield PlannedCall(task=PromptTask.RUBRIC_METRIC_TRAIT, sends=sends + asked)

    async def score(self, trait: MetricRubricTrait, case: TraitCase) -> TraitScore:
        """Raises PortError where the judge could not be reached. A reply that is no use makes the score invalid, one
        that holds no data leaves it missing."""
        from karenina_deep_judgment.quotations.matching import (
            Source,  # its patterns take longer to compile than all else here
        )

        instructions = instructions_of(trait)
        reader = _Reader(instructions, findings_schema(trait, instructions), Source(case.given.text))
        task, texts = PromptTask.RUBRIC_METRIC_TRAIT, _texts(trait, case, instructions)
        alike = f"{task} {json.dumps(reader.schema)}"
        try:
            await case.in_turn(lambda: ask_judge(case.context, task, texts, reader.schema, validate=reader.read), alike)
        except ParseError as error:
            if reader.findings is None and reader.problem:
                return TraitScore(state="invalid", reason=reader.problem)
            if reader.findings is None:
                return TraitScore(state="missing", reason=f"the judge's reply could not be read: {error}")
        return _score(trait, reader.findings or (), reader.is_there)


def _texts(trait: MetricRubricTrait, case: TraitCase, instructions: Iterable[Instruction]) -> tuple[str, str]:
    """The system text and the user text."""
    steps = f"{COVERED}\n\n{PRESENT}" if _full(trait) else f"{COVERED}\n{WRONG}"
    about = f"{trait.name}: {trait.description}" if trait.description else trait.name
    listed = "\n".join(f"{one.key}: {' '.join(one.text.split())}" for one in instructions)
    system = f"{ROLE}\n\n{steps}\n\n{LAST}\n\n{UNTRUSTED_NOTE}"
    user = (
        f"{presented(case.context.question_text, case.given)}\n\n"
        f"What to look for: {about}\n\nThe instructions:\n{listed}"
    )
    return system, user


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
