"""Does a trait that cannot be evaluated cost other traits their scores?"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Any

from attrs import asdict, define, field, fields
from karenina_vocabulary.evaluators import TraitScore

from karenina_core.errors import PortError
from karenina_core.values.rubric import RubricTrait

from ..checks import Fault, Raised, attempt
from ..fakes import Script, ScriptedCall, ScriptedLLM, ScriptedReply
from ..watch.loops import in_loop
from .cases import REPORT, Trial, comparable, differs, obedient, wrong_with

USES = "str format bool int float index len iter contains getitem hash eq ne lt le gt ge add radd mul rmul call"
PROMISE = (
    "A trait that cannot be evaluated costs no other trait its score (where one can be made to fail: its prompts tell "
    "the trait, or it reads a field; else give broken=[...])."
)
ISOLATE = "let what a single trait raises become its own TraitScore: implement score, or use case.each(traits, score)"
MOST_READS = 8  # chosen: an evaluator sorts by some fields, and then scores
Scores = Mapping[str, tuple[Any, ...]]


def marks_of(trait: RubricTrait, others: Sequence[RubricTrait], text: str) -> list[str]:
    """What a prompt about this trait is known by: its name, and what it says in several words.

    What other traits or the answer say too is none.
    """
    foreign = {mark for other in others for mark in _texts(other)}
    return [mark for mark in _texts(trait) if mark not in foreign and mark not in text]


def _texts(trait: RubricTrait) -> list[str]:
    found: list[str] = [trait.name]
    waiting: list[Any] = list(asdict(trait).values())
    while waiting:
        value = waiting.pop()
        if isinstance(value, str) and len(value.split()) > 1:
            found.append(value)
        elif isinstance(value, Mapping):
            waiting += [*value, *value.values()]
        elif isinstance(value, list | tuple):
            waiting += value
    return found


def sizes(schema: Any) -> set[int]:
    """How many properties the objects of a schema have."""
    if isinstance(schema, list):
        return {size for inner in schema for size in sizes(inner)}
    if not isinstance(schema, Mapping):
        return set()
    own = {len(schema["properties"])} if isinstance(schema.get("properties"), Mapping) else set()
    return own | {size for inner in schema.values() for size in sizes(inner)}


@define(eq=False)
class FailingJudge:
    """A judge that fails for one trait only.

    A call that is about this trait alone ends with an error. From the reply to a call about several, what belongs to
    the trait is left out: what is under its name, under a property that is described by it, in an entry that names
    it, or in its place where there is one entry for each trait.
    """

    marks: Sequence[str]
    foreign: Sequence[str]
    """What prompts about other traits are known by."""
    place: tuple[int, int] | None
    """Which trait it is, counted from 0, and of how many; None where replies have no entry for each trait."""
    replies: Script
    failures: int = 0
    """Calls that failed, or whose reply was cut."""
    named: bool = field(default=True, init=False)
    """Whether it is sure that the trait is the one: its place does not tell where traits are asked in another order."""

    def __call__(self, call: ScriptedCall) -> ScriptedReply | Awaitable[ScriptedReply]:
        about = any(mark in call.text for mark in self.marks)
        if about and not any(mark in call.text for mark in self.foreign):
            self.failures += 1
            return PortError("the server is down", kind="server")
        reply = self.replies(call)
        if not about or call.output is None or not isinstance(reply, Mapping):
            return reply
        cut: Mapping[str, Any] = self._cut(dict(reply), call.output.schema)
        self.failures += cut != reply
        return cut

    def _cut(self, value: Any, schema: Any) -> Any:
        schema = schema if isinstance(schema, Mapping) else {}
        if isinstance(value, dict):
            properties = schema.get("properties", {})
            own = [key for key in value if key in self.marks or self._is_about(properties.get(key, {}))]
            if not own and self.place is not None and len(value) == self.place[1]:
                self.named = False
                own = [list(value)[self.place[0]]]
            return {k: self._cut(inner, properties.get(k, {})) for k, inner in value.items() if k not in own}
        if isinstance(value, list):
            named = [isinstance(inner, dict) and any(mark in inner.values() for mark in self.marks) for inner in value]
            kept = [inner for inner, is_named in zip(value, named, strict=True) if not is_named]
            return [self._cut(inner, schema.get("items")) for inner in kept]
        return value

    def _is_about(self, schema: Any) -> bool:
        text = json.dumps(schema, ensure_ascii=False, default=str)
        return any(mark in text for mark in self.marks) and not any(mark in text for mark in self.foreign)


def _own_fields(cls: type) -> set[str]:
    base = {attribute.name for attribute in fields(RubricTrait)}
    return {attribute.name for attribute in fields(cls)} - base


@define(eq=False)
class Reads:
    """How often own fields of a trait were read, and the read that fails."""

    failing: int
    """Counted from 1."""
    count: int = 0

    @property
    def failed(self) -> bool:
        return self.count >= self.failing


def poisoned(trait: RubricTrait, reads: Reads) -> Any:
    """The same trait, of which one read of an own field fails; later, to report it, they can be read."""
    own = _own_fields(type(trait))

    def read(self: Any, name: str) -> Any:
        if name in own:
            reads.count += 1
            if reads.count == reads.failing:
                raise RuntimeError(f"{name} of this trait cannot be read")
        return object.__getattribute__(self, name)

    return _remade(trait, {"__getattribute__": read}, {})


def unusable(trait: RubricTrait) -> Any:
    """The same trait, whose own fields can be read, and what they hold cannot be used."""
    return _remade(trait, {}, dict.fromkeys(_own_fields(type(trait)), _Unusable()))


def _remade(trait: RubricTrait, behaviour: Mapping[str, Any], values: Mapping[str, Any]) -> Any:
    cls = type(trait)
    made: Any = object.__new__(type(cls.__name__, (cls,), dict(behaviour)))
    for attribute in fields(cls):
        object.__setattr__(made, attribute.name, values.get(attribute.name, getattr(trait, attribute.name)))
    return made


def _fails(*_: Any) -> Any:
    raise RuntimeError("a field of this trait cannot be used")


class _Unusable:
    """Whatever is done with it fails."""

    __hash__ = _fails

    def __getattr__(self, name: str) -> Any:
        _fails()


for _use in USES.split():
    setattr(_Unusable, f"__{_use}__", _fails)


def one_fails(trial: Trial) -> Iterator[Fault]:
    """A fault where a failure was provoked and did not stay with its trait."""
    crowd = trial.crowded()
    before = comparable(in_loop(crowd.scores()))
    for bad in trial.broken:
        traits = [bad, *crowd.traits]
        found = in_loop(crowd.scores(traits=traits))
        if wrong := wrong_with(found, traits):
            yield crowd.fault(f"with {bad.name!r} among the traits {wrong}", ISOLATE)
        if fault := _costs(crowd, bad, before, found):
            yield fault
    if trial.broken:
        return
    for number in dict.fromkeys((*range(len(trial.traits)), len(crowd.traits) - 1)):
        provoked, fault = _judge_fails_for(crowd, number, before) if trial.asks_judge else (False, None)
        fault = fault if provoked else _unread(crowd, number, before)
        if fault:
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
    if isolated or not wrong:
        return None
    outcome = _with(trial, number, unusable(trial.traits[number]))
    if not isinstance(outcome, Raised):
        after, name = comparable(outcome), trial.traits[number].name
        if not any(after.get(other) != score for other, score in before.items() if other != name):
            return None  # where fields can be read, and only to use them fails, others keep their scores
    if isinstance(wrong[0], Raised):
        raise wrong[0].error
    return wrong[0]


def _with(trial: Trial, number: int, bad: Any) -> Mapping[str, TraitScore] | Raised:
    """The scores where one of the traits is another one, of which only the evaluator knows."""
    traits = [*trial.traits[:number], bad, *trial.traits[number + 1 :]]
    return attempt(lambda: in_loop(trial.scores(traits=traits, rubric=trial.traits)))
