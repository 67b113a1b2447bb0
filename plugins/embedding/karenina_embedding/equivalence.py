"""Asking the judge whether two texts say the same. Here, and in no other prompt, it sees the expected answer."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen
from karenina_judging.asking import ask_judge, closed_object
from karenina_judging.untrusted_text import UNTRUSTED_NOTE, untrusted
from karenina_vocabulary.tasks import PromptTask

from karenina_core import VerificationContext
from karenina_core.errors import FillError

from .candidates import Pair

__all__ = ["Opinion", "opinions", "schema_of"]

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

    texts = SYSTEM, _presented(context.question_text, pairs)
    result = await ask_judge(context, PromptTask.EMBEDDING_EQUIVALENCE, texts, schema, validate=read, temperature=0.0)
    found: Mapping[str, Opinion] = result.parsed
    return found


def schema_of(pairs: Sequence[Pair]) -> dict[str, Any]:
    """`{field: {"reasoning": text, "equivalent": true or false}}` as a JSON Schema."""
    reasoning = {"type": "string", "description": "What both texts mean as answers to the question"}
    equivalent = {"type": "boolean", "description": "True where they are the same answer"}
    one = closed_object({"reasoning": reasoning, "equivalent": equivalent})
    return closed_object({pair.key: one for pair in pairs})


def _presented(question: str, pairs: Sequence[Pair]) -> str:
    fields = "\n\n".join(
        f"Field {pair.key!r}: {pair.description}\n"
        f"Expected: {json.dumps(pair.expected, ensure_ascii=False)}\n"
        f"Extracted:\n{untrusted(pair.extracted, 'extracted')}"
        for pair in pairs
    )
    return f"Question:\n{question}\n\n{fields}\n\nReply with the JSON object only."


def _opinion(data: Mapping[str, Any], name: str) -> Opinion:
    """Raises FillError, in words for the judge, where the reply has none about this field."""
    found = data.get(name)
    if not isinstance(found, Mapping):
        raise FillError(f"{name} must be an object with reasoning and equivalent")
    reasoning, equivalent = found.get("reasoning"), found.get("equivalent")
    if not isinstance(reasoning, str) or not isinstance(equivalent, bool):
        raise FillError(f"{name}.reasoning must be a text and {name}.equivalent true or false")
    return Opinion(equivalent, " ".join(reasoning.split()))
