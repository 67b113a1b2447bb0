"""`llm` traits before the judge: their prompts, which of them share a call, and what its replies say of each."""

from __future__ import annotations

import asyncio
import json
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import define, evolve, field, frozen
from karenina_judging.asking import ask_judge, closed_object, presented
from karenina_judging.scoring import read_score, scale_words, score_schema
from karenina_judging.untrusted_text import UNTRUSTED_NOTE
from karenina_vocabulary.evaluators import TraitCase, TraitScore, failure
from karenina_vocabulary.record_traits import TemplateKind, read_record, record_schema
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traits import LLMRubricTrait

from karenina_core.errors import ErrorKind, FillError, KareninaError, ParseError, shortened

EVIDENCE = """\
- The {label} is your only evidence: what it says, shows or does. Do not complete it from knowledge of your own, and \
do not judge whether it is correct unless a trait asks for that.
- The criteria say what counts. Where their words leave room, take them in their plain meaning, and keep to that \
reading."""
ALONE = "- Every trait is assessed by itself: what you find for one says nothing about another."
SCORES = f"""\
You assess qualities of a text, called traits. Each is described by its criteria and has a scale.

{ALONE}
{EVIDENCE}
- Use the whole scale. A value in the middle is for evidence of middling strength, not for doubt.

{UNTRUSTED_NOTE}"""
CLASSES = f"""\
You classify a text. Each trait below has a list of classes of its own, and you say which of them the text belongs to.

- Where the text has something of several classes, choose the one that prevails.
{ALONE}
{EVIDENCE}

{UNTRUSTED_NOTE}"""
RECORD = f"""\
You fill in a record that describes a quality of a text. The criteria say what the record is about, the description of \
each field what belongs into it.

{EVIDENCE}
- Where there is no evidence for a field, give the value that claims least: null where it is allowed, else false, the \
lowest number allowed, an empty list, or of the allowed values the one that says least.

{UNTRUSTED_NOTE}"""
REFERENCE = """\
Reference answer, written by an expert. Use it where the criteria call for a comparison; it is no part of the {label}, \
and the {label} need not share its wording.
<reference-answer>
{text}
</reference-answer>"""
Trait = LLMRubricTrait
SINGLE_KEYS = {"boolean": "result", "score": "score", "literal": "classification"}
TASKS = {
    False: (PromptTask.RUBRIC_LLM_TRAIT_SINGLE, PromptTask.RUBRIC_LLM_TRAIT_BATCH),
    True: (PromptTask.RUBRIC_LITERAL_TRAIT_SINGLE, PromptTask.RUBRIC_LITERAL_TRAIT_BATCH),
}
"""By whether traits are literal: the task of one trait, and that of several."""
STOPS: frozenset[ErrorKind] = frozenset(
    {"auth", "rate_limited", "timeout", "connection", "server", "budget", "cancelled"}
)
"""Failures that another question would meet too. Any other may be due to what was asked, and cost one trait only."""
LONGEST_REASON = 1000
"""Characters that are kept of a label and of a reason."""


def traits_texts(traits: Mapping[str, LLMRubricTrait], case: TraitCase, reference: str) -> tuple[str, str]:
    """The question, the answer and the reference answer where there is one to show; the traits by their keys."""
    listed = "\n\n".join(
        f"{key}: {trait.name}\n{_criteria(trait)}\nReply with {scale_words(trait)}" for key, trait in traits.items()
    )
    return _case(case, reference), f"The traits:\n\n{listed}"


def record_text(trait: LLMRubricTrait, case: TraitCase, reference: str) -> str:
    """The same for one trait whose score is a record."""
    return f"{_case(case, reference)}\n\nThe record: {trait.name}\n{_criteria(trait)}"


def _case(case: TraitCase, reference: str) -> str:
    shown = presented(case.context.question_text, case.given)
    if not reference:
        return shown
    return f"{shown}\n\n{REFERENCE.replace('{label}', case.label).replace('{text}', reference)}"


def _criteria(trait: LLMRubricTrait) -> str:
    criteria = (trait.description or "").strip()
    return f"Criteria: {criteria}" if criteria else "Criteria: none beyond the name"


