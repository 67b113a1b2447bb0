"""Specs of `strategies.template_specs()` as texts in several languages, their twins, and replies to them."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

__all__ = ["SOURCES", "Source", "python_source", "regilded", "right_data", "wrong_data"]

Spec = Mapping[str, Any]
Source = Callable[[Spec], str]
"""Writes a spec as the text of a template."""
TYPES = {"list_str": "list[str]", "literal": "Literal['up', 'down']"}


def python_source(spec: Spec) -> str:
    """The template as a Python class."""
    lines = ["class Answer(BaseAnswer):"]
    for field in spec["fields"]:
        primitive = dict(field["verify_with"])
        arguments = ", ".join(f"{key}={value!r}" for key, value in primitive.items() if key != "type")
        options = {"weight": field.get("weight", 1.0), "extraction_hint": field.get("extraction_hint")}
        given = ", ".join(f"{key}={value!r}" for key, value in options.items() if value is not None)
        lines.append(
            f"    {field['name']}: {TYPES.get(field['type'], field['type'])} = VerifiedField("
            f"{field['description']!r}, {field['ground_truth']!r}, {primitive['type']}({arguments}), {given})"
        )
    return "\n".join(lines) + "\n"


SOURCES: Mapping[str, Source] = {"karenina-template": json.dumps, "python": python_source}
"""Language -> how a spec is written in it."""


def _other(field: Mapping[str, Any]) -> Any:
    """A value of the field's type that is not its ground truth, nor near it."""
    truth = field["ground_truth"]
    match field["type"]:
        case "bool":
            return not truth
        case "int":
            return truth + 7
        case "float":
            return truth + 7.0
        case "literal":
            return "down" if truth == "up" else "up"
        case "list_str":
            return [*truth, "another"]
    return f"{truth}another"


def regilded(spec: Spec) -> dict[str, Any]:
    """The same template with another ground truth in every field."""
    return {**spec, "fields": [{**field, "ground_truth": _other(field)} for field in spec["fields"]]}


def right_data(spec: Spec) -> dict[str, Any]:
    """A reply in which every field is right."""
    return {field["name"]: field["ground_truth"] for field in spec["fields"]}


def wrong_data(spec: Spec) -> dict[str, Any]:
    """A reply that fits, and in which every field is wrong."""
    return {field["name"]: _other(field) for field in spec["fields"]}
