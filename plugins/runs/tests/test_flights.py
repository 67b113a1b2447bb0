"""Equal calls at the same time: asked once where that succeeds, side by side where it does not, and never stuck."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field, frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.limits.limiter import Gateway
from karenina_calls.metering import Metering
from karenina_calls.models.model_ports import embedder_port
from karenina_calls.ports.call_port import CallPort
from karenina_calls.ports.item_calls import ItemCalls, current_item
from karenina_calls.ports.retry import Attempts, with_retries
from karenina_calls.ports.stored_calls import CallFacts, StoredCall, StoredReply
from karenina_calls.records.refusals import Refusals
from karenina_calls.services.embedding import Embeddings
from karenina_runs.journal.in_flight import Flights
from karenina_runs.journal.journal import Journal
from karenina_testing.virtual_time import run_in_virtual_time

from karenina_core import ModelConfig, VerificationConfig
from karenina_core.errors import PortError
from karenina_core.ports.middleware import CallTarget
from karenina_core.ports.values import LLMResponse, PortCapabilities
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.message import Message, UsageMetadata

NAME = ("key", 0)
LAW = settings(database=None, deadline=None, derandomize=True, max_examples=200)
TWICE = RetryPolicy(timeout=AttemptPolicy(2, 0.01, 0.01))


@frozen
class Wants:
    """Somebody who wants the one reply there is."""

    at: float
    attempts: int = 1
    inside: bool = False
    made: bool = True
    """Whether the first attempt comes to be made."""
    gone_after: float | None = None
    """Seconds after which nobody wants it any more."""


@define
class Told:
    """What came of it."""

    asked: int = 0
    failed: int = 0
    served: list[int] = field(factory=list)
    given_up: list[int] = field(factory=list)
    """Those of whom every attempt has failed by itself."""
    gone: list[int] = field(factory=list)
    seconds: float = 0.0


def simulated(wants: Sequence[Wants], outcomes: Sequence[tuple[float, bool]]) -> Told:
    """`outcomes`: how long each attempt takes, and whether a reply comes of it; after them all fail in a second."""
    flights, told, there = Flights(), Told(), [False]
    told_outcomes = iter(outcomes)

    async def asked() -> bool:
        told.asked += 1
        seconds, replies = next(told_outcomes, (1.0, False))
        try:
            await asyncio.sleep(seconds)
        except BaseException:
            flights.failed(NAME)
            told.failed += 1
            raise
        if not replies:
            flights.failed(NAME)
            told.failed += 1
            return False
        there[0] = True
        flights.landed(NAME)
        return True

    async def one(number: int, who: Wants) -> None:
        await asyncio.sleep(who.at)
        left, made = who.attempts, who.made
        async with asyncio.timeout(who.gone_after):
            while left:
                await flights.join(NAME, waits=not who.inside)
                if there[0]:
                    flights.landed(NAME)
                    told.served.append(number)
                    return
                if not made:
                    made = True
                    try:
                        await asyncio.sleep(0.25)  # for a place, and there is none
                    finally:
                        flights.left(NAME)
                    continue
                left -= 1
                if await asked():
                    told.served.append(number)
                    return
            told.given_up.append(number)

    async def work() -> None:
        ended = await asyncio.gather(*(one(number, who) for number, who in enumerate(wants)), return_exceptions=True)
        told.gone += [number for number, error in enumerate(ended) if isinstance(error, TimeoutError)]
        told.seconds = asyncio.get_running_loop().time()
        assert not flights._under_way, "nobody is left behind"

    run_in_virtual_time(work())
    return told


MOMENTS = st.sampled_from([0.0, 0.0, 0.0, 0.5, 1.0, 1.5])
WANTS = st.builds(
    Wants,
    MOMENTS,
    st.integers(1, 3),
    st.booleans(),
    st.booleans(),
    st.one_of(st.none(), st.sampled_from([0.0, 0.5, 1.0, 1.25, 2.0])),
)
OUTCOMES = st.lists(st.tuples(st.sampled_from([0.0, 0.5, 1.0]), st.booleans()), max_size=20)


@LAW
@given(st.lists(WANTS, min_size=1, max_size=12), OUTCOMES)
def test_nobody_is_stuck_and_little_is_asked_twice(wants: list[Wants], outcomes: list[tuple[float, bool]]) -> None:
    """A wait without end raises in virtual time."""
    told = simulated(wants, outcomes)
    assert sorted(told.served + told.given_up + told.gone) == list(range(len(wants)))
    assert all(wants[number].gone_after is not None for number in told.gone)
    assert told.asked <= sum(who.attempts for who in wants)
    inside = sum(who.attempts for who in wants if who.inside)
    assert told.asked - told.failed <= 1 + told.failed + inside


@LAW
@given(st.lists(st.builds(Wants, MOMENTS, st.integers(1, 3), made=st.booleans()), min_size=1, max_size=12), MOMENTS)
def test_what_succeeds_is_asked_once(wants: list[Wants], seconds: float) -> None:
    told = simulated(wants, [(seconds, True)])
    assert (told.asked, len(told.served)) == (1, len(wants))


@pytest.mark.parametrize(("callers", "attempts"), [(12, 1), (12, 2), (200, 2), (1000, 3)])
def test_those_who_wait_do_not_fail_one_after_the_other(callers: int, attempts: int) -> None:
    told = simulated([Wants(0.0, attempts)] * callers, [])
    assert (told.asked, len(told.given_up)) == (callers * attempts, callers)
    assert told.seconds <= math.ceil(math.log2(callers * attempts)) + 2 * attempts


def test_after_a_failure_few_pay_for_the_same() -> None:
    told = simulated([Wants(0.0, 3)] * 100, [(1.0, False), (1.0, True), (1.0, True), (1.0, True)])
    assert (told.asked, len(told.served)) == (3, 100)
    assert told.seconds == 2.0


def test_whose_turn_has_come_and_who_is_gone_passes_it_on() -> None:
    async def work() -> None:
        flights = Flights()
        await flights.join(NAME)
        waiting = [asyncio.create_task(flights.join(NAME)) for _ in range(3)]
        await asyncio.sleep(0)
        flights.left(NAME)
        waiting[0].cancel()  # its turn has come, and it does not know it yet
        await waiting[1]
        assert not waiting[2].done()
        flights.failed(NAME)
        await waiting[2]

    run_in_virtual_time(work())


# With a gateway in front: work that has a place asks for what others ask who wait for a place.

MODEL = ModelConfig(model_name="a", interface="openai_endpoint", endpoint_base_url="http://host/v1")
MINE = CallTarget("embedder", "mine", "m")


@define(eq=False)
class Embedder:
    """Answers after a second; the attempts whose numbers are in `failing` time out."""

    failing: Sequence[int] = ()
    asked: int = 0
    reports_cost = True

    def problem(self) -> str | None:
        return None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        self.asked += 1
        failing = self.asked in self.failing
        await asyncio.sleep(1.0)
        if failing:
            raise PortError("late", kind="timeout")
        return Embeddings(vectors=((1.0, 0.0),) * len(texts), model="m", usage=UsageMetadata(1, 0, 1))


@define(eq=False)
class Agent:
    """Works for a while, and asks for vectors by a tool of its own."""

    shared: CallPort
    seconds: float
    text: str
    capabilities = PortCapabilities(supports_tools=True)

    async def ainvoke(self, messages: Sequence[Message], **facts: Any) -> LLMResponse:
        await asyncio.sleep(self.seconds)
        await self.shared.aembed([self.text])
        return LLMResponse(content="done", usage=UsageMetadata(1, 1, 2))


@define(eq=False)
class Kept:
    """The part of a journal that is about who asks, in memory."""

    flights: Flights = field(factory=Flights)
    replies: dict[tuple[str, int], StoredReply] = field(factory=dict)
    refusals: Refusals = field(factory=Refusals)

    async def take(self, call: StoredCall) -> StoredReply | None:
        name = (call.key, call.nth)
        await self.flights.join(name, waits=not call.inside)
        if name in self.replies:
            self.flights.landed(name)
        return self.replies.get(name)

    async def put(self, call: StoredCall, outcome: Mapping[str, Any], facts: CallFacts) -> None:
        await asyncio.sleep(0.01)
        self.replies[call.key, call.nth] = StoredReply(outcome, facts)
        self.flights.landed((call.key, call.nth))

    def failed(self, call: StoredCall, error: BaseException, facts: CallFacts) -> None:
        (self.flights.failed if facts.made else self.flights.left)((call.key, call.nth))


LIMITS = st.sampled_from([{"max_concurrent_requests": 1}, {"max_concurrent_requests": 2}, {"budget_tokens": 2000}])
ASKERS = st.tuples(st.booleans(), MOMENTS, st.sampled_from(["a", "a", "b"]), MOMENTS)


async def mixed(metering: Metering, shared: CallPort, askers: Sequence[tuple[bool, float, str, float]]) -> list[Any]:
    """All at once: agents (True), each with a second to wait before it asks for a text, and others who ask for it."""

    async def one(number: int, is_agent: bool, at: float, text: str, seconds: float) -> None:
        await asyncio.sleep(at)
        current_item.set(ItemCalls(f"q{number}", f"r{number}", meter=metering))
        if not is_agent:
            await with_retries(lambda: shared.aembed([text]), TWICE, max_elapsed=60.0)
            return
        port = CallPort(CallTarget.of_model("llm", MODEL), Agent(shared, seconds, text))
        port = metering.around({"llm": port}, MODEL)["llm"]
        await with_retries(lambda: port.ainvoke([Message.user("go")]), TWICE, max_elapsed=60.0, attempts=Attempts())

    work = (one(number, *asker) for number, asker in enumerate(askers))
    return await asyncio.gather(*work, return_exceptions=True)


@LAW
@given(st.lists(ASKERS, min_size=1, max_size=8), LIMITS, st.sets(st.integers(1, 6), max_size=2))
def test_work_with_a_place_never_waits_for_those_who_wait_for_one(
    askers: list[tuple[bool, float, str, float]], limits: dict[str, Any], failing: set[int]
) -> None:
    embedder = Embedder(tuple(failing))
    shared = embedder_port(MINE, embedder)
    gateway = Gateway(VerificationConfig(**limits))
    store = Kept()
    ended = run_in_virtual_time(mixed(Metering(gateway, store), shared, askers))
    wrong = [error for error in ended if error is not None]
    assert all(isinstance(error, PortError) and error.kind in ("timeout", "budget") for error in wrong)
    if not failing:
        assert "budget_tokens" in limits or not wrong
        inside = sum(asker[0] for asker in askers)
        assert embedder.asked <= len({text for _, _, text, _ in askers}) + inside
    assert not store.flights._under_way
    assert gateway.under_way == 0


@pytest.mark.parametrize("limits", [{"max_concurrent_requests": 1}, {"budget_tokens": 900}])
def test_a_tool_of_an_agent_gets_what_another_item_waits_to_ask(tmp_path: Path, limits: dict[str, Any]) -> None:
    async def work() -> list[Any]:
        embedder = Embedder()
        shared = embedder_port(MINE, embedder)
        gateway, journal = Gateway(VerificationConfig(**limits)), Journal.open(tmp_path)
        metering = Metering(gateway, journal)
        try:
            ended = await asyncio.wait_for(
                mixed(metering, shared, [(True, 0.0, "a", 0.3), (False, 0.1, "a", 0.0)]), timeout=60
            )
        finally:
            await journal.aclose()
        assert embedder.asked <= 2
        return ended

    assert asyncio.run(work()) == [None, None]


def test_nothing_is_left_to_wait_for_when_a_run_is_drained(tmp_path: Path) -> None:
    """Whoever waits for a place when no attempt begins any more waits until it is cancelled."""

    async def work() -> None:
        shared = embedder_port(MINE, Embedder())
        gateway, journal = Gateway(VerificationConfig()), Journal.open(tmp_path)
        metering = Metering(gateway, journal)
        agent = asyncio.create_task(mixed(metering, shared, [(True, 0.0, "a", 0.3)]))
        while not gateway.under_way:
            await asyncio.sleep(0)
        gateway.drain()
        other = asyncio.create_task(mixed(metering, shared, [(False, 0.0, "a", 0.0)]))
        await asyncio.wait_for(gateway.quiet(), 60)
        assert await agent == [None]
        other.cancel()
        await asyncio.wait([other])
        await journal.aclose()

    asyncio.run(work())
