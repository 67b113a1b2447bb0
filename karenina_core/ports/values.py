"""What goes into a model call and what comes out of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import field, frozen

from ..model.message import Message, ToolUseBlock, UsageMetadata

__all__ = [
    "AgentConfig",
    "AgentResult",
    "CallContext",
    "Channel",
    "LLMResponse",
    "OutputFormat",
    "ParsePortResult",
    "PortCapabilities",
    "StreamingLLMResponse",
    "Tool",
]

Channel = Literal["json_schema", "tool_call", "json_object", "text"]


@frozen(kw_only=True)
class PortCapabilities:
    """What a model can do behind its adapter."""

    supports_system_prompt: bool = True
    supports_structured_output: bool = False
    supports_streaming: bool = False
    supports_file_tools: bool = False
    supports_code_execution: bool = False
    uses_sandboxed_execution: bool = False
    output_channels: tuple[Channel, ...] = ("text",)
    """Ways to ask for structured output, the strongest first."""
    needs_provider: bool = True
    """False where calls are answered without the provider, so that neither its key nor its address is needed."""


@frozen
class OutputFormat:
    """How a reply is to be shaped: a JSON Schema and the channel that carries it.

    `json_schema`: the provider enforces the schema. `tool_call`: the reply is the argument of a tool of that schema.
    `json_object`: the provider promises some JSON object. `text`: the prompt alone asks for it.
    """

    channel: Channel
    schema: Mapping[str, Any]
    name: str = "answer"


@frozen
class CallContext:
    """What a call is for. Models never see it; recordings are found by it, and logs name it."""

    task: str
    question_id: str = ""
    question_text: str = ""
    replicate: int = 1
    temperature: float | None = None
    """What the task asks for in place of the model's own temperature; for parser ports, which take no such argument."""


@frozen(kw_only=True)
class LLMResponse:
    """One reply of a model."""

    content: str
    """The text, safe to write: lone surrogates replaced, see `flags`."""
    tool_calls: tuple[ToolUseBlock, ...] = ()
    structured: str | None = None
    """The raw JSON text of a structured reply, where the channel keeps it apart from `content`."""
    thinking: str | None = None
    usage: UsageMetadata = UsageMetadata()
    usage_unavailable: bool = False
    finish_reason: str | None = None
    actual_model: str | None = None
    is_partial: bool = False
    flags: tuple[str, ...] = ()
    raw: Any = field(default=None, eq=False, repr=False)


@frozen(kw_only=True)
class ParsePortResult:
    """Data that a judge extracted."""

    data: Mapping[str, Any]
    usage: UsageMetadata = UsageMetadata()
    channel: Channel | None = None
    """None where no model was asked."""
    repairs: int = 0
    raw: str = ""
    """The reply as it came."""
    parsed: Any = None
    """What the validation made of `data`: a pydantic instance or a filled template."""


class StreamingLLMResponse:
    """A reply that arrives in pieces: iterate over it asynchronously, then read `response`."""

    def __init__(self, pieces: AsyncIterator[str | LLMResponse]) -> None:
        self._pieces = pieces
        self.accumulated_content = ""
        self.response: LLMResponse | None = None

    @property
    def is_complete(self) -> bool:
        return self.response is not None

    async def __aiter__(self) -> AsyncIterator[str]:
        async for piece in self._pieces:
            if isinstance(piece, LLMResponse):
                self.response = piece
                return
            self.accumulated_content += piece
            yield piece


@frozen(kw_only=True)
class Tool:
    """A tool that a model may call."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class AgentConfig:
    """Limits and surroundings of one agent run."""

    max_turns: int = 25
    system_prompt: str | None = None
    timeout: float | None = None
    """Seconds for the whole run."""
    workspace_path: Path | None = None
    extra: Mapping[str, Any] = field(factory=dict)


@frozen(kw_only=True)
class AgentResult:
    """What an agent did. A reached limit is data, not an error."""

    final_response: str
    raw_trace: str = ""
    trace_messages: tuple[Message, ...] = ()
    usage: UsageMetadata = UsageMetadata()
    turns: int = 0
    limit_reached: bool = False
    timeout_reached: bool = False
    session_id: str | None = None
    actual_model: str | None = None
