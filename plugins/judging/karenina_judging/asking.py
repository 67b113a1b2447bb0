"""One question to the judge with a typed reply: how every stage that asks one does it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.traces import EvaluationInput, evaluation_input

from karenina_core.errors import FillError, Problem
from karenina_core.pipeline.context import VerificationContext
from karenina_core.plugin.application import Karenina
from karenina_core.ports.model_client import Validate
from karenina_core.ports.values import ParsePortResult
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import Message, TextBlock

from .untrusted_text import untrusted

Schema = Mapping[str, Any]
MOST_ENTRIES = 256
"""Entries of a list that a judge may give where the schema sets no limit. A model that repeats itself writes until
its tokens are used up, and the reply is lost; a server that enforces the schema ends it here, after some 1,500 to 2,500
tokens, which most limits allow. Code does not check it."""
MOST_CHARACTERS = 16_384
"""Of a text that a judge gives, unless the answer is longer. Code checks it, and no schema says it: strict schemas of
OpenAI have no keyword for it, Anthropic refuses `maxLength`, Gemini does not name it. Servers that know it (vLLM,
llama.cpp) are reached by OpenAI's protocol, where a schema is enforced if it is strict. Chosen: some 4,000 tokens."""
CHOICES = ("anyOf", "allOf", "oneOf")
VALUES = ("const", "default", "enum", "examples")
"""Keywords whose values are data and no schemas."""
JSON_TYPES: Mapping[str, type] = {"string": str, "boolean": bool, "null": type(None), "array": list, "object": Mapping}


