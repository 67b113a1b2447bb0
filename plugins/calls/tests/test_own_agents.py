"""Agents that adapters bring along: under a clock, on the account whatever happens, and believed only what is sound."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from attrs import define, evolve
from karenina_calls.ports.client import Model, ModelClient
from karenina_calls.tools import agent_loop as own_agent

from karenina_core import ModelConfig
from karenina_core.errors import PortError
from karenina_core.ports.model_client import CallRecord
from karenina_core.ports.values import AgentConfig, AgentResult, PortCapabilities
from karenina_core.values.message import Message, UsageMetadata

SHORT = AgentConfig(timeout=0.03)
ASKED = [Message.user("Work!")]
PART = AgentResult(final_response="so far", raw_trace="so far", usage=UsageMetadata(5, 1, 6, 0.25), turns=2)


@define(eq=False)
class Agent:
    """An agent whose work is a function."""

    work: Callable[[], Awaitable[Any]]
    capabilities = PortCapabilities()

    async def arun(self, *given: Any, **named: Any) -> Any:
        return await self.work()

    async def aclose(self) -> None: ...


def worked(work: Callable[[], Awaitable[Any]], config: AgentConfig = SHORT, **facts: Any) -> tuple[Any, CallRecord]:
    """What came of it, or what was raised, and the one record of it."""
    model = Model(config=ModelConfig(model_name="m", interface="own"), agent=Agent(work), **facts)
    client = ModelClient(model, [], "q1", "Why?")

    async def run() -> Any:
        async with asyncio.timeout(5):
            return await client.run_agent("generation", ASKED, config=config)

    try:
        done = asyncio.run(run())
    except PortError as error:
        done = error
    (record,) = client.calls
    return done, record


@pytest.fixture
def short_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_agent, "GRACE", 0.02)


async def hanging() -> Any:
    await asyncio.Event().wait()


async def returning_its_work() -> Any:
    try:
        await hanging()
    except asyncio.CancelledError:
        return PART


async def raising_its_work() -> Any:
    try:
        await hanging()
    except asyncio.CancelledError:
        error = PortError("ended in the middle", kind="agent")
        error.evidence = {"agent_result": PART}
        raise error from None


async def breaking_when_it_is_ended() -> Any:
    try:
        await hanging()
    except asyncio.CancelledError:
        raise ValueError("the connection is gone") from None


@pytest.mark.usefixtures("short_grace")
@pytest.mark.parametrize(
    ("work", "response"),
    [
        (hanging, ""),
        (returning_its_work, "so far"),
        (raising_its_work, "so far"),
        (breaking_when_it_is_ended, ""),
    ],
)
def test_an_agent_whose_time_is_up_is_ended_and_what_it_offers_is_kept(work: Any, response: str) -> None:
    done, record = worked(work)
    assert (done.limit, done.final_response, done.usage_unavailable) == ("time", response, True)
    assert (record.attempts, record.error_kind, record.usage_unavailable) == (1, None, True)
    assert record.usage == done.usage


def test_an_agent_has_a_grace_to_end_its_work_itself() -> None:
    async def late() -> AgentResult:
        await asyncio.sleep(0.06)
        return evolve(PART, limit="time")

    done, record = worked(late)
    assert (done.final_response, done.usage_unavailable, record.usage_unavailable) == ("so far", False, False)
    assert own_agent.GRACE >= 5, "a program has to be ended, and its last words read"


@pytest.mark.usefixtures("short_grace")
def test_without_a_time_limit_an_agent_is_not_ended() -> None:
    async def slow() -> AgentResult:
        await asyncio.sleep(0.1)
        return PART

    assert worked(slow, AgentConfig(timeout=None))[0] == PART


class Odd(Exception):
    """Of a provider's library."""


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (ValueError("boom"), "plugin"),
        (ConnectionResetError("gone"), "connection"),
        (TimeoutError("slow"), "timeout"),
        (Odd("wait"), "rate_limited"),
        (PortError("who are you", kind="auth"), "auth"),
    ],
)
def test_a_failed_agent_has_a_kind_and_is_on_the_account(error: Exception, kind: str) -> None:
    async def failing() -> Any:
        raise error

    done, record = worked(failing, classify=lambda error: "rate_limited" if isinstance(error, Odd) else None)
    assert isinstance(done, PortError)
    assert (done.kind, record.error_kind, record.attempts) == (kind, kind, 1)
    assert kind == "auth" or "'own'" in str(done)
    assert record.usage_unavailable == (kind == "timeout")  # the others cost nothing


@pytest.mark.parametrize(
    "reply",
    [
        None,
        {"final_response": "x"},
        "x",
        AgentResult(final_response=None),  # type: ignore[arg-type]  # what an adapter may do
        AgentResult(final_response="x", usage={"input_tokens": 1}),  # type: ignore[arg-type]
        AgentResult(final_response="x", trace_messages=[Message.assistant("x")]),  # type: ignore[arg-type]
        AgentResult(final_response="x", trace_messages=("x",)),  # type: ignore[arg-type]
    ],
)
def test_what_is_no_result_of_an_agent_is_the_adapters_fault(reply: Any) -> None:
    async def careless() -> Any:
        return reply

    done, record = worked(careless)
    assert isinstance(done, PortError)
    assert (done.kind, record.error_kind) == ("plugin", "plugin")
    assert "the adapter 'own' returned no proper reply" in str(done)


def test_what_a_failed_agent_did_is_paid_for() -> None:
    async def failing() -> Any:
        error = PortError("broken off", kind="agent")
        error.evidence = {"agent_result": PART}
        raise error

    record = worked(failing)[1]
    assert (record.usage, record.usage_unavailable) == (PART.usage, True), "what the last call took is unknown"


def test_an_interrupted_agent_is_on_the_account() -> None:
    client = ModelClient(Model(config=ModelConfig(model_name="m", interface="own"), agent=Agent(hanging)), [], "q", "?")

    async def run() -> None:
        task = asyncio.create_task(client.run_agent("generation", ASKED))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(run())
    (record,) = client.calls
    assert (record.error_kind, record.attempts, record.usage_unavailable) == ("cancelled", 1, True)
