"""A model as stages see it: prompts in, replies out; retried, timed and accounted for."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

from attrs import define, evolve, field, frozen
from karenina_vocabulary.prompt_config import PromptConfig

from karenina_core.errors import (
    AdapterUnavailableError,
    ErrorKind,
    KareninaError,
    ParseError,
    PortError,
    one_line,
    place_of,
)
from karenina_core.log import get_logger
from karenina_core.ports.middleware import CallTarget
from karenina_core.ports.model_client import CallRecord, Validate
from karenina_core.ports.protocols import AgentPort, LLMPort, ParserPort, ToolCallingLLMPort
from karenina_core.ports.values import (
    AgentConfig,
    AgentResult,
    CallContext,
    LLMResponse,
    OutputFormat,
    ParsePortResult,
    PortCapabilities,
    Tool,
)
from karenina_core.values.config import ModelConfig
from karenina_core.values.identity import ModelIdentity
from karenina_core.values.message import Message, UsageMetadata

from ..records.call_facts import record_of
from ..secrets.incoming import Cleaner
from ..secrets.redaction import Secrets
from ..tools.agent_loop import in_time, is_proper, run_agent_loop
from ..tools.tool_servers import OfferedTools
from .call_port import Layer, through
from .item_calls import ItemCalls
from .port_calls import AgentCall
from .prompt_assembler import Additions, PromptAssembler
from .retry import USUAL, Attempts, this_call, with_retries
from .structured import StructuredParser, parse_with_repair

log = get_logger("karenina.run")


@define(eq=False, kw_only=True)
class Model:
    """One configured model for a whole run: its ports, and how its calls are made."""

    config: ModelConfig
    llm: LLMPort | None = None
    parser: ParserPort | None = None
    agent: AgentPort | None = None
    tools: tuple[Tool, ...] = ()
    """What the model may call: the tools of its servers, connected to for the whole run."""
    servers: tuple[str, ...] = ()
    """The names of those servers."""
    offered: tuple[OfferedTools, ...] = ()
    """The same tools by server, for the record of the run."""
    remarks: list[str] = field(factory=list)
    """What was odd about those servers so far: every `ToolOutcome.warning` once."""
    prompts: PromptConfig = field(factory=PromptConfig)
    additions: Additions = lambda task, interface, context: ()
    """What adapters add to prompts."""
    max_elapsed: float = 120.0
    classify: Callable[[BaseException], ErrorKind | None] = lambda error: None
    around_work: Sequence[Layer] = ()
    """Middleware in front of work with tools, the outermost first."""
    secrets: Secrets = field(factory=Secrets)
    """Of the run: no tool's answer holds them, and no error."""

    def __attrs_post_init__(self) -> None:
        if self.parser is None and self.llm is not None:
            self.parser = StructuredParser(self.llm, self.config.token_limit)

    @property
    def identity(self) -> ModelIdentity:
        return self.config.identity

    @property
    def capabilities(self) -> PortCapabilities:
        port = self.llm or self.parser or self.agent
        return port.capabilities if port else PortCapabilities()

    @property
    def module(self) -> str:
        """That of its adapter."""
        port = self.llm or self.parser or self.agent
        return type(getattr(port, "inner", port)).__module__

    async def aclose(self) -> None:
        for port in {id(p): p for p in (self.llm, self.parser, self.agent) if p is not None}.values():
            await port.aclose()


