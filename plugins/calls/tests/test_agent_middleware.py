"""Middleware around work with tools: it may hand on other tools, and those know which call they answer."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from attrs import evolve
from karenina_calls.models.models import open_model
from karenina_calls.ports.call_port import Layer
from karenina_calls.ports.client import Model, ModelClient
from karenina_calls.ports.port_calls import AgentCall
from karenina_calls.tools.tool_calls import current_call

from karenina_core import ModelConfig, VerificationConfig, hookimpl
from karenina_core.errors import PluginError, PortError
from karenina_core.ports.middleware import CallTarget, Proceed
from karenina_core.ports.values import AgentResult, LLMResponse, PortCapabilities, Tool, ToolOutcome
from karenina_core.testing import ScriptedLLM, application
from karenina_core.values.message import Message, ToolUseBlock

CALLS = (ToolUseBlock("one", "look", {"at": 1}), ToolUseBlock("two", "look", {"at": 2}))


class Asks:
    """Calls a tool twice at once, then is done."""

    capabilities = PortCapabilities(supports_tools=True)

    async def ainvoke(self, messages: Sequence[Message], *, tools: Sequence[Tool] = (), **_: Any) -> LLMResponse:
        if any(message.role == "tool" for message in messages):
            return LLMResponse(content="done")
        return LLMResponse(content="", tool_calls=CALLS)

    async def aclose(self) -> None: ...


def client(*around: Any) -> ModelClient:
    config = ModelConfig(model_name="m", interface="i")
    layers = [Layer(one, plugin="front") for one in around]
    return ModelClient(Model(config=config, llm=Asks(), around_work=layers), [])  # type: ignore[arg-type]  # a small port


def test_wrappers_nest_and_tools_know_their_call() -> None:
    seen: list[str] = []

    async def look(arguments: Mapping[str, Any]) -> ToolOutcome:
        await asyncio.sleep(0.01)
        call = current_call.get()
        seen.append(f"{call.id if call else None} at {arguments['at']}")
        return ToolOutcome("seen")

    def named(name: str) -> Any:
        async def around(call: AgentCall, proceed: Proceed) -> AgentResult:
            assert (call.target.kind, call.target.name) == ("work", "i")
            seen.append(f"{name} before {call.context.task if call.context else None}")
            result = await proceed(evolve(call, tools=[evolve(tool, description=name) for tool in call.tools]))
            seen.append(f"{name} after {result.final_response}")
            return result

        return around

    async def main() -> None:
        await client(named("a"), named("b")).run_agent(
            "generation", [Message.user("Look")], [Tool(name="look", run=look)]
        )
        assert current_call.get() is None

    asyncio.run(main())
    assert seen[:2] == ["a before generation", "b before generation"]
    assert sorted(seen[2:4]) == ["one at 1", "two at 2"]
    assert seen[4:] == ["b after done", "a after done"]


def test_what_a_wrapper_raises_is_the_agent_runs_error_and_on_record() -> None:
    async def around(call: AgentCall, proceed: Proceed) -> AgentResult:
        raise PortError("not today", kind="plugin")

    asked = client(around)
    with pytest.raises(PortError, match="not today"):
        asyncio.run(asked.run_agent("generation", [Message.user("Look")]))
    assert [record.error_kind for record in asked.calls] == ["plugin"]


def test_a_wrapper_that_gives_back_no_result_is_an_error_and_on_record() -> None:
    async def around(call: AgentCall, proceed: Proceed) -> None:
        await proceed(call)

    asked = client(around)
    with pytest.raises(
        PortError, match=r"plugin 'front' returned no AgentResult \(NoneType\); it has to return what proceed"
    ):
        asyncio.run(asked.run_agent("generation", [Message.user("Look")], [Tool(name="look", run=None)]))
    assert [record.error_kind for record in asked.calls] == ["plugin"]


@pytest.mark.parametrize(
    ("returned", "problem"), [(lambda: 3, "must return a coroutine function"), (lambda: 1 / 0, "ZeroDivisionError")]
)
def test_a_hook_that_cannot_wrap_ends_the_run_before_any_call(returned: Any, problem: str) -> None:
    class Wraps:
        @hookimpl
        def karenina_wrap_call(self, target: CallTarget) -> Any:
            return returned() if target.kind == "work" else None

    llm = ScriptedLLM("never")
    app = application(llm.adapter("i"), Wraps())
    with pytest.raises(PluginError, match=f"karenina_wrap_call of plugin 'Wraps' .*{problem}"):
        asyncio.run(open_model(app, VerificationConfig(), ModelConfig(model_name="m", interface="i")))
    assert llm.calls == []
