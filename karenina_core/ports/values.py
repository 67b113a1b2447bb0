"""What goes into a model call and what comes out of it."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping
from pathlib import Path
from typing import Any, Literal

from attrs import field, frozen, validators

from ..values.message import Message, ThinkingBlock, ToolUseBlock, UsageMetadata

Channel = Literal["json_schema", "tool_call", "json_object", "text"]


@frozen(kw_only=True)
class PortCapabilities:
    """What a model can do behind its adapter."""

    supports_system_prompt: bool = True
    supports_structured_output: bool = False
    supports_tools: bool = False
    """Whether the model can be given tools: `ainvoke` takes `tools`, and replies carry `tool_calls`."""
    supports_streaming: bool = False
    supports_file_tools: bool = False
    supports_code_execution: bool = False
    uses_sandboxed_execution: bool = False
    output_channels: tuple[Channel, ...] = ("text",)
    """Ways to ask for structured output, the strongest first."""
    needs_provider: bool = True
    """False where calls are answered without the provider, so that neither its key nor its address is needed."""
    reports_cost: bool = False
    """Whether replies say what they cost, for every model whose price is known."""
    reports_thinking: bool = False
    """Whether replies say what the model thought, where it shows that."""
    reports_cached_tokens: bool = False
    """Whether the usage of a reply says how much of the prompt a cache of the provider has served."""


@frozen
class OutputFormat:
    """How a reply is to be shaped: a JSON Schema and the channel that carries it.

    `json_schema`: the provider enforces the schema. `tool_call`: the reply is the argument of a tool of that schema.
    `json_object`: the provider promises some JSON object. `text`: the prompt alone asks for it.
    """

    channel: Channel
    schema: Mapping[str, Any]
    name: str = "answer"
    refused: tuple[Channel, ...] = field(default=(), eq=False)
    """Stronger channels on which the model has refused this schema, and in place of which this one is tried."""


@frozen
class CallContext:
    """What a call is for. Models never see it; recordings are found by it, and logs name it."""

    task: str
    question_id: str = ""
    question_text: str = ""
    replicate: int = 1
    temperature: float | None = None
    """What the task asks for in place of the model's own temperature; for parser ports, which take no such argument."""
    answer: str = ""
    """What the answering model finally says, where a judge is asked about an answer; its last message, whatever more of
    its trace the prompt shows."""
    answering_model: str = ""
    """The identity of that model, as results have it."""


def _places(value: Iterable[int]) -> tuple[int, ...]:
    return tuple(value)


@frozen(kw_only=True)
class LLMResponse:
    """One reply of a model."""

    content: str
    """The text, safe to write: lone surrogates replaced, see `flags`."""
    tool_calls: tuple[ToolUseBlock, ...] = ()
    malformed_calls: tuple[int, ...] = field(default=(), converter=_places)
    """Places in `tool_calls`, from 0, of calls whose arguments could not be read: no JSON object, nested too deeply or
    cut off. Their `input` is empty, and no tool is run with it."""
    structured: str | None = None
    """The raw JSON text of a structured reply, where the channel keeps it apart from `content`."""
    thinking: str | None = None
    thinking_blocks: tuple[ThinkingBlock, ...] = ()
    """The same, where the provider signs it and wants it back in the next request as it was."""
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
    usage_unavailable: bool = False
    """Whether the provider did not say how many tokens some reply took."""
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


@frozen
class ToolOutcome:
    """What a tool answered, for the model to read."""

    content: str
    is_error: bool = False
    warning: str | None = None
    """For the user, not for the model: what is odd about the server. It is in the result of the item, and in the
    run."""


RunTool = Callable[[Mapping[str, Any]], Awaitable[ToolOutcome]]


@frozen(kw_only=True)
class Tool:
    """A tool that a model may call."""

    name: str
    description: str = ""
    input_schema: Mapping[str, Any] = field(factory=dict)
    run: RunTool | None = field(default=None, eq=False, repr=False)
    """What a call does, with its arguments; None where the adapter's own agent has the tool itself. What it raises is
    returned to the model as an error of the tool."""


Limit = Literal["turns", "tool_calls", "tokens", "cost", "time", "repeated_calls"]
"""What ended an agent's work before the agent did."""


def _limit(default: Any) -> Any:
    return field(default=default, validator=validators.optional(validators.gt(0)))


@frozen(kw_only=True)
class AgentConfig:
    """Limits and surroundings of one agent run. A limit of None is none."""

    max_turns: int = field(default=25, validator=validators.ge(1))
    """Replies of the model."""
    max_tool_calls: int | None = _limit(50)
    max_total_tokens: int | None = _limit(None)
    """Tokens in and out of all calls together."""
    max_cost_usd: float | None = _limit(None)
    """US dollars for all calls whose price is known; one without a known price counts nothing."""
    max_repeated_calls: int | None = _limit(5)
    """How often the same call of a tool may give the same answer. One that is repeated more often leads nowhere."""
    system_prompt: str | None = None
    timeout: float | None = _limit(None)
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
    limit: Limit | None = None
    """Which limit ended the work; what was done until then is in the messages."""
    usage_unavailable: bool = False
    """Whether the provider did not say how many tokens some call took."""
    flags: tuple[str, ...] = ()
    """What was odd about the replies; see `LLMResponse.flags`."""
    session_id: str | None = None
    actual_model: str | None = None

    @property
    def limit_reached(self) -> bool:
        return self.limit is not None

    @property
    def timeout_reached(self) -> bool:
        return self.limit == "time"
