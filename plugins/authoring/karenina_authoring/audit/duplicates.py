"""Questions that are there twice, word for word or in other words."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations
from typing import Any

from attrs import field, frozen
from karenina_template.lint.references import is_trivial
from karenina_template.lint.spelling import squeezed

from karenina_core.values.question import Question

from .findings import Finding
from .words import names, spelled, terms

SAME_ANSWER = 0.4
"""Cosine of the weighted words from which two questions with the same answer are taken for one. Chosen: paraphrases
of a sentence share about half of its content words."""
ANY_ANSWER = 0.9
"""The same for questions with different answers: they differ in a word that hardly any meaning depends on. Chosen."""
MOST = 50
"""Questions with one word, or one answer, beyond which it tells nothing: pairs grow with the square. Chosen."""


@frozen
class _Text:
    """A question as it is compared with others."""

    id: str
    terms: Counter[str] = field(repr=False)
    names: frozenset[str]
    answers: frozenset[Hashable]
    """What is right, in one spelling each: the reference answer, and all expected values together."""
    workspace: str | None


def duplicates(questions: Sequence[Question], expected: Mapping[str, Mapping[str, Any]]) -> Iterator[Finding]:
    """The findings on the later one of every two questions that ask the same; the first of several is named.

    `expected` has the expected values of questions whose template could be loaded.
    """
    texts = [
        _Text(
            question.id,
            Counter(terms(question.question)),
            names(question.question),
            _answers(question, expected.get(question.id, {})),
            question.workspace_path,
        )
        for question in questions
    ]
    first: dict[Hashable, _Text] = {}
    single: list[_Text] = []
    for question, text in zip(questions, texts, strict=True):
        other = first.setdefault((squeezed(question.question), text.workspace), text)
        if other is text:
            single.append(text)
        else:
            differ = "" if _agree(text, other) else ", and their answers differ"
            yield _finding(text, other, "duplicate", f"asks the same as {other.id}{differ}; remove one of them")
    yield from _near(single)


def _near(texts: Sequence[_Text]) -> Iterator[Finding]:
    frequency = Counter(term for text in texts for term in text.terms)
    weights = {term: math.log(1 + len(texts) / count) for term, count in frequency.items()}
    lengths = [math.hypot(*(weights[term] * often for term, often in text.terms.items())) for text in texts]
    found: set[int] = set()
    for one, other in _candidates(texts, frequency):
        a, b = texts[one], texts[other]
        if other in found or a.workspace != b.workspace or (a.names - b.names and b.names - a.names):
            continue  # of two of one kind, each names what the other does not
        shared = sum(weights[term] ** 2 * often * b.terms[term] for term, often in a.terms.items())
        likeness = shared / (lengths[one] * lengths[other] or 1)
        agree = _agree(a, b)
        if likeness >= (SAME_ANSWER if agree and not _is_trivial(a.answers & b.answers) else ANY_ANSWER):
            found.add(other)
            same = "and has the same answer" if agree else "and has another answer"
            message = f"asks nearly the same as {a.id} {same}; keep one, or say what the difference is"
            yield _finding(b, a, "near duplicate", message)


def _candidates(texts: Sequence[_Text], frequency: Mapping[str, int]) -> Iterable[tuple[int, int]]:
    """Pairs of places that share an answer, or a rare word, in the order of the questions."""
    groups: dict[Hashable, list[int]] = {}
    for place, text in enumerate(texts):
        for key in (*text.answers, *(("term", term) for term in text.terms if frequency[term] <= MOST)):
            groups.setdefault(key, []).append(place)
    pairs = (combinations(places, 2) for places in groups.values() if len(places) <= MOST)
    return sorted({pair for several in pairs for pair in several})


def _answers(question: Question, expected: Mapping[str, Any]) -> frozenset[Hashable]:
    found: set[Hashable] = set()
    if squeezed(question.raw_answer):
        found.add(("reference", squeezed(question.raw_answer)))
    values = tuple(map(spelled, expected.values()))
    if values and not all(isinstance(value, bool) for value in expected.values()):
        found.add(("expected", values))
    return frozenset(found)


def _is_trivial(answers: Iterable[Any]) -> bool:
    """Whether many questions have these answers: yes, no, 0, 1, 10."""
    flat = [value for _, given in answers for value in (given if isinstance(given, tuple) else (given,))]
    return all(is_trivial(value if isinstance(value, str) else str(value)) for value in flat)


def _agree(a: _Text, b: _Text) -> bool:
    return not a.answers.isdisjoint(b.answers)


def _finding(text: _Text, other: _Text, check: str, message: str) -> Finding:
    return Finding(
        question_id=text.id,
        check=check,
        severity="fault" if check == "duplicate" else "suspect",
        message=message,
        others=(other.id,),
    )
