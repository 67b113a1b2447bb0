"""The JSON of the Gemini API: requests going out, replies coming back. Nothing here opens a connection.

Documented at https://ai.google.dev/api/generate-content; signatures of thoughts, which have to go back in the part in
which they came: https://ai.google.dev/gemini-api/docs/thought-signatures. Errors are those of Google's APIs:
https://cloud.google.com/apis/design/errors.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import evolve
from karenina_calls.ports.text import clean, is_nested_deeper, sanitize, text_or_none, with_texts
from karenina_calls.wire.openai_errors import bad_reply, error_from_wire, raw_text
from karenina_calls.wire.openai_wire import count_of
from karenina_calls.wire.strict_schema import strict_schema

from karenina_core.errors import PortError
from karenina_core.ports import (
    LLMResponse,
    Message,
    OutputFormat,
    TextBlock,
    ThinkingBlock,
    Tool,
    ToolResultBlock,
    ToolUseBlock,
    UsageMetadata,
)

SIGNATURE = "thoughtSignature"
OF_TEXT, OF_CALL = "text", "call/"
"""In front of a kept signature, with a colon: the part that it came in. Signatures are base64, which has no colon."""
UNNAMED = "gemini-call-"
"""How ids begin that karenina gives to calls without one. They are not sent: the provider goes by names and order."""
ODD_IN_NAME = re.compile(r"[^a-zA-Z0-9_-]")
FINISHED: Mapping[str, str] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    **dict.fromkeys(("SAFETY", "RECITATION", "BLOCKLIST", "PROHIBITED_CONTENT", "SPII"), "content_filter"),
}
"""https://ai.google.dev/api/generate-content#FinishReason, in the words that karenina knows."""
CUT_SHORT = frozenset({"length", "content_filter"})
MALFORMED = frozenset({"MALFORMED_FUNCTION_CALL", "UNEXPECTED_TOOL_CALL"})
ERROR_INFO, RETRY_INFO = "type.googleapis.com/google.rpc.ErrorInfo", "type.googleapis.com/google.rpc.RetryInfo"
KEY_REASONS = frozenset({"API_KEY_INVALID", "API_KEY_EXPIRED"})
"""Of errors about the key that come with status 400."""
DURATION = re.compile(r"(\d{1,12}(?:\.\d{1,9})?)s", re.ASCII)


def messages_to_wire(messages: Sequence[Message]) -> dict[str, Any]:
    """The fields `systemInstruction` and `contents`. Neighbours of one role are one, as answers of tools have to be.

    Raises PortError (`invalid_request`) for a tool message without a tool result.
    """
    system: list[dict[str, Any]] = []
    contents: list[dict[str, Any]] = []
    names: dict[str, str] = {}
    for message in messages:
        names |= {call.id: call.name for call in message.tool_calls}
        parts = list(_parts(message, names))
        if message.role == "tool" and not any("functionResponse" in part for part in parts):
            raise PortError("a tool message needs a tool result: use Message.tool_result", kind="invalid_request")
        role = "model" if message.role == "assistant" else "user"
        if message.role == "system":
            system += parts
        elif contents and contents[-1]["role"] == role:
            contents[-1]["parts"] += parts
        elif parts or role == "user":
            contents.append({"role": role, "parts": parts or [{"text": ""}]})
    return {**({"systemInstruction": {"parts": system}} if system else {}), "contents": contents}


def _parts(message: Message, names: Mapping[str, str]) -> Iterator[dict[str, Any]]:
    signed = _signatures(message)
    texts = [block.text for block in message.content if isinstance(block, TextBlock) and block.text]
    for number, text in enumerate(texts, 1):
        signature = signed.pop(OF_TEXT, None) if number == len(texts) else None
        yield _signed({"text": sanitize(text)[0]}, signature)
    if OF_TEXT in signed:
        yield _signed({"text": ""}, signed[OF_TEXT])
    for block in message.content:
        if isinstance(block, ToolUseBlock):
            data = with_texts(block.input, lambda text: sanitize(text)[0])
            call = {**_identified(block.id), "name": block.name, "args": data}
            yield _signed({"functionCall": call}, signed.get(f"{OF_CALL}{block.id}"))
        elif isinstance(block, ToolResultBlock):
            answer = {"error" if block.is_error else "output": sanitize(block.content)[0]}
            named = names.get(block.tool_use_id, block.tool_use_id)
            yield {"functionResponse": {**_identified(block.tool_use_id), "name": named, "response": answer}}


