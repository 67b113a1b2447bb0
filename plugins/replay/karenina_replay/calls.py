"""Calls and their keys, as lines of a recording.

One JSON object a line: `{"format": 1, "key", "kind": "llm" | "parser" | "agent", "model": {...}, "task", "replicate",
"messages": [...], "schema", "channel", "parameters": {...}, "reply": {...} | "error": {...}}`; of an embedder
`{"format": 1, "key", "kind": "embedder", "embedder", "model", "texts": [...], "reply": {...} | "error": {...}}`; of a
search tool `{"format": 1, "key", "kind": "search", "tool", "query", "reply": {"results": [...]} | "error": {...}}`; of
a tool server `{"format": 1, "key", "kind": "tool", "server", "tool", "arguments", "reply": {"content", "is_error"}}`,
and with a null as `tool` what it offers, `"reply": {"tools": [...]}`. The error of an agent can have what the agent did
until then, `"agent": {...}`.
The key is the SHA-256 of the canonical JSON of what stands between the key and the reply.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import asdict, field, frozen

from karenina_core import ModelConfig
from karenina_core.errors import KareninaError, ParseError, PortError, SearchError
from karenina_core.model.identity import canonical_json
from karenina_core.model.message import Message, ThinkingBlock, ToolUseBlock, UsageMetadata
from karenina_core.ports.embedding import Embeddings
from karenina_core.ports.search import SearchResult
from karenina_core.ports.values import (
    AgentConfig,
    AgentResult,
    CallContext,
    LLMResponse,
    OutputFormat,
    ParsePortResult,
    Tool,
)

__all__ = [
    "FORMAT",
    "EmbeddingRequest",
    "Request",
    "SearchRequest",
    "ToolRequest",
    "agent_from",
    "agent_to",
    "embeddings_from",
    "embeddings_to",
    "error_from",
    "error_to",
    "llm_from",
    "llm_to",
    "parse_from",
    "parse_to",
    "search_from",
    "search_to",
]

FORMAT = 1


@frozen
class Request:
    """What makes two calls the same call."""

    kind: Literal["llm", "parser", "agent"]
    model: Mapping[str, Any]
    task: str
    replicate: int
    messages: tuple[Mapping[str, Any], ...]
    schema: Mapping[str, Any] | None = None
    channel: str | None = None
    parameters: Mapping[str, Any] = field(factory=dict)

    @property
    def key(self) -> str:
        return _key(asdict(self))

    @classmethod
    def of_llm(
        cls,
        model: ModelConfig,
        messages: Sequence[Message],
        output: OutputFormat | None,
        temperature: float | None,
        call: CallContext | None,
        tools: Sequence[Tool] = (),
    ) -> Request:
        call = call or CallContext("")
        offered = {"tools": [_offered(tool) for tool in tools]} if tools else {}
        return cls(
            "llm",
            asdict(model.identity),
            call.task,
            call.replicate,
            tuple(message.to_dict() for message in messages),
            dict(output.schema) if output else None,
            output.channel if output else None,
            {**_parameters(model, temperature), **offered},
        )

    @classmethod
    def of_parser(
        cls, model: ModelConfig, messages: Sequence[Message], schema: Mapping[str, Any], call: CallContext | None
    ) -> Request:
        call = call or CallContext("")
        rows = tuple(message.to_dict() for message in messages)
        return cls(
            "parser",
            asdict(model.identity),
            call.task,
            call.replicate,
            rows,
            dict(schema),
            None,
            _parameters(model, call.temperature),
        )

    @classmethod
    def of_agent(
        cls,
        model: ModelConfig,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        config: AgentConfig,
        call: CallContext | None,
    ) -> Request:
        """The folder that the agent works in is another one every time, and no part of what makes the call."""
        call = call or CallContext("")
        rows = [message.to_dict() for message in messages]
        own = {
            name: value for name, value in (("system_prompt", config.system_prompt), ("extra", config.extra)) if value
        }
        parameters = {**_parameters(model, None), "tools": [_offered(tool) for tool in tools], **own}
        folder = str(config.workspace_path) if config.workspace_path is not None else ""
        return cls(
            "agent",
            asdict(model.identity),
            call.task,
            call.replicate,
            tuple(_anywhere(rows, folder)),
            parameters=_anywhere(parameters, folder),
        )

    def line(self) -> dict[str, Any]:
        """The recording's line without the reply."""
        return {"format": FORMAT, "key": self.key, **asdict(self)}


def _anywhere(data: Any, folder: str) -> Any:
    """The data with `{workspace}` in place of the path of a folder."""
    if not folder:
        return data
    if isinstance(data, str):
        return data.replace(folder, "{workspace}")
    if isinstance(data, Mapping):
        return {key: _anywhere(value, folder) for key, value in data.items()}
    return [_anywhere(value, folder) for value in data] if isinstance(data, list | tuple) else data


def _offered(tool: Tool) -> dict[str, Any]:
    """A tool as the model is told of it."""
    return {"name": tool.name, "description": tool.description, "input_schema": dict(tool.input_schema)}


@frozen
class EmbeddingRequest:
    """What makes two calls of an embedder the same call."""

    embedder: str
    model: str
    texts: tuple[str, ...]
    kind: Literal["embedder"] = "embedder"

    @property
    def key(self) -> str:
        return _key(asdict(self))

    def line(self) -> dict[str, Any]:
        """The recording's line without the reply."""
        return {"format": FORMAT, "key": self.key, **asdict(self)}


@frozen
class SearchRequest:
    """What makes two searches the same search."""

    tool: str
    query: str
    kind: Literal["search"] = "search"

    @property
    def key(self) -> str:
        return _key(asdict(self))

    def line(self) -> dict[str, Any]:
        """The recording's line without the reply."""
        return {"format": FORMAT, "key": self.key, **asdict(self)}


