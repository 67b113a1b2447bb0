"""Evaluators that keep their promises pass every check; one that breaks a promise fails the check of that promise."""

from __future__ import annotations

import asyncio
import math
import subprocess
import sys
import time
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import frozen
from hypothesis import given
from hypothesis import strategies as st
from karenina_judging.asking import ask_judge, check_reply, closed_object, presented
from karenina_judging.scoring import read_score, score_schema
from karenina_judging.untrusted_text import UNTRUSTED_NOTE, untrusted
from karenina_testing.checks import BrokenPromise
from karenina_testing.fakes import fitting
from karenina_testing.strategies import llm_traits
from karenina_testing.traits import cases as trials
from karenina_testing.traits.traits import unmarked
from karenina_vocabulary.evaluators import TraitCase, TraitEvaluator, TraitScore
from karenina_vocabulary.traits import LLMRubricTrait, ScoredTrait

from karenina_core import hookimpl
from karenina_core.errors import KareninaError, ParseError, PortError, Problem
from karenina_core.testing import application, check_trait_evaluator, plugin_checks, run_checks, trait_checks
from karenina_core.values.rubric import RubricTrait

APP = application()


@frozen(kw_only=True)
class MarkTrait(RubricTrait):
    """How often a mark occurs."""

    type_name: ClassVar[str] = "marks"
    mark: str = "["
    higher_is_better: bool | None = True


MARKS = [MarkTrait(name="Citations", mark="["), MarkTrait(name="Stops", mark=". "), MarkTrait(name="Sums", mark="=")]


class Marks(TraitEvaluator[Any]):
    """Right in every way, without a judge."""

    name = "marks"
    trait_class = MarkTrait
    file_type = "MarkTrait"

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        await asyncio.sleep(0)
        return TraitScore(value=case.given.text.count(trait.mark), details={"mark": trait.mark})


@frozen(kw_only=True)
class MannersTrait(ScoredTrait):
    """A manner that a judge sees."""

    type_name: ClassVar[str] = "manners"
    higher_is_better: bool | None = True
    include_ground_truth: bool = False


MANNERS = [
    MannersTrait(name="Polite", description="It says please.", kind="boolean"),
    MannersTrait(name="Warmth", description="It is friendly.", kind="score", min_score=0, max_score=3),
    MannersTrait(name="Register", description="Its tone.", kind="literal", classes={"plain": None, "stiff": None}),
]
KNOWING = MannersTrait(name="Agrees", description="As the reference.", kind="boolean", include_ground_truth=True)


def scored(trait: Any, value: bool | int) -> TraitScore:
    return TraitScore(value=value, label=trait.get_class_names()[value] if trait.kind == "literal" else None)


class Manners(TraitEvaluator[Any]):
    """Right in every way: asks a judge about every trait."""

    name = "manners"
    trait_class = MannersTrait
    asks_judge = True
    file_type = "MannersTrait"
    system = f"You judge manners. {UNTRUSTED_NOTE}"

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        return scored(trait, await case.in_turn(lambda: self.ask(trait, case)))

    async def ask(self, trait: Any, case: TraitCase) -> Any:
        async def read(data: Mapping[str, Any]) -> Any:
            return read_score(trait, data.get("score"))

        reply = await ask_judge(
            case.context, "manners", (self.system, self.prompt(trait, case)), self.schema(trait), validate=read
        )
        return reply.parsed

    def schema(self, trait: Any) -> dict[str, Any]:
        return closed_object({"score": score_schema(trait)})

    def prompt(self, trait: Any, case: TraitCase) -> str:
        reference = f"\n\nReference: {case.context.question.raw_answer}" if trait.include_ground_truth else ""
        return f"{presented(case.context.question_text, case.given)}\n\n{trait.name}: {trait.description}{reference}"


class Together(Manners):
    """Right in every way: asks a judge about all traits in one call, whose properties are numbered."""

    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        schema = closed_object({f"t{number}": score_schema(trait) for number, trait in enumerate(traits)})
        listed = "\n".join(f"t{number}: {trait.name}" for number, trait in enumerate(traits))
        texts = (self.system, f"{presented(case.context.question_text, case.given)}\n\n{listed}")
        try:
            reply = await case.in_turn(lambda: ask_judge(case.context, "manners", texts, schema))
        except PortError as error:
            return {trait.name: TraitScore.failed(error) for trait in traits}
        return self.read(traits, reply.data)

    def read(self, traits: Sequence[Any], data: Mapping[str, Any]) -> Mapping[str, TraitScore]:
        return {trait.name: self.read_one(trait, data.get(f"t{number}")) for number, trait in enumerate(traits)}

    def read_one(self, trait: Any, value: Any) -> TraitScore:
        try:
            return scored(trait, read_score(trait, value))
        except KareninaError as error:
            return TraitScore(state="missing" if value is None else "invalid", reason=str(error))


