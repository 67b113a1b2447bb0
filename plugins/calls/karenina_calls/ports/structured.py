"""Getting data out of a language model: the strongest channel that works, and repair by showing the mistake."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import count
from typing import Any

from karenina_core.errors import ContradictionError, FillError, ParseError, PortError, plural, shortened
from karenina_core.ports.model_client import Validate
from karenina_core.ports.protocols import LLMPort, ParserPort
from karenina_core.ports.values import (
    CallContext,
    Channel,
    LLMResponse,
    OutputFormat,
    ParsePortResult,
    PortCapabilities,
)
from karenina_core.values.message import Message, TextBlock, UsageMetadata

from ..models.pydantic_replies import ParsesModels
from ..records.refusals import Refusals
from ..wire.openai_errors import is_context_overflow
from ..wire.strict_schema import outline
from .retry import this_call
from .text import MOST_NESTED, sanitize_data

BEGUN = re.compile(r"""\{\s*(?:["']|[A-Za-z_$][\w$]*\s*:|/[/*])""")
"""A brace that begins an object, well written or not; other braces are prose."""
STRUCTURE = re.compile(r'[{}"\\]')
READABLE = json.JSONEncoder(ensure_ascii=False)
REFUSED_STATUS = (400, 415, 422, 501)
MAX_SCANNED = 1_000_000
"""Characters of a reply in which an object is looked for."""
MAX_TRIED = 1000
"""Places at which one is tried to begin: each may read the rest of the text once."""
MAX_BRACES = 10_000  # chosen: five times the fields of the largest template that was tried
MAX_QUOTED = 20_000
"""Characters of a misfitting reply that the judge is shown again."""
MAX_QUOTED_CUT = 500
"""The same of a reply that was cut off: enough to recognise it, too little to continue it."""
EMPTY = "(an empty reply)"
"""Servers refuse a message without a text."""
MAX_KEYS = 50
"""Expected keys that a correction names; a template with more has its schema in the prompt."""


class StructuredParser(ParsesModels):
    """A `ParserPort` on top of any `LLMPort`.

    Begins with the strongest channel that the model claims. A channel that the server refuses (HTTP 400 and the like)
    is given up for the next one. Where that works, it is remembered for this schema, and for no other: the channel of a
    call depends on what is refused, and not on what was asked before it. Where every channel is refused, the refusal of
    the weakest is reported: it is the one that is always asked. A request that is longer than the model's context is an
    error of that call: it says nothing about the channel. `token_limit` is what ends a long reply, in words.

    A refusal after which a weaker channel works is no attempt at the call: whether a call meets it depends on what is
    known by then. The ledger counts it.
    """

    def __init__(self, llm: LLMPort, token_limit: str = "the server's own limit") -> None:
        self._llm = llm
        self._token_limit = token_limit
        self._channels: tuple[Channel, ...] = tuple(llm.capabilities.output_channels) or ("text",)
        self._refusals = Refusals()

    @property
    def capabilities(self) -> PortCapabilities:
        return self._llm.capabilities

    async def aparse(
        self, messages: Sequence[Message], schema: Mapping[str, Any], *, call: CallContext | None = None
    ) -> ParsePortResult:
        """Ask once. Raises ParseError where the reply holds no JSON object, PortError where the call failed."""
        known = self._refusals.of({}, schema) if self._refusals.known else ()
        refused: tuple[Channel, ...] = ()
        refusal: PortError | None = None
        for channel in self._channels:
            if channel in known:
                refused = (*refused, channel)
                continue
            try:
                response = await self._llm.ainvoke(
                    with_schema(messages, schema, channel),
                    output=OutputFormat(channel, schema, refused=refused),
                    temperature=call.temperature if call else None,
                    call=call,
                )
            except PortError as error:
                other = error.kind != "invalid_request" or error.status not in REFUSED_STATUS
                if other or is_context_overflow(error):  # too long a request is so on every channel
                    raise
                refused, refusal = (*refused, channel), error
                continue
            if refusal is not None and not getattr(self._llm, "knows_refusals", False):
                self._refusals.learn(Refusals.key({}, schema), refused)
            return _result(response, channel, self._token_limit)
        if (attempts := this_call.get()) is not None:
            for _ in refused[1:]:  # now they are what the call took
                attempts.begin()
        raise refusal or ParseError("the model offers no channel for structured output")

    async def aclose(self) -> None:
        await self._llm.aclose()


def with_schema(messages: Sequence[Message], schema: Mapping[str, Any], channel: Channel) -> list[Message]:
    """The messages with what the reply has to be, see `place_of_instruction`. In a correction the prompt stays as it
    was."""
    found = list(messages) or [Message.user("")]
    at = place_of_instruction(found, channel)
    *before, last = found[at].content or (TextBlock(""),)
    text = instruction(schema, channel)
    if not isinstance(last, TextBlock):
        before, last = [*before, last], TextBlock("")
    content = (*before, TextBlock(f"{last.text}\n\n{text}" if last.text else text))
    found[at] = Message(found[at].role, content, found[at].usage_metadata)  # quicker than evolve
    return found


def place_of_instruction(messages: Sequence[Message], channel: Channel) -> int:
    """Of these messages, which is not empty, the one that ends with the instruction.

    Where the reply is enforced it is the first one, so that the answer is what a model has read last: SmolLM2 copied
    examples out of descriptions that came after the answer (4 of 12 values right in place of 10). Otherwise it is the
    first user message, behind the answer, for nothing else holds a model to the shape.
    """
    if channel in ("json_schema", "tool_call"):
        return 0
    return next((at for at, message in enumerate(messages) if message.role == "user"), len(messages) - 1)


def instruction(schema: Mapping[str, Any], channel: Channel) -> str:
    """What the reply has to be, in a prompt, as far as the channel does not show it to the model.

    A tool is shown to a model with its schema. An enforced schema need not be: some servers constrain the reply and
    show nothing, so that the model would not know what belongs into a field. So the values are listed, in words that
    are shorter than the schema; a schema that says more than such a list can is given itself.
    """
    if channel == "tool_call":
        return "Give the reply by calling the tool."
    return _schema_in_words(READABLE.encode(schema))


@lru_cache(maxsize=256)
def _schema_in_words(schema: str) -> str:
    """A schema for a prompt. It is that of a question for all its items."""
    if values := outline(json.loads(schema)):
        return f"Reply with one JSON object and nothing else. Its values:\n{values}"
    return f"Reply with one JSON object that fits this JSON Schema, and with nothing else:\n{schema}"


def _result(response: LLMResponse, channel: Channel, token_limit: str) -> ParsePortResult:
    raw = response.structured if response.structured is not None else response.content
    if channel == "tool_call" and response.structured is None and not response.tool_calls:
        channel = "text"  # the server took the tool and ignored it
    try:
        found = json_object(raw)
        data = found if _is_clean(raw) else sanitize_data(found)
    except (ParseError, RecursionError) as failure:
        problem = "the reply is nested too deeply; reply with the object of the schema only"
        error = failure if isinstance(failure, ParseError) else ParseError(problem, raw_response=raw)
        error = _cut_off(raw, response, token_limit) if response.is_partial else error
        error.usage, error.channel = response.usage, channel  # a useless reply was paid for, too
        error.usage_unavailable = response.usage_unavailable
        raise error from None
    unknown = response.usage_unavailable
    return ParsePortResult(data=data, usage=response.usage, usage_unavailable=unknown, channel=channel, raw=raw)


def _is_clean(raw: str) -> bool:
    """Whether it is seen at once that `sanitize_data` would change and refuse nothing of a JSON text, as of most."""
    return raw.isascii() and "\\" not in raw and raw.count("{") + raw.count("[") <= MOST_NESTED


def _cut_off(raw: str, response: LLMResponse, token_limit: str) -> ParseError:
    tokens = response.usage.output_tokens
    after = f" after {plural(tokens, 'token')}" if tokens and not response.usage_unavailable else ""
    why = token_limit if response.finish_reason in (None, "length") else response.finish_reason
    problem = f"the reply was cut off{after} ({why}) before its JSON object was complete; reply with a shorter one"
    error = ParseError(problem, raw_response=raw)
    error.cut_off = True
    return error


def json_object(text: str) -> Mapping[str, Any]:
    """The JSON object in a reply: the whole text, a fenced block, or the one object embedded in prose.

    Raises ParseError where there is none, more than one that differ, or one that has a key twice with different values:
    to guess would be to invent an answer.
    """
    try:
        try:
            value = DECODER.decode(text)
        except (ValueError, RecursionError):
            value = None
        found = [value] if isinstance(value, dict) else _embedded(text[:MAX_SCANNED])
    except _Contradiction as error:
        raise ParseError(str(error), raw_response=text) from None
    if not found:
        raise ParseError("the reply holds no JSON object", raw_response=text)
    if any(other != found[0] for other in found):
        raise ParseError("the reply holds several different JSON objects; reply with exactly one", raw_response=text)
    return found[0]


class _Contradiction(Exception):
    """An object has two values under one key."""


def _without_contradiction(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    """The object of these pairs. One that repeats itself word for word is no contradiction."""
    found = dict(pairs)
    if len(found) < len(pairs):
        for key, value in pairs:
            if type(value) is not type(found[key]) or value != found[key]:
                problem = f"the reply has the key {shortened(key, 100)!r} more than once, with different values"
                raise _Contradiction(f"{problem}; reply with every key once")
    return found


DECODER = json.JSONDecoder(object_pairs_hook=_without_contradiction)


def json_objects(text: str) -> list[dict[str, Any]]:
    """The complete JSON objects in a text, in their order; what is inside of one is a part of it.

    None of a text that is too long (1,000,000 characters, 10,000 braces) for the last one to be found, and none of one
    in which an object has a key twice with different values.
    """
    if len(text) > MAX_SCANNED or text.count("{") > MAX_BRACES:
        return []
    try:
        return _embedded(text, MAX_BRACES)
    except _Contradiction:
        return []


def _embedded(text: str, most: int = MAX_TRIED) -> list[dict[str, Any]]:
    """The objects in a text. What is inside an object that is broken or cut off is a part of it, not an answer."""
    found: list[dict[str, Any]] = []
    position = text.find("{")
    tries = 0
    while position != -1 and tries < most:
        tries += 1
        try:
            value, end = DECODER.raw_decode(text, position)
        except (ValueError, RecursionError):
            end = _end_of(text, position) if BEGUN.match(text, position) else position + 1
        else:
            if isinstance(value, dict):
                found.append(value)
        position = text.find("{", end)
    return found


def _end_of(text: str, position: int) -> int:
    """The position after the brace that closes the one at `position`; the end of the text where none does."""
    depth, quoted, escaped = 0, False, -1
    for found in STRUCTURE.finditer(text, position):
        at, character = found.start(), found[0]
        if at == escaped:
            continue
        if character == "\\":
            escaped = at + 1
        elif character == '"':
            quoted = not quoted
        elif not quoted:
            depth += 1 if character == "{" else -1
            if depth == 0:
                return at + 1
    return len(text)


async def parse_with_repair(
    parser: ParserPort,
    messages: Sequence[Message],
    schema: Mapping[str, Any],
    *,
    validate: Validate | None = None,
    max_repairs: int = 2,
    call: CallContext | None = None,
) -> ParsePortResult:
    """Parse, and on a useless reply show the judge what is wrong and ask again, at most `max_repairs` times.

    `validate` may refuse data for reasons beyond the schema (FillError); what it returns is the result's `parsed`.
    Its first ContradictionError allows one question more than that. A judge that gives the same reply again, shown what
    is wrong with it, is not asked once more. Raises ParseError where no reply could be used. The usage is that of all
    calls together.
    """
    asked = list(messages)
    usage: UsageMetadata | None = None
    unknown = False
    before: str | None = None
    most = max_repairs
    for repairs in count():
        try:
            result = await parser.aparse(asked, schema, call=call)
            usage = result.usage if usage is None else usage + result.usage
            unknown = unknown or result.usage_unavailable
            parsed = await validate(result.data) if validate else None
        except ParseError as error:
            reply, problem, failure = error.raw_response, f"{error}\n{_expected(schema)}", error
            unknown = unknown or error.usage_unavailable
            if isinstance(error.usage, UsageMetadata):
                usage = error.usage if usage is None else usage + error.usage
        except FillError as error:
            reply, problem, failure = result.raw, str(error), ParseError(f"the judge's reply does not fit: {error}")
            failure.channel = result.channel
            most = max_repairs + 1 if isinstance(error, ContradictionError) else most
        except PortError as error:
            error.repairs = repairs  # the earlier replies were paid for, too
            if repairs and is_context_overflow(error):
                error.args = (
                    f"{error}; it is a correction of a reply that cannot be used: {' '.join(problem.split())}",
                )
            raise
        else:
            paid: dict[str, Any] = {"usage": usage, "usage_unavailable": unknown, "repairs": repairs}
            return ParsePortResult(data=result.data, channel=result.channel, raw=result.raw, parsed=parsed, **paid)
        if not reply and failure.channel is None:
            break  # nothing that a judge could correct: the data was recorded, not asked for
        corrected = [*messages, *_correction(reply, problem, cut_off=failure.cut_off)]
        if reply == before or corrected == asked:
            failure.args = (f"{failure}; shown the mistake, the judge gave the same reply again",)
            break
        if repairs >= most:
            break
        asked, before = corrected, reply
    failure.usage, failure.usage_unavailable, failure.repairs = usage, unknown, repairs
    raise failure


def _correction(reply: str, problem: str, *, cut_off: bool) -> list[Message]:
    """What follows the first request: the useless reply, and what is wrong with it."""
    most = MAX_QUOTED_CUT if cut_off else MAX_QUOTED
    quoted = reply if len(reply) <= most else f"{reply[:most]}... [{len(reply) - most} more characters]"
    return [
        Message.assistant(quoted if quoted.strip() else EMPTY),
        Message.user(
            f"That reply cannot be used:\n{problem}\n\nReply again with one corrected JSON object that fits the "
            "schema, and with nothing else. Do not invent values: use null where the schema allows it and the response "
            "does not say."
        ),
    ]


def _expected(schema: Mapping[str, Any]) -> str:
    """The keys of an object that no reply holds. For an object that does not fit, the refusal says what is wrong."""
    keys = list(schema.get("properties", ()))
    more = f" and {len(keys) - MAX_KEYS} more" if len(keys) > MAX_KEYS else ""
    return f"Its keys are: {', '.join(map(READABLE.encode, keys[:MAX_KEYS]))}{more}." if keys else ""
