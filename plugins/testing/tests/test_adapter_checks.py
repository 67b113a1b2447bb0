"""Adapters that keep their promises pass every check; a planted fault is found by its own check, with the line."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from attrs import evolve
from karenina_calls.ports.structured import StructuredParser
from karenina_openai_endpoint.port import CAPABILITIES, OpenAIEndpoint
from karenina_testing.plugins import declared_options

from karenina_core import AdapterSpec, Karenina, ModelConfig
from karenina_core.errors import ConfigError, ParseError
from karenina_core.ports import UsageMetadata
from karenina_core.ports.values import LLMResponse, ParsePortResult
from karenina_core.testing import ScriptedLLM, adapter_checks, check_adapter


def spec_of(interface: str) -> AdapterSpec:
    return Karenina.default().adapters.get_spec(interface)


def test_recorded_answers_pass() -> None:
    check_adapter(spec_of("manual"), **declared_options("manual")["manual"])


@pytest.mark.parametrize("interface", ["langchain_deep_agents", "openrouter"])
def test_a_route_has_no_ports_to_check(interface: str) -> None:
    assert [check.name for check in adapter_checks(spec_of(interface))] == ["spec"]
    check_adapter(spec_of(interface))


def test_a_scripted_model_is_an_adapter_without_a_server() -> None:
    spec = ScriptedLLM(lambda call: "Paris").adapter(description="written replies")
    config = ModelConfig(model_name="m", interface="scripted")
    assert [check.name for check in adapter_checks(spec, config=config)][-1] == "reply"
    check_adapter(spec, config=config)


def test_a_factory_that_is_listed_must_be_light(planted: Callable[[str], ModuleType], failure: Any) -> None:
    message = failure(adapter_checks(planted("retries").SPEC), "light_import")
    assert "imports aiohttp" in message
    assert 'llm_factory="' in message


def test_what_is_wrong_with_a_spec_is_said(failure: Any) -> None:
    spec = AdapterSpec(
        interface="broken",
        description="has a factory that does not exist",
        llm_factory="karenina_core.ports:NoSuchPort",
        requires_modules=("json",),
    )
    assert "install_hint" in failure(adapter_checks(spec), "spec")


def test_an_adapter_that_cannot_be_configured_asks_for_a_configuration() -> None:
    with pytest.raises(ConfigError, match=r"recorded answers with config=ModelConfig\(manual_traces=\.\.\.\)"):
        adapter_checks(spec_of("manual"))


class Shouted:
    """A port that raises what it likes without being asked over a network."""

    def __init__(self, config: ModelConfig) -> None:
        self.capabilities = ScriptedLLM("x").capabilities

    async def ainvoke(
        self, messages: Any, *, output: Any = None, temperature: Any = None, call: Any = None
    ) -> LLMResponse:
        raise ZeroDivisionError("a bug")

    async def aclose(self) -> None:
        """There is nothing to close."""


def test_without_a_server_a_call_must_still_raise_port_errors(failure: Any) -> None:
    spec = AdapterSpec(interface="scripted", description="has a bug", llm_factory=Shouted)
    checks = adapter_checks(spec, config=ModelConfig(model_name="m", interface="scripted"))
    assert "ZeroDivisionError" in failure(checks, "reply")


class Texts(OpenAIEndpoint):
    async def ainvoke(self, *arguments: Any, **options: Any) -> Any:
        return (await super().ainvoke(*arguments, **options)).content


class Data(Shouted):
    async def aparse(self, messages: Any, schema: Any, *, call: Any = None) -> Any:
        return {"capital": "Paris"}


class Done(Shouted):
    async def arun(
        self, messages: Any, tools: Any = (), mcp_servers: Any = None, config: Any = None, *, call: Any = None
    ) -> Any:
        return "done"


@pytest.mark.parametrize(
    ("factory", "check", "said"),
    [
        ({"llm_factory": Texts}, "success", "ainvoke returned 'Paris'"),
        ({"llm_factory": Texts}, "tools", "return LLMResponse, from karenina_core.ports"),
        ({"parser_factory": Data}, "reply", "return ParsePortResult, from karenina_core.ports"),
        ({"agent_factory": Done}, "reply", "return AgentResult, from karenina_core.ports"),
    ],
)
def test_a_wrong_return_type_is_named(factory: Any, check: str, said: str, failure: Any) -> None:
    spec = AdapterSpec(interface="scripted", description="returns something else", **factory)
    config = ModelConfig(model_name="m", interface="scripted") if check == "reply" else None
    message = failure(adapter_checks(spec, config=config), check)
    assert said in message
    assert "test_adapter_checks.py:" in message


def parser(config: ModelConfig) -> StructuredParser:
    return StructuredParser(OpenAIEndpoint(config))


class Guessing(StructuredParser):
    """Makes something up where a reply holds no data."""

    async def aparse(self, messages: Any, schema: Any, *, call: Any = None) -> ParsePortResult:
        try:
            return await super().aparse(messages, schema, call=call)
        except ParseError:
            return ParsePortResult(data={"capital": "Rome"})


@pytest.mark.usefixtures("looked_at_here")
def test_an_adapter_may_be_a_parser_only(failure: Any) -> None:
    spec = AdapterSpec(interface="parser", description="judges only", parser_factory=parser)
    known = {"light_import": "this file imports its adapter"}
    check_adapter(spec, expected_failures=known)
    guessing = AdapterSpec(
        interface="parser", description="guesses", parser_factory=lambda config: Guessing(OpenAIEndpoint(config))
    )
    assert "raise ParseError" in failure(adapter_checks(guessing), "parsed")


class Toolless:
    """A port that was written before there were tools."""

    capabilities = evolve(CAPABILITIES, supports_tools=False, supports_streaming=False)

    def __init__(self, config: ModelConfig) -> None:
        self.inner = OpenAIEndpoint(config)

    async def ainvoke(
        self, messages: Any, *, output: Any = None, temperature: Any = None, call: Any = None
    ) -> LLMResponse:
        return await self.inner.ainvoke(messages, output=output, temperature=temperature, call=call)

    async def aclose(self) -> None:
        await self.inner.aclose()


@pytest.mark.usefixtures("looked_at_here")
def test_a_port_without_tools_need_not_know_them() -> None:
    spec = AdapterSpec(interface="toolless", description="takes no tools", llm_factory=Toolless)
    check_adapter(spec, expected_failures={"light_import": "this file imports its adapter"})


def test_a_reply_without_usage_is_not_taken_for_free(planted: Callable[[str], ModuleType], failure: Any) -> None:
    message = failure(adapter_checks(planted("careless_reply").SPEC), "unknown_usage")
    assert "usage_unavailable" in message
    assert UsageMetadata().cost_usd is None