def _signatures(message: Message) -> dict[str, str]:
    """Signatures by the part that they came in."""
    kept = [block.signature or "" for block in message.content if isinstance(block, ThinkingBlock)]
    found = [signature.rpartition(":") for signature in kept]
    return {place: signature for place, _, signature in found if place == OF_TEXT or place.startswith(OF_CALL)}


def _signed(part: dict[str, Any], signature: str | None) -> dict[str, Any]:
    return part if signature is None else {**part, SIGNATURE: signature}


def _identified(identifier: str) -> dict[str, str]:
    return {} if identifier.startswith(UNNAMED) else {"id": identifier}


def tools_to_wire(tools: Sequence[Tool]) -> list[dict[str, Any]]:
    """The `tools` field of a request."""
    return [
        {
            "functionDeclarations": [
                {
                    "name": tool.name,
                    **({"description": tool.description} if tool.description else {}),
                    **({"parametersJsonSchema": dict(tool.input_schema)} if tool.input_schema else {}),
                }
                for tool in tools
            ]
        }
    ]


def output_to_wire(output: OutputFormat | None) -> dict[str, Any]:
    """The fields of a request that ask for this output: a JSON Schema, JSON mode, or one tool that must be called."""
    if output is None or output.channel == "text":
        return {}
    if output.channel == "tool_call":
        name = _tool_name(output)
        tool = {"name": name, "description": "Give the answer.", "parametersJsonSchema": dict(output.schema)}
        choice = {"functionCallingConfig": {"mode": "ANY", "allowedFunctionNames": [name]}}
        return {"tools": [{"functionDeclarations": [tool]}], "toolConfig": choice}
    schema = {"responseJsonSchema": strict_schema(output.schema)[0]} if output.channel == "json_schema" else {}
    return {"generationConfig": {"responseMimeType": "application/json", **schema}}


def _tool_name(output: OutputFormat) -> str:
    return ODD_IN_NAME.sub("_", output.name)[:64] or "answer"


def error_of(status: int | None, body: Any, *, where: str = "", retry_after: float | None = None) -> PortError:
    """The error that the server reports: by the status, or by the `code` of an error that comes without one.

    The wait that it asks for is in the body. Some methods send a list of one error.
    """
    body = body[0] if isinstance(body, list) and len(body) == 1 else body
    error = body.get("error") if isinstance(body, Mapping) else None
    about = error.get("details") if isinstance(error, Mapping) else None
    details = [one for one in about if isinstance(one, Mapping)] if isinstance(about, list) else []
    waits = [_seconds(one.get("retryDelay")) for one in details if one.get("@type") == RETRY_INFO]
    wait = next((seconds for seconds in waits if seconds is not None), retry_after)
    found = error_from_wire(status, body, where=where, retry_after=wait)
    if any(one.get("@type") == ERROR_INFO and one.get("reason") in KEY_REASONS for one in details):
        found.kind = "auth"
    return found


def _seconds(duration: Any) -> float | None:
    """Of a duration as protocol buffers write it in JSON, such as `7.5s`."""
    found = DURATION.fullmatch(duration) if isinstance(duration, str) else None
    return float(found[1]) if found else None


def first_candidate(body: Mapping[str, Any]) -> Mapping[str, Any]:
    """Empty where there is none."""
    candidates = body.get("candidates")
    first = candidates[0] if isinstance(candidates, list) and candidates else None
    return first if isinstance(first, Mapping) else {}


