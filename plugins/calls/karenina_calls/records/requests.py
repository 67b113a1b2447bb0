"""Calls of models, embedders, searches and tools as plain data, and their keys: as recordings and journals have them.

One JSON object a line: `{"format": 1, "key", "kind": "llm" | "parser" | "agent", "model": {...}, "task", "replicate",
"messages": [...], "schema", "channel", "parameters": {...}, "reply": {...} | "error": {...}}`; of an embedder
`{"format": 1, "key", "kind": "embedder", "embedder", "model", "texts": [...], "reply": {...} | "error": {...}}`; of a
search tool `{"format": 1, "key", "kind": "search", "tool", "query", "reply": {"results": [...]} | "error": {...}}`; of
a tool server `{"format": 1, "key", "kind": "tool", "server", "tool", "arguments", "reply": {"content", "is_error"}}`,
and with a null as `tool` what it offers, `"reply": {"tools": [...]}`. The error of an agent can have what the agent did
until then, `"agent": {...}`.
The key is the SHA-256 of the canonical JSON of what is between the key and the reply.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from operator import attrgetter
from typing import Any, ClassVar, Literal

from attrs import asdict, field, fields, frozen
from karenina_vocabulary.tasks import EMBEDDING, SEARCH

from karenina_core.errors import KareninaError, ParseError, PortError, SearchError
from karenina_core.ports.values import AgentResult, LLMResponse, ParsePortResult
from karenina_core.values.identity import ModelIdentity, canonical_json
from karenina_core.values.message import Message, ThinkingBlock, ToolUseBlock, UsageMetadata

from ..services.embedding import NO_NUMBER, Embeddings
from ..tools.search import SearchResult

FORMAT = 1  # of a recording
PARSE_FACTS = ("raw_response", "usage", "usage_unavailable", "channel", "cut_off")
LLM_FIELDS = tuple(attribute.name for attribute in fields(LLMResponse) if attribute.name != "raw")
LLM_VALUES = attrgetter(*LLM_FIELDS)


@frozen
class _Plain:
    """A call whose fields, which are plain data, are all that makes it."""

    @cached_property
    def canonical(self) -> str:
        """The canonical JSON of the call: what its key is the digest of, and what its line in a recording holds."""
        return canonical_json(self._facts())

    @cached_property
    def key(self) -> str:
        return hashlib.sha256(self.canonical.encode("ascii")).hexdigest()

    def key_of(self, question_id: str, version: str = "1", behind: str = "") -> str:
        """The key in a journal: what is asked is the same for every caller and question. `behind` is the
        code that serves it, see `Metered.adapter`."""
        return hashlib.sha256(f"{self.key}\n{behind}".encode()).hexdigest()

    def line(self) -> dict[str, Any]:
        """The recording's line without the reply."""
        return {"format": FORMAT, "key": self.key, **self._facts()}

    def _facts(self) -> dict[str, Any]:
        cls: Any = type(self)
        names, values = _reader(cls)
        return dict(zip(names, values(self), strict=True))


@cache
def _reader(cls: Any) -> tuple[tuple[str, ...], Callable[[_Plain], tuple[Any, ...]]]:
    """The fields of a kind of calls, of which each has two or more, and what reads them."""
    names = tuple(attribute.name for attribute in fields(cls))
    return names, attrgetter(*names)


@lru_cache(maxsize=64)  # a run has few models, and names one for each call
def _label(**identity: Any) -> str:
    return str(ModelIdentity(**identity))


