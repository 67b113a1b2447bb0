"""The trials of `karenina judge check`: the reference answer, its values in several forms, and wrong values."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterable, Mapping
from typing import Any

from karenina_authoring.proof.facts import Fact
from karenina_authoring.proof.mutants import mutants

from ..judges.statements import FORMS, REWRITES, lines, pairs_of, value_text
from ..judges.trials import Subject, Trial

REFERENCE = "reference answer"
STATED = "right values"
WRONG = "wrong value"


async def check_trials(subjects: Iterable[Subject], wrong: int = 1) -> list[Trial]:
    """Of each question: its reference answer as it is and rewritten, the values that its template expects in every
    form, and for each field `wrong` answers that state another value for it. Two with the same text are one."""
    found = []
    for number, subject in enumerate(subjects):
        texts: set[str] = set()
        async for trial in _trials(subject, number, wrong):
            if trial.answer not in texts:
                texts.add(trial.answer)
                found.append(trial)
    return found


async def _trials(subject: Subject, number: int, wrong: int) -> AsyncIterator[Trial]:
    question, own = subject.question, await subject.expected({})
    if reference := question.raw_answer.strip():
        yield Trial(question=question, name=REFERENCE, kind=REFERENCE, answer=reference, expected=own)
        for name, rewrite in REWRITES.items():
            kind = f"{REFERENCE} {name}"
            yield Trial(question=question, name=kind, kind=kind, answer=rewrite(reference), expected=own)
    pairs = pairs_of(subject.values({}))
    for name, form in FORMS.items() if pairs else ():
        kind = f"{STATED}, {name}"
        yield Trial(question=question, name=kind, kind=kind, answer=form(pairs), expected=own)
    for fact in subject.facts.fields:
        made = 0
        for kind, value in _turned(list(_sayable(fact)), number):
            expected = await subject.expected({fact.name: value})
            if made < wrong and expected.get(fact.name, all(expected.values())) is False:
                made += 1
                yield _wrong(subject, fact.name, kind, value, expected)


def _sayable(fact: Fact) -> Iterable[tuple[str, Any]]:
    """Wrong values that an answer can state."""
    return ((kind, value) for kind, value in mutants(fact) if value_text(value).strip())


def _turned(found: list[tuple[str, Any]], number: int) -> list[tuple[str, Any]]:
    """Begun with another kind for each question."""
    begin = number % len(found) if found else 0
    return found[begin:] + found[:begin]


def _wrong(subject: Subject, field: str, kind: str, value: Any, expected: Mapping[str, bool]) -> Trial:
    text = lines(pairs_of(subject.values({field: value})))
    return Trial(
        question=subject.question,
        name=f"{WRONG} of {field}: {value_text(value)}",
        kind=f"{WRONG}: {kind.replace('_', ' ')}",
        answer=text,
        expected=expected,
    )
