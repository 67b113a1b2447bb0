"""Tool servers of a run: connected to once, before any model is asked, and closed at the end."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from attrs import define, field
from karenina_calls.models.models import open_models
from karenina_calls.ports.port_calls import ToolListCall
from karenina_calls.tools.model_tools import named_tools

from karenina_core import AdapterSpec, Karenina, ModelConfig, hookimpl
from karenina_core.errors import ConfigError, PluginError, PortError
from karenina_core.ports import AgentResult, LLMResponse, PortCapabilities, Tool, ToolOutcome
from karenina_core.ports.middleware import Call, CallTarget, Proceed
from karenina_core.values.message import ToolUseBlock, UsageMetadata

Make = Callable[..., Any]


@define(eq=False)
class Servers:
    """All servers there are, and what happened to them. It is the plugin of their client, too."""

    tools: Mapping[str, Sequence[str]]
    unreachable: Mapping[str, Exception] = field(factory=dict)
    seen: list[tuple[str, str]] = field(factory=list)

    @hookimpl
    def karenina_register_tool_servers(self, registry: Any) -> None:
        servers = self

        class Client:
            def __init__(self, name: str, address: str) -> None:
                self.name, self.address = name, address

            async def aopen(self) -> None:
                servers.seen.append(("open", self.name))
                if error := servers.unreachable.get(self.name):
                    raise error

            async def alist(self) -> Sequence[Tool]:
                servers.seen.append(("list", self.name))
                return [tool(name, self.name) for name in servers.tools[self.name]]

            async def aclose(self) -> None:
                servers.seen.append(("close", self.name))
                if self.name == "sticky":
                    raise OSError("it does not end")

        registry.add(Client, name="mcp")

    def did(self, what: str) -> list[str]:
        return [name for done, name in self.seen if done == what]


def tool(name: str, server: str) -> Tool:
    async def run(given: Mapping[str, Any]) -> ToolOutcome:
        return ToolOutcome(f"{name} of {server}: {dict(given)}")

    return Tool(name=name, description=f"{name} of {server}", input_schema={"type": "object"}, run=run)


class Worker:
    """A model that calls the first tool that it is offered, once, and then answers."""

    capabilities = PortCapabilities(supports_tools=True)

    def __init__(self) -> None:
        self.offered: list[list[str]] = []

    async def ainvoke(
        self, messages: Any, *, output: Any = None, temperature: Any = None, tools: Any = (), call: Any = None
    ) -> LLMResponse:
        self.offered.append([tool.name for tool in tools])
        calls = () if len(messages) > 2 or not tools else (ToolUseBlock("c1", tools[0].name, {"n": 1}),)
        return LLMResponse(content="" if calls else "It is BCL2.", tool_calls=calls, usage=UsageMetadata(3, 2, 5))

    async def aclose(self) -> None: ...

    def adapter(self, interface: str = "working") -> AdapterSpec:
        return AdapterSpec(interface=interface, llm_factory=lambda model: self)


def model(**fields: Any) -> ModelConfig:
    fields.setdefault("mcp_urls_dict", {"library": "http://localhost:1"})
    return ModelConfig(**{"model_name": "w", "interface": "working", **fields})


def opened(app: Karenina, config: Any, *models: ModelConfig) -> list[Any]:
    async def run() -> list[Any]:
        async with open_models(app, config, models, "answering") as ready:
            return list(ready.values())

    return asyncio.run(run())


def test_the_servers_of_a_run_are_connected_to_once_and_closed_at_the_end(world: Make) -> None:
    servers, worker = Servers({"library": ["look_up"], "shop": ["buy"]}), Worker()
    here = world(worker.adapter(), servers, questions=3)
    both = {"library": "a", "shop": "b"}
    models = [model(mcp_urls_dict=both), model(model_name="v", mcp_urls_dict={"library": "a"})]
    results = here.run(here.config(answering_models=models, concurrency=4, replicate_count=2))
    assert len(results) == 12
    assert {str(result.outcome) for result in results} == {"passed"}
    assert (servers.did("open"), servers.did("list")) == (["library", "shop"], ["library", "shop"])
    assert sorted(servers.did("close")) == ["library", "shop"]
    assert servers.seen.index(("close", "shop")) > servers.seen.index(("list", "shop"))
    assert {tuple(offered) for offered in worker.offered} == {("look_up", "buy"), ("look_up",)}
    answer = results[0].generation
    assert answer.answering_mcp_servers == ("library", "shop")
    assert [row["role"] for row in answer.trace_messages] == ["assistant", "tool", "assistant"]
    assert answer.trace_messages[1]["content"] == "look_up of library: {'n': 1}"


def test_a_judge_is_connected_to_nothing(world: Make) -> None:
    servers, worker = Servers({"library": ["look_up"]}), Worker()
    here = world(worker.adapter(), servers)
    with pytest.raises(ConfigError, match=r"parsing_models\[0\]: mcp_urls_dict: a judge uses no tool servers"):
        here.run(here.config(parsing_models=[model()]))
    here.prepare(here.config(answering_models=[model()], parsing_models=[model()]))  # one model in both roles
    assert servers.seen == []


@pytest.mark.parametrize(
    ("error", "kind", "expected"),
    [
        (PortError("nobody listens", kind="connection"), PortError, "nobody listens"),
        (PortError("who are you", kind="auth"), PortError, "who are you"),
        (ZeroDivisionError("a bug"), PluginError, "ZeroDivisionError: a bug"),
    ],
)
def test_a_server_that_cannot_be_used_refuses_the_run_before_any_call(
    error: Exception, kind: type[Exception], expected: str, world: Make
) -> None:
    servers, worker = Servers({"a": [], "b": ["x"], "c": []}, {"b": error}), Worker()
    here = world(worker.adapter(), servers)
    config = here.config(answering_models=[model(mcp_urls_dict={"a": "1", "b": "2", "c": "3"})])
    with pytest.raises(kind, match="the tool server 'b'") as refused:
        here.run(config)
    assert expected in str(refused.value)
    if isinstance(error, PortError):
        assert getattr(refused.value, "kind", None) == error.kind
        assert "(mcp_urls_dict)" in str(refused.value)
        assert str(refused.value).endswith(expected), "the client says what to do, and nothing else does"
    assert (worker.offered, here.judge.calls) == ([], [])
    assert sorted(servers.did("close")) == ["a", "b"], "also the one that failed half-way, and none that was not tried"


def test_a_server_that_cannot_be_closed_costs_no_results(world: Make) -> None:
    servers, worker = Servers({"sticky": ["look_up"], "after": ["x"]}), Worker()
    here = world(worker.adapter(), servers)
    results = here.run(here.config(answering_models=[model(mcp_urls_dict={"sticky": "1", "after": "2"})]))
    assert [str(result.outcome) for result in results] == ["passed"]
    assert sorted(servers.did("close")) == ["after", "sticky"]


def test_servers_need_a_client_and_a_model_that_can_use_their_tools(world: Make) -> None:
    here = world()
    with pytest.raises(ConfigError) as refused:
        here.prepare(here.config(answering_models=[model(interface="answering")]))
    text = str(refused.value)
    assert "mcp_urls_dict: the interface 'answering' cannot give tools to a model" in text
    assert "mcp_urls_dict: no plugin can connect to tool servers; install karenina-mcp" in text
    assert here.answerer.opened == 0


@pytest.mark.parametrize(
    "settings",
    [{"mcp_tool_filter": ["x"]}, {"mcp_tool_description_overrides": {"x": "y"}}],
    ids=lambda s: next(iter(s)),
)
def test_settings_of_tools_without_a_server_are_refused(settings: dict[str, Any], world: Make) -> None:
    here = world()
    with pytest.raises(ConfigError, match=f"{next(iter(settings))}: the model has no tool servers"):
        here.prepare(here.config(answering_models=[model(interface="answering", mcp_urls_dict={}, **settings)]))


def test_plugins_may_stand_in_front_of_a_server(world: Make) -> None:
    servers, worker, names_ = Servers({"library": ["look_up"]}), Worker(), []

    async def nothing(call: ToolListCall, proceed: Proceed) -> Sequence[Tool]:
        return []

    class InFront:
        @hookimpl
        def karenina_wrap_call(self, target: CallTarget) -> Any | None:
            if target.kind != "tool":
                return None
            names_.append(target.name)
            return nothing

    class Beside:
        @hookimpl
        def karenina_wrap_call(self, target: CallTarget) -> Any | None:
            return None

    here = world(worker.adapter(), servers, InFront(), Beside())
    (result,) = here.run(here.config(answering_models=[model()]))
    assert (set(names_), worker.offered) == ({"library"}, [[]])
    assert result.generation.answering_mcp_servers == ("library",)
    assert sorted(servers.seen) == [("close", "library"), ("open", "library")]


@define(eq=False)
class Front:
    """Middleware that notes that it is opened."""

    name: str
    heard: list[str]

    async def aopen(self) -> None:
        self.heard.append(self.name)

    async def __call__(self, call: Call[Any], proceed: Proceed) -> Any:
        return await proceed(call)


def test_the_plugin_with_the_first_name_stands_outermost_in_front_of_a_server(world: Make) -> None:
    heard: list[str] = []

    def plugin(own: str) -> Any:
        @hookimpl
        def karenina_wrap_call(self: Any, target: CallTarget) -> Any:
            return Front(own, heard) if target.kind == "tool" else None

        return type(own, (), {"karenina_wrap_call": karenina_wrap_call})()

    servers = Servers({"library": ["look_up"]})
    here = world(Worker().adapter(), servers, plugin("Beta"), plugin("Alpha"), plugin("Gamma"))
    opened(here.app, here.config(answering_models=[model()]), model())
    assert heard == ["Alpha", "Beta", "Gamma"]


def test_what_an_agent_did_before_it_failed_is_not_judged_by_the_next_judge(world: Make) -> None:
    class Failing(Worker):
        async def ainvoke(self, messages: Any, **options: Any) -> LLMResponse:
            if len(messages) > 2:
                raise PortError("the context is too long", kind="invalid_request")
            return await super().ainvoke(messages, **options)

    here = world(Failing().adapter(), Servers({"library": ["look_up"]}))
    judges = [ModelConfig(model_name=name, interface="judging") for name in ("j1", "j2")]
    results = here.run(here.config(answering_models=[model()], parsing_models=judges))
    assert [str(result.outcome) for result in results] == ["error(invalid_request)"] * 2
    assert {len(result.generation.trace_messages) for result in results} == {2}
    assert here.judge.calls == []


# Names


def offered_tools(offered: Mapping[str, Sequence[Tool]], config: ModelConfig) -> list[Tool]:
    return [one for tools in named_tools(offered, config).values() for one in tools]


def names(offered: Mapping[str, Sequence[str]], **fields: Any) -> list[str]:
    tools = {server: [tool(name, server) for name in listed] for server, listed in offered.items()}
    return [found.name for found in offered_tools(tools, model(mcp_urls_dict=dict.fromkeys(offered, "1"), **fields))]


def test_tools_of_one_name_are_told_apart_by_their_servers() -> None:
    assert names({"a": ["find", "read"], "b": ["find"]}) == ["a__find", "read", "b__find"]
    assert names({"a": ["find"], "b": ["find"]}, mcp_tool_filter=["b__find"]) == ["find"]
    assert names({"a b": ["find.it"], "c": ["find.it"]}) == ["a_b__find_it", "c__find_it"]


def test_a_renamed_tool_still_does_its_own_work() -> None:
    tools = offered_tools({"a": [tool("find", "a")], "b": [tool("find", "b")]}, model())

    async def told() -> str:
        assert tools[1].run is not None
        return (await tools[1].run({})).content

    assert (tools[1].name, asyncio.run(told())) == ("b__find", "find of b: {}")


def test_only_the_tools_of_the_filter_are_offered() -> None:
    assert names({"a": ["find", "read"], "b": ["find"]}, mcp_tool_filter=["find"]) == ["a__find", "b__find"]
    assert names({"a": ["find", "read"]}, mcp_tool_filter=["read"]) == ["read"]
    assert names({"a": ["find"]}, mcp_tool_filter=[]) == []


def test_descriptions_are_replaced_and_the_more_exact_name_counts() -> None:
    tools = {server: [tool("find", server), tool("read", server)] for server in ("a", "b")}
    other = {"find": "Finds.", "b__find": "Finds better."}
    found = offered_tools(tools, model(mcp_tool_description_overrides=other))
    assert {one.name: one.description for one in found} == {
        "a__find": "Finds.",
        "a__read": "read of a",
        "b__find": "Finds better.",
        "b__read": "read of b",
    }


@pytest.mark.parametrize("setting", ["mcp_tool_filter", "mcp_tool_description_overrides"])
def test_tools_that_nobody_has_are_refused_before_any_call(setting: str, world: Make) -> None:
    servers, worker = Servers({"library": ["look_up", "read"]}), Worker()
    here = world(worker.adapter(), servers)
    value: Any = ["look_upp"] if setting == "mcp_tool_filter" else {"look_upp": "Looks up."}
    with pytest.raises(ConfigError) as refused:
        here.run(here.config(answering_models=[model(**{setting: value})]))
    (problem,) = refused.value.problems
    assert problem.path == setting
    assert "'look_upp' (did you mean 'look_up'?); available: look_up, read" in problem.message
    assert worker.offered == []
    assert servers.did("close") == ["library"]


def test_a_long_name_of_a_tool_is_cut_to_what_every_provider_takes() -> None:
    (one,) = names({"a": ["look up/" + "x" * 80]})
    assert one == "look_up_" + "x" * 56
    (left, right) = names({"a" * 10: ["y" * 60], "b" * 10: ["y" * 60]})
    assert (left, right) == ("a" * 10 + "__" + "y" * 52, "b" * 10 + "__" + "y" * 52)


def test_names_that_become_the_same_are_refused() -> None:
    with pytest.raises(ConfigError, match="two tools called 'a__find_it'"):
        names({"a": ["find it", "find_it"]})


# Agents


class Agent:
    """An agent of its own, which tells what it was given."""

    capabilities = PortCapabilities(needs_provider=False)

    def __init__(self) -> None:
        self.given: list[list[str]] = []
        self.opened = self.closed = 0

    async def aopen(self) -> None:
        self.opened += 1

    async def arun(
        self, messages: Any, tools: Any = (), mcp_servers: Any = None, config: Any = None, *, call: Any = None
    ) -> AgentResult:
        self.given.append([tool.name for tool in tools])
        return AgentResult(final_response="It is BCL2.", turns=1, usage=UsageMetadata(1, 1, 2))

    async def aclose(self) -> None:
        self.closed += 1


def test_an_adapter_may_be_an_agent_only(world: Make) -> None:
    agent, servers = Agent(), Servers({"library": ["look_up"]})
    here = world(AdapterSpec(interface="working", agent_factory=lambda model: agent), servers)
    results = here.run(here.config(answering_models=[model(), model(model_name="alone", mcp_urls_dict={})]))
    assert [str(result.outcome) for result in results] == ["passed", "passed"]
    assert sorted(agent.given) == [[], ["look_up"]]
    assert (agent.opened, agent.closed >= 2) == (2, True)
    assert {result.generation.raw_llm_response for result in results} == {"It is BCL2."}


@pytest.mark.parametrize(
    ("returned", "said"), [(lambda: Worker(), "must return a coroutine function"), (lambda: 1 / 0, "ZeroDivisionError")]
)
def test_what_cannot_stand_in_front_of_an_agent_is_refused_before_a_run(world: Make, returned: Any, said: str) -> None:
    class Counting:
        @hookimpl
        def karenina_wrap_call(self) -> Any:
            return returned()

    here = world(AdapterSpec(interface="working", agent_factory=lambda model: Agent()), Counting())
    with pytest.raises(ConfigError, match=f"karenina_wrap_call of plugin 'Counting' .*{said}"):
        here.prepare(here.config(answering_models=[model(mcp_urls_dict={})]))


def test_middleware_that_knows_no_agents_is_told_so(world: Make) -> None:
    async def around(call: Call[Any], proceed: Proceed) -> LLMResponse:
        return LLMResponse(content="It is BCL2.")

    class Counting:
        @hookimpl
        def karenina_wrap_call(self, target: CallTarget) -> Any:
            return around if target.kind == "agent" else None

    here = world(AdapterSpec(interface="working", agent_factory=lambda model: Agent()), Counting())
    (result,) = here.run(here.config(answering_models=[model(mcp_urls_dict={})]))
    assert str(result.outcome) == "error(plugin)"
    said = r"middleware of plugin 'Counting' returned no AgentResult \(LLMResponse\); it has to return what proceed"
    assert re.search(said, str(result.metadata.error))


def test_ports_are_closed_where_a_server_cannot_be_reached(world: Make) -> None:
    agent, servers = Agent(), Servers({}, {"library": PortError("gone", kind="connection")})
    here = world(AdapterSpec(interface="working", agent_factory=lambda model: agent), servers)
    with pytest.raises(PortError, match="'library'"):
        opened(here.app, here.config(), model())
    assert (agent.opened, agent.closed) == (1, 1)
