"""The ports: an agent that works with tools, and an agent that is asked once and may do nothing."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from karenina_calls.agents.failures import failure, with_evidence
from karenina_calls.agents.offered import OfferedCalls
from karenina_calls.agents.program import Surroundings, passed_environment, session_folders, session_variables
from karenina_calls.agents.prompts import prompt_of, system_of
from karenina_calls.secrets.redaction import Secrets
from karenina_calls.wire.endpoints import DEFAULT_TIMEOUT
from karenina_vocabulary.tasks import PromptTask

from karenina_core.errors import PortError
from karenina_core.ports.values import (
    AgentConfig,
    AgentResult,
    CallContext,
    LLMResponse,
    OutputFormat,
    PortCapabilities,
    Tool,
)
from karenina_core.secrets import SHORTEST, secrets_in
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import Message

from .record import Record
from .session import START_HINT, Session, server_of
from .settings import DEFAULT_ALLOW, LOOKING, AcpSettings, choices

UNLIMITED = AgentConfig(max_tool_calls=None, max_repeated_calls=None)


class _Port:
    """What both ports have in common. Every call is a program of its own; nothing is kept in between."""

    def __init__(self, config: ModelConfig, settings: AcpSettings | None = None) -> None:
        self._config = config
        self._settings = settings or AcpSettings()

    async def aopen(self) -> None:
        """Look for the program. Raises AdapterUnavailableError and ConfigError."""
        choices(self._config, self._settings)

    async def aclose(self) -> None:
        """There is nothing to close: a program ends with its session."""

    def _session(self, messages: Sequence[Message], more: str | None, **about: Any) -> Session:
        """The protocol has no system prompt: it comes first in the prompt."""
        texts = (system_of(messages, more), prompt_of(messages))
        prompt = "\n\n".join(text for text in texts if text)
        return Session(choices=choices(self._config, self._settings), model=self._config.name, prompt=prompt, **about)

    async def _run(self, session: Session, record: Record, workspace: Path | None, seconds: float | None) -> None:
        """Raises PortError, and TimeoutError where the time is up."""
        try:
            async with self._surrounded(workspace) as surroundings:
                await session.run(record, surroundings, seconds)
        except TimeoutError:
            raise
        except OSError as error:
            raise failure(error, None, hint=START_HINT) from error
        if record.stop_reason == "refusal":
            raise PortError("the agent refuses to continue", kind="content_filter")
        if record.stop_reason == "cancelled" and record.limit is None:
            raise PortError("the agent says that its work was cancelled, which it was not", kind="server")

    @asynccontextmanager
    async def _surrounded(self, workspace: Path | None) -> AsyncIterator[Surroundings]:
        async with session_folders("karenina-acp-", workspace) as (private, folder):
            passed, named = passed_environment(self._settings.environment)
            key = (self._config.api_key() or "").strip()
            access = {self._config.api_key_env: key} if key and self._config.api_key_env else {}
            secrets = {value: name for name, value in access.items() if len(value) >= SHORTEST}
            yield Surroundings(
                folder=folder,
                private=private,
                environment={**passed, **named, **access, **session_variables(folder)},
                secrets=Secrets({**secrets_in(named), **secrets}),
            )


class AcpModel(_Port):
    """An `LLMPort`: the agent is asked once, in an empty folder, and is allowed nothing that it asks for."""

    @property
    def capabilities(self) -> PortCapabilities:
        return PortCapabilities(supports_system_prompt=False)

    async def ainvoke(
        self,
        messages: Sequence[Message],
        *,
        output: OutputFormat | None = None,
        temperature: float | None = None,
        call: CallContext | None = None,
    ) -> LLMResponse:
        """Ask once. The protocol has no word for a temperature. Raises PortError."""
        session = self._session(messages, None, allow=frozenset(), calls=OfferedCalls(()))
        record = Record(UNLIMITED)
        seconds = self._config.request_timeout or DEFAULT_TIMEOUT
        try:
            await self._run(session, record, None, seconds)
        except TimeoutError:
            late = f"the agent gave no reply within {seconds:g} s; request_timeout gives it longer"
            raise PortError(late, kind="timeout") from None
        text = record.agent_result().final_response or record.text()
        if not text:
            raise PortError("the agent gave an empty reply", kind="bad_response")
        return LLMResponse(
            content=text,
            thinking=record.thinking(),
            usage=record.usage(),
            usage_unavailable=record.usage_unavailable,
            finish_reason="length" if record.cut_off else record.stop_reason,
            actual_model=record.actual_model,
            flags=tuple(record.flags),
        )


class AcpAgent(_Port):
    """An `AgentPort`: the agent works with tools of its own and with those that it is given.

    A model that answers a question may do in the working folder what `extra_kwargs.allow` says. Any other, such as an
    investigating judge, may only look; `AgentConfig.extra` can say otherwise with `read_only`.
    """

    @property
    def capabilities(self) -> PortCapabilities:
        allow = self._config.extra_kwargs.get("allow", DEFAULT_ALLOW)
        return PortCapabilities(
            supports_system_prompt=False,
            supports_tools=True,
            supports_file_tools=bool({"read", "edit"} & {*allow}),
            supports_code_execution="execute" in allow,
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
        config = config or AgentConfig()
        judging = call is not None and call.task != PromptTask.GENERATION
        allow = choices(self._config, self._settings).allow
        given = [tool for tool in tools if tool.run is not None]
        if config.extra.get("read_only", judging):
            allow = allow & {*LOOKING, *(("other",) if given else ())}  # tools of servers are of this kind
        session = self._session(
            messages,
            config.system_prompt,
            allow=allow,
            calls=OfferedCalls(given, config.max_tool_calls),
            servers=[server_of(name, address) for name, address in (mcp_servers or {}).items()],
        )
        record = Record(config)
        try:
            await self._run(session, record, config.workspace_path, config.timeout)
        except TimeoutError:
            record.limit = "time"
        except PortError as error:
            raise with_evidence(error, record) from error
        return record.agent_result()