def failing(
    evaluator: Any, traits: Sequence[Any], among: Collection[str] | None = None, **options: Any
) -> dict[str, str]:
    """The checks that fail, of all or of these only, with their messages. A fresh interpreter is started only for one
    that does work early."""
    found = {}
    for check in trait_checks(evaluator, traits, **{"app": APP, **options}):
        if among is not None and check.name not in among:
            continue
        if check.name == "light_construction" and "__init__" not in vars(evaluator):
            continue
        try:
            check.run()
        except BrokenPromise as broken:
            found[check.name] = str(broken)
    return found


def names(evaluator: Any, traits: Sequence[Any], **options: Any) -> list[str]:
    return [check.name for check in trait_checks(evaluator, traits, **options)]


@pytest.mark.usefixtures("looked_at_here")
def test_evaluators_that_are_right_pass() -> None:
    check_trait_evaluator(Marks, MARKS, app=APP)
    check_trait_evaluator(Manners, MANNERS, app=APP)
    check_trait_evaluator(Together, MANNERS, app=APP)
    check_trait_evaluator(Manners(), [*MANNERS, KNOWING], app=APP)


def test_every_promise_is_a_check() -> None:
    values = ["name", "trait_class", "scale", "round_trip", "check_config"]
    always = ["well_formed", "reached", "repeatable", "off_scale", "odd_text", "at_once", "loops", "cancellation"]
    always += ["event_loop"]
    several = ["order", "one_fails"]
    judged = ["judge_down", "judge_rubbish", "judge_silent", "prompts", "shown", "reference", "places", "calls"]
    assert sorted(names(Marks, MARKS)) == sorted([*values, *always, *several, "no_calls", "light_construction"])
    assert sorted(names(Manners(), MANNERS)) == sorted([*values, *always, *several, *judged])
    assert sorted(names(Marks(), MARKS[:1])) == sorted([*values, *always, "no_calls"])
    with_broken = names(Marks(), MARKS[:1], broken=MARKS[1:])
    assert sorted(with_broken) == sorted([*values, *always, "one_fails", "no_calls"])


def test_without_traits_there_is_nothing_to_check() -> None:
    with pytest.raises(ValueError, match="give some traits to score"):
        trait_checks(Marks, [])


@pytest.mark.usefixtures("looked_at_here")
def test_a_failure_may_be_expected() -> None:
    check_trait_evaluator(Uppercase, MARKS, app=APP, expected_failures={"name": "an old name"})
    assert "order" not in names(Marks, MARKS[:1], expected_failures={"order": "there is one"})
    with pytest.raises(ValueError, match=r"no check is called 'ordre' \(did you mean"):
        trait_checks(Marks, MARKS, expected_failures={"ordre": "?"})


def test_a_message_names_the_evaluator_the_promise_the_line_and_the_remedy() -> None:
    message = failing(Uppercase, MARKS)["name"]
    assert message.startswith("trait evaluator Uppercase breaks name: It is called as the type of the traits")
    assert "its name is 'Marks', and the type_name of MarkTrait is 'marks'" in message
    assert "test_trait_checks.py" in message
    assert 'name = "Marks"' in message


# What it says about itself and its traits


class Uppercase(Marks):
    name = "Marks"


class NoTraitClass(Marks):
    trait_class = dict  # type: ignore[assignment]


class OpenTrait(MarkTrait):
    def __setattr__(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)


class OpenMarks(Marks):
    trait_class = OpenTrait


@frozen(kw_only=True)
class SetTrait(MarkTrait):
    def scale(self) -> dict[str, Any]:
        return {**super().scale(), "marks": {self.mark}}


class SetMarks(Marks):
    trait_class = SetTrait


@frozen(kw_only=True)
class AimlessTrait(MarkTrait):
    higher_is_better: Any = "yes"


