"""What is wrong with one item alone: its question gives the answer away, or its template cannot do its work."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from karenina_template.lint.references import Mention, is_common, is_trivial, mentions
from karenina_template.lint.spelling import number_of
from karenina_vocabulary.handle import TemplateField

from karenina_core.values.question import Question

from .findings import Finding, Severity
from .probes import Probe
from .words import plain

WHOLE = ("AliasMatch", "ExactMatch", "LiteralMatch")
"""Primitives that compare a text as a whole."""
SENTENCE = 5
"""Words from which what ends in a full stop is a sentence. Chosen: names and terms have fewer, or no full stop."""
EXPLANATION = 12
"""Words that no answer repeats one by one, however they end. Chosen: the longest of terms have about eight."""
LONGEST = 6
"""Words of a reference answer that is looked for in the question as a whole. Chosen: longer ones are explanations."""


async def template_findings(question: Question, probe: Probe) -> list[Finding]:
    """The findings on a question and its template, without its reference answer."""
    found = [*_in_question(question, probe)]
    for one in probe.fields:
        if await probe.has_own_value(one) and await probe.accepts(one, probe.expected[one.name]) is False:
            message = f"the field {one.name!r} refuses its own expected value {probe.expected[one.name]!r}"
            found.append(_finding(question, "unreachable", "fault", message))
        elif await probe.cannot_fail(one):
            message = f"the field {one.name!r} accepts anything: every answer passes it; compare it with a value"
            found.append(_finding(question, "cannot fail", "fault", message))
        elif _is_sentence(one, probe):
            shown = str(probe.expected[one.name])[:60]
            message = (
                f"the field {one.name!r} expects {shown!r}... word for word, which hardly any answer says; expect the "
                "fact in it, or nothing"
            )
            found.append(_finding(question, "whole sentence", "suspect", message))
    for name in await probe.idle():
        message = f"the verdict never depends on the field {name!r}; add it to the strategy, or remove it"
        found.append(_finding(question, "unreachable", "fault", message))
    return found


def _is_sentence(one: TemplateField, probe: Probe) -> bool:
    words = str(probe.expected.get(one.name, "")).split()
    compared = (one.primitive or {}).get("type") in WHOLE and not probe.options(one.name)
    return compared and (len(words) >= EXPLANATION or (len(words) >= SENTENCE and words[-1].endswith((".", "!"))))


def without_template(question: Question) -> Iterator[Finding]:
    """Where only the reference answer says what is right."""
    if len(question.raw_answer.split()) <= LONGEST and (where := _gives_away(question.question, question.raw_answer)):
        message = f"the question names its reference answer {where.found!r}; ask without it"
        yield _finding(question, "answer in question", "fault", message)


def _in_question(question: Question, probe: Probe) -> Iterator[Finding]:
    alternatives = probe.alternatives
    for one in probe.fields:
        values = alternatives.get(one.name) or ([probe.expected[one.name]] if one.name in probe.expected else [])
        for value in values:
            where = _named(question.question, value, probe.options(one.name))
            if where is None:
                continue
            alone = len(probe.fields) == 1
            sure = alone and (where.stated or number_of(value) is None)
            message = f"the question names {where.found!r}, which the field {one.name!r} expects; ask without it"
            yield _finding(question, "answer in question", "fault" if sure else "suspect", message)
            break


def _named(text: str, value: Any, options: tuple[Any, ...]) -> Mention | None:
    """Where a text names an expected value, unless it offers it as one of several."""
    if isinstance(value, list):
        each = [_named(text, one, ()) for one in value]
        return each[0] if each and all(each) else None
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        return None
    if sum(bool(mentions(text, option)) for option in options if isinstance(option, str)) > 1:
        return None
    return _gives_away(text, value)


def _gives_away(text: str, value: str | float) -> Mention | None:
    for spot in mentions(text, value):
        if spot.stated or not (
            is_trivial(value) or is_common(value) or spot.offered or spot.in_range or spot.among > 1
        ):
            return spot
    begins = isinstance(value, str) and len(value) > 3 and number_of(value) is None and not mentions(text, value)
    # a part of a word is enough for primitives that look for a part
    return Mention(str(value)) if begins and re.search(rf"\b{re.escape(plain(str(value)))}", plain(text)) else None


def _finding(question: Question, check: str, severity: Severity, message: str) -> Finding:
    return Finding(question_id=question.id, check=check, severity=severity, message=message)
