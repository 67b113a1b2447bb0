"""What a drafting model is asked for, as JSON Schemas, and how its replies become fields of a template.

A field is described as a sheet has it (see `karenina_tables.fields`), so that the draft of a sheet goes back into it.
"""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from attrs import frozen
from karenina_judging.asking import check_reply, closed_object
from karenina_tables.fields import CellProblem, read_field
from karenina_template.declarative_templates import template_problems

from karenina_core.errors import FillError

Spec = dict[str, Any]
MOST_FIELDS = 8
"""Of one question. Chosen: an answer with more facts that decide is rather several questions."""
TEXT = {"type": "string"}
TEXT_OR_NULL = {"type": ["string", "null"]}
TEXTS = {"type": "array", "items": TEXT}
BOOLEAN = "bool"
FIELD = closed_object(
    {
        "why": {**TEXT, "description": "Why this fact decides whether an answer is right"},
        "field": {**TEXT, "description": "A short name in snake_case that does not say the value"},
        "type": {**TEXT, "description": "text, whole number, number, list, date, yes/no, or choice: a | b | c"},
        "expected": {**TEXTS, "description": "The right value: one text; of a list one for each member; a date as "
                                             "2024-05-31"},
        "aliases": {**TEXTS, "description": "Other names of the same thing, of a text only"},
        "unit": {**TEXT_OR_NULL, "description": "The unit of a number"},
        "tolerance": {**TEXT_OR_NULL, "description": "Of a number or a date: 5 %, 0.5 (in its unit) or 3 days"},
        "boolean_reason": {**TEXT_OR_NULL, "description": "Of yes/no: why no value can be extracted instead"},
    }
)  # fmt: skip
PLAN = closed_object(
    {
        "plan": {**TEXT, "description": "Which facts decide whether an answer is right, and what is beside the point"},
        "fields": {"type": "array", "items": FIELD, "maxItems": MOST_FIELDS},
    }
)


@frozen
class Plan:
    """Which facts decide, and what is expected of them."""

    text: str
    fields: Sequence[Spec]
    """As the declarative language has them; their descriptions are placeholders."""
    units: Mapping[str, str]
    booleans: Mapping[str, str]
    """The fields that are yes or no, and why."""
    reply: Mapping[str, Any]
    """What the model said."""


async def read_plan(data: Mapping[str, Any], *, primitives: Mapping[str, type]) -> Plan:
    """The plan of a reply. Raises FillError with every problem, in words for the model."""
    check_reply(data, PLAN)
    if not data["fields"]:
        raise FillError("fields is empty; name at least one fact that decides whether an answer is right")
    problems: list[str] = []
    specs: list[Spec] = []
    for number, row in enumerate(data["fields"]):
        try:
            specs.append(read_field(_cells(row), whole=False))
        except CellProblem as error:
            problems.append(f"fields[{number}].{error.facet}: {error}")
            continue
        if specs[-1]["type"] == BOOLEAN and not (row["boolean_reason"] or "").strip():
            problems.append(
                f"fields[{number}].type: a yes/no field checks less than the value itself; give the value, or say in "
                "boolean_reason why there is none"
            )
    if not problems:
        found = template_problems(json.dumps({"fields": specs}), primitives)
        problems += [f"{problem.path}: {problem.message}" for problem in found]
    if problems:
        raise FillError("\n".join(problems))
    rows = list(zip(specs, data["fields"], strict=True))
    return Plan(
        text=data["plan"],
        fields=specs,
        units={spec["name"]: row["unit"] for spec, row in rows if row["unit"]},
        booleans={spec["name"]: row["boolean_reason"] for spec, row in rows if spec["type"] == BOOLEAN},
        reply=data,
    )


def _cells(row: Mapping[str, Any]) -> dict[str, Any]:
    """The cells of a sheet that say the same. What does not belong to the type is an error there, not left out."""
    values: list[str] = row["expected"]
    if row["type"].strip().casefold() == "list":
        expected: Any = values
    else:
        if len(values) != 1:
            raise CellProblem("expected", f"a {row['type']} has one value, not {len(values)}; only a list has several")
        expected = values[0]
    optional = {name: row[name] for name in ("unit", "tolerance") if row[name]}
    aliases = {"aliases": json.dumps(row["aliases"])} if row["aliases"] else {}
    return {"field": row["field"], "type": row["type"], "expected": expected, **optional, **aliases}


def described_as(names: Sequence[str]) -> dict[str, Any]:
    """The schema of the descriptions of these fields."""
    what = "What to take from a response for this field, and in which form"
    return closed_object({name: {**TEXT, "description": what} for name in names})


async def read_descriptions(data: Mapping[str, Any], *, schema: Mapping[str, Any]) -> dict[str, str]:
    """The descriptions by field. Raises FillError."""
    check_reply(data, schema)
    found = {name: " ".join(data[name].split()) for name in schema["properties"]}
    if empty := [name for name, text in found.items() if not text]:
        raise FillError("\n".join(f"{name} is empty; say what to take from a response" for name in empty))
    return found


def template_of(plan: Plan, descriptions: Mapping[str, str]) -> str:
    """The text of a template of data."""
    fields = []
    for spec in plan.fields:
        unit = plan.units.get(spec["name"])
        text = f"{descriptions[spec['name']]} (in {unit})" if unit else descriptions[spec["name"]]
        fields.append({**spec, "description": text})
    return json.dumps({"fields": fields}, ensure_ascii=False)