class AimlessMarks(Marks):
    trait_class = AimlessTrait


@frozen(kw_only=True)
class LostTrait(MarkTrait):
    list_name: ClassVar[str] = "mark_traits"


class LostMarks(Marks):
    trait_class = LostTrait


class Forgetful(Marks):
    def encode(self, trait: Any) -> Mapping[str, Any]:
        return {"higher_is_better": trait.higher_is_better}


class Repetitive(Marks):
    def encode(self, trait: Any) -> Mapping[str, Any]:
        return {**super().encode(trait), "name": trait.name}


class Unwritable(Marks):
    def encode(self, trait: Any) -> Mapping[str, Any]:
        return {**super().encode(trait), "mark": trait.mark.encode()}


class Unreadable(Marks):
    def decode(self, data: Mapping[str, Any]) -> Any:
        raise ValueError("it was written by somebody else")


class Chatty(Marks):
    def check_config(self, traits: Any, config: Any, app: Any) -> Any:
        return ["all is well"]


class Mute(Marks):
    def check_config(self, traits: Any, config: Any, app: Any) -> Any:
        return None


class Busy(Marks):
    def check_config(self, traits: Any, config: Any, app: Any) -> Any:
        subprocess.run([sys.executable, "-S", "-c", ""], check=True)
        return ()


class Moody(Marks):
    asked = 0

    def check_config(self, traits: Any, config: Any, app: Any) -> Any:
        self.asked += 1
        return [Problem("rubric", f"asked {self.asked} times")]


class Early(Marks):
    def __init__(self) -> None:
        self.words = Path(__file__).read_text("utf-8")


# What it does without a judge


class Drops(Marks):
    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        found = await super().evaluate(traits, case)
        return {name: score for name, score in found.items() if score.value != 0}


class Adds(Marks):
    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        return {**await super().evaluate(traits, case), "All": TraitScore(value=1)}


class Bare(Marks):
    async def score(self, trait: Any, case: TraitCase) -> Any:
        return case.given.text.count(trait.mark)


class Returns(Marks):
    """Its scores are `made`."""

    made = TraitScore(value=1)

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        _ = trait.mark
        return self.made


class Hollow(Returns):
    made = TraitScore()


class Sentinel(Returns):
    made = TraitScore(value=-1, state="invalid", reason="unknown class")


class Unexplained(Returns):
    made = TraitScore(state="error")


class NotANumber(Returns):
    made = TraitScore(value=math.nan)


class Sets(Returns):
    made = TraitScore(value=1, details={"marks": {"["}})


class Numbers(Returns):
    made = TraitScore(value=1, details={"marks": {1: 2}})


class OwnState(Returns):
    made = TraitScore(state="unknown", reason="?")  # type: ignore[arg-type]


class Helpless(Returns):
    made = TraitScore(state="error", reason="not today")


class Counting(Marks):
    asked = 0

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        self.asked += 1
        return TraitScore(value=self.asked)


class Sorting(Marks):
    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        scores = [await self.score(trait, case) for trait in sorted(traits, key=lambda trait: str(trait.mark))]
        return {trait.name: found for trait, found in zip(traits, scores, strict=True)}


class Fragile(Marks):
    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        return {trait.name: await self.score(trait, case) for trait in traits}


class Believes(Marks):
    """Has a score for whatever fails."""

    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        found = await super().evaluate(traits, case)
        return {name: score if score.state == "ok" else TraitScore(value=0) for name, score in found.items()}


class NeedsWords(Marks):
    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        assert case.given.text.split()[0]
        return await super().evaluate(traits, case)


class NeedsText(NeedsWords):
    """Also one whose length no one measured."""

    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        case.given.text.encode("utf-8")
        return await Marks.evaluate(self, traits, case)


class Holds(Marks):
    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        time.sleep(2 if len(case.given.text) > 100_000 else 0)  # the watch may be slow where the machine is busy
        return await super().evaluate(traits, case)


class Shares(Marks):
    """Keeps the item that it is at."""

    case: Any = None

    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        self.case = case
        return await super().evaluate(traits, case)

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        await asyncio.sleep(0.001)
        return await super().score(trait, self.case)


