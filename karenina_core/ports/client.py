"""A model as stages see it: prompts in, replies out; retried, timed and accounted for."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeVar

from attrs import define, field, frozen

from ..errors import AdapterUnavailableError, ErrorKind, KareninaError, ParseError, PortError, one_line
from ..model.config import ModelConfig, PromptConfig, RetryPolicy
from ..model.identity import ModelIdentity
from ..model.message import Message, UsageMetadata
from ..prompts.assembler import PromptAssembler
from ..prompts.instructions import AdapterInstructionRegistry
from .protocols import AgentPort, LLMPort, ParserPort
from .retry import Attempts, with_retries
from .structured import StructuredParser, Validate, parse_with_repair
from .values import CallContext, LLMResponse, OutputFormat, ParsePortResult, PortCapabilities

__all__ = ["CallRecord", "Model", "ModelClient"]

T = TypeVar("T")


@frozen(kw_only=True)
class CallRecord:
    """One use of a model by a stage, with all its attempts and repairs."""

    task: str
    model: str
    attempts: int
    retries: Mapping[str, int]
    seconds: float
    usage: UsageMetadata = UsageMetadata()
    usage_unavailable: bool = False
    channel: str | None = None
    repairs: int = 0
    error_kind: ErrorKind | None = None


@define(eq=False, kw_only=True)
class Model:
    """One configured model for a whole run: its ports, and how its calls are made."""

    config: ModelConfig
    llm: LLMPort | None = None
    parser: ParserPort | None = None
    agent: AgentPort | None = None
    prompts: PromptConfig = field(factory=PromptConfig)
    instructions: AdapterInstructionRegistry = field(factory=AdapterInstructionRegistry)
    max_elapsed: float = 120.0
    classify: Callable[[BaseException], ErrorKind | None] = lambda error: None

    def __attrs_post_init__(self) -> None:
        if self.parser is None and self.llm is not None:
            self.parser = StructuredParser(self.llm)

    @property
    def identity(self) -> ModelIdentity:
        return self.config.identity

    @property
    def capabilities(self) -> PortCapabilities:
        port = self.llm or self.parser or self.agent
        return port.capabilities if port else PortCapabilities()

    async def aclose(self) -> None:
        for port in {id(p): p for p in (self.llm, self.parser, self.agent) if p is not None}.values():
            await port.aclose()


@define(eq=False)
class ModelClient:
    """A model for the stages of one item. Every call is recorded in `calls`, also when it fails."""

    model: Model
    calls: list[CallRecord]
    question_id: str = ""
    question_text: str = ""
    replicate: int = 1

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    @property
    def capabilities(self) -> PortCapabilities:
        return self.model.capabilities

    def prompt(
        self, task: str, system_text: str, user_text: str, context: Mapping[str, Any] | None = None
    ) -> list[Message]:
        """The messages of a task: its own text, what adapters add, what the user adds."""
        assembler = PromptAssembler(
            task, self.config.interface, self.capabilities.supports_system_prompt, self.model.instructions
        )
        return assembler.assemble(system_text, user_text, self.model.prompts.get_for_task(task), context)

    async def invoke(
        self,
        task: str,
        messages: Sequence[Message],
        *,
        temperature: float | None = None,
        output: OutputFormat | None = None,
    ) -> LLMResponse:
        """Ask the model. Raises PortError when the attempts are used up."""
        llm = self.model.llm
        if llm is None:
            raise AdapterUnavailableError(f"the interface {self.config.interface!r} cannot be asked for text")
        call = self._call(task, temperature)
        temperature = call.temperature
        attempts, started = Attempts(), time.monotonic()
        try:
            response: LLMResponse = await self._tried(
                lambda: llm.ainvoke(messages, output=output, temperature=temperature, call=call), attempts
            )
        except KareninaError as error:
            self._record(task, attempts, started, error_kind=error.kind)
            raise
        self._record(task, attempts, started, usage=response.usage, usage_unavailable=response.usage_unavailable)
        return response

    async def parse(
        self,
        task: str,
        messages: Sequence[Message],
        schema: Mapping[str, Any],
        *,
        validate: Validate | None = None,
        temperature: float | None = None,
    ) -> ParsePortResult:
        """Ask the model for data of a JSON Schema, repaired where it does not fit. Raises ParseError and PortError.

        `temperature` takes the place of the configured one, except for a model that is sent none at all.
        """
        if self.model.parser is None:
            raise AdapterUnavailableError(f"the interface {self.config.interface!r} cannot be asked for data")
        attempts, started = Attempts(), time.monotonic()
        tried = _Retried(self.model.parser, self, attempts)
        try:
            result = await parse_with_repair(
                tried,
                messages,
                schema,
                validate=validate,
                max_repairs=self.config.max_retries,
                call=self._call(task, temperature),
            )
        except Exception as error:  # also the template's own: the replies were paid for
            self._record(
                task,
                attempts,
                started,
                usage=tried.spent,
                repairs=error.repairs if isinstance(error, PortError) else 0,
                channel=tried.channel,
                error_kind=error.kind if isinstance(error, KareninaError) else "stage",
            )
            raise
        self._record(task, attempts, started, usage=result.usage, channel=result.channel, repairs=result.repairs)
        return result

    def _checked(self, reply: Any) -> Any:
        """Refuse what no adapter may give back, before it gets into a result. Raises PortError."""
        sound = isinstance(reply, LLMResponse | ParsePortResult) and isinstance(reply.usage, UsageMetadata)
        sound = sound and isinstance(reply.content if isinstance(reply, LLMResponse) else reply.data, str | Mapping)
        if not sound:
            what = type(reply).__name__
            raise PortError(f"the adapter {self.config.interface!r} gave back no proper reply ({what})", kind="plugin")
        return reply

    def _call(self, task: str, temperature: float | None) -> CallContext:
        if self.config.temperature is None:
            temperature = None  # the model refuses one
        return CallContext(str(task), self.question_id, self.question_text, self.replicate, temperature)

    async def _tried(self, attempt: Callable[[], Any], attempts: Attempts) -> Any:
        async def classified() -> Any:
            try:
                return self._checked(await attempt())
            except (KareninaError, TimeoutError, asyncio.CancelledError):
                raise
            except Exception as error:
                kind = self.model.classify(error) or _builtin_kind(error)
                raise PortError(
                    f"the adapter {self.config.interface!r} failed: {one_line(error)}", kind=kind
                ) from error

        policy = self.config.retry_policy or RetryPolicy()
        return await with_retries(classified, policy, max_elapsed=self.model.max_elapsed, attempts=attempts)

    def _record(self, task: str, attempts: Attempts, started: float, **facts: Any) -> None:
        self.calls.append(
            CallRecord(
                task=str(task),
                model=str(self.model.identity),
                attempts=attempts.count,
                retries=attempts.retries,
                seconds=time.monotonic() - started,
                **{k: v for k, v in facts.items() if v is not None},
            )
        )


@define(eq=False)
class _Retried:
    """A parser whose every call is tried again by the model's policy; a reply that cannot be read is not a failed
    call."""

    inner: ParserPort
    client: ModelClient
    attempts: Attempts
    channel: str | None = None
    spent: UsageMetadata | None = None

    @property
    def capabilities(self) -> PortCapabilities:
        return self.inner.capabilities

    async def aparse(
        self, messages: Sequence[Message], schema: Mapping[str, Any], *, call: CallContext | None = None
    ) -> ParsePortResult:
        try:
            result: ParsePortResult = await self.client._tried(
                lambda: self.inner.aparse(messages, schema, call=call), self.attempts
            )
        except ParseError as error:
            self.channel = error.channel or self.channel
            self._spend(error.usage)
            raise
        self.channel = result.channel
        self._spend(result.usage)
        return result

    def _spend(self, usage: object) -> None:
        if isinstance(usage, UsageMetadata):
            self.spent = usage if self.spent is None else self.spent + usage

    async def aclose(self) -> None:
        await self.inner.aclose()


def _builtin_kind(error: BaseException) -> ErrorKind:
    return "connection" if isinstance(error, OSError) else "plugin"
