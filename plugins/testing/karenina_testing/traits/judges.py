"""Judges for evaluators whose prompts are not known: they obey any JSON Schema that they are shown, or fail."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, get_args

from attrs import frozen

from karenina_core.errors import ErrorKind, PortError

from ..fakes import Script, ScriptedCall, ScriptedReply

Schema = Mapping[str, Any]
Swap = Callable[[Schema], tuple[Any, ...]]
"""Given the schema of a value: `(value,)` to stand there instead of one that fits, or nothing in a tuple. The schema
has `nullable` where null fits too."""
DEEPEST = 8
CONTENTS = ("properties", "required", "items", "minItems")
"""What a schema of an object or a list states about the values in it."""
WORDS = "because it says so"
OWN_KINDS = ("template", "stage", "cancelled")
"""What no provider is the cause of."""


def fitting(schema: Schema, *, most: bool = False, swap: Swap | None = None) -> Any:
    """The least JSON value that fits a schema: false, the first of an enumeration, the minimum, empty lists.

    With `most` it is the greatest: true, the last, the maximum, one entry per list, every property. Knows types,
    enumerations, unions, references and bounds; no patterns or formats. `swap` puts other values in some places.
    """
    return _Fitting(schema, most, swap or (lambda _: ())).value(schema, 0)


@frozen
class _Fitting:
    root: Schema
    most: bool
    swap: Swap

    def value(self, schema: Schema, depth: int) -> Any:
        if "$ref" in schema:
            target: Any = self.root
            for step in str(schema["$ref"]).removeprefix("#/").split("/"):
                target = target[step]
            return self.value({**target, "nullable": schema.get("nullable", False)}, depth + 1)
        for union in ("anyOf", "oneOf", "allOf"):
            if union in schema:
                choices = [choice for choice in schema[union] if choice.get("type") != "null"] or schema[union]
                nullable = len(choices) < len(schema[union]) or schema.get("nullable", False)
                return self.value({**choices[0], "nullable": nullable}, depth + 1)
        if swapped := self.swap(schema):
            return swapped[0]
        if "const" in schema:
            return schema["const"]
        most = self.most and depth < DEEPEST  # a schema may hold itself
        return schema["enum"][-1 if most else 0] if "enum" in schema else self._typed(schema, most, depth)

    def _typed(self, schema: Schema, most: bool, depth: int) -> Any:
        kinds = [schema.get("type", "object")] if isinstance(schema.get("type", ""), str) else schema["type"]
        kind = next((kind for kind in kinds if kind != "null"), "null")
        if kind == "object":
            properties = schema.get("properties", {})
            names = properties if most else schema.get("required", properties)
            return {name: self.value(properties.get(name, {}), depth + 1) for name in names}
        if kind == "array":
            length = max(int(schema.get("minItems", 0)), int(most and schema.get("maxItems", 1) > 0))
            return [self.value(schema.get("items", {"type": "string"}), depth + 1) for _ in range(length)]
        if kind in ("integer", "number"):
            low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
            high = schema.get("maximum", schema.get("exclusiveMaximum", low + 2) - 1)
            return max(low, high) if most else low
        return {"boolean": most, "null": None}.get(kind, WORDS.ljust(int(schema.get("minLength", 0)), "."))


def obedient(call: ScriptedCall, *, most: bool = False, swap: Swap | None = None) -> ScriptedReply:
    """A reply that fits what is asked for; a sentence where no data is asked for."""
    if call.output is None:
        return WORDS
    found: Mapping[str, Any] = fitting(call.output.schema, most=most, swap=swap)
    return found


def swapping(swap: Swap) -> Callable[[ScriptedCall], ScriptedReply]:
    """A judge that is obedient, but for the values that `swap` gives."""
    return partial(obedient, swap=swap)


def down(call: ScriptedCall) -> ScriptedReply:
    """A provider that fails."""
    return PortError("the server is down", kind="server")


def _gone(kind: ErrorKind) -> Script:
    return lambda call: PortError(f"the judge cannot be asked ({kind})", kind=kind)


GONE: Mapping[str, Script] = {kind: _gone(kind) for kind in get_args(ErrorKind) if kind not in OWN_KINDS}
"""Providers that fail, in every way that a call can."""


def prose(call: ScriptedCall) -> ScriptedReply:
    """A text where data is asked for."""
    return "I would rather talk about {the weather}.\0"


def strange(call: ScriptedCall) -> ScriptedReply:
    """Data that was not asked for."""
    return {"something_else": [1, None]}


def silent(call: ScriptedCall) -> ScriptedReply:
    """An empty reply."""
    return ""


def off_scale(call: ScriptedCall) -> ScriptedReply:
    """Data of the right shape whose values are not allowed: numbers far outside, words that are no class."""
    return swapping(_off_scale)(call)


def above(call: ScriptedCall) -> ScriptedReply:
    """Data whose numbers are one more than the greatest that was asked for."""
    return swapping(lambda schema: (schema["maximum"] + 1,) if "maximum" in schema else ())(call)


def below(call: ScriptedCall) -> ScriptedReply:
    """Data whose numbers are one less than the least that was asked for."""
    return swapping(lambda schema: (schema["minimum"] - 1,) if "minimum" in schema else ())(call)


def _off_scale(schema: Schema) -> tuple[Any, ...]:
    fit = fitting({key: value for key, value in schema.items() if key not in CONTENTS})
    if isinstance(fit, bool):
        return ("perhaps",)
    if isinstance(fit, int | float):
        return (fit + 100_000,)
    return ("none of these",) if "enum" in schema else ()
