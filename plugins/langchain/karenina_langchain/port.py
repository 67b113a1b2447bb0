"""`LangchainModel`: one chat model of langchain, https://docs.langchain.com/oss/python/langchain/models."""

from __future__ import annotations

import asyncio
import importlib
import json
import sys
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen
from karenina_calls.secrets.known_secrets import secrets_among
from karenina_calls.wire.endpoints import DEFAULT_TIMEOUT, OWN_SETTINGS, max_response_bytes
from karenina_calls.wire.library_errors import known_secrets, port_error
from karenina_calls.wire.openai_wire import messages_to_wire, reply_from_wire, tools_to_wire

from karenina_core.errors import AdapterUnavailableError, ConfigError, PortError, Problem, one_line
from karenina_core.ports.values import CallContext, Channel, LLMResponse, OutputFormat, PortCapabilities, Tool
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import Message

METHODS: Mapping[Channel, str] = {
    "json_schema": "json_schema",
    "tool_call": "function_calling",
    "json_object": "json_mode",
}
"""What `with_structured_output` calls the channels."""
FINISHED = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "tool_use": "tool_calls",
    "safety": "content_filter",
}
"""Words of other providers for OpenAI's finish reasons, in lower case."""
REASONS = ("finish_reason", "stop_reason", "done_reason")
OF_OPENAI = ("openai", "azure_openai")
"""Providers whose models would share a client between event loops."""
NO_KEY = "no-key"
"""Sent to a server of the user's choice for which no key is configured: langchain would send one of the environment."""
REFUSED_STATUS = 501  # HTTP, not implemented
UNREADABLE = (AttributeError, IndexError, KeyError, TypeError, ValueError)


@frozen
class _Opened:
    model: Any = field(repr=False)
    client: Any = field(repr=False)
    """The HTTP client of this port alone, where it has one."""
    secrets: tuple[str, ...] = field(repr=False)