@frozen(kw_only=True)
class Group:
    """Traits that the judge is asked about in one call: all of them literal, or none."""

    traits: tuple[Trait, ...]
    reference: str = ""
    """The reference answer; empty where these traits do not ask for it."""
    alike: bool = False
    """Whether there are other calls about this answer that differ from this one in the trait alone."""

    @property
    def literal(self) -> bool:
        return self.traits[0].kind == "literal"

    @property
    def task(self) -> PromptTask:
        return TASKS[self.literal][len(self.traits) > 1]

    @property
    def keyed(self) -> dict[str, Trait]:
        """The traits by the keys of the reply. They are numbered: their names may be no keys of a JSON Schema."""
        if len(self.traits) == 1:
            return {SINGLE_KEYS[str(self.traits[0].kind)]: self.traits[0]}
        return {f"trait_{number}": trait for number, trait in enumerate(self.traits, 1)}

    def of(self, traits: Sequence[Trait]) -> Group:
        """A group of some of the traits."""
        return Group(traits=tuple(traits), reference=self.reference)


def grouped(traits: Iterable[Trait], reference: str, *, alone: bool) -> list[Group]:
    """The traits in as few calls as may be: literal ones apart from the others, and those that are to be compared
    with the reference answer apart from those that must not see it. `alone`: one call for each.
    """
    sorts: dict[tuple[bool, bool], list[Trait]] = {}
    for trait in traits:
        sorts.setdefault((trait.kind == "literal", bool(reference) and trait.include_ground_truth), []).append(trait)
    groups = [Group(traits=tuple(own), reference=reference if compared else "") for (_, compared), own in sorts.items()]
    if not alone:
        return groups
    return [evolve(each, traits=(trait,), alike=len(each.traits) > 1) for each in groups for trait in each.traits]


async def judged(group: Group, case: TraitCase) -> dict[str, TraitScore]:
    """The score of every trait of the group.

    What a usable reply says about a trait counts, also where the same reply is no use for another. When the judge's
    repairs are used up, or the request is refused, it is asked about the traits without a score in two halves, and
    about what then has none one by one: for n traits there are at most 1 call for n = 1, 3 for n = 2, 5 for n = 3 and
    n + 3 from n = 4 on, each with its repairs. Where the judge cannot be reached (`STOPS`), nothing is asked again.
    """
    scores = _Scores()
    asked = [group.traits]
    await _ask(group, case, scores)
    for parts in (2, len(group.traits)):  # two halves, and then each alone
        left = [trait for part in asked if len(part) > 1 for trait in part if scores.open(trait)]
        size = max(1, math.ceil(len(left) / parts))
        asked = [tuple(left[start : start + size]) for start in range(0, len(left), size)]
        await asyncio.gather(*(_ask(group.of(part), case, scores) for part in asked))
    return {trait.name: scores.final(trait) for trait in group.traits}


@define
class _Scores:
    """The score of each trait by the replies, under its name.

    The last reply counts. A reply without a value for it, or with null, leaves an earlier score as it is.
    """

    by_name: dict[str, TraitScore] = field(factory=dict)
    unread: dict[str, str] = field(factory=dict)
    """Why the latest replies about it could not be read at all."""
    closed: set[str] = field(factory=set)
    """Those about which it is no use to ask again."""

    def open(self, trait: Trait) -> bool:
        """Whether it makes sense to ask about the trait again."""
        return trait.name not in self.closed and not self.scored(trait)

    def scored(self, trait: Trait) -> bool:
        return trait.name in self.by_name and self.by_name[trait.name].state == "ok"

    def record(self, trait: Trait, value: Any) -> None:
        if value is not None or trait.name not in self.by_name:
            self.by_name[trait.name] = score_of(trait, value)

    def fail(self, traits: Iterable[Trait], error: BaseException) -> None:
        """Those of the traits that have no score yet could not be asked about."""
        is_own = isinstance(error, Exception) and not isinstance(error, OSError)
        stops = error.kind in STOPS if isinstance(error, KareninaError) else not is_own
        for trait in traits:
            if not self.scored(trait):
                self.by_name[trait.name] = TraitScore.failed(error)
                self.closed |= {trait.name} if stops else set()

    def final(self, trait: Trait) -> TraitScore:
        score = self.by_name.get(trait.name)
        if score is None:
            score = TraitScore(state="missing", reason=self.unread.get(trait.name, "the judge gave no value for it"))
        return evolve(score, reason=shortened(score.reason, LONGEST_REASON))


