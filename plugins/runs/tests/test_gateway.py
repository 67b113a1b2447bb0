"""Every call has a place while it is under way: never too many, in order, by turns, and none is ever lost."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.limits.adaptive_limit import MOST_AT_FIRST
from karenina_calls.limits.limiter import Gateway
from karenina_calls.ports.retry import Attempts, this_call
from karenina_calls.ports.stored_calls import Lane, StoredCall
from karenina_calls.records.call_facts import CallFacts, Place
from karenina_calls.records.requests import Request
from karenina_testing.virtual_time import run_in_virtual_time

from karenina_core import ModelConfig, VerificationConfig
from karenina_core.errors import PortError
from karenina_core.values.message import UsageMetadata

FACTS = CallFacts(usage=UsageMetadata(10, 5, 15, cost_usd=0.01))


def model(name: str = "m", **facts: Any) -> ModelConfig:
    return ModelConfig(model_name=name, interface="openai_endpoint", endpoint_base_url="http://host/v1", **facts)


def call(text: str = "", task: str = "generation") -> StoredCall:
    return StoredCall("key", 0, Request("llm", {}, task, 1, ({"role": "user", "content": text},)))


def gateway(*answering: ModelConfig, **facts: Any) -> Gateway:
    return Gateway(VerificationConfig(answering_models=answering, **facts))


def now() -> float:
    return asyncio.get_running_loop().time()


@define(eq=False)
class Calls:
    """Makes calls and watches them."""

    gateway: Gateway
    order: list[str] = field(factory=list)
    """Who got a place, in order."""
    under_way: dict[str, int] = field(factory=dict)
    peak: dict[str, int] = field(factory=dict)
    begun: list[tuple[float, str]] = field(factory=list)

    async def make(
        self,
        lane: Lane,
        name: str = "m",
        work: Callable[[], Awaitable[Any]] | float = 1.0,
        facts: CallFacts = FACTS,
        label: str = "",
        text: str = "",
    ) -> None:
        place = await lane.enter(call(text))
        self.order.append(label or name)
        self.begun.append((now(), name))
        for key in (name, "all"):
            self.under_way[key] = self.under_way.get(key, 0) + 1
            self.peak[key] = max(self.peak.get(key, 0), self.under_way[key])
        told, failure = None, None
        try:
            await (asyncio.sleep(work) if isinstance(work, float) else work())
            told = facts
        except BaseException as error:
            failure = error
            raise
        finally:
            for key in (name, "all"):
                self.under_way[key] -= 1
            place.leave(told, failure)


async def place_in(lane: Lane) -> Place:
    """A place of another task than this one."""
    return await asyncio.create_task(lane.enter(call()))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


def run(main: Callable[[], Awaitable[Any]]) -> Any:
    async def whole() -> Any:
        return await main()

    return run_in_virtual_time(whole())


@given(
    most=st.none() | st.integers(1, 6),
    caps=st.none() | st.integers(1, 4) | st.fixed_dictionaries({}, optional={"a": st.integers(1, 4)}),
    calls=st.lists(
        st.tuples(st.sampled_from("abc"), st.floats(0.0, 2.0), st.floats(0.0, 3.0), st.booleans()), max_size=30
    ),
)
@settings(max_examples=60, deadline=None)
def test_never_more_under_way_than_allowed_whoever_is_cancelled_or_fails(
    most: int | None, caps: Any, calls: list[tuple[str, float, float, bool]]
) -> None:
    async def main() -> tuple[Calls, int]:
        way = gateway(model("a"), model("b"), max_concurrent_requests=most, answerer_concurrency_limits=caps)
        lanes = {name: way.lane(model(name)) for name in "abc"}
        made = Calls(way)

        async def one(name: str, begins: float, takes: float, cancelled: bool) -> None:
            await asyncio.sleep(begins)
            task = asyncio.create_task(made.make(lanes[name], name, takes))
            if cancelled:
                await asyncio.sleep(takes / 2)
                task.cancel()
            await asyncio.wait({task})

        await asyncio.gather(*(one(*facts) for facts in calls))
        return made, way.under_way

    made, left = run(main)
    limits = {"a": caps, "b": caps} if isinstance(caps, int) else (caps or {})
    assert left == 0
    assert made.peak.get("all", 0) <= (most or 10**6)
    assert all(made.peak.get(name, 0) <= limit for name, limit in limits.items() if limit)


def test_the_first_to_come_is_the_first_to_be_let_in() -> None:
    async def main() -> list[str]:
        way = gateway(max_concurrent_requests=2)
        lane, made = way.lane(model()), Calls(way)
        await asyncio.gather(*(made.make(lane, label=str(number)) for number in range(20)))
        return made.order

    assert run(main) == [str(number) for number in range(20)]


def test_models_that_wait_for_each_other_take_turns() -> None:
    async def main() -> list[str]:
        way = gateway(max_concurrent_requests=1)
        lanes, made = {name: way.lane(model(name)) for name in "abc"}, Calls(way)
        many = [made.make(lanes["a"], "a") for _ in range(6)]
        few = [made.make(lanes[name], name) for name in "bcbc"]
        await asyncio.gather(*many, *few)
        return made.order

    assert "".join(run(main)) == "aabcabcaaa"


def test_a_model_with_one_place_and_a_run_with_many_do_not_hold_each_other_up() -> None:
    async def main() -> float:
        way = gateway(model("a"), max_concurrent_requests=3, answerer_concurrency_limits={"a": 1})
        lanes, made = {name: way.lane(model(name)) for name in "ab"}, Calls(way)
        slow = [made.make(lanes["a"], "a", 10.0) for _ in range(3)]
        await asyncio.gather(*slow, *(made.make(lanes["b"], "b", 1.0) for _ in range(20)))
        return max(at for at, name in made.begun if name == "b")

    assert run(main) == 9.0


def test_what_is_reached_in_the_same_way_is_one_lane_whatever_its_id_and_role() -> None:
    async def main() -> tuple[Calls, list[str]]:
        way = gateway(model("a", id="mine"), answerer_concurrency_limits={"mine": 2})
        made = Calls(way)
        lanes = [way.lane(model("a", id=name, temperature=0.5)) for name in ("mine", "judge", "other")]
        await asyncio.gather(*(made.make(lane, "a") for lane in lanes * 3))
        return made, list(way.history())

    made, lanes = run(main)
    assert made.peak["a"] == 2
    assert lanes == ["openai_endpoint:a at http://host/v1"]


@pytest.mark.parametrize(
    "other",
    [
        {"model_name": "b"},
        {"model_provider": "p"},
        {"endpoint_base_url": "http://other/v1"},
        {"endpoint_api_key": "another key"},
        {"interface": "litellm"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_model_provider_address_or_key_is_another_lane(other: dict[str, Any]) -> None:
    async def main() -> tuple[int, list[str]]:
        usual: dict[str, Any] = {
            "model_name": "a",
            "interface": "openai_endpoint",
            "endpoint_base_url": "http://host/v1",
        }
        way = gateway(ModelConfig(**usual), answerer_concurrency_limits=1)
        made = Calls(way)
        lanes = [way.lane(ModelConfig(**usual)), way.lane(ModelConfig(**{**usual, **other}))]
        await asyncio.gather(*(made.make(lane) for lane in lanes * 3))
        return made.peak["all"], list(way.history())

    peak, names = run(main)
    assert peak > 1
    assert len(set(names)) == 2
    assert "another key" not in str(names)


def test_of_two_configurations_of_one_lane_the_lower_limit_counts() -> None:
    async def main() -> list[float]:
        way = gateway()
        made = Calls(way)
        lanes = [way.lane(model(requests_per_minute=rate, id=str(rate))) for rate in (600.0, 60.0, 6000.0)]
        await asyncio.gather(*(made.make(lane) for lane in lanes))
        return [at for at, _ in made.begun]

    assert run(main) == pytest.approx([0.0, 1.0, 2.0])


def test_calls_per_minute_are_kept_and_none_is_lost() -> None:
    async def main() -> list[float]:
        way = gateway()
        lane, made = way.lane(model(requests_per_minute=120)), Calls(way)
        await asyncio.gather(*(made.make(lane, work=30.0) for _ in range(301)))
        return [at for at, _ in made.begun]

    begun = run(main)
    assert max(sum(at <= other < at + 60.0 - 1e-6 for other in begun) for at in begun) == 120
    assert begun[-1] == pytest.approx(150.0, rel=0.01)


def test_tokens_per_minute_are_estimated_first_and_corrected_by_what_a_call_took() -> None:
    async def main(took: int) -> float:
        way = gateway()
        lane, made = way.lane(model(tokens_per_minute=6000, max_tokens=200)), Calls(way)
        facts = CallFacts(usage=UsageMetadata(300, took, 300 + took))  # and not the hundred that the text suggests
        for _ in range(61):
            await made.make(lane, work=0.1, facts=facts, text="x" * 400)
        return made.begun[-1][0]

    assert run(lambda: main(100)) == pytest.approx(240.0, rel=0.05)
    assert run(lambda: main(500)) == pytest.approx(480.0, rel=0.05)


def test_a_wait_that_a_failing_provider_asks_for_holds_for_every_call_of_the_model_and_for_no_other() -> None:
    async def refuse() -> None:
        raise PortError("in maintenance", kind="server", status=500, retry_after=2.75)

    async def main() -> list[tuple[float, str]]:
        way = gateway()
        lanes, made = {name: way.lane(model(name)) for name in "ab"}, Calls(way)
        with pytest.raises(PortError):
            await made.make(lanes["a"], "a", refuse)
        await asyncio.gather(*(made.make(lanes[name], name, 0.1) for name in "aaab"))
        return made.begun[1:]

    begun = run(main)
    assert begun[0] == (0.0, "b")
    assert all(at >= 2.75 for at, name in begun if name == "a")


def test_a_place_that_was_given_in_the_moment_of_such_a_failure_is_not_used() -> None:
    async def main() -> list[float]:
        way = gateway(max_concurrent_requests=2)
        lane, made = way.lane(model()), Calls(way)
        held = [await place_in(lane) for _ in range(2)]
        waiting = [asyncio.create_task(made.make(lane, label=str(n))) for n in range(3)]
        await settle()
        held[0].leave(FACTS, None)  # somebody is given its place, and has not begun yet
        held[1].leave(None, PortError("in maintenance", kind="server", status=500, retry_after=5.0))
        await asyncio.wait(waiting)
        assert made.order == ["0", "1", "2"]
        return [at for at, _ in made.begun]

    assert min(run(main)) >= 5.0


@pytest.mark.parametrize("status", [503, 529])
def test_a_server_that_says_it_is_overloaded_is_left_alone_and_one_that_fails_is_not(status: int) -> None:
    async def main(status: int) -> float:
        async def fail() -> None:
            raise PortError("no", kind="server", status=status)

        way = gateway()
        lane, made = way.lane(model()), Calls(way)
        with pytest.raises(PortError):
            await made.make(lane, work=fail)
        await made.make(lane)
        return made.begun[1][0]

    assert run(lambda: main(status)) == pytest.approx(0.1)
    assert run(lambda: main(500)) == 0.0


def test_any_failure_may_ask_for_a_wait_and_only_one_for_want_of_room_lowers_the_limit() -> None:
    async def main() -> tuple[float, list[Any]]:
        async def fail() -> None:
            raise PortError("in maintenance", kind="server", status=500, retry_after=2.5)

        way = gateway()
        lane, made = way.lane(model()), Calls(way)
        with pytest.raises(PortError):
            await made.make(lane, work=fail)
        await made.make(lane)
        (moments,) = way.history().values()
        return made.begun[1][0], [moment["limit"] for moment in moments]

    assert run(main) == (2.5, [MOST_AT_FIRST, MOST_AT_FIRST])


def test_a_longer_wait_than_a_call_has_is_told_at_once() -> None:
    async def main() -> PortError:
        way = gateway(retry_max_elapsed_seconds=60.0)
        lane = way.lane(model())
        first = await place_in(lane)
        first.leave(None, PortError("tomorrow", kind="rate_limited", retry_after=86400.0))
        with pytest.raises(PortError) as caught:
            await lane.enter(call())
        return caught.value

    error = run(main)
    assert (error.kind, error.retry_after) == ("rate_limited", 86400.0)
    assert "86400 s" in str(error)
    assert "retry_max_elapsed_seconds" in str(error)


def test_such_a_wait_closes_the_way_to_that_model_for_all_who_wait_and_to_no_other() -> None:
    async def main() -> tuple[list[Any], Gateway, PortError]:
        way = gateway(model("a"), answerer_concurrency_limits=1, retry_max_elapsed_seconds=120.0)
        lanes = {name: way.lane(model(name)) for name in "ab"}
        first = await place_in(lanes["a"])
        made = Calls(way)
        waiting = [asyncio.create_task(made.make(lanes[name], name)) for name in "aaab"]
        await settle()
        refused = PortError("later", kind="rate_limited", retry_after=300.0)
        first.leave(None, refused)
        told = await asyncio.gather(*waiting, return_exceptions=True)
        assert now() == 1.0, "nobody waits, except for the answer of the other"
        await asyncio.sleep(1000.0)
        with pytest.raises(PortError, match="300 s"):
            await lanes["a"].enter(call())
        return told, way, refused

    told, way, refused = run(main)
    assert [getattr(error, "final", None) for error in told] == [True, True, True, None]
    assert refused.not_counted, "it is told the same when it asks again"
    assert (way.is_closed(model("a")), way.is_closed(model("b")), way.is_closed(model("c"))) == (True, False, False)
    (why,) = way.left_undone
    assert re.search(r"^openai_endpoint:a .* of 300 s \(until \d{4}-\d\d-\d\d \d\d:\d\d:\d\d\)", why)


def test_a_provider_that_works_on_long_calls_and_takes_no_others_is_not_given_up() -> None:
    async def main() -> tuple[float, tuple[str, ...]]:
        way = gateway(retry_max_elapsed_seconds=120.0)
        lane, other, made = way.lane(model("a")), way.lane(model("b")), Calls(way)
        long, refused = await place_in(lane), await place_in(lane)
        await asyncio.sleep(0.1)
        refused.leave(None, PortError("one at a time", kind="rate_limited"))
        waiting = asyncio.create_task(made.make(lane))
        await asyncio.sleep(150.0)
        await made.make(other, "b")  # whenever a call ends, somebody looks who may begin
        long.leave(FACTS, None)
        await waiting
        return made.begun[-1][0], way.left_undone

    assert run(main) == (pytest.approx(151.1), ())


def test_a_pause_that_nobody_asked_for_is_not_told_as_one() -> None:
    async def main() -> PortError:
        way = gateway(retry_max_elapsed_seconds=0.05)
        lane = way.lane(model())
        for at in (0.0, 0.5):  # and the lane pauses for 0.1 s, then for 0.2 s
            await asyncio.sleep(at)
            (await place_in(lane)).leave(None, PortError("slowly", kind="rate_limited"))
        with pytest.raises(PortError) as caught:
            await lane.enter(call())
        assert now() == pytest.approx(0.7)
        return caught.value

    assert "has refused every call" in str(run(main))


@pytest.mark.parametrize(
    ("answered", "not_counted"), [("", [False, False]), ("before", [False, False]), ("since", [False, True])]
)
def test_a_refusal_by_a_provider_that_has_answered_others_since_the_first_one_uses_up_no_attempt(
    answered: str, not_counted: list[bool]
) -> None:
    async def main() -> list[PortError]:
        lane, attempts = gateway().lane(model()), Attempts(count=1)
        refusals: list[PortError] = []
        if answered == "before":
            (await place_in(lane)).leave(FACTS, None)
        for number in range(2):
            await asyncio.sleep(2.0)
            if answered == "since" and number:
                (await place_in(lane)).leave(FACTS, None)
                await asyncio.sleep(2.0)
            this_call.set(attempts)
            place = await place_in(lane)
            this_call.set(None)
            refusals.append(PortError("slowly", kind="rate_limited", retry_after=1.0))
            place.leave(None, refusals[-1])
        return refusals

    refusals = run(main)
    assert all(refused.queued for refused in refusals), "the wait is no time of the call"
    assert [refused.not_counted for refused in refusals] == not_counted


def test_no_wait_is_too_long_to_be_told() -> None:
    async def main() -> tuple[str, ...]:
        way = gateway()
        (await place_in(way.lane(model()))).leave(None, PortError("never", kind="rate_limited", retry_after=1e300))
        with pytest.raises(PortError, match="pause"):
            await way.lane(model()).enter(call())
        return way.left_undone

    assert "until" not in run(main)[0]


def test_a_cancelled_call_that_was_just_given_its_place_gives_it_back() -> None:
    async def main() -> tuple[int, list[str]]:
        way = gateway(model(), max_concurrent_requests=1)
        lane, made = way.lane(model(requests_per_minute=60)), Calls(way)
        held = await place_in(lane)
        first, second = (asyncio.create_task(made.make(lane, label=name)) for name in ("first", "second"))
        await asyncio.sleep(1.0)
        held.leave(FACTS, None)
        first.cancel()
        await asyncio.wait({first, second})
        assert first.cancelled()
        assert now() == pytest.approx(2.0), "the second one begins at once: the first used up nothing"
        return way.under_way, made.order

    assert run(main) == (0, ["second"])


def test_work_that_has_a_place_takes_no_second_one_for_what_it_asks_itself() -> None:
    async def main() -> Calls:
        way = gateway(max_concurrent_requests=1)
        lane, made = way.lane(model("a")), Calls(way)
        other = way.lane(model("b"))

        async def agent() -> None:
            await asyncio.gather(made.make(other, "b"), made.make(lane, "a"))

        await asyncio.gather(*(made.make(lane, "a", agent) for _ in range(3)))
        assert way.under_way == 0
        assert way.budget.calls == 9
        return made

    assert len(run(main).order) == 9


def test_what_work_asks_itself_is_held_back_by_the_provider_all_the_same() -> None:
    async def main() -> float:
        way = gateway()
        lane, made = way.lane(model()), Calls(way)

        async def agent() -> None:
            failed = await way.lane(model()).enter(call())
            failed.leave(None, PortError("in maintenance", kind="server", status=500, retry_after=3.0))
            await made.make(lane)

        await made.make(lane, work=agent)
        return made.begun[-1][0]

    assert run(main) >= 3.0


def test_a_task_that_outlives_the_work_needs_a_place_of_its_own() -> None:
    async def main() -> int:
        way = gateway(max_concurrent_requests=1)
        lane, made = way.lane(model()), Calls(way)
        left: list[asyncio.Task[None]] = []

        async def agent() -> None:
            async def later() -> None:
                await asyncio.sleep(1.5)
                await asyncio.gather(*(made.make(lane) for _ in range(3)))

            left.append(asyncio.create_task(later()))
            await asyncio.sleep(1.0)

        await made.make(lane, work=agent)
        await left[0]
        return made.peak["all"]

    assert run(main) == 1


# Draining


def test_a_drained_gateway_begins_nothing_and_is_quiet_when_what_it_began_has_ended() -> None:
    async def main() -> tuple[float, list[str]]:
        way = gateway(max_concurrent_requests=2)
        lane, made = way.lane(model()), Calls(way)
        tasks = [asyncio.create_task(made.make(lane, work=float(n + 1), label=str(n))) for n in range(5)]
        await settle()
        way.drain()
        await way.quiet()
        at = now()
        await asyncio.sleep(100.0)
        assert made.order == ["0", "1"]
        for task in tasks[2:]:
            assert not task.done()
            task.cancel()
        await asyncio.wait(tasks)
        assert way.under_way == 0
        return at, made.order

    assert run(main) == (2.0, ["0", "1"])


def test_work_under_way_may_end_while_draining_whatever_it_still_asks() -> None:
    async def main() -> float:
        way = gateway(max_concurrent_requests=1)
        lane, made = way.lane(model()), Calls(way)

        async def agent() -> None:
            await asyncio.sleep(1.0)
            await made.make(lane)

        task = asyncio.create_task(made.make(lane, work=agent))
        await settle()
        way.drain()
        await way.quiet()
        await task
        return now()

    assert run(main) == 2.0


def test_an_idle_gateway_is_quiet() -> None:
    async def main() -> float:
        await gateway().quiet()
        return now()

    assert run(main) == 0.0


def test_whoever_waits_for_quiet_may_be_cancelled() -> None:
    async def main() -> bool:
        way = gateway()
        place = await place_in(way.lane(model()))
        waiting = asyncio.create_task(way.quiet())
        await settle()
        waiting.cancel()
        await asyncio.wait({waiting})
        place.leave(FACTS, None)
        await way.quiet()
        return waiting.cancelled()

    assert run(main)


# What is told


def test_leaving_twice_counts_once() -> None:
    async def main() -> tuple[int, int]:
        way = gateway()
        place = await place_in(way.lane(model()))
        place.leave(FACTS, None)
        place.leave(FACTS, None)
        return way.budget.calls, way.under_way

    assert run(main) == (1, 0)


def test_the_history_says_when_the_limit_changed_and_why_and_is_bounded() -> None:
    async def main() -> dict[str, Any]:
        way = gateway()
        lane, made = way.lane(model()), Calls(way)

        async def refuse() -> None:
            await asyncio.sleep(0.1)
            raise PortError("slowly", kind="rate_limited")

        for number in range(1000):
            tasks = [made.make(lane, work=refuse if number % 2 else 0.1) for _ in range(3)]
            await asyncio.gather(*tasks, return_exceptions=True)
        return way.history()

    (moments,) = run(main).values()
    assert moments[0] == {"at": 0.0, "limit": MOST_AT_FIRST, "why": "start"}
    assert moments[-1]["why"] == "now"
    assert {moment["why"] for moment in moments} == {"start", "rate_limited", "grown", "now"}
    assert [moment["at"] for moment in moments] == sorted(moment["at"] for moment in moments)
    assert 50 < len(moments) <= 201


def test_a_gateway_that_was_never_used_has_no_history() -> None:
    way = gateway()
    way.lane(model())
    assert way.history() == {}


def test_places_are_places() -> None:
    async def main() -> Place:
        return await gateway().lane(model()).enter(call())

    place: Place = run(main)
    assert callable(place.leave)
