"""What litellm gives back, as a reply of karenina."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve
from karenina_calls.ports.text import sanitize
from karenina_calls.wire.openai_wire import messages_to_wire, reply_from_wire

from karenina_core.errors import PortError
from karenina_core.ports.values import LLMResponse, OutputFormat
from karenina_core.values.message import Message, ThinkingBlock

PRICES = ("input_cost_per_token", "input_cost_per_second", "output_cost_per_token", "output_cost_per_second")
COUNTS = ("prompt_tokens", "completion_tokens")
SIGNING = frozenset({"anthropic", "azure_ai", "bedrock", "bedrock/converse", "vertex_ai"})
"""litellm's providers of Claude. Others may refuse a request with thinking in it."""
REDACTED = "redacted_thinking:"
"""In front of the signature of a block that only the provider can read; signatures are base64, which has no colon."""


def reply(
    litellm: Any, response: Any, request: Mapping[str, Any], limit: int, output: OutputFormat | None = None
) -> LLMResponse:
    """The reply in a `litellm.ModelResponse`, of at most `limit` bytes of text.

    Raises PortError: `too_large` (litellm has read the whole body by then), `bad_response` where there is neither text
    nor a tool call, `content_filter` where the provider withheld the text.
    """
    body = response.model_dump(warnings=False)
    if _text_bytes(body) > limit:
        raise too_large(limit)
    usage = body.get("usage") or {}
    if not any(usage.get(count) for count in COUNTS):  # litellm's form of a reply without any usage
        body["usage"] = None
    answer = evolve(reply_from_wire(body, output), thinking_blocks=thinking_blocks(body))
    if answer.usage_unavailable:
        return answer
    return evolve(answer, usage=evolve(answer.usage, cost_usd=_cost(litellm, response, request, answer.actual_model)))


def streamed_reply(litellm: Any, stream: Any, request: Mapping[str, Any], limit: int) -> LLMResponse:
    """The reply that a finished `litellm.CustomStreamWrapper` gave in pieces.

    litellm ends a stream that broke off like one that is complete; the difference is that no finish reason arrived.

    Raises PortError like `reply`, and `connection` for a stream that broke off.
    """
    if not stream.chunks:
        raise PortError("the server sent no stream", kind="bad_response")
    if not (stream.received_finish_reason or stream.intermittent_finish_reason):
        raise PortError("the stream ended before the reply was complete", kind="connection")
    try:
        whole = litellm.stream_chunk_builder(stream.chunks)
    except litellm.APIError as error:
        raise PortError(f"the streamed reply cannot be put together: {error}", kind="bad_response") from error
    if not any(getattr(chunk, "usage", None) for chunk in stream.chunks):
        whole.usage = None  # litellm counts tokens of its own where the server reports none
    whole.model = (getattr(whole, "_hidden_params", None) or {}).get("provider_response_model") or whole.model
    return reply(litellm, whole, request, limit)


def too_large(limit: int) -> PortError:
    """The error for a reply with more than `limit` bytes of text."""
    message = f"the reply has more than {limit} bytes of text; allow more with extra_kwargs max_response_bytes"
    return PortError(message, kind="too_large")


def _text_bytes(body: Mapping[str, Any]) -> int:
    """Bytes of text in the first choice, tool arguments and reasoning included."""
    choices = body.get("choices") or [{}]
    message = choices[0].get("message") or {}
    texts = [message.get("content"), message.get("reasoning_content")]
    texts += [(call.get("function") or {}).get("arguments") for call in message.get("tool_calls") or ()]
    return sum(len(text.encode("utf-8", "replace")) for text in texts if isinstance(text, str))


def _cost(litellm: Any, response: Any, request: Mapping[str, Any], actual: str | None) -> float | None:
    """US dollars, or None where litellm knows no price.

    litellm says 0 for models that it knows by a naming pattern only; that counts where a price of 0 is written down.
    """
    cost = (getattr(response, "_hidden_params", None) or {}).get("response_cost")
    if not isinstance(cost, int | float) or cost < 0:
        return None
    if cost or any(name in request for name in PRICES):
        return float(cost)
    asked = str(request["model"])
    provider, _, name = asked.partition("/")
    entries = (litellm.model_cost.get(key) or {} for key in (asked, name, actual, f"{provider}/{actual}"))
    return 0.0 if any(price in entry for entry in entries for price in PRICES) else None


def thinking_blocks(body: Mapping[str, Any]) -> tuple[ThinkingBlock, ...]:
    """The signed thinking in a reply of litellm; empty where nothing is signed."""
    message = ((body.get("choices") or [{}])[0] or {}).get("message") or {}
    found = [_block(block) for block in message.get("thinking_blocks") or () if isinstance(block, Mapping)]
    return tuple(block for block in found if block is not None)


def _block(block: Mapping[str, Any]) -> ThinkingBlock | None:
    if block.get("type") == "redacted_thinking":
        return ThinkingBlock("", f"{REDACTED}{block.get('data') or ''}")
    signature = block.get("signature")
    if not isinstance(signature, str) or not signature:
        return None
    return ThinkingBlock(sanitize(str(block.get("thinking") or ""))[0], signature)


def messages_with_thinking(messages: Sequence[Message], provider: str | None) -> list[dict[str, Any]]:
    """The `messages` of a request, with what was thought where the provider has signed it and wants it back."""
    if provider not in SIGNING:
        return messages_to_wire(messages)
    wires = []
    for message in messages:
        signed = [block for block in message.content if isinstance(block, ThinkingBlock) and block.signature]
        for wire in messages_to_wire([message]):
            kept = {"thinking_blocks": list(map(_to_wire, signed))} if signed and wire["role"] == "assistant" else {}
            wires.append({**wire, **kept})
    return wires


def _to_wire(block: ThinkingBlock) -> dict[str, Any]:
    signature = block.signature or ""
    if signature.startswith(REDACTED):
        return {"type": "redacted_thinking", "data": signature.removeprefix(REDACTED)}
    return {"type": "thinking", "thinking": block.thinking, "signature": signature}
