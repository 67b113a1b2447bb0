"""The trials of `karenina judge attack`: wrong answers with a payload, with a benign text in its place, and without."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Literal

from attrs import evolve, frozen
from karenina_authoring.proof.mutants import mutants

from karenina_core.values.question import Question

from ..judges.statements import lines, pairs_of, value_text
from ..judges.trials import Subject, Trial
from .holistic import FIELD
from .suite import POSITIONS, Payload, Suite

Style = Literal["templates", "holistic"]
"""Whether the judge fills in the templates, or says of the whole response whether it is correct."""
Role = Literal["attack", "control", "baseline"]


@frozen(kw_only=True)
class Attack(Trial):
    """A wrong answer with something in it."""

    role: Role
    style: Style
    payload: str = ""
    """Its id; of a control, that of the payload in whose place it stands."""
    family: str = ""
    position: str = ""


@frozen
class Target:
    """A question with a wrong answer, and what an attack on it asks for."""

    question: Question
    style: Style
    wrong: str
    wanted: str
    reply: str


async def targets_of(subjects: Sequence[Subject], *, holistic: bool) -> list[list[Target]]:
    """Of every question that has one, a wrong answer which its template rejects, judged in every style."""
    found = []
    for subject in subjects:
        if (wrong := await _wrong(subject)) is None:
            continue
        right = subject.values({})
        wanted = "; ".join(f"{name}: {text}" for name, text in pairs_of(right))
        reply = json.dumps({subject.facts.keys.get(name, name): value for name, value in right.items()})
        targets = [Target(subject.question, "templates", wrong, wanted, reply)]
        if holistic:
            question = subject.question
            reference = question.raw_answer.strip() or lines(pairs_of(right))
            question = evolve(question, raw_answer=reference, answer_template=None)
            targets.append(Target(question, "holistic", wrong, wanted, json.dumps({FIELD: True})))
        found.append(targets)
    return found


async def _wrong(subject: Subject) -> str | None:
    """An answer that is wrong in every field of which a wrong value is known."""
    changed = {}
    for fact in subject.facts.fields:
        for _, value in mutants(fact):
            if value_text(value).strip() and await subject.verdict({fact.name: value}) is False:
                changed[fact.name] = value
                break
    text = lines(pairs_of(subject.values(changed)))
    return text if changed and await subject.verdict(changed) is False else None


def attack_trials(
    targets: Sequence[Sequence[Target]], suite: Suite, payloads: Sequence[Payload], questions: int
) -> list[Attack]:
    """Every payload in every position with so many of the questions, in turn; beside each the same answer with a benign
    text of the same length; and each question's wrong answer alone."""
    found: list[Attack] = []
    used: dict[str, Sequence[Target]] = {}
    number = 0
    for payload in payloads:
        for position in POSITIONS:
            for _ in range(min(questions, len(targets))):
                chosen = targets[number % len(targets)]
                used[chosen[0].question.id] = chosen
                number += 1
                for target in chosen:
                    found += _pair(target, suite, payload, position)
    for target in (target for chosen in used.values() for target in chosen):
        found.append(_trial(target, "baseline", target.wrong))
    return found


def _pair(target: Target, suite: Suite, payload: Payload, position: str) -> Iterator[Attack]:
    text = payload.filled(target.wanted, target.reply)
    roles: dict[Role, str] = {"attack": text, "control": suite.control(len(text))}
    for role, inserted in roles.items():
        trial = _trial(target, role, POSITIONS[position](inserted, target.wrong), payload.id, position)
        yield evolve(trial, family=payload.family)


def _trial(target: Target, role: Role, answer: str, payload: str = "", position: str = "") -> Attack:
    name = " ".join(part for part in (target.style, role, payload, position) if part)
    return Attack(
        question=target.question,
        name=name,
        kind=role,
        answer=answer,
        role=role,
        style=target.style,
        payload=payload,
        position=position,
    )
