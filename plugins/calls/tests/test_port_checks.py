"""Adapters that are wrong: said before anything is asked, and with the place in their code where a call fails."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

import pytest
from attrs import frozen
from karenina_calls.models.models import open_client
from karenina_calls.ports.port_checks import check_port

from karenina_core import AdapterSpec, Karenina, ModelConfig, hookimpl
from karenina_core.errors import PluginError, PortError
from karenina_core.ports.values import LLMResponse, PortCapabilities

HERE = "test_port_checks.py:"


class Port:
    capabilities = PortCapabilities()

    def __init__(self, config: Any = None) -> None:
        pass

    async def ainvoke(self, messages: Any, *, output: Any = None, temperature: Any = None, call: Any = None) -> Any:
        return LLMResponse(content="Paris")

    async def aclose(self) -> None:
        pass


class Without(Port):
    capabilities = None  # type: ignore[assignment]  # that is the fault


class Odd(Port):
    capabilities = PortCapabilities(output_channels=("json", "text"))  # type: ignore[arg-type]  # or that


class Broken(Port):
    @property
    def capabilities(self) -> PortCapabilities:  # type: ignore[override]
        raise KeyError("out")


class Narrow(Port):
    async def ainvoke(self, messages: Any) -> Any:  # type: ignore[override]
        return LLMResponse(content="Paris")


class Silent:
    capabilities = PortCapabilities()


@pytest.mark.parametrize(
    ("port", "said", "placed"),
    [
        (Without, "Without has no capabilities; write `capabilities = PortCapabilities()` in it", True),
        (Odd, "no output channel is called 'json'; available: json_schema, tool_call, json_object, text", True),
        (Broken, "Broken.capabilities failed: KeyError: 'out' (", True),
        (
            Narrow,
            "Narrow.ainvoke does not accept the arguments it is called with; write `async def ainvoke(self, messages",
            True,
        ),
        (Silent, "Silent has no ainvoke; write `async def ainvoke(self, messages, *, output=None", True),
        (lambda: None, "NoneType has no ainvoke", False),
    ],
)
def test_what_is_no_port_is_refused(port: Callable[[], Any], said: str, placed: bool) -> None:
    with pytest.raises(PluginError) as caught:
        check_port("llm", port(), "acme")
    assert str(caught.value).startswith("the llm port of the interface 'acme' cannot be used: ")
    assert said in str(caught.value)
    assert (HERE in str(caught.value)) == placed


def test_a_port_is_taken() -> None:
    check_port("llm", Port(), "acme")


@frozen
class Plugin:
    port: type

    @hookimpl
    def karenina_register_adapters(self, registry: Any) -> None:
        registry.register(AdapterSpec(interface="acme", llm_factory=self.port))


class Texts(Port):
    async def ainvoke(self, messages: Any, *, output: Any = None, temperature: Any = None, call: Any = None) -> Any:
        return "Paris"


class Fails(Port):
    async def ainvoke(self, messages: Any, *, output: Any = None, temperature: Any = None, call: Any = None) -> Any:
        return {}["out"]


class Unmade(Port):
    def __init__(self, config: Any) -> None:
        raise ZeroDivisionError("no")


async def ask(port: type) -> Any:
    app = Karenina({"acme": Plugin(port)})
    async with open_client(ModelConfig(model_name="m", interface="acme"), app=app) as client:
        return await client.invoke("generation", [])


@pytest.mark.parametrize(
    ("port", "said"),
    [(Texts, "Texts.ainvoke must return LLMResponse, not str"), (Fails, "failed: KeyError: 'out' (")],
)
def test_a_call_that_an_adapter_spoils_says_where(port: type, said: str) -> None:
    with pytest.raises(PortError) as caught:
        asyncio.run(ask(port))
    assert caught.value.kind == "plugin"
    assert said in str(caught.value)
    assert HERE in str(caught.value)


def test_a_port_that_cannot_be_made_says_where() -> None:
    with pytest.raises(
        PluginError, match=r"cannot be made: ZeroDivisionError: no \(.*test_port_checks\.py:\d+ in __init__"
    ):
        asyncio.run(ask(Unmade))