@frozen
class Request(_Plain):
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
    def recipient(self) -> str:
        """The model, for people."""
        return _label(**{**self.model, "tools": tuple(self.model.get("tools", ()))})

    @property
    def sent(self) -> tuple[Any, ...]:
        """What the model has to read, as plain data."""
        return self.messages, self.schema, self.parameters.get("tools")

    def key_of(self, question_id: str, version: str = "1", behind: str = "") -> str:
        """The key in a journal: that of a recording, with the question, the version of the stage that asks, and what is
        `behind` the port: the code of the adapter and, of an agent, the tool servers (see `Metered`).

        Two questions with the same text are answered each by itself, also by an adapter that goes by their ids; and the
        author of a stage can have its calls made again.
        """
        parts = f"{self.key}\n{version}\n{question_id}\n{behind}"
        return hashlib.sha256(parts.encode("utf-8", "replace")).hexdigest()


@frozen
class EmbeddingRequest(_Plain):
    """What makes two calls of an embedder the same call."""

    task: ClassVar[str] = EMBEDDING
    embedder: str
    model: str
    texts: tuple[str, ...]
    kind: Literal["embedder"] = "embedder"

    @property
    def recipient(self) -> str:
        """The embedder and its model, for people."""
        return str(ModelIdentity(self.embedder, self.model))

    @property
    def sent(self) -> tuple[str, ...]:
        return self.texts


@frozen
class SearchRequest(_Plain):
    """What makes two searches the same search."""

    task: ClassVar[str] = SEARCH
    tool: str
    query: str
    kind: Literal["search"] = "search"

    @property
    def recipient(self) -> str:
        """The search tool, for people."""
        return self.tool

    @property
    def sent(self) -> tuple[str, ...]:
        return (self.query,)


@frozen
class ToolRequest(_Plain):
    """What makes two calls of a server's tool the same call; without a tool: what the server offers."""

    server: str
    tool: str | None = None
    arguments: Mapping[str, Any] = field(factory=dict)
    kind: Literal["tool"] = "tool"


KeptRequest = Request | EmbeddingRequest | SearchRequest
"""What a journal keeps the reply to."""


def llm_to(response: LLMResponse) -> dict[str, Any]:
    """A reply as plain data. Messages that an adapter hands over as `raw` are kept; anything else in `raw` is not."""
    data = dict(zip(LLM_FIELDS, LLM_VALUES(response), strict=True))
    data["usage"] = response.usage.to_dict()
    for name in ("tool_calls", "thinking_blocks"):
        data[name] = tuple(map(asdict, data[name]))
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
        "usage": result.usage.to_dict(),
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
    """Vectors as plain data; JSON keeps every digit of their numbers. Raises PortError (`bad_response`)."""
    try:
        vectors = [[float(number) for number in vector] for vector in embeddings.vectors]
    except (TypeError, ValueError, OverflowError) as error:
        raise PortError(NO_NUMBER, kind="bad_response") from error
    unknown = {"usage_unavailable": True} if embeddings.usage_unavailable else {}
    return {"vectors": vectors, "model": embeddings.model, "usage": embeddings.usage.to_dict(), **unknown}


def embeddings_from(data: Mapping[str, Any]) -> Embeddings:
    """The inverse of `embeddings_to`."""
    return Embeddings(
        vectors=tuple(map(tuple, data["vectors"])),
        model=data["model"],
        usage=UsageMetadata(**data["usage"]),
        usage_unavailable=data.get("usage_unavailable", False),
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
        usage = error.usage.to_dict() if isinstance(error.usage, UsageMetadata) else None
        facts["parse"] = {name: getattr(error, name) for name in PARSE_FACTS} | {"usage": usage}
    return facts


def error_from(data: Mapping[str, Any]) -> PortError:
    """The recorded failure. It is final: what was recorded does not change by asking again."""
    if parse := data.get("parse"):
        failure = ParseError(data["message"], raw_response=parse["raw_response"])
        for name in PARSE_FACTS:
            setattr(failure, name, parse[name])
        failure.usage = UsageMetadata(**parse["usage"]) if parse["usage"] else None
        return failure
    found = PortError(data["message"], kind=data["kind"], status=data["status"], raw=data["raw"], final=True)
    if done := data.get("agent"):
        found.evidence = {"agent_result": agent_from(done)}
    return found
