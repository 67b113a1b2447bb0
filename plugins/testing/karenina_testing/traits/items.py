"""Texts that can be recognised wherever they turn up, and many items in one evaluator."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from ..checks import Fault
from ..fakes import ScriptedCall, ScriptedLLM, ScriptedReply
from ..watch.loops import in_loop
from .cases import Trial, comparable, differs
from .judges import obedient

WORDS = ("5d81c0", "a3f79e", "72be16", "e0c4d5", "9b6f28", "1ec7a4")
Items = Sequence[tuple[str, str]]
REMEDY = "keep nothing of an item on the evaluator: what belongs to it is in the case"


def marked(text: str, word: str = WORDS[0]) -> str:
    """The text with a mark at its beginning, in its middle, and at its end."""
    middle = text.find(" ", len(text) // 2)
    middle = len(text) // 2 if middle < 0 else middle
    first, second, third = marks_in(word)
    return f"{first} {text[:middle]} {second} {text[middle:]} {third}"


def marks_in(word: str = WORDS[0]) -> tuple[str, str, str]:
    """The marks of a text, in their order."""
    return f"{word}b", f"{word}m", f"{word}e"


def marks_within(text: str, word: str = WORDS[0]) -> list[str]:
    """Those of the marks that another text holds."""
    return [mark for mark in marks_in(word) if mark in text.casefold()]


@frozen(eq=False)
class _Seen:
    """What became of one item."""

    scores: Mapping[str, tuple[Any, ...]]
    details: Mapping[str, Mapping[str, Any]]
    shown: frozenset[str]
    """The words by which texts that the judge was shown are known."""
    kept: frozenset[str]
    """Those in the scores themselves."""


def at_once(trial: Trial) -> Iterator[Fault]:
    """Items with different texts, each as when it is alone: at the same time, and one after another."""
    items = _items(trial.text)
    names = _Names(trial)
    alone = [[in_loop(_seen(trial, None, text, names.traits())) for _ in range(2)] for _, text in items]

    async def at_one_time() -> list[_Seen]:
        shared, traits = trial.made.fresh(), names.traits()
        return await asyncio.gather(*(_seen(trial, shared, text, traits) for _, text in items))

    async def in_turn() -> list[_Seen]:
        shared, traits = trial.made.fresh(), names.traits()
        return [await _seen(trial, shared, text, traits) for _, text in items]

    together, turn = in_loop(at_one_time()), in_loop(in_turn())
    for when, found in (("with several items at once", together), ("with one item after another", turn)):
        for (word, _), (first, again), seen in zip(items, alone, found, strict=True):
            if wrong := _mixed(word, first, again, seen):
                yield trial.fault(f"{when} {wrong}", REMEDY)


def _items(text: str) -> Items:
    """Word and text of each. Some begin alike, some are as long as another."""
    one, two, three, four, five, _ = WORDS
    return [
        (one, marked(text, one)),
        (two, marked(text[::-1], two)),
        ("", ""),
        (three, f"{text} {marks_in(three)[2]}"),
        (four, f"{text} {text} {marks_in(four)[2]}"),
        (five, f"{text.swapcase()} {marks_in(five)[2]}"),
    ]


class _Names:
    """Traits under other names for every run, so that what is kept by name cannot be found again.

    Where names matter to the evaluator, they stay.
    """

    def __init__(self, trial: Trial) -> None:
        self._trial = trial
        self._runs = 0
        self._stay = False
        _, text = _items(trial.text)[0]
        runs = (trial.traits, self.traits(), self.traits())
        plain, first, again = (in_loop(_seen(trial, None, text, traits)) for traits in runs)
        self._stay = first.scores != again.scores or _states(plain) != _states(first)

    def traits(self) -> Sequence[Any]:
        self._runs += 1
        return self._trial.traits if self._stay else self._trial.renamed(f"({self._runs})")


def _states(seen: _Seen) -> dict[str, Any]:
    return {name: score[1] for name, score in seen.scores.items()}


async def _seen(trial: Trial, evaluator: Any, text: str, traits: Sequence[Any]) -> _Seen:
    judge = ScriptedLLM(trial.reply or _by_text, channels=("json_schema", "text"), seconds=0.005)
    found = await trial.scores(judge, evaluator=evaluator, text=text, traits=traits)
    own = {new.name: old.name for new, old in zip(traits, trial.traits, strict=True)}
    found = {own.get(name, name): score for name, score in found.items()}
    details = {name: dict(score.details) for name, score in found.items()}
    shown, kept = _words_in(call.text for call in judge.calls), _words_in(map(repr, found.values()))
    return _Seen(comparable(found), details, shown, kept)


def _by_text(call: ScriptedCall) -> ScriptedReply:
    """Every other text is praised."""
    return obedient(call, most=any(word in call.text for word in WORDS[1::2]))


def _words_in(texts: Iterable[str]) -> frozenset[str]:
    return frozenset(word for text in texts for word in WORDS if word in text)


def _mixed(word: str, first: _Seen, again: _Seen, seen: _Seen) -> str | None:
    if (seen.kept | first.kept) - {word}:
        return "the scores of an item hold words of the text of another one"
    if seen.shown != first.shown:
        strange = seen.shown - {word}
        return "the judge was shown the text of another item" if strange else "the judge was not shown an item's text"
    if wrong := differs(first.scores, seen.scores):
        return wrong
    for name, details in first.details.items():
        steady = {key: value for key, value in details.items() if again.details.get(name, {}).get(key) == value}
        for key, value in steady.items():
            if seen.details[name].get(key) != value:
                return f"the detail {key!r} of {name!r} became {seen.details[name].get(key)!r} instead of {value!r}"
    return None
