"""One middleware for everything that is called: its order, what it may do, and what is refused."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any

import pytest
from attrs import define, evolve, field
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.models.model_ports import middleware
from karenina_calls.plugin_code import code_behind
from karenina_calls.ports.call_port import CallPort, Layer
from karenina_calls.ports.port_calls import LLMCall, ToolListCall
from karenina_calls.services.embedding import Embeddings
from karenina_calls.tools.search import SearchResult

from karenina_core import Karenina, ModelConfig, hookimpl, neutral
from karenina_core.errors import PluginError, PortError
from karenina_core.ports.middleware import Call, CallKind, CallTarget, Proceed
from karenina_core.ports.values import AgentResult, LLMResponse, ParsePortResult, PortCapabilities, Tool, ToolOutcome
from karenina_core.values.message import Message

MODEL = ModelConfig(model_name="m", interface="i")
ASKED = [Message.user("What is it?")]
REPLIES: Mapping[CallKind, Any] = {
    "llm": LLMResponse(content="said"),
    "parser": ParsePortResult(data={"a": 1}),
    "agent": AgentResult(final_response="done"),
    "embedder": Embeddings(vectors=((1.0,),), model="m"),
    "search": (SearchResult(content="found"),),
    "tool": ToolOutcome("seen"),
}


@define(eq=False)
class Everything:
    """A port of every kind; notes what happens to it."""

    seen: list[str] = field(factory=list)
    capabilities: PortCapabilities = PortCapabilities(output_channels=("json_object", "text"))

    def __getattr__(self, name: str) -> Any:
        kinds = {"ainvoke": "llm", "aparse": "parser", "arun": "agent", "aembed": "embedder", "asearch": "search"}
        if name not in kinds:
            raise AttributeError(name)
        return lambda *_, **__: self._replied(REPLIES[kinds[name]])  # type: ignore[index]  # its values are kinds

    async def _replied(self, reply: Any) -> Any:
        self.seen.append("asked")
        return reply

    async def alist(self) -> Sequence[Tool]:
        return [Tool(name="look", run=lambda _: self._replied(REPLIES["tool"]))]

    def problem(self) -> str:
        return "no key is set"

    async def aopen(self) -> None:
        self.seen.append("opened")

    async def aclose(self) -> None:
        self.seen.append("closed")


def target(kind: CallKind) -> CallTarget:
    return CallTarget.of_model(kind, MODEL) if kind in ("llm", "parser", "agent") else CallTarget(kind, "n", "m")


async def call_of(port: CallPort) -> Any:
    """One call of the kind that the port is meant for."""

    async def tool() -> Any:
        (look,) = await port.alist()
        assert look.run is not None
        return await look.run({"at": 1})

    asks: Mapping[CallKind, Callable[[], Awaitable[Any]]] = {
        "llm": lambda: port.ainvoke(ASKED),
        "parser": lambda: port.aparse(ASKED, {"type": "object"}),
        "agent": lambda: port.arun(ASKED),
        "embedder": lambda: port.aembed(["a"]),
        "search": lambda: port.asearch("a"),
        "tool": tool,
    }
    return await asks[port.target.kind]()


def noting(name: str, seen: list[str]) -> Any:
    async def around(call: Call[Any], proceed: Proceed) -> Any:
        if isinstance(call, ToolListCall):
            return await proceed(call)
        seen.append(f"{name} before")
        reply = await proceed(call)
        seen.append(f"{name} after")
        return reply

    return around


EVERY_KIND = pytest.mark.parametrize("kind", sorted(REPLIES))


@EVERY_KIND
@given(names=st.lists(st.sampled_from("abcdef"), unique=True))
def test_the_plugin_with_the_first_name_is_the_outermost_whatever_is_called(kind: CallKind, names: list[str]) -> None:
    seen: list[str] = []

    def plugin(name: str) -> Any:
        around = noting(name, seen)
        return type("Front", (), {"karenina_wrap_call": staticmethod(hookimpl(lambda target: around))})()

    app = Karenina({name: plugin(name) for name in names})
    inner = Everything(seen)
    port = CallPort(target(kind), inner, middleware(app, target(kind)))
    assert asyncio.run(call_of(port)) == REPLIES[kind]
    inwards = [f"{name} before" for name in sorted(names)]
    outwards = [f"{name} after" for name in sorted(names, reverse=True)]
    assert seen == [*inwards, "asked", *outwards]
    assert port.plugins == tuple(sorted(names))


@EVERY_KIND
def test_middleware_that_treats_all_calls_alike_can_keep_and_bring_back_every_reply(kind: CallKind) -> None:
    kept: dict[str, Any] = {}

    async def keeping(call: Call[Any], proceed: Proceed) -> Any:
        if call.request.key in kept:
            return call.from_data(kept[call.request.key])
        reply = await proceed(call)
        kept[call.request.key] = call.to_data(reply)
        return reply

    inner = Everything()
    port = CallPort(target(kind), inner, (Layer(keeping, "keeps"),))
    first = asyncio.run(call_of(port))
    if kind != "tool":  # a list of tools that comes from data has none that can be run
        assert asyncio.run(call_of(port)) == first == REPLIES[kind]
        assert inner.seen == ["asked"]
    assert len(kept) == (2 if kind == "tool" else 1)


@pytest.mark.parametrize("kind", ["llm", "parser", "agent", "tool"])
def test_a_reply_of_another_type_is_refused_with_the_name_of_who_gave_it(kind: CallKind) -> None:
    async def odd(call: Call[Any], proceed: Proceed) -> Any:
        reply = await proceed(call)
        return reply if isinstance(call, ToolListCall) else f"{reply}"

    seen: list[str] = []
    port = CallPort(target(kind), Everything(), (Layer(noting("outer", seen), "a"), Layer(odd, "b")))
    with pytest.raises(PortError, match=r"plugin 'b' returned no \w+ \(str\); it has to return what proceed") as caught:
        asyncio.run(call_of(port))
    assert (caught.value.kind, seen) == ("plugin", ["outer before"])


def test_a_reply_of_an_adapter_that_is_none_is_refused_in_the_name_of_the_adapter() -> None:
    class Odd(Everything):
        async def ainvoke(self, *_: Any, **__: Any) -> Any:
            return "said"

    port = CallPort(target("llm"), Odd(), (Layer(noting("outer", []), "a"),))
    with pytest.raises(PortError, match=r"the adapter 'i' returned no proper reply \(str\)"):
        asyncio.run(port.ainvoke(ASKED))


@EVERY_KIND
def test_what_middleware_raises_the_call_raises(kind: CallKind) -> None:
    failure = PortError("not today", kind="server")

    async def failing(call: Call[Any], proceed: Proceed) -> Any:
        raise failure

    inner = Everything()
    with pytest.raises(PortError) as caught:
        asyncio.run(call_of(CallPort(target(kind), inner, (Layer(failing, "a"),))))
    assert (caught.value, inner.seen) == (failure, [])


@define(eq=False)
class Answers:
    """Replies to every call by itself."""

    seen: list[str]
    answers = True

    async def aopen(self) -> None:
        self.seen.append("answerer opened")

    async def aclose(self) -> None:
        self.seen.append("answerer closed")

    async def __call__(self, call: Call[Any], proceed: Proceed) -> Any:
        return [Tool(name="look")] if isinstance(call, ToolListCall) else REPLIES[call.target.kind]


@EVERY_KIND
def test_what_is_behind_middleware_that_answers_is_never_opened_nor_asked(kind: CallKind) -> None:
    inner = Everything()
    layers = Layer(noting("outer", []), "a"), Layer(Answers(inner.seen), "b"), Layer(noting("inner", inner.seen), "c")
    port = CallPort(target(kind), inner, layers)

    async def work() -> Any:
        await port.aopen()
        reply = await call_of(port)
        await port.aclose()
        return reply

    assert asyncio.run(work()) == REPLIES[kind]
    assert inner.seen == ["answerer opened", "answerer closed"]
    assert (port.problem(), port.needs_provider) == (None, False)
    assert port.capabilities.output_channels == ("json_object", "text"), "the rest is as behind it"


def test_what_cannot_be_opened_keeps_what_is_behind_it_closed() -> None:
    class Locked:
        async def aopen(self) -> None:
            raise PortError("locked", kind="connection")

        async def __call__(self, call: Call[Any], proceed: Proceed) -> Any:
            return await proceed(call)

    inner = Everything()
    port = CallPort(target("llm"), inner, (Layer(Locked(), "a"),))
    with pytest.raises(PortError, match="locked"):
        asyncio.run(port.aopen())
    assert (inner.seen, port.problem()) == ([], "no key is set")


def test_middleware_sees_and_changes_what_is_behind_it() -> None:
    class Able:
        def capabilities(self, behind: PortCapabilities) -> PortCapabilities:
            return evolve(behind, supports_tools=True)

        async def __call__(self, call: Call[Any], proceed: Proceed) -> Any:
            assert not proceed.capabilities.supports_tools
            return await proceed(call)

    async def outer(call: Call[Any], proceed: Proceed) -> Any:
        assert proceed.capabilities.supports_tools
        return await proceed(call)

    port = CallPort(target("llm"), Everything(), (Layer(outer, "a"), Layer(Able(), "b")))
    assert asyncio.run(port.ainvoke(ASKED)) == REPLIES["llm"]
    assert port.capabilities.supports_tools


def test_it_may_proceed_with_another_call_and_more_than_once() -> None:
    texts: list[str] = []

    class Hears(Everything):
        async def ainvoke(self, messages: Sequence[Message], **_: Any) -> LLMResponse:
            texts.append(messages[-1].text)
            return LLMResponse(content=f"reply {len(texts)}")

    async def twice(call: LLMCall, proceed: Proceed) -> LLMResponse:
        await proceed(call)
        return await proceed(evolve(call, messages=[Message.user("Are you sure?")]))

    port = CallPort(target("llm"), Hears(), (Layer(twice, "a"),))
    assert asyncio.run(port.ainvoke(ASKED)).content == "reply 2"
    assert texts == ["What is it?", "Are you sure?"]


def test_the_plain_data_of_a_call_is_made_once_and_that_of_a_changed_call_again() -> None:
    call = LLMCall(target("llm"), ASKED)
    changed = evolve(call, temperature=0.7)
    assert call.request is call.request
    assert changed.request.key != call.request.key


@pytest.mark.parametrize(
    ("returned", "refusal"),
    [(lambda: 3, "must return a coroutine function"), (lambda: 1 / 0, "failed: ZeroDivision")],
)
@EVERY_KIND
def test_a_hook_that_returns_no_middleware_is_refused_with_its_name(
    kind: CallKind, returned: Any, refusal: str
) -> None:
    class Odd:
        @hookimpl
        def karenina_wrap_call(self) -> Any:
            return returned()

    with pytest.raises(PluginError, match=f"karenina_wrap_call of plugin 'odd' {refusal}"):
        middleware(Karenina({"odd": Odd()}), target(kind))


def test_the_code_behind_a_call_is_that_of_middleware_that_is_not_neutral() -> None:
    def plugin(kind: str, mark: Any = lambda function: function) -> Any:
        def karenina_wrap_call(target: CallTarget) -> Any:
            return noting("", []) if target.kind == kind else None

        return type("Front", (), {"karenina_wrap_call": staticmethod(hookimpl(mark(karenina_wrap_call)))})()

    app = Karenina({"models": plugin("llm"), "searches": plugin("search"), "traces": plugin("llm", neutral)})

    def names(kind: CallKind) -> list[str]:
        port = CallPort(target(kind), Everything(), middleware(app, target(kind)))
        return [line.partition(" ")[0] for line in code_behind(app, "own", port.plugins).splitlines()]

    assert (names("llm"), names("search"), names("parser")) == (["own", "models"], ["own", "searches"], ["own"])
