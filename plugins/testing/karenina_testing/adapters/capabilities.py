"""What an adapter declares that its models can do, looked at in both directions: what is declared is there, and what is
there is declared.

The core goes by declarations: what is not declared is never used, and what is declared wrongly fails in a run.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Iterator
from typing import Any

from attrs import frozen
from karenina_calls.ports.structured import json_object

from karenina_core.ports.values import LLMResponse, OutputFormat, PortCapabilities, StreamingLLMResponse, Tool
from karenina_core.values.message import Message, ToolUseBlock

from ..checks import Fault, Promises, Raised, attempt
from .ports import ASK, DATA, SCHEMA, Ports
from .replies import Reply, ServedRequest, spoken

CAPABILITIES: Promises[Ports] = Promises()
"""Of adapters that make an `LLMPort`."""
LOOK_UP = Tool(
    name="look_up_capital",
    description="The capital of a country.",
    input_schema={
        "type": "object",
        "properties": {"country_name": {"type": "string"}},
        "required": ["country_name"],
        "additionalProperties": False,
    },
)
CALLS = (
    ToolUseBlock("call_a", LOOK_UP.name, {"country_name": "France"}),
    ToolUseBlock("call_b", LOOK_UP.name, {"country_name": "Peru"}),
)
ANSWERS = ("It is Paris on the Seine.", "It is Lima on the Rimac.")
SEND_TOOLS = "send every tool with its name, description and schema, or say supports_tools=False"
THOUGHT = "France is a country."
BATCH_METHODS = ("encode", "decode", "submit", "find", "poll", "fetch", "cancel")


def declared(ports: Ports) -> PortCapabilities:
    """What the `LLMPort` says of itself."""
    capabilities: PortCapabilities = ports.make("llm", ports.configured()).capabilities
    return capabilities


@CAPABILITIES.add("system_prompt", "A system message goes out as one where the adapter says so, and only there.")
def system_prompt(ports: Ports) -> Iterator[Fault]:
    with ports.serve("Paris") as server:
        ports.use(ports.configured(server.url), ports.ask, "llm")
        arrives = any(message.get("role") in ("system", "developer") for message in server.requests[0].messages)
    says = declared(ports).supports_system_prompt
    if says and not arrives:
        yield ports.fault("the system message did not arrive as one", "send it, or say supports_system_prompt=False")
    if arrives and not says:
        yield ports.fault("the system message arrived as one", "say supports_system_prompt=True")


@CAPABILITIES.add("channels", "Every output channel that it offers carries the schema, and what it carries it offers.")
def channels(ports: Ports) -> Iterator[Fault]:
    says = declared(ports)
    for channel in says.output_channels:
        if problem := _channel_problem(ports, channel):
            remedy = f"send it, or take {channel!r} out of output_channels"
            yield ports.fault(f"on the channel {channel!r} {problem}", remedy)
    unsaid = [c for c in ("json_schema", "tool_call", "json_object") if c not in says.output_channels]
    if found := [channel for channel in unsaid if not attempt(_channel_problem, ports, channel)]:
        yield ports.fault(f"the channel {found[0]!r} works and is not offered", f"add {found[0]!r} to output_channels")
    if says.supports_structured_output != bool(set(says.output_channels) - {"text"}):
        problem = f"supports_structured_output is {says.supports_structured_output}, with {says.output_channels}"
        yield ports.fault(problem, "say True where there is a channel other than text, and only there")


def _channel_problem(ports: Ports, channel: Any) -> str:
    """What is wrong with data that are asked for in this way."""
    with ports.serve(Reply(DATA)) as server:
        reply = ports.use(ports.configured(server.url), ports.asking(output=OutputFormat(channel, SCHEMA)), "llm")
        request = server.requests[-1]
    raw = reply.structured if reply.structured is not None else reply.content
    has_schema = "capital" in (request.schema or {}).get("properties", {})
    if request.channel != channel:
        return f"the request asks for {request.channel!r}"
    if channel in ("json_schema", "tool_call") and not has_schema:
        return "the request holds no schema"
    return "" if attempt(json_object, raw) == DATA else f"the server sent {dict(DATA)!r}, the reply holds {raw!r}"


@CAPABILITIES.add(
    "tools", "A model that takes tools is sent them, and its calls come back; one that takes them says so."
)
def tools(ports: Ports) -> Iterator[Fault]:
    if not declared(ports).supports_tools:
        if _takes_tools(ports):
            yield ports.fault("a tool was sent to the model", "say supports_tools=True")
        return
    with ports.serve([Reply(tool_calls=CALLS, usage=(7, 2)), Reply("Paris", usage=(9, 1))]) as server:
        config = ports.configured(server.url)
        called = ports.use(config, ports.asking(tools=(LOOK_UP,)), "llm")
        asked = json.dumps(server.requests[0].body)
        if missing := [text for text in (LOOK_UP.name, LOOK_UP.description, "country_name") if text not in asked]:
            yield ports.fault(f"the tool's {missing[0]!r} did not arrive", SEND_TOOLS)
        if called.tool_calls != CALLS:
            problem = f"the server called two tools, the reply's tool_calls are {called.tool_calls!r}"
            yield ports.fault(problem, "fill tool_calls, in the order of the calls, from the reply")
        answers = [Message.tool_result(call.id, text) for call, text in zip(CALLS, ANSWERS, strict=True)]
        messages = (*ASK, Message.assistant(tool_calls=CALLS), *answers)
        reply = ports.use(config, ports.asking(messages=messages, tools=(LOOK_UP,)), "llm")
        asked = json.dumps(server.requests[1].body)
    if missing := [text for text in (*(call.id for call in CALLS), *ANSWERS) if text not in asked]:
        yield ports.fault(f"{missing[0]!r} of a tool's answer did not arrive", "send every message")
    if reply.content != "Paris" or reply.tool_calls:
        yield ports.fault(f"after the tools the server sent 'Paris', the reply is {reply!r}")


def _takes_tools(ports: Ports) -> bool:
    """Whether a tool that a call is given reaches the server."""
    takes = inspect.signature(ports.make("llm", ports.configured()).ainvoke).parameters
    if "tools" not in takes:
        return False
    with ports.serve("Paris") as server:
        attempt(ports.use, ports.configured(server.url), ports.asking(tools=(LOOK_UP,)), "llm")
        return any(LOOK_UP.name in json.dumps(request.body) for request in server.requests)


@CAPABILITIES.add("streaming", "A model that streams gives its reply as it arrives; one that can says so.")
def streaming(ports: Ports) -> Iterator[Fault]:
    says = declared(ports).supports_streaming
    reply = Reply("It is Paris.", usage=(7, 2))
    with ports.serve(reply) as server:
        found = attempt(ports.use, ports.configured(server.url), _streamed, "llm")
        asked = server.requests
        whole = ports.use(ports.configured(server.url), ports.ask, "llm")
    if not says:
        if isinstance(found, _Streamed) and asked and asked[0].stream:
            yield ports.fault("a reply was streamed", "say supports_streaming=True", "astream")
        return
    if found is None:
        yield ports.fault("it has no astream", "implement StreamingLLMPort, or say supports_streaming=False")
    elif isinstance(found, Raised):
        yield Fault.raised(found.error, "say supports_streaming=False where it cannot", by="astream")
    elif not asked[0].stream:
        yield ports.fault("the request asks for no stream", "ask for one", "astream")
    elif "".join(found.pieces) != "It is Paris." or len(found.pieces) < 2:
        yield ports.fault(f"'It is Paris.' was sent in pieces, and came as {found.pieces}", method="astream")
    elif found.response is None or (found.response.content, found.response.usage) != (whole.content, whole.usage):
        problem = f"at the end of the stream its response is {found.response!r}, of a whole reply {whole!r}"
        yield ports.fault(problem, "end the stream with the LLMResponse", "astream")


@frozen
class _Streamed:
    pieces: list[str]
    response: LLMResponse | None


async def _streamed(port: Any) -> _Streamed | None:
    """None where there is nothing to stream with."""
    if not hasattr(port, "astream"):
        return None
    stream: StreamingLLMResponse = port.astream(ASK)
    return _Streamed([piece async for piece in stream], stream.response)


@CAPABILITIES.add("thinking", "What a model thought is in the reply where the adapter says so, and only there.")
def thinking(ports: Ports) -> Iterator[Fault]:
    reply = _reply(ports, Reply("Paris", reasoning=THOUGHT))
    says, found = declared(ports).reports_thinking, reply.thinking
    if says and found != THOUGHT:
        problem = f"the server sent the thought {THOUGHT!r}, the reply's thinking is {found!r}"
        yield ports.fault(problem, "fill `thinking`, or say reports_thinking=False")
    if found and not says:
        yield ports.fault(f"the reply's thinking is {found!r}", "say reports_thinking=True")
    if THOUGHT in reply.content:
        yield ports.fault(f"the reply's content is {reply.content!r}", "leave what was thought out of the content")


@CAPABILITIES.add("cached_tokens", "Tokens that a cache served are counted where the adapter says so, and only there.")
def cached_tokens(ports: Ports) -> Iterator[Fault]:
    says = declared(ports).reports_cached_tokens
    used = _reply(ports, Reply("Paris", usage=(10, 2), cache=(6, 0))).usage
    if says and (used.input_tokens, used.cache_read_tokens) != (10, 6):
        problem = f"6 of 10 tokens came from a cache, the usage is {used}"
        yield ports.fault(problem, "fill cache_read_tokens, or say reports_cached_tokens=False")
    if used.cache_read_tokens and not says:
        yield ports.fault(f"cache_read_tokens is {used.cache_read_tokens}", "say reports_cached_tokens=True")


def _reply(ports: Ports, reply: Reply) -> LLMResponse:
    with ports.serve(reply) as server:
        answer: LLMResponse = ports.use(ports.configured(server.url), ports.ask, "llm")
        return answer


@CAPABILITIES.add("batches", "A batch holds the calls that would be made alone, and a port that has batches is named.")
def batches(ports: Ports) -> Iterator[Fault]:
    if ports.spec.batch_factory is None:
        port = ports.make("llm", ports.configured())
        if all(hasattr(port, name) for name in BATCH_METHODS):
            yield ports.fault("its llm port has the methods of a BatchPort", "name it in batch_factory", "submit")
        return
    with ports.serve("Paris") as server:
        config = ports.configured(server.url)
        ports.use(config, ports.ask, "llm")
        request: ServedRequest = server.requests[0]
        port = ports.make("batch", config)
        if missing := [name for name in BATCH_METHODS if not hasattr(port, name)]:
            yield Fault(f"its batch port has no {', '.join(missing)}", remedy="implement BatchPort")
            return
        if (sent := json.loads(port.encode(ASK))) != request.body:
            yield Fault(
                f"in a batch a call is {sent!r}, alone {request.body!r}", remedy="let encode make the same body"
            )
        content = port.decode(ports.wire.write(request, spoken(request, Reply("Paris")))).content
    if content != "Paris":
        yield Fault(f"in a batch the reply 'Paris' is {content!r}", remedy="let decode read what the server sends")
