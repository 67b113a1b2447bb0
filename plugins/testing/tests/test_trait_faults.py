"""Evaluators that go wrong quietly are found, and right ones of unusual kinds are let be."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Mapping, Sequence
from typing import Any, ClassVar

import pytest
from attrs import frozen
from karenina_judging.asking import ask_judge, closed_object, presented
from karenina_judging.untrusted_text import UNTRUSTED_NOTE
from karenina_testing.checks import BrokenPromise
from karenina_testing.traits import values as files
from karenina_vocabulary.evaluators import TraitCase, TraitEvaluator, TraitScore
from karenina_vocabulary.traces import EvaluationInput

from karenina_core.errors import FillError, PortError
from karenina_core.testing import application, trait_checks
from karenina_core.values.rubric import RubricTrait

APP = application()


def failing(
    evaluator: Any, traits: Sequence[Any], among: Collection[str] | None = None, **options: Any
) -> dict[str, str]:
    """The checks that fail, of all or of these only, with their messages; none of these evaluators does work while it
    is made."""
    found = {}
    for check in trait_checks(evaluator, traits, app=APP, **options):
        if check.name == "light_construction" or (among is not None and check.name not in among):
            continue
        try:
            check.run()
        except BrokenPromise as broken:
            found[check.name] = str(broken)
    return found


# Traits of a package that states no scale, without a judge


@frozen(kw_only=True)
class LetterTrait(RubricTrait):
    """How often a letter occurs."""

    type_name: ClassVar[str] = "letters"
    letter: str = "a"
    note: str = ""


LETTERS = [LetterTrait(name="As"), LetterTrait(name="Es", letter="e")]


class Letters(TraitEvaluator[Any]):
    """Right in every way."""

    name = "letters"
    trait_class = LetterTrait
    file_type = "LetterTrait"

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        return TraitScore(value=case.given.text.count(trait.letter), details={"letter": trait.letter})


class Reads(Letters):
    """Right: reads its fields before it begins to score."""

    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        wanted = {trait.name: (trait.letter, trait.note) for trait in traits}
        return {name: self.count(letter, case.given.text) for name, (letter, _) in wanted.items()}

    def count(self, letter: Any, text: str) -> TraitScore:
        try:
            return TraitScore(value=text.count(letter))
        except Exception as error:
            return TraitScore.failed(error)


class Sorts(Letters):
    """Right: sorts the traits by a field, and scores each by itself."""

    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        noted = [trait for trait in traits if trait.note]
        plain = [trait for trait in traits if trait not in noted]
        return {**await super().evaluate(noted, case), **await super().evaluate(plain, case)}


class Careless(Letters):
    """Right: has no use for any field."""

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        return TraitScore(value="e" in case.given.text)


class Reporting(Careless):
    """Right: only reports a field."""

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        return TraitScore(value="e" in case.given.text, details={"note": trait.note})


class Registered(Letters):
    """Right: knows its traits by their names."""

    known: ClassVar[Mapping[str, str]] = {"As": "a", "Es": "e"}

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        return TraitScore(value=case.given.text.count(self.known[trait.name]))


class Timed(Letters):
    """Right: tells what no one can repeat."""

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        score = await super().score(trait, case)
        return TraitScore(value=score.value, details={"seconds": asyncio.get_running_loop().time()})


class CachesByText(Letters):
    """Right: what it keeps belongs to the text."""

    def __init__(self) -> None:
        self.kept: dict[tuple[str, str], int] = {}

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        key = (trait.letter, case.given.text)
        return TraitScore(value=self.kept.setdefault(key, case.given.text.count(trait.letter)))


class CachesByName(CachesByText):
    def key(self, trait: Any, case: TraitCase) -> Any:
        return trait.name

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        return TraitScore(value=self.kept.setdefault(self.key(trait, case), case.given.text.count(trait.letter)))


class CachesByQuestion(CachesByName):
    def key(self, trait: Any, case: TraitCase) -> Any:
        return case.context.question_id, trait.name


class CachesByBeginning(CachesByName):
    def key(self, trait: Any, case: TraitCase) -> Any:
        return case.given.text[:20], trait.name


KEPT: dict[str, int] = {}


class CachesForever(Letters):
    """Its memory is that of the process."""

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        return TraitScore(value=KEPT.setdefault(trait.name, case.given.text.count(trait.letter)))


class Gossips(Letters):
    """Its details speak of the answer before."""

    before: ClassVar[list[str]] = [""]

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        told = self.before.pop()
        self.before.append(case.given.text[:30])
        return TraitScore(value=1, details={"before": told})


class FirstTwo(Letters):
    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        return await super().evaluate(list(traits)[:2], case)


class Swallows(Letters):
    """Takes a cancellation for an answer."""

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        try:
            await asyncio.sleep(0.02)
        except BaseException as error:
            return TraitScore.failed(error)
        return await super().score(trait, case)


class Unnamed(Letters):
    file_type = ""


class Taken(Letters):
    file_type = "RegexTrait"


class Spaced(Letters):
    file_type = "Letter Trait"


class Renames(Letters):
    """Writes what the format has a meaning for."""

    def encode(self, trait: Any) -> Mapping[str, Any]:
        return {**super().encode(trait), "dynamic_trait_type": "x"}

    def decode(self, data: Mapping[str, Any]) -> Any:
        return super().decode({key: value for key, value in data.items() if key != "dynamic_trait_type"})


class Shortens(Letters):
    """Forgets a field that has its default in all of the traits above."""

    def encode(self, trait: Any) -> Mapping[str, Any]:
        return {key: value for key, value in super().encode(trait).items() if key != "note"}


class Wants(Letters):
    """Cannot read a rating without a summary, which files leave out."""

    def decode(self, data: Mapping[str, Any]) -> Any:
        return LetterTrait(
            name=data["name"],
            description=data["description"],
            summary=data["summary"],
            letter=data["letter"],
            note=data["note"],
        )


# Traits that state a scale, with a judge


@frozen(kw_only=True)
class DialTrait(RubricTrait):
    """How much of something there is, on a scale."""

    type_name: ClassVar[str] = "dials"
    low: int = 0
    high: int = 5
    include_ground_truth: bool = False

    def scale(self) -> dict[str, Any]:
        return {**super().scale(), "kind": "score", "min": self.low, "max": self.high}


DIALS = [
    DialTrait(name="Care", description="How careful it is."),
    DialTrait(name="Depth", description="How deep it goes.", low=1, high=4),
]


class Dials(TraitEvaluator[Any]):
    """Right in every way."""

    name = "dials"
    trait_class = DialTrait
    asks_judge = True
    file_type = "DialTrait"

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        async def check(reply: Mapping[str, Any]) -> int:
            return self.read(trait, reply.get("n"), case)

        async def ask() -> Any:
            texts = (self.system(trait, case), self.user(case))
            return await ask_judge(case.context, "dials", texts, self.schema(trait), validate=check)

        return TraitScore(value=(await case.in_turn(ask)).parsed)

    def schema(self, trait: Any) -> dict[str, Any]:
        return closed_object({"n": {"type": "integer", "minimum": trait.low, "maximum": trait.high}})

    def system(self, trait: Any, case: TraitCase) -> str:
        return f"Say how much. {trait.name}: {trait.description} {UNTRUSTED_NOTE}"

    def user(self, case: TraitCase) -> str:
        return presented(case.context.question_text, case.given)

    def read(self, trait: Any, value: Any, case: TraitCase) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not trait.low <= value <= trait.high:
            raise FillError("n must be a whole number on the scale")
        return value


class Impersonal(Dials):
    """Right: asks the same about every trait, and lets code decide."""

    def system(self, trait: Any, case: TraitCase) -> str:
        return f"Say how much. {UNTRUSTED_NOTE}"

    def schema(self, trait: Any) -> dict[str, Any]:
        return closed_object({"n": {"type": "integer", "minimum": 0, "maximum": 9}})

    def read(self, trait: Any, value: Any, case: TraitCase) -> int:
        if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= 9:
            raise FillError("n must be a whole number from 0 to 9")
        return trait.low + value * (trait.high - trait.low) // 9  # type: ignore[no-any-return]


class Backwards(Dials):
    """Right: one call for all, in an order of its own; only the number of a trait tells which it is."""

    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        traits = sorted(traits, key=lambda trait: str(trait.name), reverse=True)
        schema = closed_object({f"n{number}": self.schema(trait) for number, trait in enumerate(traits)})
        listed = "\n".join(f"n{number}: {trait.name}" for number, trait in enumerate(traits))
        try:
            texts = (f"Say how much of each. {UNTRUSTED_NOTE}\n{listed}", self.user(case))
            data = (await case.in_turn(lambda: ask_judge(case.context, "dials", texts, schema))).data
        except PortError as error:
            return {trait.name: TraitScore.failed(error) for trait in traits}

        async def one(trait: Any) -> TraitScore:
            return TraitScore(value=self.read(trait, data.get(f"n{traits.index(trait)}", {}).get("n"), case))

        return await case.each(traits, one)


class FromThree(Dials):
    """One call for three traits or more, in which each needs all of the others."""

    async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
        if len(traits) < 3:
            return await super().evaluate(traits, case)
        schema = closed_object({trait.name: self.schema(trait) for trait in traits})
        listed = ", ".join(trait.name for trait in traits)

        async def check(reply: Mapping[str, Any]) -> Mapping[str, TraitScore]:
            given = {trait.name: (reply.get(trait.name) or {}).get("n") for trait in traits}
            return {trait.name: TraitScore(value=self.read(trait, given[trait.name], case)) for trait in traits}

        try:
            texts = (f"Say how much of each: {listed}. {UNTRUSTED_NOTE}", self.user(case))
            work = ask_judge(case.context, "dials", texts, schema, validate=check)
            found: Mapping[str, TraitScore] = (await case.in_turn(lambda: work)).parsed
        except PortError as error:
            return {trait.name: TraitScore.failed(error) for trait in traits}
        return found


class NearMisses(Dials):
    """Forgives a judge that is off by one."""

    def read(self, trait: Any, value: Any, case: TraitCase) -> int:
        moved = {trait.high + 1: trait.high, trait.low - 1: trait.low}
        return super().read(trait, moved.get(value, value) if isinstance(value, int) else value, case)


class Rounds(Dials):
    def read(self, trait: Any, value: Any, case: TraitCase) -> int:
        return super().read(trait, round(value) if isinstance(value, float) else value, case)


class ReadsWords(Dials):
    """Reads "3 of 5" as 3."""

    def read(self, trait: Any, value: Any, case: TraitCase) -> int:
        return super().read(trait, int(value.split()[0]) if isinstance(value, str) and " of " in value else value, case)


class CountsTrue(Dials):
    def read(self, trait: Any, value: Any, case: TraitCase) -> int:
        return super().read(trait, int(value) if isinstance(value, bool) else value, case)


class Expects(Dials):
    """Takes null for the lowest score."""

    def read(self, trait: Any, value: Any, case: TraitCase) -> int:
        return super().read(trait, trait.low if value is None else value, case)


class Overshoots(Dials):
    """Its own arithmetic leaves the scale."""

    def read(self, trait: Any, value: Any, case: TraitCase) -> int:
        return super().read(trait, value, case) + 1


class Impatient(Dials):
    """Where the judge takes too long, the score is the lowest."""

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        try:
            return await super().score(trait, case)
        except PortError as error:
            if error.kind != "timeout":
                raise
            return TraitScore(value=trait.low)


class Shouts(Dials):
    """Shows the reference answer in capitals."""

    def system(self, trait: Any, case: TraitCase) -> str:
        return f"{super().system(trait, case)} REFERENCE: {case.context.question.raw_answer.upper()}"


class Corrects(Dials):
    """Shows the reference answer to a judge that is wrong."""

    def read(self, trait: Any, value: Any, case: TraitCase) -> int:
        try:
            return super().read(trait, value, case)
        except FillError as error:
            raise FillError(f"{error}; the right answer is {case.context.question.raw_answer}") from None


class Recalls(Dials):
    """Shows the answer unmarked to a judge that is wrong."""

    def read(self, trait: Any, value: Any, case: TraitCase) -> int:
        try:
            return super().read(trait, value, case)
        except FillError as error:
            raise FillError(f"{error}; read again: {case.given.text}") from None


class Quotes(Dials):
    """Shows the beginning of the answer unmarked."""

    def system(self, trait: Any, case: TraitCase) -> str:
        return f"{super().system(trait, case)} It begins: {case.given.text[:10]}"


class Picks(Dials):
    """Shows a sentence from within the answer unmarked."""

    def system(self, trait: Any, case: TraitCase) -> str:
        return f"{super().system(trait, case)} Mind this: {''.join(case.given.text.split('. ')[1:2])}"


class Cuts(Dials):
    """Shows the first hundred characters only."""

    def user(self, case: TraitCase) -> str:
        given = EvaluationInput(case.given.text[:100], case.given.used_full_trace)
        return presented(case.context.question_text, given)


class SkipsTheMiddle(Dials):
    def user(self, case: TraitCase) -> str:
        text = case.given.text
        given = EvaluationInput(f"{text[:500]} ... {text[-500:]}", case.given.used_full_trace)
        return presented(case.context.question_text, given)


class KeepsText(Dials):
    """What it shows may belong to another item."""

    text: Any = None

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        self.text = case.given
        await asyncio.sleep(0)
        return await super().score(trait, case)

    def user(self, case: TraitCase) -> str:
        return presented(case.context.question_text, self.text)


class KeepsScores(Dials):
    def __init__(self) -> None:
        self.kept: dict[str, TraitScore] = {}

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        if trait.name not in self.kept:
            self.kept[trait.name] = await super().score(trait, case)
        return self.kept[trait.name]


class Excepts(Dials):
    """Takes everything for a failure, also a cancellation."""

    async def score(self, trait: Any, case: TraitCase) -> TraitScore:
        try:
            return await super().score(trait, case)
        except BaseException as error:
            return TraitScore.failed(error)


RIGHT: Mapping[type[TraitEvaluator[Any]], Sequence[Any]] = {
    **dict.fromkeys((Letters, Reads, Sorts, Careless, Reporting, Registered, Timed, CachesByText), LETTERS),
    **dict.fromkeys((Dials, Impersonal, Backwards), DIALS),
}
WRONG: Mapping[type[TraitEvaluator[Any]], tuple[Sequence[Any], set[str]]] = {
    CachesByName: (LETTERS, {"at_once"}),
    CachesByQuestion: (LETTERS, {"at_once"}),
    CachesByBeginning: (LETTERS, {"at_once"}),
    CachesForever: (LETTERS, {"at_once"}),
    Gossips: (LETTERS, {"at_once"}),
    FirstTwo: (LETTERS, {"well_formed"}),
    Swallows: (LETTERS, {"cancellation"}),
    Unnamed: (LETTERS, {"round_trip"}),
    Taken: (LETTERS, {"round_trip"}),
    Spaced: (LETTERS, {"round_trip"}),
    Renames: (LETTERS, {"round_trip"}),
    Shortens: (LETTERS, {"round_trip"}),
    Wants: (LETTERS, {"round_trip"}),
    FromThree: (DIALS, {"one_fails"}),
    NearMisses: (DIALS, {"off_scale", "judge_rubbish"}),
    Rounds: (DIALS, {"off_scale"}),
    ReadsWords: (DIALS, {"off_scale"}),
    CountsTrue: (DIALS, {"off_scale"}),
    Expects: (DIALS, {"off_scale", "judge_rubbish"}),
    Overshoots: (DIALS, {"off_scale"}),
    Impatient: (DIALS, {"judge_down"}),
    Shouts: (DIALS, {"reference"}),
    Corrects: (DIALS, {"reference"}),
    Recalls: (DIALS, {"prompts"}),
    Quotes: (DIALS, {"prompts"}),
    Picks: (DIALS, {"prompts"}),
    Cuts: (DIALS, {"shown"}),
    SkipsTheMiddle: (DIALS, {"shown"}),
    KeepsText: (DIALS, {"at_once"}),
    KeepsScores: (DIALS, {"at_once"}),
    Excepts: (DIALS, {"cancellation"}),
}
"""An evaluator -> traits for it, and the checks that say what is wrong; all others pass."""


@pytest.mark.parametrize("evaluator", RIGHT, ids=lambda cls: cls.__name__)
def test_an_evaluator_that_is_right_raises_no_alarm(evaluator: Any) -> None:
    assert failing(evaluator, RIGHT[evaluator]) == {}


@pytest.mark.parametrize("evaluator", WRONG, ids=lambda cls: cls.__name__)
def test_an_evaluator_that_goes_wrong_quietly_is_found(evaluator: Any, long: bool) -> None:
    """By no other check, either: in the short form, that is asked of every fourth."""
    traits, expected = WRONG[evaluator]
    whole = long or list(WRONG).index(evaluator) % 4 == 0
    assert failing(evaluator, traits, None if whole else expected).keys() == expected


def test_an_instance_that_remembers_is_found_too() -> None:
    assert failing(CachesByName(), LETTERS).keys() == {"at_once"}
    assert "was not shown an item's text" in failing(KeepsScores(), DIALS)["at_once"]


@frozen(kw_only=True)
class GradeTrait(RubricTrait):
    """One of several classes, which its scale states."""

    type_name: ClassVar[str] = "grades"

    def scale(self) -> dict[str, Any]:
        return {**super().scale(), "kind": "literal", "classes": ["poor", "fair", "good"]}


@pytest.mark.parametrize(
    "score",
    [
        TraitScore(value=3),
        TraitScore(value=-1),
        TraitScore(value=True),
        TraitScore(value="good"),
        TraitScore(value=1, label="good"),
    ],
    ids=lambda score: f"{score.value!r}-{score.label}",
)
def test_a_score_that_is_none_of_the_stated_classes_is_found(score: TraitScore) -> None:
    class Grades(Letters):
        name = "grades"
        trait_class = GradeTrait  # type: ignore[assignment]  # these need no letters

        async def score(self, trait: Any, case: TraitCase) -> TraitScore:
            return given

    given = score
    assert failing(Grades, [GradeTrait(name="Style")]).keys() == {"off_scale"}
    given = TraitScore(value=2, label="good")
    assert failing(Grades, [GradeTrait(name="Style")]) == {}


def test_what_a_scale_does_not_state_is_the_business_of_the_package() -> None:
    class Percentages(Rounds):
        name = "letters"
        trait_class = LetterTrait  # type: ignore[assignment]  # one without a scale

        def schema(self, trait: Any) -> dict[str, Any]:
            return closed_object({"n": {"type": "number", "minimum": 0, "maximum": 100}})

        def read(self, trait: Any, value: Any, case: TraitCase) -> int:
            if isinstance(value, bool) or not isinstance(value, int | float) or not 0 <= value <= 100:
                raise FillError("n must be a number from 0 to 100")
            return round(value)

    assert failing(Percentages, LETTERS) == {}


def test_a_judge_may_be_asked_more_often_where_the_caller_says_so() -> None:
    class Votes(Dials):
        async def score(self, trait: Any, case: TraitCase) -> TraitScore:
            return [await Dials.score(self, trait, case) for _ in range(11)][-1]

    usual, generous = (
        next(check for check in trait_checks(Votes, DIALS, app=APP, most_calls=most) if check.name == "calls")
        for most in (10, 11)
    )
    with pytest.raises(BrokenPromise, match="it asked the judge 11 times about 'Care', and most_calls is 10"):
        usual.run()
    generous.run()


def test_a_trait_with_a_reply_of_the_caller_has_copies_too() -> None:
    """The caller's function knows the caller's traits only; copies are answered by a judge that obeys the schema."""

    class Four(Dials):
        async def evaluate(self, traits: Sequence[Any], case: TraitCase) -> Mapping[str, TraitScore]:
            return await super().evaluate(list(traits)[:4], case)

    def reply(call: Any) -> Any:
        return {"n": {"Care": 2, "Depth": 3}[next(name for name in ("Care", "Depth") if name in call.text)]}

    assert failing(Dials, DIALS, reply=reply) == {}
    assert failing(Four, DIALS, reply=reply).keys() == {"well_formed"}


def test_provoked_failures_are_not_logged(caplog: pytest.LogCaptureFixture) -> None:
    with caplog.at_level(logging.INFO):
        assert failing(Letters, LETTERS, broken=[LetterTrait(name="Broken", letter=1)]) == {}  # type: ignore[arg-type]
        assert caplog.messages == []
        logging.getLogger("karenina.rubric").warning("after")
    assert caplog.messages == ["after"]


def test_the_names_that_files_have_taken_are_those_of_the_format() -> None:
    vocabulary = pytest.importorskip("karenina_jsonld.vocabulary")
    assert sorted(files.TAKEN) == sorted((*vocabulary.TRAIT_TYPES, vocabulary.DYNAMIC))
    assert (vocabulary.DYNAMIC_TYPE,) == files.RESERVED