@define(eq=False)
class ModelClient:
    """A model for the stages of one item: see `model_client.ModelClient`."""

    model: Model
    calls: list[CallRecord]
    question_id: str = ""
    question_text: str = ""
    replicate: int = 1
    item: ItemCalls = field(factory=ItemCalls)

    @property
    def config(self) -> ModelConfig:
        return self.model.config

    @property
    def capabilities(self) -> PortCapabilities:
        return self.model.capabilities

    @property
    def can_use_tools(self) -> bool:
        """Whether `run_agent` works for this model."""
        return self.model.agent is not None or self.capabilities.supports_tools

    @property
    def agent_capabilities(self) -> PortCapabilities | None:
        return self.model.agent.capabilities if self.model.agent is not None else None

    @property
    def tools(self) -> tuple[Tool, ...]:
        return self.model.tools

    @property
    def servers(self) -> tuple[str, ...]:
        return self.model.servers

    def agent_config(self, **facts: Any) -> AgentConfig:
        settings = self.config
        own = AgentConfig(
            max_turns=settings.agent_max_turns,
            max_tool_calls=settings.agent_max_tool_calls,
            max_total_tokens=settings.agent_max_total_tokens,
            max_cost_usd=settings.agent_max_cost_usd,
            max_repeated_calls=settings.agent_max_repeated_calls,
            timeout=settings.agent_timeout,
        )
        return evolve(own, **facts)

    def prompt(
        self, task: str, system_text: str, user_text: str, context: Mapping[str, Any] | None = None
    ) -> list[Message]:
        assembler = PromptAssembler(
            task, self.config.interface, self.capabilities.supports_system_prompt, self.model.additions
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
        llm = self.model.llm
        if llm is None:
            raise AdapterUnavailableError(f"the interface {self.config.interface!r} cannot return text")
        call, attempts = self._call(task, temperature), Attempts()
        asked: dict[str, Any] = {"output": output, "temperature": call.temperature, "call": call}
        with _Recorded(self, str(task), attempts) as facts:
            response: LLMResponse = await self._tried(lambda: llm.ainvoke(messages, **asked), attempts)
            facts.update(usage=response.usage, usage_unavailable=response.usage_unavailable)
        return response

    async def run_agent(
        self,
        task: str,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        *,
        mcp_servers: Mapping[str, Any] | None = None,
        config: AgentConfig | None = None,
    ) -> AgentResult:
        """Let the model work with tools. Raises PortError; a limit that is reached is data.

        A model with an agent of its own runs as that agent, in one attempt, which is ended `GRACE` seconds after its
        time is up; any other that can call tools is asked turn by turn, each turn with the model's retries, and the
        whole is one record in `calls`.
        """
        call, attempts = self._call(task, None), Attempts()
        target = CallTarget.of_model("work", self.config)
        work = AgentCall(target, messages, tools, mcp_servers, config or AgentConfig(), call)
        with _Recorded(self, str(task), attempts) as facts:
            done: object = None
            try:
                done = result = await through(self.model.around_work, _Worker(self, attempts))(work)
            except PortError as error:
                done = error.evidence.get("agent_result")
                raise
            finally:
                if isinstance(done, AgentResult):
                    facts.update(usage=done.usage, usage_unavailable=done.usage_unavailable)
        return result

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

        `temperature` takes the place of the configured one, except for a model that is sent none at all; `max_repairs`
        that of the model's `max_retries`. `answered` is the answer that is judged and the model that gave it, for
        parser ports that do not go by the prompt.
        """
        if self.model.parser is None:
            raise AdapterUnavailableError(f"the interface {self.config.interface!r} cannot return data")
        attempts = Attempts()
        tried = _Retried(self.model.parser, self, attempts)
        most = self.config.max_retries if max_repairs is None else max_repairs
        call = self._call(task, temperature, *answered)
        with _Recorded(self, str(task), attempts) as facts:
            try:
                result = await parse_with_repair(
                    tried, messages, schema, validate=validate, max_repairs=most, call=call
                )
                facts["repairs"] = result.repairs
            except PortError as error:
                facts["repairs"] = error.repairs
                raise
            finally:  # the replies were paid for, also where the template's own code fails
                facts.update(usage=tried.spent, usage_unavailable=tried.usage_unavailable, channel=tried.channel)
        return result

    def _call(self, task: str, temperature: float | None, *answered: str) -> CallContext:
        """A call begins; `_recorded` ends it."""
        self.item.begun += 1
        if self.config.temperature is None:
            temperature = None  # the model refuses one
        return CallContext(str(task), self.question_id, self.question_text, self.replicate, temperature, *answered)

    async def _tried(self, attempt: Callable[[], Any], attempts: Attempts) -> Any:
        classified = partial(self._classified, attempt, _is_proper_reply)
        policy = self.config.retry_policy or USUAL
        return await with_retries(classified, policy, max_elapsed=self.model.max_elapsed, attempts=attempts)

    async def _classified(self, attempt: Callable[[], Any], proper: Callable[[Any], bool]) -> Any:
        """One attempt. What no adapter may give back is refused before it gets into a result.

        Raises KareninaError, TimeoutError, and PortError for whatever else it raises.
        """
        try:
            reply = await attempt()
            if not proper(reply):
                what = f"returned no proper reply ({type(reply).__name__})"
                raise PortError(f"the adapter {self.config.interface!r} {what}", kind="plugin")
            return reply
        except (KareninaError, TimeoutError):
            raise
        except Exception as error:
            kind = self.model.classify(error) or ("connection" if isinstance(error, OSError) else "plugin")
            where = place_of(error, self.model.module)
            problem = self.model.secrets.text(f"{one_line(error)}{where}", self.item.removed)
            log.info("an adapter failed", interface=self.config.interface, error=problem, exc_info=error)
            raise PortError(f"the adapter {self.config.interface!r} failed: {problem}", kind=kind) from error


@define(eq=False)
class _Recorded:
    """Records the use of a model, with the facts that are put into the dictionary."""

    client: ModelClient
    task: str
    attempts: Attempts
    facts: dict[str, Any] = field(factory=dict)
    started: float = field(factory=time.monotonic)

    def __enter__(self) -> dict[str, Any]:
        return self.facts

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        client, attempts = self.client, self.attempts
        client.item.ended += 1
        if attempts.count or not attempts.kept_out:  # else no model was asked
            who = self.task, str(client.model.identity)
            client.calls.append(record_of(who, attempts, self.started, error, **self.facts))


@frozen(eq=False)
class _Worker:
    """A model at work with tools, behind its middleware."""

    client: ModelClient
    attempts: Attempts

    @property
    def capabilities(self) -> PortCapabilities:
        model = self.client.model
        return model.capabilities if model.agent is None else model.agent.capabilities

    async def arun(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool],
        mcp_servers: Mapping[str, Any] | None,
        config: AgentConfig,
        *,
        call: CallContext,
    ) -> AgentResult:
        client, attempts, model = self.client, self.attempts, self.client.model
        agent, llm = model.agent, cast("ToolCallingLLMPort | None", model.llm)
        if agent is not None:
            attempts.begin()
            this_call.set(attempts)

            async def work() -> Any:
                return await in_time(lambda: agent.arun(messages, tools, mcp_servers, config, call=call), config)

            try:
                result: AgentResult = await client._classified(work, is_proper)
            except TimeoutError as error:
                text = f"the agent of the adapter {client.config.interface!r} gave up: {one_line(error)}"
                raise PortError(text, kind="timeout") from error
            return result
        if llm is None or not llm.capabilities.supports_tools:
            raise AdapterUnavailableError(f"the interface {client.config.interface!r} cannot use tools")
        if mcp_servers:
            raise AdapterUnavailableError("tools of servers have to be given as tools to a model without an agent")

        async def ask(messages: Sequence[Message], tools: Sequence[Tool]) -> LLMResponse:
            response: LLMResponse = await client._tried(
                lambda: llm.ainvoke(messages, temperature=call.temperature, tools=tools, call=call), attempts
            )
            return response

        cleaner = Cleaner(model.secrets, client.item.removed)
        return cleaner.reply(await run_agent_loop(ask, messages, cleaner.tools(tools), config))


@define(eq=False)
class _Retried:
    """A parser whose every call is tried again by the model's policy; a reply that cannot be read is not a failed
    call."""

    inner: ParserPort
    client: ModelClient
    attempts: Attempts
    channel: str | None = None
    spent: UsageMetadata | None = None
    usage_unavailable: bool = False
    """Whether the tokens of some reply are unknown."""

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
            self._spend(error)
            raise
        self.channel = result.channel
        self._spend(result)
        return result

    def _spend(self, reply: ParsePortResult | ParseError) -> None:
        self.usage_unavailable = self.usage_unavailable or reply.usage_unavailable
        if isinstance(usage := reply.usage, UsageMetadata):
            self.spent = usage if self.spent is None else self.spent + usage

    async def aclose(self) -> None:
        await self.inner.aclose()


def _is_proper_reply(reply: Any) -> bool:
    if isinstance(reply, LLMResponse):
        return isinstance(reply.usage, UsageMetadata) and isinstance(reply.content, TEXT_OR_TABLE)
    if isinstance(reply, ParsePortResult):
        return isinstance(reply.usage, UsageMetadata) and isinstance(reply.data, TEXT_OR_TABLE)
    return False


TEXT_OR_TABLE = (str, dict, Mapping)
"""A class that is abstract comes last, for to ask about it takes long."""
