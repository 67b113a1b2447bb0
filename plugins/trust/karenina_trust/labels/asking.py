"""Asking one person about answers in a terminal: blind, one after the other, to be ended and continued at any time."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

import click
from karenina_cli.output import Passage, print_parts

from .answers import FIELD, TRAIT, VERDICT, Answer, expected_of, judged_value, targets_of
from .file import Label, LabelFile, add_labels, now
from .templates import Templates

__all__ = ["KINDS", "ask", "open_targets", "reading_of", "score_of", "verdict_of"]

KINDS = ("verdict", "fields", "traits")
RIGHT, WRONG, UNSURE, NOTHING, QUIT = ("right", "wrong", "?", "-", "q")
WORDS = {
    **dict.fromkeys((RIGHT, "r", "yes", "y", "true", "1", "pass", "passed"), True),
    **dict.fromkeys((WRONG, "w", "no", "n", "false", "0", "fail", "failed"), False),
}


class Quit(Exception):
    """The person wants to go on later."""


class Unreadable(Exception):
    """What was typed means nothing here; the message says what would."""


def verdict_of(text: str) -> bool:
    """Raises Unreadable."""
    if (word := text.strip().casefold()) not in WORDS:
        raise Unreadable(f"{text!r} is not a verdict: type right or wrong, or ? if you cannot say")
    return WORDS[word]


def reading_of(text: str, expected: Any) -> Any:
    """What a person read, as a value of the same kind as the expected one. Raises Unreadable."""
    if text.strip() == NOTHING:
        return None
    if expected is None or isinstance(expected, str):
        return text.strip()
    if isinstance(expected, bool):
        return verdict_of(text)
    if isinstance(expected, list) and not text.lstrip().startswith("["):
        return [part.strip() for part in text.split(",") if part.strip()]
    try:
        return json.loads(text)
    except ValueError:
        kind = "a list, such as a, b" if isinstance(expected, list) else "a number, such as 3.5"
        raise Unreadable(f"{text!r} is not {kind}; type - if the answer says nothing about it") from None


def score_of(text: str, said: Any) -> Any:
    """A score of a trait, of the kind that judges give. Raises Unreadable."""
    if isinstance(said, str):
        return text.strip()
    if (word := text.strip().casefold()) in ("true", "false", "yes", "no", "y", "n"):
        return float(WORDS[word])
    try:
        return float(text)
    except ValueError:
        raise Unreadable(f"{text!r} is not a score: type a number, or yes or no") from None


def value_of(text: str, target: str, answer: Answer) -> Any:
    """The value of a label from what was typed; None for `?`. Raises Unreadable."""
    if text.strip() == UNSURE:
        return None
    if target == VERDICT:
        return verdict_of(text)
    if target.startswith(FIELD):
        return {"reading": reading_of(text, expected_of(answer, target.removeprefix(FIELD)))}
    said = next((v for r in answer.judged.values() if (v := judged_value(r, target)) is not None), None)
    return score_of(text, said)


def wanted(answer: Answer, kinds: Sequence[str]) -> list[str]:
    """The targets of these kinds."""
    own = {"verdict": VERDICT, "fields": FIELD, "traits": TRAIT}
    return [target for target in targets_of(answer) if any(target.startswith(own[kind]) for kind in kinds)]


def open_targets(
    file: LabelFile, answers: Iterable[Answer], annotator: str, kinds: Sequence[str]
) -> Iterator[tuple[Answer, list[str]]]:
    """The drawn answers in their order, each with what this person has not said of it."""
    said = {label.key for label in file.labels}
    known = {answer.id: answer for answer in answers}
    for drawn in file.plan.items:
        answer = known[drawn.item]
        missing = [target for target in wanted(answer, kinds) if (answer.id, annotator, target) not in said]
        if missing:
            yield answer, missing


def ask(
    path: Path, file: LabelFile, answers: Iterable[Answer], annotator: str, kinds: Sequence[str], templates: Templates
) -> int:
    """Ask for labels and write each answer's to the file; returns how many answers were labelled.

    Neither the model nor what judges said is shown, and the reference answer only beside a verdict: who reads what an
    answer says of a field need not know what it should say.
    """
    waiting, done = list(open_targets(file, answers, annotator, kinds)), 0
    for number, (answer, targets) in enumerate(waiting, 1):
        _show(answer, targets, f"Answer {number} of {len(waiting)}", sys.stdout)
        fields = any(target.startswith(FIELD) for target in targets)
        about = templates.describe(answer.question_id) if fields else {}
        labels: list[Label] = []
        try:
            for target in targets:
                value = _typed(answer, target, about.get(target.removeprefix(FIELD), ""))
                labels.append(Label(item=answer.id, annotator=annotator, target=target, value=value, at=now()))
        except (Quit, click.Abort, EOFError):
            break
        finally:
            if labels:
                add_labels(path, labels)
        done += 1
    return done


def _show(answer: Answer, targets: Sequence[str], title: str, out: Any) -> None:
    parts: list[Any] = ["", title, "Question:", Passage([(answer.question, False)])]
    if VERDICT in targets and answer.reference:
        parts += ["Reference answer:", Passage([(answer.reference, False)])]
    print_parts([*parts, "Answer:", Passage([(answer.text, False)])], out)


def _typed(answer: Answer, target: str, about: str) -> Any:
    if target == VERDICT:
        question = "Is the answer right? right, wrong, ? or q"
    elif target.startswith(FIELD):
        name = target.removeprefix(FIELD)
        question = f"What does it say about {name}{f': {about}' if about else ''}? A value, - for nothing, ? or q"
    else:
        question = f"Score of {target.removeprefix(TRAIT)}, ? or q"
    while True:
        text = click.prompt(question, prompt_suffix=" > ")
        if text.strip().casefold() == QUIT:
            raise Quit
        try:
            return value_of(text, target, answer)
        except Unreadable as error:
            click.echo(error)