@frozen
class ToolRequest:
    """What makes two calls of a server's tool the same call; without a tool: what the server offers."""

    server: str
    tool: str | None = None
    arguments: Mapping[str, Any] = field(factory=dict)
    kind: Literal["tool"] = "tool"

    @property
    def key(self) -> str:
        return _key(asdict(self))

    def line(self) -> dict[str, Any]:
        """The recording's line without the reply."""
        return {"format": FORMAT, "key": self.key, **asdict(self)}


def _key(facts: Mapping[str, Any]) -> str:
    return hashlib.sha256(canonical_json(facts).encode("ascii")).hexdigest()


def _parameters(model: ModelConfig, temperature: float | None) -> dict[str, Any]:
    return {
        "temperature": model.temperature if temperature is None else temperature,
        "max_tokens": model.max_tokens,
        "extra_kwargs": dict(model.extra_kwargs),
    }


def llm_to(response: LLMResponse) -> dict[str, Any]:
    """A reply as plain data. Messages that an adapter hands over as `raw` are kept; anything else in `raw` is not."""
    data = asdict(response, filter=lambda attribute, _: attribute.name != "raw")
    if isinstance(response.raw, tuple) and all(isinstance(m, Message) for m in response.raw):
        data["messages"] = [message.to_dict() for message in response.raw]
    return data


def llm_from(data: Mapping[str, Any]) -> LLMResponse:
    """The inverse of `llm_to`."""
    facts = dict(data)
    messages = facts.pop("messages", None)
    facts["tool_calls"] = tuple(ToolUseBlock(**call) for call in facts["tool_calls"])
    facts["thinking_blocks"] = tuple(ThinkingBlock(**block) for block in facts.get("thinking_blocks", ()))
    facts["usage"] = UsageMetadata(**facts["usage"])
    facts["flags"] = tuple(facts["flags"])
    return LLMResponse(**facts, raw=tuple(map(Message.from_dict, messages)) if messages is not None else None)


def parse_to(result: ParsePortResult) -> dict[str, Any]:
    return {
        "data": dict(result.data),
        "usage": asdict(result.usage),
        "usage_unavailable": result.usage_unavailable,
        "channel": result.channel,
        "repairs": result.repairs,
        "raw": result.raw,
    }


def parse_from(data: Mapping[str, Any]) -> ParsePortResult:
    return ParsePortResult(**{**data, "usage": UsageMetadata(**data["usage"])})


def agent_to(result: AgentResult) -> dict[str, Any]:
    """What an agent did, as plain data; its messages hold what its tools answered."""
    data = asdict(result, filter=lambda attribute, _: attribute.name != "trace_messages")
    return {**data, "trace_messages": [message.to_dict() for message in result.trace_messages]}


def agent_from(data: Mapping[str, Any]) -> AgentResult:
    """The inverse of `agent_to`."""
    facts = dict(data)
    facts["trace_messages"] = tuple(map(Message.from_dict, facts["trace_messages"]))
    facts["usage"] = UsageMetadata(**facts["usage"])
    facts["flags"] = tuple(facts["flags"])
    return AgentResult(**facts)


def embeddings_to(embeddings: Embeddings) -> dict[str, Any]:
    """Vectors as plain data; JSON keeps every digit of their numbers."""
    return {
        "vectors": [[float(number) for number in vector] for vector in embeddings.vectors],
        "model": embeddings.model,
        "usage": asdict(embeddings.usage),
    }


def embeddings_from(data: Mapping[str, Any]) -> Embeddings:
    """The inverse of `embeddings_to`."""
    return Embeddings(
        vectors=tuple(map(tuple, data["vectors"])), model=data["model"], usage=UsageMetadata(**data["usage"])
    )


def search_to(found: Sequence[SearchResult]) -> dict[str, Any]:
    """Search results as plain data."""
    return {"results": [asdict(result) for result in found]}


def search_from(outcome: Mapping[str, Any]) -> tuple[SearchResult, ...]:
    """The results in `{"reply": ...}`, the inverse of `search_to`. Raises SearchError for the failure in
    `{"error": ...}`."""
    if "error" in outcome:
        raise SearchError(outcome["error"]["message"])
    return tuple(SearchResult(**result) for result in outcome["reply"]["results"])


def error_to(error: KareninaError) -> dict[str, Any]:
    facts: dict[str, Any] = {"message": str(error), "kind": error.kind, "status": None, "raw": None}
    if isinstance(error, PortError):
        facts |= {"status": error.status, "raw": error.raw}
        if isinstance(done := error.evidence.get("agent_result"), AgentResult):
            facts["agent"] = agent_to(done)
    if isinstance(error, ParseError):
        usage = error.usage
        facts["parse"] = {
            "raw_response": error.raw_response,
            "usage": asdict(usage) if isinstance(usage, UsageMetadata) else None,
            "usage_unavailable": error.usage_unavailable,
            "channel": error.channel,
        }
    return facts


def error_from(data: Mapping[str, Any]) -> PortError:
    """The recorded failure. It is final: what was recorded does not change by asking again."""
    if parse := data.get("parse"):
        failure = ParseError(data["message"], raw_response=parse["raw_response"])
        failure.usage = UsageMetadata(**parse["usage"]) if parse["usage"] else None
        failure.usage_unavailable = parse.get("usage_unavailable", False)
        failure.channel = parse["channel"]
        return failure
    found = PortError(data["message"], kind=data["kind"], status=data["status"], raw=data["raw"], final=True)
    if done := data.get("agent"):
        found.evidence = {"agent_result": agent_from(done)}
    return found
