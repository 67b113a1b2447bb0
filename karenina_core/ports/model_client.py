"""A model as stages see it, and the record of what they asked of it."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Protocol

from attrs import frozen

from ..errors import ErrorKind
from ..values.config import ModelConfig
from ..values.message import Message, UsageMetadata
from .values import AgentConfig, AgentResult, LLMResponse, OutputFormat, ParsePortResult, PortCapabilities, Tool

Validate = Callable[[Mapping[str, Any]], Awaitable[Any]]
"""Turns data into something else, or raises FillError with what is wrong, in words for the judge."""


@frozen(kw_only=True)
class CallRecord:
    """One use of a model by a stage, with all its attempts and repairs."""

    task: str
    model: str
    attempts: int
    """Requests, those without a reply included, but for refused output channels where a weaker one worked."""
    retries: Mapping[str, int]
    seconds: float
    usage: UsageMetadata = UsageMetadata()
    """Its cost is 0 where no attempt was made, and None where it may be on the provider's bill."""
    usage_unavailable: bool = False
    """Whether the tokens of some of it are unknown; `usage` then has only those that are known."""
    replies: int = 1
    unknown_cost_attempts: int = 0
    """Requests without a reply that may be on the provider's bill, at an unknown price."""
    channel: str | None = None
    repairs: int = 0
    error_kind: ErrorKind | None = None


class ModelClient(Protocol):
    """A model for the stages of one item. Every call is recorded in `calls`, also when it fails."""

    @property
    def config(self) -> ModelConfig: ...

    @property
    def calls(self) -> list[CallRecord]: ...

    @property
    def question_id(self) -> str: ...

    @property
    def capabilities(self) -> PortCapabilities: ...

    @property
    def can_use_tools(self) -> bool:
        """Whether `run_agent` works for this model."""
        ...

    @property
    def agent_capabilities(self) -> PortCapabilities | None:
        """What the adapter's own agent can do; None where it has none, and `run_agent` asks the model turn by turn."""
        ...

    @property
    def tools(self) -> tuple[Tool, ...]:
        """What the model may call: the tools of its servers."""
        ...

    @property
    def servers(self) -> tuple[str, ...]:
        """The names of those servers."""
        ...

    def agent_config(self, **facts: Any) -> AgentConfig:
        """The model's own limits for work with tools, and `facts` in their place."""
        ...

    def prompt(
        self, task: str, system_text: str, user_text: str, context: Mapping[str, Any] | None = None
    ) -> list[Message]:
        """The messages of a task: its own text, what adapters add, what the user adds."""
        ...

    async def invoke(
        self,
        task: str,
        messages: Sequence[Message],
        *,
        temperature: float | None = None,
        output: OutputFormat | None = None,
    ) -> LLMResponse:
        """Ask the model. Raises PortError when the attempts are used up."""
        ...

    async def run_agent(
        self,
        task: str,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        mcp_servers: Mapping[str, Any] | None = None,
        config: AgentConfig | None = None,
    ) -> AgentResult:
        """Let the model work with tools. Raises PortError; a limit that is reached is data."""
        ...

    async def parse(
        self,
        task: str,
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        *,
        validate: Validate | None = None,
        temperature: float | None = None,
        max_repairs: int | None = None,
        answered: tuple[str, str] = ("", ""),
    ) -> ParsePortResult:
        """Ask the model for data of a JSON Schema, repaired where it does not fit. Raises ParseError and PortError.

        `answered` is the answer that is judged and the model that gave it, for parser ports that ignore the prompt.
        """
        ...
