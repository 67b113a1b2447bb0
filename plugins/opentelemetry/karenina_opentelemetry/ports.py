"""A span for every attempt to ask a model, and for every call of an embedder."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

from attrs import define
from opentelemetry.trace import Span, SpanKind

from karenina_core import ModelConfig
from karenina_core.errors import ParseError
from karenina_core.model.message import Message, UsageMetadata
from karenina_core.ports.embedding import Embeddings
from karenina_core.ports.values import CallContext, LLMResponse, ParsePortResult

from .conventions import (
    PROVIDERS,
    input_messages,
    output_message,
    request_facts,
    said,
    sampling_facts,
    server_facts,
    usage_facts,
)
from .tracing import Tracing, fill, harmless

__all__ = ["TracedEmbedder", "TracedPort"]


@define(eq=False)
class TracedPort:
    """Passes every call on, inside a span; everything else of the port is as it was."""

    inner: Any
    model: ModelConfig
    tracing: Tracing

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # no lookup before `inner` is there
            raise AttributeError(name)
        return getattr(self.inner, name)

    async def ainvoke(
        self, messages: Sequence[Message], *, call: CallContext | None = None, **asked: Any
    ) -> LLMResponse:
        with self._span(call, asked.get("temperature"), structured=asked.get("output") is not None) as span:
            self._asks(span, messages)
            response: LLMResponse = await self.inner.ainvoke(messages, call=call, **asked)
            self._answered(span, response)
            return response

    async def aparse(
        self, messages: Sequence[Message], schema: Mapping[str, Any], *, call: CallContext | None = None
    ) -> ParsePortResult:
        with self._span(call, None, structured=True) as span:
            self._asks(span, messages)
            try:
                result: ParsePortResult = await self.inner.aparse(messages, schema, call=call)
            except ParseError as error:
                self._useless(span, error)
                raise
            self._parsed(span, result)
            return result

    def _span(
        self, call: CallContext | None, temperature: float | None, *, structured: bool
    ) -> AbstractContextManager[Span]:
        model = self.model
        of_call = call.temperature if call else None
        chosen = next((t for t in (temperature, of_call, model.temperature) if t is not None), None)
        away = getattr(getattr(self.inner, "capabilities", None), "needs_provider", True)  # else it is played back
        facts = {
            **request_facts("chat", model),
            **sampling_facts(model),
            **(server_facts(model) if away else {}),
            "gen_ai.request.temperature": chosen,
            "gen_ai.output.type": "json" if structured else None,
            "karenina.task": call.task if call else None,
        }
        return self.tracing.span(f"chat {model.name}", facts, SpanKind.CLIENT if away else SpanKind.INTERNAL)

    @harmless
    def _asks(self, span: Span, messages: Sequence[Message]) -> None:
        if self.tracing.settings.content:
            self.tracing.content(span, {"gen_ai.input.messages": input_messages(messages)})

    @harmless
    def _answered(self, span: Span, response: object) -> None:
        if not isinstance(response, LLMResponse):
            self.tracing.failed(span, "plugin")  # the core refuses it
            return
        fill(span, usage_facts(response.usage, unavailable=response.usage_unavailable))
        reasons = [response.finish_reason] if response.finish_reason else None
        fill(span, {"gen_ai.response.model": response.actual_model, "gen_ai.response.finish_reasons": reasons})
        self.tracing.content(span, {"gen_ai.output.messages": output_message(response)})

    @harmless
    def _parsed(self, span: Span, result: object) -> None:
        if not isinstance(result, ParsePortResult):
            self.tracing.failed(span, "plugin")
            return
        self._replied(span, result.usage, result.raw, untold=result.usage_unavailable)

    @harmless
    def _useless(self, span: Span, error: ParseError) -> None:
        """What a reply cost that is no data."""
        if isinstance(error.usage, UsageMetadata):
            self._replied(span, error.usage, error.raw_response, untold=error.usage_unavailable)

    def _replied(self, span: Span, usage: UsageMetadata, raw: str, *, untold: bool) -> None:
        fill(span, usage_facts(usage, unavailable=untold))
        fill(span, {"gen_ai.response.model": usage.model})
        self.tracing.content(span, {"gen_ai.output.messages": said(raw)})


@define(eq=False)
class TracedEmbedder:
    """The same for an embedder. What it is given and what it gives back is in no span, whatever the settings are."""

    inner: Any
    name: str
    model: str
    tracing: Tracing

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):
            raise AttributeError(name)
        return getattr(self.inner, name)

    def problem(self) -> str | None:
        found: str | None = self.inner.problem()
        return found

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        first, slash, _ = self.model.partition("/")
        provider = first if slash and self.name == "litellm" else self.name
        facts = {
            "gen_ai.operation.name": "embeddings",
            "gen_ai.provider.name": PROVIDERS.get(provider, provider),
            "gen_ai.request.model": self.model,
            "karenina.embedder": self.name,
        }
        with self.tracing.span(f"embeddings {self.model}", facts, SpanKind.CLIENT) as span:
            found: Embeddings = await self.inner.aembed(texts)
            self._found(span, found)
            return found

    @harmless
    def _found(self, span: Span, found: Embeddings) -> None:
        fill(span, {"gen_ai.response.model": found.model})
        fill(span, {"gen_ai.embeddings.dimension.count": len(found.vectors[0]) if found.vectors else None})
        fill(span, {"gen_ai.usage.input_tokens": found.usage.input_tokens or None})