def parts_of(candidate: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Empty where there is no content."""
    content = candidate.get("content")
    parts = content.get("parts") if isinstance(content, Mapping) else None
    return [part for part in parts if isinstance(part, Mapping)] if isinstance(parts, list) else []


def blocked(body: Mapping[str, Any]) -> str | None:
    """Why the provider has refused the prompt."""
    feedback = body.get("promptFeedback")
    return text_or_none(feedback.get("blockReason")) if isinstance(feedback, Mapping) else None


def reply_from_wire(body: Mapping[str, Any], output: OutputFormat | None = None) -> LLMResponse:
    """The reply in a response body.

    `output` is what was asked for: with the channel `tool_call` the arguments of the call are also given as
    `structured`. Flags, beside those of `sanitize`: `refusal` (the provider has ended the reply), and
    `invalid_tool_arguments` (see `malformed_calls`).

    Raises PortError: `content_filter` where the provider refused the prompt or withheld the reply, `bad_response` for a
    body without a usable reply, or the kind of the error that the body reports.
    """
    if "error" in body:
        raise error_of(None, body)
    candidate = first_candidate(body)
    if not candidate and (reason := blocked(body)):
        raise PortError(f"the provider refused the prompt ({reason})", kind="content_filter", raw=raw_text(body))
    if not candidate:
        raise bad_reply("the reply has no candidates", body)
    flags: dict[str, None] = {}
    parts, stop = parts_of(candidate), text_or_none(candidate.get("finishReason"))
    model, usage = text_or_none(body.get("modelVersion")), body.get("usageMetadata")
    calls, lost = _tool_calls(parts, body, flags)
    texts = [part["text"] for part in parts if isinstance(part.get("text"), str) and not part.get("thought")]
    text = clean("".join(texts), flags)
    finish = FINISHED.get(stop or "", stop)
    if finish == "content_filter":
        if not text and not calls:
            raise PortError(f"the provider withheld the reply ({stop})", kind="content_filter", raw=raw_text(body))
        flags["refusal"] = None
    if not texts and not calls and finish != "stop":  # a model that ends without a text has given no reply
        raise bad_reply(_nothing_said(candidate, finish), body)
    if lost:
        flags["invalid_tool_arguments"] = None
    thoughts = [clean(part["text"], flags) for part in parts if part.get("thought") and part.get("text")]
    counted = _usage(usage, model)
    return LLMResponse(
        content=text,
        tool_calls=calls,
        malformed_calls=lost,
        structured=_structured(calls, output),
        thinking="\n\n".join(thoughts) or None,
        thinking_blocks=_signed_thoughts(parts, calls, thoughts),
        usage=counted or UsageMetadata(model=model),
        usage_unavailable=counted is None,
        finish_reason="tool_calls" if calls and finish == "stop" else finish,
        actual_model=model,
        is_partial=finish in CUT_SHORT or finish in MALFORMED,
        flags=tuple(flags),
        raw=body,
    )


def _nothing_said(candidate: Mapping[str, Any], finish: str | None) -> str:
    about = text_or_none(candidate.get("finishMessage"))
    hint = "; all tokens may have gone into thinking, raise max_tokens" if finish == "length" else ""
    shown = f"{candidate.get('finishReason')!r}{f': {about[:200]}' if about else ''}"
    return f"the reply has neither text nor a tool call (finishReason {shown}){hint}"


def _tool_calls(
    parts: Sequence[Mapping[str, Any]], body: Mapping[str, Any], flags: dict[str, None]
) -> tuple[tuple[ToolUseBlock, ...], list[int]]:
    """The tool calls of a reply, and the places of those whose arguments cannot be read."""
    calls: list[ToolUseBlock] = []
    lost: list[int] = []
    for called in (part["functionCall"] for part in parts if "functionCall" in part):
        if not isinstance(called, Mapping) or not isinstance(name := called.get("name"), str):
            raise bad_reply("a tool call of the reply has no name", body)
        given = called.get("args", {})
        if not isinstance(given, Mapping) or is_nested_deeper(given):
            lost.append(len(calls))
            given = {}
        data = with_texts(given, lambda text: clean(text, flags))
        identifier = clean(str(called.get("id") or f"{UNNAMED}{len(calls)}"), flags)
        calls.append(ToolUseBlock(identifier, clean(name, flags), data))
    return tuple(calls), lost


def _signed_thoughts(
    parts: Sequence[Mapping[str, Any]], calls: Sequence[ToolUseBlock], thoughts: Sequence[str]
) -> tuple[ThinkingBlock, ...]:
    """One block for each signature, which says the part that it came in; the thoughts are in the first."""
    identifiers = iter([call.id for call in calls])
    found = []
    for part in parts:
        place = f"{OF_CALL}{next(identifiers)}" if "functionCall" in part else OF_TEXT
        if isinstance(signature := part.get(SIGNATURE), str) and signature:
            found.append(ThinkingBlock("", f"{place}:{signature}"))
    return tuple([evolve(found[0], thinking="\n\n".join(thoughts)), *found[1:]] if found else ())


def _structured(calls: Sequence[ToolUseBlock], output: OutputFormat | None) -> str | None:
    if output is None or output.channel != "tool_call" or not calls:
        return None
    named = [call for call in calls if call.name == _tool_name(output)]
    return json.dumps((named or calls)[0].input, ensure_ascii=False)


def _usage(usage: Any, model: str | None) -> UsageMetadata | None:
    """The provider counts thoughts apart from what is said; karenina's `output_tokens` are both."""
    if not isinstance(usage, Mapping):
        return None
    names = ("promptTokenCount", "toolUsePromptTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
    prompt, tools, said, thought = (count_of(usage.get(name)) for name in names)
    if prompt is None and said is None and thought is None:
        return None
    taken, given = (prompt or 0) + (tools or 0), (said or 0) + (thought or 0)
    cached = count_of(usage.get("cachedContentTokenCount"))
    return UsageMetadata(taken, given, taken + given, cache_read_tokens=cached, model=model)
