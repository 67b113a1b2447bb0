"""Which wrong fields hold texts that may mean the same, and what the judge says of them.

Here, and in no other prompt, the judge sees the expected answer.
"""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from attrs import field, frozen
from karenina_judging.asking import ask_judge, check_reply, closed_object
from karenina_judging.untrusted_text import UNTRUSTED_NOTE, untrusted
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.handle import FieldVerdict, FilledTemplate, TemplateField, TemplateHandle
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traces import model_text

from karenina_core import VerificationContext
from karenina_core.errors import TemplateError

LISTS = frozenset({"list[str]", "set[str]"})
MOST = 30
"""Texts of a list that are compared with others: 900 pairs take a tenth of a second."""
WORD = re.compile(r"[^\W\d_]+")
MONTHS = "january february march april may june july august september october november december"
NO_PROSE = frozenset(
    {*MONTHS.split(), *(month[:3] for month in MONTHS.split()), "sept"}
    | {"st", "nd", "rd", "th", "of", "am", "pm", "t", "z", "utc", "e", "nan", "inf", "infinity"}
    | {"true", "false", "yes", "no", "none", "null"}
)
"""Words of dates, times, numbers and truth values."""
SYSTEM = f"""\
A text that was extracted from the answer to a question differs from the expected text. You decide, field by field, \
whether both give the same answer to that question.

They are equivalent where someone who knows the subject would call them one and the same answer: another spelling, \
word order, language or abbreviation, a synonym, more or fewer words that change nothing.

They are not equivalent where
- they name different things, however closely related or similar in spelling: another gene, person, place, drug;
- a number, a unit, a date, a direction or a negation differs;
- one is more general than the other, is a part of it, or says only something about it;
- the extracted text names several answers of which one is the expected one, or leaves open which it means.

Where you are in doubt, they are not equivalent. First write the reasoning, then decide.

{UNTRUSTED_NOTE}"""


@frozen
class Pair:
    """An expected and an extracted text that may mean the same."""

    field: str
    description: str
    expected: str
    extracted: str
    wanted: int | None = None
    """The place of the expected text in its list, from 0; None where the field is no list."""
    place: int | None = None
    """The same of the extracted text."""

    @property
    def key(self) -> str:
        """What the judge's reply calls it: the field, with the number of the extracted text in a list."""
        return self.field if self.place is None else f"{self.field}.{self.place + 1}"


@frozen
class Candidate:
    """One wrong field with the texts that may mean the same: the two of a text; of two lists each text of the one with
    each of the other, except those that are in both."""

    name: str
    pairs: tuple[Pair, ...]

    @property
    def is_list(self) -> bool:
        return self.pairs[0].place is not None

    def matched(self, scores: Mapping[Pair, float]) -> tuple[Pair, ...]:
        """The most similar pairs, every text in one pair at most; of equally similar ones the first."""
        found: list[Pair] = []
        for pair in sorted(self.pairs, key=lambda pair: -scores[pair]):
            if not any(pair.wanted == other.wanted or pair.place == other.place for other in found):
                found.append(pair)
        return tuple(found)


def candidates(
    handle: TemplateHandle, filled: FilledTemplate, results: Mapping[str, bool | None]
) -> tuple[Candidate, ...]:
    """The wrong text fields of a filled template; `results` are those of the comparison, by field.

    A field counts that is declared as text or as a list of texts, whose expected and extracted values are texts with
    words in them, and that the comparison says is wrong; where it says nothing (a template that decides by code of its
    own), one whose value is another than the expected one. Numbers, truth values and dates never count, also where they
    are written as text: vectors of `1987` and `1988` are close. Nor do semantic fields, whose own threshold decides,
    fields that are decided without an expected value, and lists that differ in more than 30 texts.
    """
    expected, extracted = handle.ground_truth(), filled.values()
    found = []
    for about in handle.fields():
        name, wanted, there = about.name, expected.get(about.name), extracted.get(about.name)
        wrong = results[name] is False if name in results else _stripped(there) != _stripped(wanted)
        if wrong:
            with suppress(TemplateError):  # of a template that has no expected value to accept; a placeholder is none
                filled.accepting([name])
                found.append(Candidate(name, tuple(_pairs(about, wanted, there))))
    return tuple(candidate for candidate in found if candidate.pairs)


def _pairs(field: TemplateField, wanted: Any, there: Any) -> Iterator[Pair]:
    declared = {part.strip() for part in field.type.split("|")} - {"None"}
    if field.semantic:
        return
    if declared == {"str"} and _are_prose(wanted, there):
        yield Pair(field.name, field.description, wanted, there)
    elif len(declared) == 1 and declared < LISTS and isinstance(wanted, list) and isinstance(there, list):
        known = Counter(map(_stripped, wanted)) & Counter(map(_stripped, there))
        left, others = _left(wanted, known), _left(there, known)
        if len(left) <= MOST and len(others) <= MOST:
            for number, text in left:
                for place, other in others:
                    if _are_prose(text, other):
                        yield Pair(field.name, field.description, text, other, number, place)