async def ask_judge(
    context: VerificationContext,
    task: str,
    texts: Sequence[str],
    schema: Schema,
    *,
    validate: Validate | None = None,
    temperature: float | None = None,
    expected: Mapping[str, Any] | None = None,
) -> ParsePortResult:
    """Ask the parsing model for data of a JSON Schema. `texts` are the system text and the user text; a third one
    follows where calls about this answer begin to differ: an adapter may mark that place for a cache of prompts.

    Lists without a limit of their own get one in the schema that the judge is shown and held to (`MOST_ENTRIES`); none
    does where `expected`, the ground truth of a template, has a list of more than half as many entries. A text in the
    reply that is longer than the answer, and than `MOST_CHARACTERS`, is refused as data that does not fit is.
    The user's system prompt for the parsing model precedes karenina's own. `validate` makes something of the data;
    the reasons of its FillError are shown to the judge. Raises ParseError where no reply could be used, PortError where
    the judge could not be reached.
    """
    system, user, *rest = texts
    if not any(type(value) is list and len(value) > MOST_ENTRIES // 2 for value in (expected or {}).values()):
        schema = _limited(schema)
    if own := context.system_prompt("parsing"):
        system = f"{own}\n\n{system}"
    shape = {"json_schema": schema, "format_instructions": ""}
    messages = context.parsing.prompt(task, system, "\n\n".join((user, *rest)), shape)
    if rest:
        messages[-1] = _parted(messages[-1], user)
    rows, raw = (context.get_result_field(name, "") for name in ("trace_messages", "raw_llm_response"))
    answered = evaluation_input(rows, raw, full_trace=False).text, str(context.task.answering)
    most = max(MOST_CHARACTERS, len(raw))

    async def checked(data: Mapping[str, Any]) -> Any:
        if len(repr(data)) > most and (found := list(_long(data, most))):  # all of it is shorter as a rule
            raise FillError("\n".join(["Texts are too long; give each value once, and shorter:", *found]))
        return await validate(data) if validate else None

    judge = context.parsing
    return await judge.parse(task, messages, schema, validate=checked, temperature=temperature, answered=answered)


def _long(value: object, most: int, path: str = "") -> Iterator[str]:
    """A message for the judge about every text of more than so many characters in JSON data."""
    if isinstance(value, str):
        if len(value) > most:
            yield f"{path} has {len(value):,} characters, and may have {most:,}"
    elif isinstance(value, Mapping):
        for name, part in value.items():
            yield from _long(part, most, f"{path}.{name}" if path else str(name))
    elif isinstance(value, list):
        for place, part in enumerate(value):
            yield from _long(part, most, f"{path}[{place}]")


def _parted(message: Message, shared: str) -> Message:
    """The same text in two blocks, of which the first ends with what other calls begin with, too."""
    text = message.text
    end = text.index(shared) + len(shared) + 1  # with the first line break of the two; blocks are joined by the other
    return Message(message.role, (TextBlock(text[:end]), TextBlock(text[end + 1 :])))


def _limited(schema: Mapping[str, Any]) -> dict[str, Any]:
    """The schema with a limit on every list that has none. It is asked for on every call, and does little: what only
    has a type has no list."""
    found = {**schema}
    for name, part in found.items():
        if type(part) is dict and name not in VALUES and (len(part) > 1 or type(part.get("type")) is not str):
            found[name] = _limited(part)
        elif name in CHOICES:
            found[name] = [_limited(one) if type(one) is dict and one.keys() != {"type"} else one for one in part]
    if "items" in found and "maxItems" not in found and "type" in found and "array" in found["type"]:
        found["maxItems"] = max(MOST_ENTRIES, found.get("minItems", 0))
    return found


def text_to_judge(context: VerificationContext, *, full_trace: bool, keep: bool) -> EvaluationInput:
    """What a judge reads of the item's answer; with `keep`, the result says so."""
    rows, raw = context.get_result_field("trace_messages", []), context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
    given = evaluation_input(rows, raw, full_trace=full_trace)
    if keep:
        context.set_result_field("used_full_trace", given.used_full_trace)
        context.set_result_field("evaluation_input", given.text)
        if given.error is not None:
            context.set_result_field("trace_extraction_error", given.error)
    return given


def presented(question: str, given: EvaluationInput) -> str:
    """The question and the answer for a prompt, the answer marked as data."""
    what = "trace" if given.used_full_trace else "response"
    return f"Question:\n{question}\n\nThe {what} to examine:\n{untrusted(given.text, what)}"


def closed_object(properties: Schema, description: str = "") -> dict[str, Any]:
    """A JSON Schema of an object with these properties, all of them required, and no others."""
    described = {"description": description} if description else {}
    return {
        "type": "object",
        **described,
        "properties": dict(properties),
        "required": list(properties),
        "additionalProperties": False,
    }


def check_reply(data: object, schema: Schema) -> None:
    """Raises FillError with everything that does not fit. Nothing is converted: the text "false" is not False."""
    found = list(_problems(data, schema, ""))
    if found:
        raise FillError("\n".join(found))


def _problems(value: object, schema: Schema, path: str) -> Iterator[str]:
    kinds = [schema["type"]] if isinstance(schema["type"], str) else schema["type"]
    if not isinstance(value, tuple(JSON_TYPES[kind] for kind in kinds)):
        yield f"{path or 'the reply'} must be {' or '.join(kinds)}"
    elif isinstance(value, list):
        if len(value) > (most := schema.get("maxItems", len(value))):
            yield f"{path} has {len(value)} entries, and may have {most}"
        for index, entry in enumerate(value):
            yield from _problems(entry, schema["items"], f"{path}[{index}]")
    elif isinstance(value, Mapping):
        for name, inner in schema["properties"].items():
            where = f"{path}.{name}" if path else name
            if name in value:
                yield from _problems(value[name], inner, where)
            else:
                yield f"{where} is missing"


def unable_judges(app: Karenina, models: Iterable[ModelConfig], task: str, remedy: str) -> list[Problem]:
    """A problem for every judge that cannot serve a task; `remedy` says how to do without."""
    problems = []
    for number, model in enumerate(models):
        tasks = app.adapters.resolve_interface(model.interface).spec.judge_tasks
        if tasks is not None and task not in tasks:
            what = f"the interface {model.interface!r} cannot serve the task {str(task)!r}"
            problems.append(
                Problem(f"parsing_models[{number}]", f"{what}; name a judge model (--parsing-model), or {remedy}")
            )
    return problems
