"""One model: a call becomes a request, and a response a reply. `HttpPort` has the rest: limits, errors, connections."""

from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

from karenina_core.errors import PortError
from karenina_core.ports import (
    CallContext,
    Endpoint,
    HttpPort,
    LLMResponse,
    Message,
    OutputFormat,
    PortCapabilities,
    UsageMetadata,
    sanitize,
)

from . import PREFIX

WHO = {"system": "director", "user": "person", "assistant": "engine"}


class Acme(HttpPort):
    """An `LLMPort`. Its models can be made to reply with JSON of a schema, and call no tools."""

    capabilities = PortCapabilities(supports_structured_output=True, output_channels=("json_schema", "text"))

    @cached_property
    def endpoint(self) -> Endpoint:
        url = f"{(self.config.endpoint_base_url or '').rstrip('/')}/generate"
        return Endpoint.of(self.config, url, self.config.api_key())

    def headers(self) -> dict[str, str]:
        return {"X-Acme-Key": self.endpoint.key} if self.endpoint.key else {}

    def error_from(
        self, status: int | None, body: Any, *, where: str = "", retry_after: float | None = None
    ) -> PortError:
        fault = body.get("fault") if isinstance(body, Mapping) else None
        if isinstance(fault, Mapping):
            body = {"error": {"message": fault.get("text"), "code": fault.get("code")}}
        return super().error_from(status, body, where=where, retry_after=retry_after)

    async def ainvoke(
        self,
        messages: Sequence[Message],
        *,
        output: OutputFormat | None = None,
        temperature: float | None = None,
        call: CallContext | None = None,
    ) -> LLMResponse:
        """Ask once. Raises PortError; the core decides whether to ask again."""
        config = self.config
        says = [{"who": WHO[message.role], "says": sanitize(message.text)[0]} for message in messages]
        body: dict[str, Any] = {"engine": config.name.removeprefix(PREFIX), "dialogue": says}
        heat = config.temperature if temperature is None else temperature
        if heat is not None:
            body["heat"] = heat
        if output is not None and output.channel == "json_schema":
            body["shape"] = dict(output.schema)
        with self.failures():
            return reply_from(await self.ask(body))


def reply_from(body: Mapping[str, Any]) -> LLMResponse:
    """Raises PortError (`bad_response`) for a body without an answer."""
    said, words = body.get("said"), body.get("words")
    if not isinstance(said, str):
        raise PortError("the reply says nothing: it has no text in `said`", kind="bad_response")
    text, flags = sanitize(said)
    known = isinstance(words, Mapping)
    read, written = (int(words[name]) for name in ("read", "said")) if isinstance(words, Mapping) else (0, 0)
    return LLMResponse(
        content=text,
        usage=UsageMetadata(read, written, read + written),  # no `cost_usd`: what a word costs is not known
        usage_unavailable=not known,
        finish_reason=body.get("ended"),
        actual_model=body.get("engine"),
        is_partial=body.get("ended") == "cut",
        flags=flags,
        raw=body,
    )