def _stripped(value: Any) -> str:
    return value.strip() if isinstance(value, str) else repr(value)


def _left(values: Sequence[Any], known: Counter[str]) -> list[tuple[int, Any]]:
    """The values that are not in both lists, with their places; of equal ones the first are those that are."""
    there = Counter(known)
    left = []
    for place, value in enumerate(values):
        if there[_stripped(value)]:
            there[_stripped(value)] -= 1
        else:
            left.append((place, value))
    return left


def _are_prose(*values: Any) -> bool:
    return all(isinstance(value, str) and is_prose(value) for value in values)


def is_prose(text: str) -> bool:
    """Whether there is a word in it that does more than write a number, a date or a truth value."""
    return any(word.lower() not in NO_PROSE for word in WORD.findall(text))


@frozen
class Opinion:
    """What the judge says about two texts."""

    equivalent: bool
    reasoning: str


async def opinions(context: VerificationContext, pairs: Sequence[Pair]) -> Mapping[str, Opinion]:
    """The judge's opinion about every pair by its key, in one call at temperature 0.

    Raises ParseError where its replies cannot be used, PortError where it cannot be reached.
    """
    reasoning = {"type": "string", "description": "What both texts mean as answers to the question"}
    equivalent = {"type": "boolean", "description": "True where they are the same answer"}
    one = closed_object({"reasoning": reasoning, "equivalent": equivalent})
    schema = closed_object({pair.key: one for pair in pairs})

    async def read(data: Mapping[str, Any]) -> Mapping[str, Opinion]:
        check_reply(data, schema)
        given = {pair.key: data[pair.key] for pair in pairs}
        return {key: Opinion(own["equivalent"], " ".join(own["reasoning"].split())) for key, own in given.items()}

    fields = "\n\n".join(
        f"Field {pair.key!r}: {pair.description}\n"
        f"Expected: {json.dumps(pair.expected, ensure_ascii=False)}\n"
        f"Extracted:\n{untrusted(pair.extracted, 'extracted')}"
        for pair in pairs
    )
    texts = SYSTEM, f"Question:\n{context.question_text}\n\n{fields}\n\nReply with the JSON object only."
    result = await ask_judge(context, PromptTask.EMBEDDING_EQUIVALENCE, texts, schema, validate=read, temperature=0.0)
    found: Mapping[str, Opinion] = result.parsed
    return found


@frozen(eq=False)
class Accepted:
    """The template as it is with these fields accepted, and what it says then."""

    filled: FilledTemplate
    verdict: FieldVerdict


@frozen(eq=False, kw_only=True)
class Wrong:
    """A filled template whose fields were found to be wrong, and all that it was verified with."""

    handle: TemplateHandle | None
    filled: FilledTemplate
    candidates: tuple[Candidate, ...]
    trace: str = field(repr=False)
    said: str = field(repr=False)
    semantic: Mapping[str, float]
    """For semantic fields: 1 where they were found to be right, 0 where not. That decides them as before, without
    another call of the embedder."""

    @classmethod
    def of(cls, context: VerificationContext) -> Wrong:
        filled = context.get_artifact(ArtifactKeys.PARSED_ANSWER)
        handle = context.get_artifact(ArtifactKeys.ANSWER, None)
        trace = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE, "")
        results = context.get_result_field("field_results", None) or {}
        fields = handle.fields() if handle is not None else ()
        return cls(
            handle=handle,
            filled=filled,
            candidates=candidates(handle, filled, results) if handle is not None else (),
            trace=trace,
            said=model_text(context.get_result_field("trace_messages", ()), trace),
            semantic={item.name: float(results.get(item.name) is True) for item in fields if item.semantic},
        )

    async def accepting(self, names: Collection[str]) -> Accepted:
        """Verify a copy in which these fields count as right. Raises TemplateError as `verify` does."""
        filled = self.filled.accepting(names)
        return Accepted(filled, await filled.verify(self.trace, said=self.said, similarities=self.semantic))

    async def settled(self, candidate: Candidate, same: Collection[Pair]) -> bool:
        """Whether the field is right where these pairs mean the same.

        In a list the expected texts take the places of those that mean the same, and the template compares it as ever:
        so it decides itself about the order, repetitions, and texts that are missing or too many.
        """
        if not same or self.handle is None or not candidate.is_list:
            return bool(same)
        values = dict(self.filled.values())
        listed = list(values[candidate.name])
        for pair in same:
            if pair.place is not None:
                listed[pair.place] = pair.expected
        filled = await self.handle.build({**values, candidate.name: listed})
        verdict = await filled.verify(self.trace, said=self.said, similarities=self.semantic)
        return verdict.field_results.get(candidate.name, verdict.result) is True
