"""The ports: an agent that works with tools, and a model that is asked once."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen
from karenina_calls.agents.failures import failure, with_evidence
from karenina_calls.agents.prompts import prompt_of, system_of
from karenina_calls.ports.text import sanitize_data
from karenina_calls.wire.endpoints import DEFAULT_TIMEOUT
from karenina_vocabulary.tasks import PromptTask

from karenina_core.errors import AdapterUnavailableError, PortError
from karenina_core.ports.values import (
    AgentConfig,
    AgentResult,
    CallContext,
    LLMResponse,
    OutputFormat,
    PortCapabilities,
    Tool,
)
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import Message

from .program import surrounded
from .record import SERVER, Record, full_name, offered
from .session import START_HINT, Session, load, reported
from .settings import Choices, ClaudeAgentSdkSettings, choices, program_path, unavailable

STRUCTURED_TURNS = 4
"""Replies that a model has for giving data in the form of a schema, which the program checks."""
READING = ("Glob", "Grep", "Read")
"""The program's own tools of an agent that may only look."""
WRITING = ("Edit", "MultiEdit", "NotebookEdit", "Write")
RUNNING = ("Bash", "PowerShell")
HANDING_OVER = "StructuredOutput"
"""The program's own tool by which the model hands data over."""
REFUSED_STATUS = 400  # HTTP, bad request


@frozen(kw_only=True)
class _Opened:
    """What the first call finds out."""

    sdk: Any
    program: str
    choices: Choices


class _Port:
    """What both ports have in common. Every call is a session of its own; nothing is kept in between."""

    retries = False
    """Whether the program may try a failed request again."""

    def __init__(self, config: ModelConfig, settings: ClaudeAgentSdkSettings | None = None) -> None:
        self._config = config
        self._settings = settings or ClaudeAgentSdkSettings()
        self._ready: _Opened | None = None

    async def aopen(self) -> None:
        """Import the SDK and look for the program. Raises AdapterUnavailableError and ConfigError."""
        await self._opened()

    async def aclose(self) -> None:
        """There is nothing to close: a program ends with its session."""

    async def _opened(self) -> _Opened:
        if self._ready is None:
            program = program_path(self._settings)
            if program is None:
                raise AdapterUnavailableError(unavailable(self._settings) or "")
            self._ready = _Opened(sdk=await load(), program=program, choices=choices(self._config))
        return self._ready

    async def _run(self, session: Session, record: Record, workspace: Path | None, seconds: float | None) -> None:
        """Raises PortError, and TimeoutError where the time is up."""
        try:
            async with surrounded(self._config, self._settings, workspace, retries=self.retries) as surroundings:
                await session.run(record, surroundings, seconds)
        except TimeoutError:
            raise
        except OSError as error:
            raise failure(error, None, hint=START_HINT) from error

    def _session(
        self, opened: _Opened, messages: Sequence[Message], system: str, options: Mapping[str, Any]
    ) -> Session:
        chosen = opened.choices
        asked = {"model": self._config.name, **({"effort": chosen.effort} if chosen.effort else {})}
        return Session(
            sdk=opened.sdk,
            program=opened.program,
            prompt=prompt_of(messages),
            system=system,
            options={**asked, **options},
            own_prompt=chosen.claude_code_prompt and bool(options["tools"]),
            most_bytes=chosen.most_bytes,
        )


