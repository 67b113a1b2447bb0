"""Specs of `strategies.template_specs()` as texts in several languages, their twins, and replies to them."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable, Mapping
from typing import Any

Spec = Mapping[str, Any]
Source = Callable[[Spec], str]
"""Writes a spec as the text of a template."""
TYPES = {"list_str": "list[str]", "literal": "Literal['up', 'down']", "date": "datetime.date"}
NODES = {"all_of": "AllOf", "any_of": "AnyOf", "at_least_n": "AtLeastN"}


def python_source(spec: Spec) -> str:
    """The template as a Python class."""
    lines = ["import datetime", "class Answer(BaseAnswer):"]
    for field in spec["fields"]:
        primitive = dict(field["verify_with"])
        arguments = ", ".join(f"{key}={value!r}" for key, value in primitive.items() if key != "type")
        options = {"weight": field.get("weight", 1.0), "extraction_hint": field.get("extraction_hint")}
        given = ", ".join(f"{key}={value!r}" for key, value in options.items() if value is not None)
        truth = field["ground_truth"]
        expected = f"datetime.date.fromisoformat({truth!r})" if field["type"] == "date" else repr(truth)
        lines.append(
            f"    {field['name']}: {TYPES.get(field['type'], field['type'])} = VerifiedField("
            f"{field['description']!r}, {expected}, {primitive['type']}({arguments}), {given})"
        )
    if spec.get("verify_strategy") is not None:
        lines += ["    class VerificationStrategy:", f"        verify_strategy = {_node(spec['verify_strategy'])}"]
    return "\n".join(lines) + "\n"


def _node(node: Mapping[str, Any]) -> str:
    if node["type"] == "field_check":
        return f"FieldCheck({node['field']!r})"
    number = f"{node['n']}, " if "n" in node else ""
    return f"{NODES[node['type']]}({number}[{', '.join(map(_node, node['conditions']))}])"


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
        case "date":
            return str(datetime.date.fromisoformat(truth) + datetime.timedelta(7))
    return f"{truth}another"


def regilded(spec: Spec) -> dict[str, Any]:
    """The same template with another ground truth in every field."""
    return {**spec, "fields": [{**field, "ground_truth": _other(field)} for field in spec["fields"]]}


def right_data(spec: Spec) -> dict[str, Any]:
    """A reply in which every field is right. Fields that are decided on the trace are no part of a reply."""
    return {field["name"]: field["ground_truth"] for field in spec["fields"] if not field.get("is_trace")}


def wrong_data(spec: Spec) -> dict[str, Any]:
    """A reply that fits, and in which every field is wrong."""
    return {field["name"]: _other(field) for field in spec["fields"] if not field.get("is_trace")}