class LangchainModel:
    """An `LLMPort` for one model. A port serves one event loop."""

    capabilities = PortCapabilities(
        supports_structured_output=True,
        supports_tools=True,
        output_channels=(*METHODS, "text"),
        reports_cached_tokens=True,
    )

    def __init__(self, config: ModelConfig) -> None:
        self._config = config
        self._seconds = config.request_timeout or DEFAULT_TIMEOUT
        self._opened: _Opened | None = None
        self._opening = asyncio.Lock()

    async def aopen(self) -> None:
        """Import langchain and make the model. Raises AdapterUnavailableError and ConfigError."""
        async with self._opening:
            if self._opened is None:
                self._opened = await asyncio.to_thread(self._made)

    async def aclose(self) -> None:
        """Close the connections of this port; models of providers other than OpenAI keep theirs."""
        opened, self._opened = self._opened, None
        if opened is not None and opened.client is not None:
            await opened.client.aclose()

    async def ainvoke(
        self,
        messages: Sequence[Message],
        *,
        output: OutputFormat | None = None,
        temperature: float | None = None,
        tools: Sequence[Tool] = (),
        call: CallContext | None = None,
    ) -> LLMResponse:
        """One request. Raises PortError."""
        await self.aopen()
        assert self._opened is not None
        opened, before = self._opened, sys.exception()
        core = importlib.import_module("langchain_core.messages")
        tracing = importlib.import_module("langsmith").tracing_context
        sent = core.convert_to_messages(messages_to_wire(messages))
        asked = self._asked(opened.model, output, temperature, tools)
        try:
            with tracing(enabled=False):
                async with asyncio.timeout(self._seconds):
                    found = await asked.ainvoke(sent)
        except TimeoutError:
            late = f"{self._where}: no complete reply within {self._seconds:g} s; request_timeout gives it longer"
            raise PortError(late, kind="timeout") from None
        except Exception as error:  # what langchain raises has no common base, and its texts may hold the key
            raise _failure(error, self._where, opened.secrets, before) from None
        return self._reply(found["raw"] if isinstance(found, dict) else found, output)

    @property
    def _where(self) -> str:
        provider = f"{self._config.model_provider}:" if self._config.model_provider else ""
        return f"{provider}{self._config.name}"

    def _made(self) -> _Opened:
        config, client = self._config, None
        key = (config.api_key() or "").strip() or (NO_KEY if config.endpoint_base_url else None)
        secrets = known_secrets(key, *secrets_among(config.extra_kwargs))
        known: dict[str, Any] = {"temperature": config.temperature, "max_tokens": config.max_tokens}
        known |= {"base_url": config.endpoint_base_url, "api_key": key}
        given = {name: value for name, value in known.items() if value is not None}
        given |= {name: value for name, value in config.extra_kwargs.items() if name not in OWN_SETTINGS}
        try:
            init = importlib.import_module("langchain.chat_models").init_chat_model
            if config.model_provider in OF_OPENAI:
                client = given["http_async_client"] = importlib.import_module("httpx").AsyncClient()
            model = init(
                config.name,
                model_provider=config.model_provider,
                max_retries=0,
                timeout=self._seconds,
                cache=False,
                **given,
            )
        except ImportError as error:
            raise AdapterUnavailableError(one_line(error)) from error  # it names the package and how to install it
        except Exception as error:  # classes of providers check their arguments, each in its own way
            text = port_error(error, where=self._where, secrets=secrets, hint=_no_hint)
            raise ConfigError([Problem("model_name", str(text))]) from None
        return _Opened(model, client, secrets)

    def _asked(self, model: Any, output: OutputFormat | None, temperature: float | None, tools: Sequence[Tool]) -> Any:
        """The model with what one call wants. Raises PortError where it cannot be asked so."""
        if temperature is not None:
            model = model.model_copy(update={"temperature": temperature})
        try:
            if tools:
                return model.bind_tools(tools_to_wire(tools))
            if output is not None and output.channel in METHODS:
                schema = {"title": output.name, "description": "Give the answer.", **output.schema}
                return model.with_structured_output(schema, method=METHODS[output.channel], include_raw=True)
        except (RuntimeError, TypeError, ValueError) as error:  # RuntimeError: not implemented by this class
            text = f"{self._where} cannot be asked so: {one_line(error)}"
            raise PortError(text, kind="invalid_request", status=REFUSED_STATUS) from error
        return model

    def _reply(self, message: Any, output: OutputFormat | None) -> LLMResponse:
        """The `AIMessage` as a reply, by way of the form of OpenAI's. Raises PortError."""
        about = message.response_metadata
        reason = next((str(about[name]) for name in REASONS if about.get(name)), "stop").lower()
        calls = [(call["id"], call["name"], json.dumps(call["args"])) for call in message.tool_calls]
        calls += [(call["id"], call["name"], call["args"] or "") for call in message.invalid_tool_calls]
        text = str(message.text)
        thought = [block.get("reasoning") for block in message.content_blocks if block["type"] == "reasoning"]
        wire = {
            "content": text if text or not calls else None,
            "refusal": message.additional_kwargs.get("refusal"),
            "tool_calls": [{"id": i, "function": {"name": name or "", "arguments": given}} for i, name, given in calls],
            "reasoning": "\n\n".join(filter(None, thought)),
        }
        size = len(json.dumps(wire, ensure_ascii=False).encode("utf-8", "replace"))
        if size > (limit := max_response_bytes(self._config)):
            text = f"the reply has more than {limit} bytes of text; allow more with extra_kwargs max_response_bytes"
            raise PortError(text, kind="too_large")
        body = {
            "choices": [{"message": wire, "finish_reason": FINISHED.get(reason, reason)}],
            "model": about.get("model_name") or about.get("model"),
            "usage": _usage(message.usage_metadata),
        }
        return evolve(reply_from_wire(body, output), raw=None)


def _no_hint(error: PortError, causes: Sequence[BaseException]) -> str:
    return ""


def _failure(error: Exception, where: str, secrets: Sequence[str], before: BaseException | None) -> PortError:
    """The PortError. Packages of providers read a reply without looking whether it is one."""
    found = port_error(error, where=where, secrets=secrets, before=before)
    if found.kind != "plugin" or not isinstance(error, UNREADABLE):
        return found
    found = port_error(error, where=where, secrets=secrets, before=before, hint=_no_hint)
    refused = isinstance(error, TypeError) and "argument" in str(error)
    what = "the model takes no such argument" if refused else "the reply cannot be read"
    return PortError(f"{found}; {what}", kind="invalid_request" if refused else "bad_response")


def _usage(counts: Mapping[str, Any] | None) -> dict[str, Any] | None:
    """`UsageMetadata` of langchain in OpenAI's words; all of its input tokens include those of caches."""
    if not counts:
        return None
    details = counts.get("input_token_details") or {}
    return {
        "prompt_tokens": counts["input_tokens"],
        "completion_tokens": counts["output_tokens"],
        "total_tokens": counts["total_tokens"],
        "prompt_tokens_details": {"cached_tokens": details.get("cache_read")},
        "cache_creation_input_tokens": details.get("cache_creation"),
    }
