"""What calls of one model share, and what is told about it."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.limits.budget import Estimate
from karenina_calls.limits.limiter import Gateway
from karenina_calls.limits.queues import MOST_MOMENTS, History, LaneKey, LaneState, Taken, Waiter
from karenina_calls.metering import Metering
from karenina_calls.ports.call_port import CallPort
from karenina_calls.ports.stored_calls import CallFacts, Metered

from karenina_core import ModelConfig, VerificationConfig
from karenina_core.errors import PortError
from karenina_core.ports.middleware import CallTarget
from karenina_core.testing import ScriptedLLM
from karenina_core.values.message import UsageMetadata


def model(**facts: Any) -> ModelConfig:
    usual: dict[str, Any] = {"model_name": "m", "interface": "openai_endpoint", "endpoint_base_url": "http://host/v1"}
    return ModelConfig(**{**usual, **facts})


def test_how_a_model_is_asked_is_no_part_of_how_it_is_reached() -> None:
    other = model(id="other", temperature=1.0, max_tokens=5, system_prompt="s", extra_kwargs={"top_p": 1})
    assert LaneKey.of(model()) == LaneKey.of(other)


def test_a_key_is_the_same_from_wherever_it_comes_and_is_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARENINA_LANE_KEY", "secret-of-the-lane")
    here, there = model(endpoint_api_key="secret-of-the-lane"), model(api_key_env="KARENINA_LANE_KEY")
    assert LaneKey.of(here) == LaneKey.of(there)
    assert "secret-of-the-lane" not in f"{LaneKey.of(here)} {LaneKey.of(here)!r}"


def test_a_missing_key_is_not_the_lane_s_business(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KARENINA_LANE_KEY", raising=False)
    assert LaneKey.of(model(api_key_env="KARENINA_LANE_KEY")).key is None


def test_a_password_in_an_address_is_not_shown() -> None:
    assert "hidden" not in str(LaneKey.of(model(endpoint_base_url="http://user:hidden@host/v1")))


@given(st.lists(st.floats(1, 100), max_size=1000))
def test_a_history_is_bounded_and_keeps_its_ends(limits: list[float]) -> None:
    history = History()
    for at, limit in enumerate(limits):
        history.add(float(at), limit, "grown")
    assert len(history.moments) < MOST_MOMENTS
    if limits:
        assert (history.moments[0].at, history.moments[-1].at) == (0.0, len(limits) - 1)
        assert all(moment.limit == limits[int(moment.at)] for moment in history.moments)


@given(st.lists(st.tuples(st.booleans(), st.integers(0, 50)), max_size=20, unique=True))
def test_work_that_is_under_way_comes_first_then_who_came_first(arrivals: list[tuple[bool, int]]) -> None:
    lane = LaneState("m")
    for inside, number in arrivals:
        lane.join(Waiter("task", model(), 0, inside, number, 0.0))
    found = [(waiter.inside, waiter.number) for waiter in lane.waiting]
    assert found == sorted(arrivals, key=lambda arrival: (not arrival[0], arrival[1]))


def taken(at: float, tokens: int = 100) -> Taken:
    return Taken("task", model(), Estimate(tokens, 0), at, False)


def test_a_place_that_was_given_and_not_taken_leaves_the_lane_as_it_was() -> None:
    lane = LaneState("m")
    lane.restrict(model(requests_per_minute=60, tokens_per_minute=6000), None)
    first = taken(0.0)
    lane.begin(first)
    lane.ended(first, CallFacts(usage=UsageMetadata(100, 0, 100)), None, 1.0)
    second = taken(10.0)
    lane.begin(second)
    lane.ended(second, None, PortError("slowly", kind="rate_limited"), 10.5)  # from now on calls are spread
    assert lane.wait(first.estimate, 20.0, inside=False) == 0.0
    third = taken(20.0)
    lane.begin(third)
    assert lane.adaptive.wait(0, 20.0) > 0.0
    assert lane.wait(first.estimate, 20.0, inside=True) == pytest.approx(1.0, rel=0.01)
    lane.not_begun(third, 20.0)
    assert lane.wait(first.estimate, 20.0, inside=False) == 0.0
    assert lane.under_way == 0


@pytest.mark.parametrize("needs_provider", [True, False])
def test_only_calls_that_reach_a_provider_need_a_place(needs_provider: bool) -> None:
    port = ScriptedLLM("said")
    port.capabilities = evolve(port.capabilities, needs_provider=needs_provider)
    metering = Metering(lanes=Gateway(VerificationConfig()))
    target = CallTarget.of_model("llm", model())
    (metered,) = metering.around({"llm": CallPort(target, port)}, model())["llm"].layers
    assert isinstance(metered.around, Metered)
    assert (metered.around.lane is not None) == needs_provider


def test_tokens_of_a_refused_call_are_given_back() -> None:
    lane = LaneState("m")
    lane.restrict(model(tokens_per_minute=6000), None)
    call = taken(0.0, tokens=6000)
    lane.begin(call)
    assert lane.wait(Estimate(10, 0), 1.0, inside=True) > 10.0
    lane.ended(call, None, PortError("slowly", kind="rate_limited"), 1.0)
    assert lane.wait(Estimate(10, 0), 2.0, inside=True) == 0.0
