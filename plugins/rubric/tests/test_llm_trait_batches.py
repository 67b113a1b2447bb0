"""Several traits in one call: each gets exactly the score that the judge gave it, and the judge is asked a bounded
number of times."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from attrs import define, field, frozen
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from karenina_calls.ports.client import Model, ModelClient
from karenina_rubric.llm import LLMEvaluator
from karenina_rubric.llm_calls import _Scores, grouped, judged, score_of
from karenina_vocabulary.evaluators import TraitScore
from karenina_vocabulary.traces import EvaluationInput

from karenina_core import LLMRubricTrait, ModelConfig, Question, TraitCase, VerificationConfig, VerificationContext
from karenina_core.errors import ErrorKind, PortError
from karenina_core.ports.model_client import CallRecord
from karenina_core.testing import ScriptedCall, ScriptedLLM
from karenina_core.values.config import AttemptPolicy, RetryPolicy

LAW = settings(deadline=None, max_examples=150, suppress_health_check=[HealthCheck.too_slow])
NAMED = re.compile(r"^(trait_\d+|result|score|classification): (.*)\nCriteria: ", re.MULTILINE)
OUT_OF_REACH: tuple[ErrorKind, ...] = (
    "auth",
    "rate_limited",
    "timeout",
    "connection",
    "server",
    "budget",
    "cancelled",
)
REFUSED: tuple[ErrorKind, ...] = ("content_filter", "invalid_request", "bad_response", "too_large", "plugin")
ONCE = RetryPolicy(**dict.fromkeys(("rate_limited", "timeout", "connection", "server"), AttemptPolicy(1)))
SILENT = object()
"""The answer about a trait that a reply leaves out."""


@frozen
class Answer:
    """What a reply says of a trait: the JSON value, and the score that it is, None for no score."""

    value: Any
    score: bool | int | None = None


def trait(name: str, **facts: Any) -> LLMRubricTrait:
    return LLMRubricTrait(name=name, **{"kind": "boolean", **facts})


def asked_about(call: ScriptedCall) -> dict[str, str]:
    """The names of the traits by the keys under which the reply has to speak of them."""
    assert call.output is not None
    found = dict(NAMED.findall(call.messages[-1].text if len(call.messages) < 3 else call.messages[1].text))
    assert found.keys() == (call.output.schema or {})["properties"].keys()
    return found


def evaluated(
    traits: Sequence[LLMRubricTrait],
    judge: Callable[[ScriptedCall], Any],
    *,
    repairs: int = 0,
    raw_answer: str = "",
    seconds: float = 0.0,
    **config: Any,
) -> tuple[Mapping[str, TraitScore], ScriptedLLM, list[CallRecord]]:
    llm = ScriptedLLM(judge, seconds=seconds)
    calls: list[CallRecord] = []
    settings_ = VerificationConfig(**config)
    judge_ = ModelConfig(model_name="judge", interface="scripted", max_retries=repairs, retry_policy=ONCE)
    model = Model(config=judge_, llm=llm)
    context = VerificationContext(
        question=Question(id="q", question="Which protein?", raw_answer=raw_answer),
        config=settings_,
        parsing=ModelClient(model, calls),
    )

    async def run() -> Mapping[str, TraitScore]:
        places = asyncio.Semaphore(settings_.rubric_concurrency)
        case = TraitCase(context, EvaluationInput("It is BCL2.", True), places)
        return await LLMEvaluator().evaluate(traits, case)

    return asyncio.run(run()), llm, calls


# Any assignment of words to traits, reply by reply

KINDS: list[dict[str, Any]] = [
    {"kind": "boolean"},
    {"kind": "score", "min_score": 0, "max_score": 3},
    {"kind": "score", "min_score": -2, "max_score": 0},
    {"kind": "literal", "classes": {"rude": None, "Neutral": "neither", "warm": None}},
]
RUBRICS = st.lists(
    st.tuples(st.sampled_from(KINDS), st.booleans()).map(lambda pair: {**pair[0], "include_ground_truth": pair[1]}),
    min_size=1,
    max_size=7,
).map(lambda rows: [trait(f"t{number}", **row) for number, row in enumerate(rows)])


def words(of: LLMRubricTrait) -> st.SearchStrategy[Any]:
    """A score, something that is none, null, or nothing."""
    if of.kind == "boolean":
        good = [Answer(True, True), Answer(False, False), Answer("No", False)]
        bad: list[Any] = ["maybe", 2, 0.5, [True]]
    elif of.kind == "literal":
        good = [Answer("rude", 0), Answer("neutral", 1), Answer(" WARM ", 2)]
        bad = ["lukewarm", "rude or warm", -1, "-1", 0]
    else:
        assert of.min_score is not None
        assert of.max_score is not None
        good = [
            Answer(of.min_score, of.min_score),
            Answer(of.max_score, of.max_score),
            Answer(f"{of.max_score}", of.max_score),
        ]
        bad = [of.max_score + 1, of.min_score - 1, of.min_score + 0.5, True, "many", {}]
    return st.sampled_from([*good, *good, *map(Answer, bad), Answer(None), SILENT])


@define
class Judge:
    """Replies whatever hypothesis draws, and keeps a record of it."""

    traits: Mapping[str, LLMRubricTrait]
    draw: Callable[[st.SearchStrategy[Any]], Any]
    last: dict[str, Any] = field(factory=dict)
    """The last answer about each trait: an `Answer`, or a PortError where there is none."""
    unread: int = 0
    asked_again: list[str] = field(factory=list)
    """Traits with a score, or out of reach, about which another call was made all the same."""

    def counts(self, name: str, word: Any) -> bool:
        """Whether a word is one on the trait: null is only where there is no other."""
        return word is not SILENT and (word.value is not None or name not in self.last)

    def __call__(self, call: ScriptedCall) -> Any:
        asked = asked_about(call)
        scored = [name for name in asked.values() if getattr(self.last.get(name), "score", None) is not None]
        if len(call.messages) == 2:
            gone = [name for name in asked.values() if getattr(self.last.get(name), "kind", "") in OUT_OF_REACH]
            self.asked_again += [*scored, *gone]
        fate = self.draw(st.sampled_from(["reply"] * 6 + ["babble", "failure"]))
        if fate == "babble":
            return "Hm, hard to say."
        if fate == "failure":
            kind = self.draw(st.sampled_from([*OUT_OF_REACH, *REFUSED]))
            error = PortError(f"the provider says {kind}", kind=kind)
            self.last |= {name: error for name in asked.values() if name not in scored}
            return error
        answers = {key: self.draw(words(self.traits[name])) for key, name in asked.items()}
        self.last |= {asked[key]: word for key, word in answers.items() if self.counts(asked[key], word)}
        return {"note": "not asked for", **{key: word.value for key, word in answers.items() if word is not SILENT}}


@given(rubric=RUBRICS, repairs=st.integers(0, 2), sequential=st.booleans(), data=st.data())
@LAW
def test_every_trait_gets_the_state_that_the_last_word_on_it_deserves(
    rubric: list[LLMRubricTrait], repairs: int, sequential: bool, data: st.DataObject
) -> None:
    judge = Judge({one.name: one for one in rubric}, data.draw)
    strategy = "sequential" if sequential else "batch"
    found, _, _ = evaluated(rubric, judge, repairs=repairs, raw_answer="BCL2", rubric_evaluation_strategy=strategy)
    assert list(found) == [one.name for one in rubric]
    assert judge.asked_again == []
    for one in rubric:
        word, score = judge.last.get(one.name), found[one.name]
        if isinstance(word, PortError):
            assert (score.state, score.value, score.reason) == ("error", None, str(word))
        elif word is None or word.value is None:
            assert (score.state, score.value) == ("missing", None)
        elif word.score is None:
            assert (score.state, score.value) == ("invalid", None)
            assert score.reason
            label = word.value if isinstance(word.value, str) else json.dumps(word.value)
            assert score.label == (label if one.kind == "literal" else None)
        else:
            assert (score.state, score.value, type(score.value)) == ("ok", word.score, type(word.score))
            named = one.get_class_names()[word.score] if one.kind == "literal" else None
            assert (score.label, score.reason) == (named, "")


@given(count=st.integers(1, 9), repairs=st.integers(0, 2), data=st.data())
@LAW
def test_the_judge_is_asked_a_bounded_number_of_times(count: int, repairs: int, data: st.DataObject) -> None:
    rubric = [trait(f"t{number}") for number in range(count)]
    judge = Judge({one.name: one for one in rubric}, data.draw)
    _, llm, calls = evaluated(rubric, judge, repairs=repairs)
    most = {1: 1, 2: 3, 3: 5}.get(count, count + 3)
    assert len(calls) <= most
    assert len(llm.calls) <= most * (1 + repairs)


@pytest.mark.parametrize(("count", "calls"), [(1, 1), (2, 3), (3, 5), (4, 7), (5, 8), (8, 11)])
def test_a_judge_that_says_nothing_costs_exactly_the_most_calls(count: int, calls: int) -> None:
    found, _, made = evaluated([trait(f"t{number}") for number in range(count)], lambda call: "Hm.", repairs=1)
    assert len(made) == calls
    assert {score.state for score in found.values()} == {"missing"}
    assert all("could not be read" in score.reason for score in found.values())


@pytest.mark.parametrize("kind", REFUSED)
def test_a_refused_request_costs_only_the_trait_that_it_is_refused_for(kind: ErrorKind) -> None:
    rubric = [trait(f"t{number}") for number in range(6)]

    def judge(call: ScriptedCall) -> Any:
        asked = asked_about(call)
        if "t3" in asked.values():
            return PortError("we do not process this", kind=kind)
        return dict.fromkeys(asked, True)

    found, _, calls = evaluated(rubric, judge, repairs=2)
    assert {name: score.state for name, score in found.items() if score.state != "ok"} == {"t3": "error"}
    assert (found["t3"].value, found["t3"].reason) == (None, "we do not process this")
    assert len(calls) <= 9


@pytest.mark.parametrize("error", [ValueError("no such letter"), KeyError("x")])
def test_an_adapter_that_breaks_on_one_text_costs_only_the_trait_with_that_text(error: Exception) -> None:
    rubric = [trait(f"t{number}") for number in range(6)]

    def judge(call: ScriptedCall) -> Any:
        asked = asked_about(call)
        if "t3" in asked.values():
            raise error
        return dict.fromkeys(asked, True)

    found, _, _ = evaluated(rubric, judge)
    assert {name: score.state for name, score in found.items() if score.state != "ok"} == {"t3": "error"}
    assert type(error).__name__ in found["t3"].reason


@pytest.mark.parametrize("kind", OUT_OF_REACH)
def test_a_judge_out_of_reach_is_not_asked_again(kind: ErrorKind) -> None:
    rubric = [trait(f"t{number}") for number in range(6)]
    found, llm, _ = evaluated(rubric, lambda call: PortError("out of reach", kind=kind))
    assert {(score.state, score.reason) for score in found.values()} == {("error", "out of reach")}
    assert len(llm.calls) == 1


@pytest.mark.parametrize(
    "error", [OSError("the line is dead"), TimeoutError("too slow"), asyncio.CancelledError("own")]
)
def test_errors_that_come_from_around_the_adapter_are_distinguished_too(error: BaseException) -> None:
    """What middleware and instructions raise has no kind."""
    scores = _Scores()
    scores.fail([trait("a")], error)
    assert not scores.open(trait("a"))
    scores.fail([trait("b")], ValueError("no such letter"))
    assert scores.open(trait("b"))
    assert scores.final(trait("b")).state == "error"


def test_answers_after_a_refusal_count_and_silence_leaves_it_as_it_is() -> None:
    refusal = PortError("we do not process this", kind="content_filter")
    later: dict[str, Any] = {"Clear": {"result": True}, "Depth": {"score": None}, "Short": "Hm."}

    def judge(call: ScriptedCall) -> Any:
        asked = list(asked_about(call).values())
        return refusal if len(asked) > 1 else later[asked[0]]

    found, _, _ = evaluated(THREE, judge)
    assert {name: score.state for name, score in found.items()} == {"Clear": "ok", "Depth": "error", "Short": "error"}
    assert found["Depth"].reason == found["Short"].reason == "we do not process this"


def test_an_item_that_is_cancelled_ends_at_once_and_asks_nothing_more() -> None:
    (group,) = grouped([trait(f"t{number}") for number in range(4)], "", alone=False)
    llm = ScriptedLLM(lambda call: {}, seconds=30)

    async def run() -> None:
        model = Model(config=ModelConfig(model_name="judge", interface="scripted"), llm=llm)
        context = VerificationContext(question=Question(question="Which?"), parsing=ModelClient(model, []))
        case = TraitCase(context, EvaluationInput("It is BCL2.", True), asyncio.Semaphore(6))
        item = asyncio.create_task(judged(group, case))
        while not llm.calls:
            await asyncio.sleep(0)
        item.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asyncio.wait_for(item, 60)

    asyncio.run(run())
    assert (len(llm.calls), llm.in_flight) == (1, 0)


# Replies that are odd


@pytest.mark.parametrize("levels", [50, 90, 110, 450, 520, 700, 950, 1500, 20_000])
def test_a_reply_that_is_nested_too_deeply_is_a_useless_reply_and_no_failure(levels: int) -> None:
    deep = '{"trait_1": ' + "[" * levels + "]" * levels + ', "trait_2": true, "trait_3": true}'
    good = {"trait_1": True, "trait_2": 4, "trait_3": False}
    repaired: list[Any] = [deep, good]
    found, llm, _ = evaluated(THREE, lambda call: repaired[len(turns(call)) - 1], repairs=1)
    assert [score.value for score in found.values()] == [True, 4, False]
    assert len(llm.calls) == 2
    complaint = llm.calls[1].messages[-1].text
    if levels < 64:
        assert "trait_1, Clear: expected true or false" in complaint
    else:
        assert "nested too deeply" in complaint or "no JSON object" in complaint
    alone = {"Clear": {"result": True}, "Depth": {"score": 4}, "Short": {"result": True}}

    def judge(call: ScriptedCall) -> Any:
        asked = list(asked_about(call).values())
        return deep if len(asked) > 1 else alone[asked[0]]

    assert [score.value for score in evaluated(THREE, judge)[0].values()] == [True, 4, True]


def test_null_in_a_repair_takes_nothing_back() -> None:
    replies = iter([{"trait_1": True, "trait_2": 9, "trait_3": False}, {"trait_1": None, "trait_2": None}])
    found, _, _ = evaluated(THREE, lambda call: next(replies, "Hm."), repairs=1)
    assert (found["Clear"].state, found["Clear"].value) == ("ok", True)
    assert (found["Depth"].state, found["Short"].value) == ("invalid", False)
    assert "got 9" in found["Depth"].reason


def test_a_trait_that_got_null_is_asked_about_again() -> None:
    replies = iter([{"trait_1": None, "trait_2": 4, "trait_3": None}, {"result": True}, {"result": False}])
    found, llm, _ = evaluated(THREE, lambda call: next(replies))
    assert [score.value for score in found.values()] == [True, 4, False]
    assert len(llm.calls) == 3
    found, _, _ = evaluated(THREE, lambda call: dict.fromkeys(asked_about(call)))
    assert {(score.state, score.reason) for score in found.values()} == {
        ("missing", "the judge gave null instead of a score")
    }


def test_a_reply_that_could_be_read_replaces_the_complaint_that_one_could_not() -> None:
    rubric = [trait("a"), trait("b")]
    found, _, _ = evaluated(rubric, lambda call: {} if len(asked_about(call)) == 1 else "Hm.")
    assert {score.reason for score in found.values()} == {"the judge gave no value for it"}


def test_labels_and_reasons_are_cut() -> None:
    tone = trait("Tone", kind="literal", classes={"rude": None, "warm": None})
    for value in ("z" * 100_000, ["z" * 100_000]):
        label = score_of(tone, value).label or ""
        assert (len(label), label[-1]) == (1000, "…")
    exact, _, _ = evaluated([tone], lambda call: {"classification": "z" * 1000})
    assert exact["Tone"].label == "z" * 1000
    loud, _, _ = evaluated([tone], lambda call: PortError("no " * 9000, kind="auth"))
    assert len(loud["Tone"].reason) == 1000


# Some of it, step by step

THREE = [trait("Clear"), trait("Depth", kind="score"), trait("Short")]


def test_what_was_valid_is_kept_and_only_the_rest_is_asked_again() -> None:
    def judge(call: ScriptedCall) -> Any:
        asked = asked_about(call)
        return {key: {"Clear": True, "Depth": 9, "Short": False}[name] for key, name in asked.items()}

    found, llm, _ = evaluated(THREE, judge)
    assert [list(asked_about(call).values()) for call in llm.calls] == [["Clear", "Depth", "Short"], ["Depth"]]
    assert [(score.state, score.value) for score in found.values()] == [("ok", True), ("invalid", None), ("ok", False)]
    assert found["Depth"].reason == "Depth: expected a whole number from 1 (lowest) to 5 (highest); got 9"


def test_those_without_a_score_are_asked_about_in_two_halves_and_then_one_by_one() -> None:
    rubric = [trait(f"t{number}") for number in range(5)]

    def judge(call: ScriptedCall) -> Any:
        return {key: True for key, name in asked_about(call).items() if name == "t0"}

    _, llm, _ = evaluated(rubric, judge)
    asked = [list(asked_about(call).values()) for call in llm.calls]
    assert asked[:3] == [["t0", "t1", "t2", "t3", "t4"], ["t1", "t2"], ["t3", "t4"]]
    assert sorted(asked[3:]) == [["t1"], ["t2"], ["t3"], ["t4"]]
    tasks = [call.task for call in llm.calls]
    assert tasks == ["rubric_llm_trait_batch"] * 3 + ["rubric_llm_trait_single"] * 4


def test_a_repair_that_speaks_of_the_wrong_values_only_is_enough() -> None:
    replies = iter([{"trait_1": True, "trait_2": 9, "trait_3": False}, {"trait_2": 4}])
    found, llm, _ = evaluated(THREE, lambda call: next(replies), repairs=1)
    assert [score.value for score in found.values()] == [True, 4, False]
    correction = llm.calls[1].messages[-1].text
    assert "trait_2, Depth: expected a whole number from 1 (lowest) to 5 (highest); got 9" in correction
    assert "trait_1" not in correction


def test_a_score_that_the_judge_takes_back_is_not_kept() -> None:
    replies = iter([{"trait_1": True, "trait_2": 9, "trait_3": False}, {"trait_1": "well", "trait_2": 4}])
    found, _, _ = evaluated(THREE, lambda call: next(replies, {"result": False}), repairs=1)
    assert [score.value for score in found.values()] == [False, 4, False]


def test_a_judge_that_cannot_be_reached_costs_no_score_that_is_there_and_is_not_asked_again() -> None:
    replies: list[Any] = [{"trait_1": True, "trait_2": 9}, PortError("out of credit", kind="auth")]
    found, llm, _ = evaluated(THREE, lambda call: replies[len(turns(call)) - 1], repairs=1)
    assert (found["Clear"].state, found["Clear"].value) == ("ok", True)
    for name in ("Depth", "Short"):
        assert (found[name].state, found[name].value, found[name].reason) == ("error", None, "out of credit")
    assert len(llm.calls) == 2


def turns(call: ScriptedCall) -> Sequence[Any]:
    """One for the first reply of a call, two for its first repair: a repair shows the judge its reply."""
    return call.messages[1::2]


def test_a_group_that_fails_costs_no_other_group_its_scores() -> None:
    tone = trait("Tone", kind="literal", classes={"rude": None, "warm": None})

    def judge(call: ScriptedCall) -> Any:
        if "literal" in call.task:
            raise RuntimeError("a bug of the adapter")
        return dict.fromkeys(asked_about(call), True)

    found, _, _ = evaluated([trait("a"), trait("b"), tone], judge)
    assert [found[name].state for name in ("a", "b", "Tone")] == ["ok", "ok", "error"]
    assert "a bug of the adapter" in found["Tone"].reason


def test_a_reply_with_only_unknown_keys_says_nothing() -> None:
    found, _, _ = evaluated(THREE, lambda call: {"Clear": True, "scores": {"Depth": 3}})
    assert {(score.state, score.reason) for score in found.values()} == {("missing", "the judge gave no value for it")}


# How they are asked, and how many at once


def decided(call: ScriptedCall) -> dict[str, Any]:
    """The same reply about a trait, in whatever company it is asked about."""
    assert call.output is not None
    properties = (call.output.schema or {})["properties"]
    reply: dict[str, Any] = {}
    for key, name in asked_about(call).items():
        luck, facts = sum(map(ord, name)), properties[key]
        if facts["type"] == "boolean":
            reply[key] = luck % 2 == 0
        elif facts["type"] == "string":
            reply[key] = facts["enum"][luck % len(facts["enum"])]
        else:
            reply[key] = facts["minimum"] + luck % (facts["maximum"] - facts["minimum"] + 1)
    return reply


@given(rubric=RUBRICS)
@LAW
def test_scores_do_not_depend_on_how_many_traits_are_judged_at_once(rubric: list[LLMRubricTrait]) -> None:
    found = [
        evaluated(rubric, decided, raw_answer="BCL2", rubric_evaluation_strategy=strategy, rubric_concurrency=width)[0]
        for strategy, width in (("sequential", 1), ("sequential", 6), ("batch", 1), ("batch", 6))
    ]
    assert all(other == found[0] for other in found)
    assert {score.state for score in found[0].values()} == {"ok"}


@pytest.mark.parametrize(("width", "most"), [(6, 6), (2, 2), (1, 1)])
def test_one_call_per_trait_and_as_many_at_once_as_there_are_places(width: int, most: int) -> None:
    rubric = [trait(f"t{number}") for number in range(6)]
    _, llm, _ = evaluated(
        rubric, decided, seconds=0.01, rubric_evaluation_strategy="sequential", rubric_concurrency=width
    )
    assert len(llm.calls) == 6
    assert llm.most_in_flight == most
