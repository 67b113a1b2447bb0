"""The JSON Schema that a judge sees. It says what to extract and nothing about what is right."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from .answer import BaseAnswer
from .extraction import extraction_class, keys_of
from .plain import plain

__all__ = ["judge_schema", "revealed_fields"]

# Where a JSON Schema holds other schemas: by name, in a list, or one. Everything else is data and stays as it is.
_NAMED = frozenset({"properties", "$defs", "patternProperties", "dependentSchemas"})
_LISTED = frozenset({"anyOf", "oneOf", "allOf", "prefixItems"})
_SINGLE = frozenset({"items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames"})


def judge_schema(cls: type[BaseAnswer]) -> dict[str, Any]:
    """The schema of the judge's reply for this template.

    Verified fields are required and may be null, which means that the answer does not say; plain fields are as
    declared. Objects with named fields allow no others, at any depth. Mappings (`dict[str, int]`) keep their open
    keys.
    """
    schema: dict[str, Any] = _closed(extraction_class(cls).model_json_schema())
    keys = keys_of(cls)
    verified = {keys[name] for name in cls.__verified__}
    properties = {key: value for key, value in schema["properties"].items() if key != "id"}
    for key in verified & properties.keys():
        properties[key].pop("default", None)
    required = verified | set(schema.get("required", ()))
    schema["properties"] = properties
    schema["required"] = [key for key in properties if key in required]
    return schema


def _closed(node: Any) -> Any:
    if not isinstance(node, dict):
        return node
    closed = {key: _closed_part(key, value) for key, value in node.items() if key != "title"}
    if "properties" in closed:
        closed["additionalProperties"] = False
    return closed


def _closed_part(key: str, value: Any) -> Any:
    if key in _NAMED and isinstance(value, dict):
        return {name: _closed(part) for name, part in value.items()}
    if key in _LISTED and isinstance(value, list):
        return [_closed(part) for part in value]
    return _closed(value) if key in _SINGLE else value


def revealed_fields(schema: Mapping[str, Any], ground_truth: Mapping[str, Any]) -> list[str]:
    """Fields whose expected text stands word for word in a description, default or example that the judge reads.

    Enumerations are not searched: the expected value is one of them by design. Texts of fewer than three characters
    are left out, they occur by chance.
    """
    read = "\n".join(_told(schema)).casefold()
    return [
        name
        for name, expected in ground_truth.items()
        if any(
            re.search(rf"(?<!\w){re.escape(text.casefold())}(?!\w)", read) for text in _texts(expected) if len(text) > 2
        )
    ]


def _told(node: Any) -> Iterator[str]:
    if isinstance(node, list):
        for part in node:
            yield from _told(part)
    if not isinstance(node, dict):
        return
    for key, value in node.items():
        if key in ("description", "default", "examples"):
            yield from _texts(value)
        elif key in _NAMED and isinstance(value, dict):
            for part in value.values():
                yield from _told(part)
        elif key in _LISTED or key in _SINGLE:
            yield from _told(value)


def _texts(value: Any) -> Iterator[str]:
    value = plain(value)
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for item in value:
            yield from _texts(item)
    elif isinstance(value, dict):
        yield from _texts(list(value.values()))