class ClaudeModel(_Port):
    """An `LLMPort`: the program is asked once, without any tools."""

    @property
    def capabilities(self) -> PortCapabilities:
        return PortCapabilities(
            supports_structured_output=True, output_channels=("json_schema", "text"), reports_cost=True
        )

    async def ainvoke(
        self,
        messages: Sequence[Message],
        *,
        output: OutputFormat | None = None,
        temperature: float | None = None,
        call: CallContext | None = None,
    ) -> LLMResponse:
        """Ask once. The program has no option for a temperature. Raises PortError."""
        opened = await self._opened()
        structured = output is not None and output.channel == "json_schema"
        options: dict[str, Any] = {"tools": [], "max_turns": STRUCTURED_TURNS if structured else 1}
        if output is not None and structured:
            options["output_format"] = {"type": "json_schema", "schema": dict(output.schema)}
            options["allowed_tools"] = [HANDING_OVER]
        session = self._session(opened, messages, system_of(messages), options)
        record = Record(AgentConfig(max_tool_calls=None, max_repeated_calls=None))
        seconds = self._config.request_timeout or DEFAULT_TIMEOUT
        try:
            await self._run(session, record, None, seconds)
        except TimeoutError:
            late = f"the program gave no reply within {seconds:g} s; request_timeout gives it longer"
            raise PortError(late, kind="timeout") from None
        except PortError as error:
            if structured and record.session_id is None and error.kind == "server" and "schema" in (error.raw or ""):
                # a program that ends at once and complains of the schema refuses the channel, not the question
                error = PortError(str(error), kind="invalid_request", status=REFUSED_STATUS, raw=error.raw)
            raise error from None
        if (refusal := reported(record)) is not None:
            raise refusal
        text = record.final_text() or record.text()
        data = getattr(record.result, "structured_output", None) if structured else None
        if data is None and not text:
            limit = f" (it reached its limit of {record.limit})" if record.limit else ""
            raise PortError(f"the program gave an empty reply{limit}", kind="bad_response")
        return LLMResponse(
            content=text,
            structured=None if data is None else record.clean(json.dumps(sanitize_data(data), ensure_ascii=False)),
            thinking=record.thinking(),
            usage=record.usage(),
            usage_unavailable=record.usage_unavailable,
            finish_reason=getattr(record.result, "stop_reason", None),
            actual_model=record.actual_model,
            flags=tuple(record.flags),
        )


class ClaudeAgent(_Port):
    """An `AgentPort`: the program works with tools of its own and with those that it is given.

    A model that answers a question may write in the working folder and run code. Any other, such as an investigating
    judge, may only read there; `AgentConfig.extra` can say otherwise with `read_only`.
    """

    retries = True

    @property
    def capabilities(self) -> PortCapabilities:
        tools = choices(self._config).tools
        return PortCapabilities(
            supports_tools=True,
            supports_file_tools=bool({*READING, *WRITING} & {*tools}),
            supports_code_execution=bool({*RUNNING} & {*tools}),
            reports_cost=True,
        )

    async def arun(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        mcp_servers: Mapping[str, Any] | None = None,
        config: AgentConfig | None = None,
        *,
        call: CallContext | None = None,
    ) -> AgentResult:
        """Let the agent work. Raises PortError; its `evidence` has what was done so far, under `agent_result`."""
        if mcp_servers:
            raise PortError("this agent connects to no servers itself: give it their tools", kind="plugin")
        config = config or AgentConfig()
        opened = await self._opened()
        options = self._options(opened, tools, config, call)
        session = self._session(opened, messages, system_of(messages, config.system_prompt), options)
        record = Record(config)
        try:
            await self._run(session, record, config.workspace_path, config.timeout)
        except TimeoutError:
            record.limit = "time"
        except PortError as error:
            raise with_evidence(error, record) from error
        if (refusal := reported(record)) is not None:
            raise with_evidence(refusal, record)
        return record.agent_result()

    def _options(
        self, opened: _Opened, tools: Sequence[Tool], config: AgentConfig, call: CallContext | None
    ) -> dict[str, Any]:
        """The tools that there are, those that may be used without permission, and the limits."""
        judging = call is not None and call.task != PromptTask.GENERATION
        own = opened.choices.tools
        if config.extra.get("read_only", judging):
            looks = config.workspace_path is not None and self.capabilities.supports_file_tools
            own = READING if looks else ()
        given = [tool for tool in tools if tool.run is not None]
        own = (*own, *(tool.name for tool in tools if tool.run is None))  # the program has them itself
        servers = {SERVER: offered(opened.sdk, given, config.max_tool_calls)} if given else {}
        return {
            "tools": list(dict.fromkeys(own)),
            "allowed_tools": [*dict.fromkeys(map(_rule, own)), *map(full_name, given)],
            "mcp_servers": servers,
            "max_turns": config.max_turns,
            "max_budget_usd": config.max_cost_usd,
        }


def _rule(name: str) -> str:
    """The rule that allows a tool of the program: those for files only inside the working folder."""
    if name in READING:
        return "Read(./**)"
    return "Edit(./**)" if name in WRITING else name
