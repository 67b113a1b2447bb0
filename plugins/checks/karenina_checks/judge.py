"""What both checks do with the judge: show it an answer, read its reply strictly, keep what it found."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from karenina_core import ArtifactKeys, Stage, VerificationContext
from karenina_core.errors import FillError
from karenina_core.pipeline.trace import EvaluationInput, evaluation_input
from karenina_core.ports.structured import Validate
from karenina_core.prompts import PromptTask, untrusted

__all__ = ["Finding", "ask", "check_reply", "closed_object", "examined", "keep", "presented"]

Schema = Mapping[str, Any]
JSON_TYPES: Mapping[str, type] = {"string": str, "boolean": bool, "null": type(None), "object": Mapping}


@frozen(kw_only=True)
class Finding:
    """What a check leaves behind, in the order of the four artifacts that it produces."""

    performed: bool
    detected: bool | None
    override_applied: bool = False
    reasoning: str | None = None


def examined(context: VerificationContext) -> EvaluationInput:
    """The text that the judge of the template reads too: the final message, or the whole trace on request."""
    rows = context.get_result_field("trace_messages", [])
    raw = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
    return evaluation_input(rows, raw, full_trace=context.config.use_full_trace_for_template)


def presented(question: str, given: EvaluationInput) -> str:
    """The question and the answer for a prompt, the answer marked as data."""
    what = "trace" if given.used_full_trace else "response"
    return f"Question:\n{question}\n\nThe {what} to examine:\n{untrusted(given.text, what)}"


async def ask(
    context: VerificationContext, task: PromptTask, system: str, user: str, schema: Schema, read: Validate
) -> Any:
    """What `read` makes of the judge's reply. Temperature 0.

    Raises ParseError where no reply can be read, PortError where the judge cannot be reached.
    """
    if own := context.system_prompt("parsing"):
        system = f"{own}\n\n{system}"
    told = {"json_schema": schema, "format_instructions": ""}
    messages = context.parsing.prompt(task, system, user, told)
    result = await context.parsing.parse(task, messages, schema, validate=read, temperature=0.0)
    return result.parsed


def keep(stage: Stage, context: VerificationContext, finding: Finding) -> None:
    """Write a finding into the stage's artifacts and the result fields of the same names."""
    values = (finding.performed, finding.detected, finding.override_applied, finding.reasoning)
    for key, value in zip(stage.produces, values, strict=True):
        context.set_artifact_and_result(key, value)


def closed_object(properties: Mapping[str, Any], description: str = "") -> dict[str, Any]:
    """A JSON Schema of an object with these properties, all of them required, and no others."""
    told = {"description": description} if description else {}
    return {
        "type": "object",
        **told,
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
    elif isinstance(value, Mapping):
        for name, inner in schema["properties"].items():
            where = f"{path}.{name}" if path else name
            if name in value:
                yield from _problems(value[name], inner, where)
            else:
                yield f"{where} is missing"