async def _ask(group: Group, case: TraitCase, scores: _Scores) -> None:
    """Ask once, with repairs, and keep the scores. Never raises for a failure of the judge."""
    reader = _Reader(group.keyed, scores)
    schema = closed_object(
        {
            # A trait alone has the schema of every other one of its kind: a cache of prompts begins with it.
            key: {
                **score_schema(trait),
                **({"description": f"The trait {trait.name!r}"} if len(group.traits) > 1 else {}),
            }
            for key, trait in group.keyed.items()
        }
    )
    system = (CLASSES if group.literal else SCORES).replace("{label}", case.label)
    shared, own = traits_texts(group.keyed, case, group.reference)
    texts = (system, shared, own) if group.alike else (system, f"{shared}\n\n{own}")
    alike = f"{group.task} {json.dumps(schema)} {bool(group.reference)}" if group.alike else ""
    try:
        await case.in_turn(lambda: ask_judge(case.context, group.task, texts, schema, validate=reader.read), alike)
    except ParseError as error:
        if not reader.replies:
            scores.unread |= {trait.name: f"the judge's reply could not be read: {error}" for trait in group.traits}
    except BaseException as error:  # middleware and instructions of adapters are third-party code
        failure(error, "the judge could not be asked about traits")  # raises what ends the item
        scores.fail(group.traits, error)


@define
class _Reader:
    """Reads the replies of one call into the scores of its traits."""

    traits: Mapping[str, Trait]
    scores: _Scores
    replies: int = 0

    async def read(self, data: Mapping[str, Any]) -> None:
        """Raises FillError, in words for the judge, where a trait is left without a score."""
        self.replies += 1
        for key, trait in self.traits.items():
            self.scores.unread.pop(trait.name, None)
            if key in data:
                self.scores.record(trait, data[key])
        missing = {key: trait for key, trait in self.traits.items() if not self.scores.scored(trait)}
        if missing:
            known = self.scores.by_name
            raise FillError(
                "\n".join(
                    f"{key} ({trait.name}) is missing"
                    if data.get(key) is None
                    else f"{key}, {known[trait.name].reason}"
                    for key, trait in missing.items()
                )
            )


def score_of(trait: Trait, value: Any) -> TraitScore:
    """The score that a value in a reply is for a boolean, score or literal trait. Null is no score.

    The label of a literal trait is the name of its class, or of a text that is no class the first 1,000 characters.
    """
    if value is None:
        return TraitScore(state="missing", reason="the judge gave null instead of a score")
    try:
        score = read_score(trait, value)
    except FillError as error:
        text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
        label = shortened(text, LONGEST_REASON)
        return TraitScore(state="invalid", reason=str(error), label=label if trait.kind == "literal" else None)
    return TraitScore(value=score, label=trait.get_class_names()[score] if trait.kind == "literal" else None)


async def recorded(trait: LLMRubricTrait, kind: TemplateKind, case: TraitCase, reference: str) -> TraitScore:
    """The record that the judge fills in, as the value of the score. Raises PortError where it cannot be reached.

    Every field is asked for. The judge is asked once for those that it left out; then those that have a default get it.
    Of the reason why there is no record the first 1,000 characters are kept.
    """
    reader = _RecordReader(kind)
    texts = (RECORD.replace("{label}", case.label), record_text(trait, case, reference))
    task, schema = PromptTask.RUBRIC_LLM_TRAIT_TEMPLATE, record_schema(kind)
    try:
        await case.in_turn(lambda: ask_judge(case.context, task, texts, schema, validate=reader.read))
    except ParseError as error:
        return reader.without_more(error)
    return TraitScore(value=reader.record)


@define
class _RecordReader:
    """Reads the replies of one call. Remembers the last record, and what was wrong with the last of other replies."""

    kind: TemplateKind
    record: dict[str, Any] | None = None
    problem: str = ""
    replies: int = 0

    async def read(self, data: Mapping[str, Any]) -> dict[str, Any]:
        """The record. Raises FillError, in words for the judge; for fields that have a default, the first time only."""
        self.replies += 1
        fields = self.kind.schema["properties"]
        if not fields.keys() & data.keys():
            raise FillError(f"the reply has none of the fields: {', '.join(fields)}")
        is_first = self.record is None
        try:
            self.record = read_record(self.kind, data)
        except FillError as error:
            self.problem = str(error)
            raise
        if is_first and (left_out := [name for name in fields if name not in data]):
            raise FillError("\n".join(f"{name} is missing; reply with every field" for name in left_out))
        return self.record

    def without_more(self, error: ParseError) -> TraitScore:
        """What the replies come to when the judge's repairs are used up."""
        if self.record is not None:
            return TraitScore(value=self.record)
        if self.problem:
            return TraitScore(state="invalid", reason=shortened(self.problem, LONGEST_REASON))
        reason = "the judge gave no value for it" if self.replies else f"the judge's reply could not be read: {error}"
        return TraitScore(state="missing", reason=shortened(reason, LONGEST_REASON))