class OneLoop(Marks):
    loop: Any = None

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        self.loop = self.loop or asyncio.get_running_loop()
        await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(asyncio.sleep(0), self.loop))
        return await super().score(trait, case)

    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        if self.loop is not None and self.loop is not asyncio.get_running_loop():
            raise RuntimeError("it belongs to another event loop")
        return await super().evaluate(traits, case)


class Deaf(Marks):
    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        try:
            await asyncio.sleep(0.02)
        except asyncio.CancelledError:
            case.context.warn("somebody wanted to stop this")
        return await super().evaluate(traits, case)


class Secretive(Manners):
    asks_judge = False


BROKEN: Mapping[type[TraitEvaluator[Any]], tuple[Sequence[Any], set[str]]] = {
    Uppercase: (MARKS, {"name"}),
    NoTraitClass: (MARKS, {"name", "trait_class", "scale", "round_trip"}),
    OpenMarks: ([OpenTrait(name="Open")], {"trait_class"}),
    SetMarks: ([SetTrait(name="Set")], {"scale"}),
    AimlessMarks: ([AimlessTrait(name="Aimless")], {"scale"}),
    Forgetful: (MARKS, {"round_trip"}),
    Repetitive: (MARKS, {"round_trip"}),
    Unwritable: (MARKS, {"round_trip"}),
    Unreadable: (MARKS, {"round_trip"}),
    Chatty: (MARKS, {"check_config"}),
    Mute: (MARKS, {"check_config"}),
    Busy: (MARKS, {"check_config"}),
    Moody: (MARKS, {"check_config"}),
    Early: (MARKS, {"light_construction"}),
    Drops: (MARKS, {"well_formed", "odd_text"}),
    Adds: (MARKS, {"well_formed", "odd_text"}),
    Hollow: (MARKS, {"well_formed", "odd_text"}),
    Sentinel: (MARKS, {"well_formed", "odd_text", "reached"}),
    Unexplained: (MARKS, {"well_formed", "odd_text", "reached"}),
    NotANumber: (MARKS, {"well_formed", "odd_text"}),
    Sets: (MARKS, {"well_formed", "odd_text"}),
    Numbers: (MARKS, {"well_formed", "odd_text"}),
    OwnState: (MARKS, {"well_formed", "odd_text", "reached"}),
    Helpless: (MARKS, {"reached"}),
    Counting: (MARKS[:1], {"repeatable", "at_once"}),
    Sorting: (MARKS, {"order", "one_fails"}),
    Fragile: (MARKS, {"one_fails"}),
    Believes: (MARKS, {"one_fails"}),
    NeedsWords: (MARKS, {"odd_text", "at_once"}),
    NeedsText: (MARKS, {"odd_text"}),
    Holds: (MARKS, {"event_loop"}),
    Shares: (MARKS, {"at_once"}),
    OneLoop: (MARKS, {"loops"}),
    Deaf: (MARKS, {"cancellation"}),
    Secretive: (MANNERS, {"no_calls"}),
}
"""A broken evaluator -> traits for it, and the checks that say so; all others pass."""


# What it does with a judge


class Hopeful(Manners):
    """Takes no answer for no."""

    async def ask(self, trait: Any, case: TraitCase) -> Any:
        try:
            return await super().ask(trait, case)
        except ParseError:
            raise
        except PortError:
            return 0 if trait.kind != "boolean" else False


class Clamps(Manners):
    """Moves numbers into the scale."""

    async def ask(self, trait: Any, case: TraitCase) -> Any:
        reply = await ask_judge(case.context, "manners", (self.system, self.prompt(trait, case)), self.schema(trait))
        value: Any = reply.data.get("score")
        clamped = isinstance(value, int) and trait.kind == "score"
        return read_score(trait, min(max(value, 0), 3) if clamped else value)


class Nearest(Manners):
    """Takes the first class for one that it does not know."""

    async def ask(self, trait: Any, case: TraitCase) -> Any:
        reply = await ask_judge(case.context, "manners", (self.system, self.prompt(trait, case)), self.schema(trait))
        value = reply.data.get("score")
        return max(trait.get_class_index(value), 0) if trait.kind == "literal" and value else read_score(trait, value)


class Minus(Nearest):
    """Has a rank for what is no class."""

    async def ask(self, trait: Any, case: TraitCase) -> Any:
        return -1 if trait.kind == "literal" else await super().ask(trait, case)

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        return TraitScore(value=await case.in_turn(lambda: self.ask(trait, case)))


