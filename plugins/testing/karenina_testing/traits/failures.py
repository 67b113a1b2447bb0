"""Does a trait that cannot be evaluated cost other traits their scores?"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from karenina_vocabulary.evaluators import TraitScore

from karenina_core.values.rubric import RubricTrait

from ..checks import Fault, Raised, attempt
from ..fakes import ScriptedCall, ScriptedLLM
from ..watch.loops import in_loop
from .cases import REPORT, Trial, comparable, differs, wrong_with
from .failing_judges import FailingJudge, Reads, marks_of, poisoned, sizes, unusable
from .judges import obedient

__all__ = ["PROMISE", "one_fails"]

PROMISE = (
    "A trait that cannot be evaluated costs no other trait its score (where one can be made to fail: its prompts tell "
    "the trait, or it reads a field; else give broken=[...])."
)
ISOLATE = "let what a single trait raises become its own TraitScore: implement score, or use case.each(traits, score)"
MOST_READS = 8
Scores = Mapping[str, tuple[Any, ...]]


def one_fails(trial: Trial) -> Iterator[Fault]:
    """A fault where a failure was provoked and did not stay with its trait."""
    crowd = trial.crowded()
    before = comparable(in_loop(crowd.scores()))
    if trial.broken:
        yield from _broken(crowd, before)
        return
    for number in dict.fromkeys((*range(len(trial.traits)), len(crowd.traits) - 1)):
        provoked, fault = _judge_fails_for(crowd, number, before) if trial.asks_judge else (False, None)
        fault = fault if provoked else _unread(crowd, number, before)
        if fault:
            yield fault


def _broken(trial: Trial, before: Scores) -> Iterator[Fault]:
    for bad in trial.broken:
        traits = [bad, *trial.traits]
        found = in_loop(trial.scores(traits=traits))
        if wrong := wrong_with(found, traits):
            yield trial.fault(f"with {bad.name!r} among the traits {wrong}", ISOLATE)
        if fault := _costs(trial, bad, before, found):
            yield fault


def _judge_fails_for(trial: Trial, number: int, before: Scores) -> tuple[bool, Fault | None]:
    """Whether the judge could be kept from answering about one trait, and what was wrong then."""
    trait, others = trial.traits[number], [*trial.traits[:number], *trial.traits[number + 1 :]]
    absent, alone = _asked(trial, others), _asked(trial, [trait])
    marks = _only_in(marks_of(trait, others, trial.text), absent)
    foreign = _only_in([mark for other in others for mark in marks_of(other, [trait], trial.text)], alone)
    if not marks:
        return False, None
    grows = any(call.output is not None and len(others) in sizes(call.output.schema) for call in absent)
    place = (number, len(trial.traits)) if grows and others else None
    judge = FailingJudge(marks, foreign, place, trial.reply or obedient)
    found = in_loop(trial.scores(ScriptedLLM(judge, channels=("json_schema", "text"))))
    if not judge.failures:
        return False, None
    if judge.named:
        return True, _costs(trial, trait, before, found)
    return True, _costs_one(trial, before, found)


def _asked(trial: Trial, traits: Sequence[Any]) -> list[ScriptedCall]:
    judge = trial.judge()
    if traits:
        in_loop(trial.scores(judge, traits=traits))
    return judge.calls


def _only_in(marks: Sequence[str], calls: Sequence[ScriptedCall]) -> list[str]:
    """Words that stand in prompts about something else too tell nothing."""
    return [mark for mark in marks if not any(mark in call.text for call in calls)]


def _costs(trial: Trial, bad: RubricTrait, before: Scores, found: Mapping[str, TraitScore]) -> Fault | None:
    after = comparable(found)
    failed = after.pop(bad.name, None)
    if failed is None or failed[1] == "ok":
        return trial.fault(f"{bad.name!r} could not be evaluated, and its score is {failed!r}", REPORT)
    others = {name: score for name, score in before.items() if name != bad.name}
    if wrong := differs(others, after):
        return trial.fault(f"when {bad.name!r} could not be evaluated, {wrong}", ISOLATE)
    return None


def _costs_one(trial: Trial, before: Scores, found: Mapping[str, TraitScore]) -> Fault | None:
    """The same where it is not known which of the traits it was."""
    after = comparable(found)
    lost = [name for name in before if after.get(name) != before[name]]
    if not lost and any(score[1] != "ok" for score in before.values()):
        return None  # it may be one that had no score before
    if not lost:
        return trial.fault("a reply left one trait out, and every trait has the score that it had before", REPORT)
    if len(lost) > 1:
        wrong = differs({lost[1]: before[lost[1]]}, {lost[1]: after.get(lost[1])})
        return trial.fault(f"when {lost[0]!r} could not be evaluated, {wrong}", ISOLATE)
    if after.get(lost[0], (None, "ok"))[1] == "ok":
        return trial.fault(f"{lost[0]!r} could not be evaluated, and its score is {after.get(lost[0])!r}", REPORT)
    return None


def _unread(trial: Trial, number: int, before: Scores) -> Fault | None:
    """One trait has a field that cannot be read: at first, or the next time, and so on.

    An evaluator may read fields to sort traits before it begins to score them: it is enough that some of these
    failures stay with their trait. What gives a score all the same is always wrong.
    """
    wrong: list[Fault | Raised] = []
    isolated = False
    for reading in range(1, MOST_READS + 1):
        reads = Reads(reading)
        outcome = _with(trial, number, poisoned(trial.traits[number], reads))
        if not reads.failed:
            break
        if isinstance(outcome, Raised):
            wrong.append(outcome)
            continue
        scored = outcome.get(trial.traits[number].name)
        fault = _costs(trial, trial.traits[number], before, outcome)
        if fault and scored is not None and scored.state == "ok":
            return fault
        isolated = isolated or fault is None
        wrong += [fault] if fault else []
    if isolated or not wrong or not _unused_costs(trial, number, before):
        return None
    if isinstance(wrong[0], Raised):
        raise wrong[0].error
    return wrong[0]


def _unused_costs(trial: Trial, number: int, before: Scores) -> bool:
    """Whether other traits also lose their scores where fields can be read, and only to use them fails."""
    outcome = _with(trial, number, unusable(trial.traits[number]))
    if isinstance(outcome, Raised):
        return True
    after = comparable(outcome)
    return any(after.get(name) != score for name, score in before.items() if name != trial.traits[number].name)


def _with(trial: Trial, number: int, bad: Any) -> Mapping[str, TraitScore] | Raised:
    """The scores where one of the traits is another one, of which only the evaluator knows."""
    traits = [*trial.traits[:number], bad, *trial.traits[number + 1 :]]
    return attempt(lambda: in_loop(trial.scores(traits=traits, rubric=trial.traits)))
