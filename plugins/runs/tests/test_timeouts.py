"""Servers that let calls wait: where all of them time out, fewer are under way, and the run says what helps."""

from __future__ import annotations

import asyncio
from functools import partial

import pytest
from attrs import define, field
from karenina_calls.limits.failures import TRY_MORE, Timeouts
from karenina_calls.limits.limiter import Gateway
from karenina_calls.ports.retry import with_retries
from karenina_calls.ports.stored_calls import CallFacts, StoredCall
from karenina_calls.ports.waiting import standing_still
from karenina_calls.records.requests import Request
from karenina_testing.virtual_time import run_in_virtual_time

from karenina_core import ModelConfig, VerificationConfig
from karenina_core.errors import PortError
from karenina_core.values.config import RetryPolicy
from karenina_core.values.message import UsageMetadata

MODEL = ModelConfig(model_name="smol", interface="openai_endpoint", endpoint_base_url="http://host/v1")
CALL = StoredCall("key", 0, Request("llm", {}, "generation", 1, ()))
FACTS = CallFacts(usage=UsageMetadata(10, 5, 15))
TIMEOUT = 120.0


@define(eq=False)
class Slots:
    """A server that works on so many calls at a time, lets the others wait, and stops where nobody waits any more."""

    slots: int
    seconds: float
    asked: int = 0
    late: int = 0
    room: asyncio.Semaphore = field(init=False)

    def __attrs_post_init__(self) -> None:
        self.room = asyncio.Semaphore(self.slots)

    async def answer(self, seconds: float) -> None:
        self.asked += 1
        try:
            async with asyncio.timeout(TIMEOUT), self.room:
                await asyncio.sleep(seconds)
        except TimeoutError as error:
            self.late += 1
            raise PortError("no complete reply (request_timeout)", kind="timeout") from error


def ask(server: Slots, calls: int, workers: int, runaway: int | None = None) -> tuple[Gateway, list[PortError], float]:
    failed: list[PortError] = []
    way = Gateway(VerificationConfig())

    async def attempt(number: int) -> None:
        place = await standing_still(way.lane(MODEL).enter(CALL))
        facts, failure = None, None
        try:
            await server.answer(600.0 if number == runaway else server.seconds)
            facts = FACTS
        except BaseException as error:
            failure = error
            raise
        finally:
            place.leave(facts, failure)

    async def main() -> float:
        loop, numbers = asyncio.get_running_loop(), iter(range(calls))

        async def worker() -> None:
            for number in numbers:
                try:
                    one = partial(attempt, number)
                    await with_retries(one, RetryPolicy(), max_elapsed=way.patience, clock=loop.time)
                except PortError as error:
                    failed.append(error)

        await asyncio.gather(*(worker() for _ in range(workers)))
        return loop.time()

    seconds = run_in_virtual_time(main())
    return way, failed, seconds


@pytest.mark.parametrize("workers", [2, 6, 8, 50])
@pytest.mark.parametrize(("slots", "part"), [(1, 0.6), (1, 0.3), (4, 0.6), (4, 0.9)])
def test_a_server_that_takes_few_at_a_time_answers_everything_in_the_end(slots: int, part: float, workers: int) -> None:
    server = Slots(slots, part * TIMEOUT)
    way, failed, seconds = ask(server, 60, workers)
    ideal = 60 / min(slots, workers) * server.seconds
    print(f"{slots} slots, {workers} at once: {seconds / ideal:.2f} x ideal, {server.late} of {server.asked} timed out")
    assert failed == []
    assert seconds <= 1.6 * ideal + 2 * TIMEOUT
    if server.late:
        assert "timed_out" in {moment["why"] for moment in next(iter(way.history().values()))}


def test_the_run_says_which_settings_help() -> None:
    way, _, _ = ask(Slots(1, 0.6 * TIMEOUT), 6, 6)
    (advice,) = way.advice
    assert "calls of openai_endpoint:smol at http://host/v1 timed out, with up to 5 under way" in advice
    assert "--concurrency 1, --set models.smol.max_tokens=512, --set run.request_timeout=600" in advice


def test_a_server_with_room_for_all_is_asked_as_before_though_one_call_never_ends() -> None:
    server = Slots(100, 1.0)
    way, failed, seconds = ask(server, 400, 8, runaway=5)
    assert [(error.kind, error.attempts) for error in failed] == [("timeout", 3)]
    assert seconds <= 3 * TIMEOUT + 60.0
    assert "timed_out" not in {moment["why"] for moment in next(iter(way.history().values()))}


def test_a_call_that_times_out_alone_has_the_attempts_that_it_has() -> None:
    server = Slots(1, 2 * TIMEOUT)
    way, failed, _ = ask(server, 1, 1)
    assert (failed[0].attempts, server.asked, way.advice) == (3, 3, ())


def test_more_are_tried_again_after_many_replies() -> None:
    timeouts = Timeouts()
    for _ in range(4):
        timeouts.timed_out(0.0, 4)
    assert timeouts.most == 2.0
    for number in range(2 * TRY_MORE):
        timeouts.answered(float(number))
    assert timeouts.most == 4.0