class Listens(Manners):
    """Asks for a text, and takes silence for no."""

    async def ask(self, trait: Any, case: TraitCase) -> Any:
        messages = case.context.parsing.prompt("manners", self.system, self.prompt(trait, case))
        reply = await case.context.parsing.invoke("manners", messages)
        return read_score(trait, "yes" if "because" in reply.content or "rather" in reply.content else "no")


class Lets(Manners):
    """Lets errors out of evaluate."""

    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        return {trait.name: await self.score(trait, case) for trait in traits}


class AllOrNothing(Together):
    """What is wrong about one trait of a reply spoils the others."""

    def read(self, traits: Sequence[Any], data: Mapping[str, Any]) -> Mapping[str, TraitScore]:
        found = super().read(traits, data)
        bad = [score for score in found.values() if score.state != "ok"]
        return dict.fromkeys(found, bad[0]) if bad else found


class FillsIn(Together):
    """A trait that the reply leaves out has the lowest score."""

    def read_one(self, trait: Any, value: Any) -> TraitScore:
        return super().read_one(trait, fitting(score_schema(trait)) if value is None else value)


class Unmarked(Manners):
    def prompt(self, trait: Any, case: TraitCase) -> str:
        return f"{trait.name}: {trait.description}\n\n<untrusted>\n{case.given.text}\n</untrusted>"


class Unexplaining(Manners):
    system = "You judge manners."


class Tells(Manners):
    def prompt(self, trait: Any, case: TraitCase) -> str:
        return f"{super().prompt(trait, case)}\n\nReference: {case.context.question.raw_answer}"


class TellsTogether(Together):
    """One call for all, with the reference answer because one of them wants it."""

    system = f"You judge manners. {UNTRUSTED_NOTE}"

    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        if any(trait.include_ground_truth for trait in traits):
            self.system = f"{type(self).system} Reference: {case.context.question.raw_answer}"
        return await super().evaluate(traits, case)


class Greedy(Manners):
    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        return scored(trait, await self.ask(trait, case))


class Nested(Manners):
    async def ask(self, trait: Any, case: TraitCase) -> Any:
        return await case.in_turn(lambda: Manners.ask(self, trait, case))


class Blind(Manners):
    """Asks about something that the judge is not shown."""

    def prompt(self, trait: Any, case: TraitCase) -> str:
        return f"{case.context.question_text}\n\n{trait.name}: {trait.description}"


class Stubborn(Manners):
    """Asks until there is a reply."""

    async def ask(self, trait: Any, case: TraitCase) -> Any:
        for _ in range(12):
            try:
                return await super().ask(trait, case)
            except PortError as error:
                last = error
        raise last


JUDGING: Mapping[type[TraitEvaluator[Any]], tuple[Sequence[Any], set[str]]] = {
    Hopeful: (MANNERS, {"judge_down", "one_fails"}),
    Clamps: (MANNERS, {"judge_rubbish", "off_scale"}),
    Nearest: (MANNERS, {"judge_rubbish", "off_scale"}),
    Minus: (MANNERS[2:], {"off_scale"}),
    Listens: (MANNERS[:1], {"judge_silent"}),
    Lets: (MANNERS, {"judge_down", "judge_rubbish", "judge_silent", "one_fails"}),
    AllOrNothing: (MANNERS, {"one_fails"}),
    FillsIn: (MANNERS, {"one_fails", "judge_rubbish", "off_scale"}),
    Unmarked: (MANNERS, {"prompts"}),
    Unexplaining: (MANNERS, {"prompts"}),
    Tells: (MANNERS, {"reference"}),
    TellsTogether: ([*MANNERS, KNOWING], {"reference"}),
    Greedy: (MANNERS, {"places"}),
    Blind: (MANNERS, {"shown"}),
    Stubborn: (MANNERS, {"calls"}),
}


@pytest.mark.parametrize("evaluator", [*BROKEN, *JUDGING], ids=lambda cls: cls.__name__)
def test_a_broken_promise_is_found_by_its_own_check(evaluator: Any, long: bool) -> None:
    """By no other one, either: in the short form, that is asked of every fourth."""
    traits, expected = {**BROKEN, **JUDGING}[evaluator]
    whole = long or [*BROKEN, *JUDGING].index(evaluator) % 4 == 0
    assert failing(evaluator, traits, None if whole else expected).keys() == expected


