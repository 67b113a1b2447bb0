"""Dynamic traits: is what they are about in the answer at all? One question to the judge says so for all of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from attrs import frozen
from karenina_vocabulary.evaluators import TraitCase, failure
from karenina_vocabulary.tasks import PromptTask

from karenina_core.errors import ErrorKind
from karenina_core.values.rubric import RubricTrait

from .asking import ask_judge, check_reply, closed_object, presented
from .untrusted_text import UNTRUSTED_NOTE

ABSENT = "concept not present in response"
SYSTEM = f"""\
You decide which of several concepts a response takes up. Whether what it says about them is right, good or complete \
is not your concern: others look at that, and only where the concept is present.

Take the concepts one by one. What you decide about one of them has no bearing on any other.
- A concept is present where the response engages with it: it states, describes, uses, compares or denies something \
that belongs to it, in whatever words.
- It is absent where the response says nothing that belongs to it. A word that is mentioned by the way, or that only \
the question holds, does not make its concept present.
- Where you are in doubt, it is present.

{UNTRUSTED_NOTE}"""


@frozen(kw_only=True)
class Presence:
    """What the judge decided about dynamic traits, by their names."""

    promoted: tuple[str, ...] = ()
    """Present: to be evaluated."""
    absent: tuple[str, ...] = ()
    open: tuple[str, ...] = ()
    """Those about which the judge could not be asked, or gave no reply that could be used; `failure` says why."""
    failure: str = ""
    kind: ErrorKind = "judge"
    """That of the failure."""


def undecided(failure: str) -> str:
    """The reason why such a trait has no score."""
    return f"whether its concept is present could not be decided: {failure}"


async def presence_of(case: TraitCase, traits: Sequence[RubricTrait]) -> Presence:
    """Ask about these traits in one call, which takes one place of the case.

    Nothing is asked where there is nothing to read. A failed call decides nothing.
    """
    if not traits or case.given.error is not None:
        return Presence()
    names = tuple(trait.name for trait in traits)
    try:
        present = await case.in_turn(partial(_ask, case, traits))
    except BaseException as error:  # adapters, their middleware and instructions run code of their own
        failed = failure(error, "the judge could not be asked about dynamic traits")
        return Presence(open=names, failure=failed.reason, kind=failed.kind)
    found = list(zip(names, present, strict=True))
    return Presence(
        promoted=tuple(name for name, there in found if there),
        absent=tuple(name for name, there in found if not there),
    )


async def _ask(case: TraitCase, traits: Sequence[RubricTrait]) -> list[bool]:
    """Whether each concept is present. The traits are numbered: their names may be no keys of a JSON Schema."""
    concepts = {}
    for number, trait in enumerate(traits, 1):
        text = (trait.summary or "").strip() or (trait.description or "").strip() or trait.name
        concepts[f"trait_{number}"] = " ".join(text.split())
    wanted = f"Whether the {case.label} takes this concept up"
    schema = closed_object({key: {"type": "boolean", "description": wanted} for key in concepts})
    rows = "\n".join(f"- {key}: {concept}" for key, concept in concepts.items())
    user = f"{presented(case.context.question_text, case.given)}\n\nThe concepts:\n{rows}"

    async def read(data: Mapping[str, Any]) -> list[bool]:
        check_reply(data, schema)
        return [data[key] for key in concepts]

    task = PromptTask.RUBRIC_DYNAMIC_PRESENCE_CHECK
    asked = await ask_judge(case.context, task, (SYSTEM, user), schema, validate=read, temperature=0.0)
    present: list[bool] = asked.parsed
    return present
