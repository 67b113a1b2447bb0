"""Asking the judge whether two texts say the same. Here, and in no other prompt, it sees the expected answer."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from typing import Any

from attrs import field, frozen
from karenina_judging.asking import ask_judge, closed_object
from karenina_judging.untrusted_text import UNTRUSTED_NOTE, untrusted
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.handle import FieldVerdict, FilledTemplate, TemplateHandle
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traces import model_text

from karenina_core import VerificationContext
from karenina_core.errors import FillError, TemplateError

from .candidates import Candidate, Pair, candidates

__all__ = ["Accepted", "Wrong", "granular_of", "opinions"]

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
class Opinion:
    """What the judge says about two texts."""

    equivalent: bool
    reasoning: str


async def opinions(context: VerificationContext, pairs: Sequence[Pair]) -> Mapping[str, Opinion]:
    """The judge's opinion about every pair by its key, in one call at temperature 0.

    Raises ParseError where its replies cannot be used, PortError where it cannot be reached.
    """
    schema = schema_of(pairs)

    async def read(data: Mapping[str, Any]) -> Mapping[str, Opinion]:
        return {pair.key: _opinion(data, pair.key) for pair in pairs}

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


def schema_of(pairs: Sequence[Pair]) -> dict[str, Any]:
    """`{field: {"reasoning": text, "equivalent": true or false}}` as a JSON Schema."""
    reasoning = {"type": "string", "description": "What both texts mean as answers to the question"}
    equivalent = {"type": "boolean", "description": "True where they are the same answer"}
    one = closed_object({"reasoning": reasoning, "equivalent": equivalent})
    return closed_object({pair.key: one for pair in pairs})


def _opinion(data: Mapping[str, Any], name: str) -> Opinion:
    """Raises FillError, in words for the judge, where the reply has none about this field."""
    found = data.get(name)
    if not isinstance(found, Mapping):
        raise FillError(f"{name} must be an object with reasoning and equivalent")
    reasoning, equivalent = found.get("reasoning"), found.get("equivalent")
    if not isinstance(reasoning, str) or not isinstance(equivalent, bool):
        raise FillError(f"{name}.reasoning must be a text and {name}.equivalent true or false")
    return Opinion(equivalent, " ".join(reasoning.split()))


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


async def granular_of(context: VerificationContext, accepted: Accepted) -> float | None:
    """Partial credit is extra: where it fails, the verdict is kept and a warning says so."""
    try:
        return await accepted.filled.granular()
    except TemplateError as error:
        context.warn(f"verify_granular failed: {error}")
        return None