def test_every_check_finds_something() -> None:
    found = {name for _, expected in (*BROKEN.values(), *JUDGING.values()) for name in expected}
    assert found == {*names(Marks, MARKS), *names(Manners, MANNERS)}


def test_a_trait_that_no_rubric_can_hold_is_told() -> None:
    assert "no rubric can hold its traits" in failing(LostMarks, [LostTrait(name="Lost")])["trait_class"]


def test_a_bare_value_is_no_score() -> None:
    assert "its score is int, no TraitScore" in failing(Bare, MARKS)["well_formed"]


def test_waiting_for_a_place_within_a_place_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(trials, "LONGEST", 0.3)
    message = failing(Nested, MANNERS)["places"]
    assert "it was still waiting after 0.3 s" in message
    assert "do not call case.in_turn from within itself" in message


@pytest.mark.usefixtures("looked_at_here")
def test_a_trait_that_cannot_be_evaluated_may_be_given() -> None:
    broken = [MarkTrait(name="Broken", mark=1)]  # type: ignore[arg-type]
    run_checks(trait_checks(Marks, MARKS, broken=broken, app=APP))
    assert "Broken" in failing(Believes, MARKS, broken=broken)["one_fails"]
    message = failing(Marks, MARKS, broken=[MarkTrait(name="Whole")])["one_fails"]
    assert "'Whole' could not be evaluated, and its score is" in message


def test_the_judge_may_reply_as_the_caller_says() -> None:
    def strict(call: Any) -> Any:
        return {"score": 7} if "Warmth" in call.text else {"score": "no score"}

    message = failing(Manners, MANNERS, reply=strict)["reached"]
    assert "no trait was scored" in message
    assert "reply=function(call)" in message


# The judge


@given(llm_traits().filter(lambda trait: isinstance(trait.kind, str)), st.booleans())
def test_an_obedient_judge_gives_the_ends_of_every_scale(trait: LLMRubricTrait, most: bool) -> None:
    score = read_score(trait, fitting(score_schema(trait), most=most))
    ends = (trait.min_score, trait.max_score) if trait.kind != "boolean" else (False, True)
    assert score == ends[most]


def test_an_obedient_judge_fits_what_it_is_asked_for() -> None:
    schema = closed_object(
        {"quotes": {"type": "array", "items": {"type": "string"}}, "why": {"type": ["string", "null"]}}
    )
    assert fitting(schema) == {"quotes": [], "why": "because it says so"}
    assert fitting(schema, most=True) == {"quotes": ["because it says so"], "why": "because it says so"}
    check_reply(fitting(closed_object({"inner": closed_object({"there": {"type": "boolean"}})})), closed_object({}))


def test_a_schema_that_holds_itself_has_an_end() -> None:
    node = {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}, "required": []}
    found = fitting({"$ref": "#/$defs/node", "$defs": {"node": node}}, most=True)
    assert str(found).count("next") < 20


@given(st.text(max_size=40))
def test_only_tags_that_a_text_cannot_hold_mark_it(text: str) -> None:
    assert unmarked(f"before {untrusted(text)} after") == "before  after"
    forged = f'<untrusted-{"0" * 16} label="response">\n{text}\n</untrusted-{"0" * 16}>'
    assert unmarked(forged) == forged


# As a part of a whole plugin


class Package:
    """A plugin that brings an evaluator with settings."""

    @hookimpl
    def karenina_register_traits(self, registry: Any) -> None:
        registry.add(Configured)

    @hookimpl
    def karenina_register_settings(self, registry: Any) -> None:
        registry.add(MarkSettings)


@frozen(kw_only=True)
class MarkSettings:
    most: int = 100


class Configured(Marks):
    def __init__(self, settings: MarkSettings) -> None:
        self.most = settings.most


@pytest.mark.usefixtures("looked_at_here")
def test_the_evaluators_of_a_plugin_are_checked_with_its_settings() -> None:
    plain = [check.name for check in plugin_checks(Package())]
    assert [name for name in plain if name.startswith("marks.")] == ["marks.name", "marks.light_construction"]
    checks = plugin_checks(Package(), options={"marks": {"traits": MARKS, "app": APP}})
    found = [check.name.removeprefix("marks.") for check in checks if check.name.startswith("marks.")]
    assert found == names(Configured, MARKS)
    run_checks(checks)
