"""The JSON Schema that a judge sees. It says what to extract and nothing about what is right."""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import Any

from .answer import BaseAnswer
from .extraction import extraction_class, keys_of

# Where a JSON Schema holds other schemas: by name, in a list, or one. Everything else is data and stays as it is.
_NAMED = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLE = frozenset({"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"})
_CONSTRAINTS = frozenset(
    (
        *("$ref", "const", "contentEncoding", "contentMediaType", "dependentRequired", "deprecated", "description"),
        *("discriminator", "enum", "exclusiveMaximum", "exclusiveMinimum", "format", "maxContains", "maxItems"),
        *("maxLength", "maxProperties", "maximum", "minContains", "minItems", "minLength", "minProperties", "minimum"),
        *("multipleOf", "pattern", "required", "type", "uniqueItems"),
    )
)
"""What a verified field may say of itself beside other schemas. Anything else is an example or an author's addition."""


def judge_schema(cls: type[BaseAnswer]) -> dict[str, Any]:
    """The schema of the judge's reply for this template.

    Verified fields are required and may be null, which means that the answer does not say; plain fields are as
    declared. Objects with named fields allow no others, at any depth. Mappings (`dict[str, int]`) keep their open
    keys. Fields that are decided on the trace are left out; a nested model may have fields of the same name. Of what a
    verified field says, also in the models that it is made of, constraints and descriptions stay; examples and an
    author's additions go, and so does the default of the field itself.
    """
    schema: dict[str, Any] = _closed(extraction_class(cls).model_json_schema())
    keys = keys_of(cls)
    asked = set(keys.values())
    verified = {keys[name] for name in cls.__verified__ if name in keys}
    properties = {key: value for key, value in schema["properties"].items() if key in asked}
    definitions = schema.get("$defs", {})
    reached: set[str] = set()  # the definitions that verified fields are made of
    waiting: list[Any] = [properties[key] for key in verified]
    while waiting:
        node = waiting.pop()
        if not isinstance(node, dict):
            continue
        name = str(node.get("$ref", "")).rpartition("/")[2]
        if name in definitions and name not in reached:
            reached.add(name)
            waiting.append(definitions[name])
        for key, value in node.items():
            _each(key, value, waiting.append)
    for name in reached:
        definitions[name] = _bare(definitions[name], {"default"})
    for key in verified:
        properties[key] = _bare(properties[key])
    required = verified | set(schema.get("required", ()))
    schema["properties"] = properties
    schema["required"] = [key for key in properties if key in required]
    return schema


def _bare(node: Any, kept: Collection[str] = ()) -> Any:
    """The schema without anything that is neither a constraint nor a description nor `kept`, at every level."""
    if not isinstance(node, dict):
        return node
    allowed = _CONSTRAINTS | _NAMED | _LISTED | _SINGLE | set(kept)
    return {
        key: _each(key, value, lambda part: _bare(part, {"default"})) for key, value in node.items() if key in allowed
    }


def _closed(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    closed = {key: _each(key, value, _closed) for key, value in node.items() if key != "title"}
    if "properties" in closed:
        closed["additionalProperties"] = False
    return closed


def _each(key: str, value: Any, change: Callable[[Any], Any]) -> Any:
    """The value of a keyword with every schema in it changed; data stays as it is."""
    if key in _NAMED and isinstance(value, dict):
        return {name: change(part) for name, part in value.items()}
    if key in _LISTED and isinstance(value, list):
        return [change(part) for part in value]
    return change(value) if key in _SINGLE else value
