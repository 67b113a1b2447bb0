"""A JSON Schema in words: one line for each value, with its type and what belongs into it."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

DEEPEST = 8
"""Levels of objects and lists; a schema that is deeper is recursive."""
LIMITS = (
    *("format", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
    *("minLength", "maxLength", "minItems", "maxItems"),
)
KNOWN = frozenset(
    {"type", "title", "description", "properties", "required", "additionalProperties", "items", "anyOf", "enum"}
    | {"const", "default", "$ref", "$defs", "definitions", *LIMITS}
)


class _NoWords(Exception):
    """The schema says something for which an outline has no words."""


def outline(schema: Mapping[str, Any]) -> str | None:
    """`- path (type): description` for each value in an object of this schema, `[]` for a member of a list.

    None where the schema says more than that, or is recursive.
    """
    try:
        return "\n".join(_lines(schema, schema, "", DEEPEST)) or None
    except _NoWords:
        return None


def _lines(schema: Mapping[str, Any], root: Mapping[str, Any], path: str, depth: int) -> Iterator[str]:
    if not depth:
        raise _NoWords
    for name, found in schema.get("properties", {}).items():
        value = _resolved(found, root)
        where = f"{path}{name}"
        about = value.get("description", "")
        yield f"- {where} ({_type(value, root, depth)}){f': {about}' if about else ''}"
        for inner, step in _inside(value, root, "", depth):
            yield from _lines(inner, root, f"{where}{step}.", depth - 1)


def _inside(value: Mapping[str, Any], root: Mapping[str, Any], step: str, depth: int) -> Iterator[tuple[Any, str]]:
    """The objects in a value, and how one gets to them."""
    if not depth:
        raise _NoWords
    if "properties" in value:
        yield value, step
    for branch in value.get("anyOf", ()):
        yield from _inside(_resolved(branch, root), root, step, depth - 1)
    if "items" in value:
        yield from _inside(_resolved(value["items"], root), root, f"{step}[]", depth - 1)


def _type(value: Mapping[str, Any], root: Mapping[str, Any], depth: int) -> str:
    if not depth:
        raise _NoWords
    if "anyOf" in value:
        return " or ".join(dict.fromkeys(_type(_resolved(one, root), root, depth - 1) for one in value["anyOf"]))
    if choices := [value["const"]] if "const" in value else value.get("enum"):
        return f"one of {', '.join(json.dumps(choice, ensure_ascii=False) for choice in choices)}"
    kinds = [value["type"]] if isinstance(value.get("type"), str) else value.get("type") or ["any"]
    items = value.get("items", {})
    named = [f"list of {_type(_resolved(items, root), root, depth - 1)}" if kind == "array" else kind for kind in kinds]
    return ", ".join((" or ".join(named), *(f"{key} {value[key]}" for key in LIMITS if key in value)))


def _resolved(value: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """What a reference names, with the keywords beside it."""
    if not isinstance(value, Mapping) or value.keys() - KNOWN:
        raise _NoWords
    if value.get("additionalProperties", False) is not False or not isinstance(value.get("anyOf", ()), Sequence):
        raise _NoWords  # a free dictionary has keys that are not named
    if (ref := value.get("$ref")) is None:
        return value
    found: Any = root
    for step in str(ref).removeprefix("#/").split("/"):
        found = found.get(step) if isinstance(found, Mapping) else None
    if not isinstance(found, Mapping) or "$ref" in found:
        raise _NoWords
    return {**_resolved(found, root), **{key: text for key, text in value.items() if key != "$ref"}}
