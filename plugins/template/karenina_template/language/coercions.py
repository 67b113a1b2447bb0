"""What a JSON value must not be read as: a truth value is no number, and a number is no date.

pydantic reads `true` as 1 and 20160411 as seconds since 1970, in texts too. In what a judge extracted, and in a ground
truth that is written as data, both are mistakes, and a comparison with them means nothing.
"""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Mapping
from typing import Any

from pydantic import TypeAdapter
from pydantic_core import PydanticCustomError, SchemaValidator, core_schema

# Where a core schema holds other schemas: one, a list, or by name. Everything else in it is data and stays as it is.
_INNER = frozenset(
    (
        *("choices", "definitions", "extras_keys_schema", "extras_schema", "fields", "items_schema", "json_schema"),
        *("keys_schema", "lax_schema", "python_schema", "schema", "steps", "strict_schema", "values_schema"),
    )
)


def _number(value: Any) -> Any:
    if isinstance(value, bool):
        raise PydanticCustomError("truth_value_is_no_number", "true and false are no numbers")
    return value


def _date(value: Any) -> Any:
    text = str(value).strip() if isinstance(value, str | int | float) else ""
    if not isinstance(value, bool) and re.fullmatch(r"\d{8}", text, re.ASCII):
        return f"{text[:4]}-{text[4:6]}-{text[6:]}"
    if not isinstance(value, int | float):
        try:
            float(text)
        except ValueError:
            return value
    raise PydanticCustomError("number_is_no_date", "a number is no date; write it like 2024-05-31")


_READERS: Mapping[str, Callable[[Any], Any]] = {
    "date": _date,
    "datetime": _date,
    "decimal": _number,
    "float": _number,
    "int": _number,
}
_TEXT_IN_JSON = frozenset({"date", "datetime", "decimal", "enum"})
"""What JSON has no values for. Behind a reader a strict template would take Python's own values only."""
_building = threading.Lock()


def careful_validator(schema: Any) -> SchemaValidator:
    """A validator for this core schema, and for the models in it, that makes neither mistake."""
    models: set[type] = set()
    careful: Any = _careful(schema, models)
    with _building:
        # Those that are complete would be validated by what pydantic has built for them already.
        complete = [model for model in models if model.__dict__.get("__pydantic_complete__")]
        try:
            for model in complete:
                type.__setattr__(model, "__pydantic_complete__", False)
            return SchemaValidator(careful)
        finally:
            for model in complete:
                type.__setattr__(model, "__pydantic_complete__", True)


def careful_reader(annotation: Any) -> Callable[[Any], Any]:
    """A function that reads data as a value of this type. It raises pydantic's ValidationError."""
    return careful_validator(TypeAdapter(annotation).core_schema).validate_python


def _careful(node: Any, models: set[type]) -> Any:
    """The schema with a reader before every number and date in it. The classes that it makes are added to `models`."""
    if isinstance(node, list):
        return [_careful(part, models) for part in node]
    if isinstance(node, tuple):  # a choice and its label
        return (_careful(node[0], models), *node[1:])
    if not isinstance(node, dict):
        return node
    if not isinstance(node.get("type"), str):  # schemas by name
        return {name: _careful(part, models) for name, part in node.items()}
    if node["type"] in ("model", "dataclass", "typed-dict") and "cls" in node:
        models.add(node["cls"])
    changed: Any = {key: _careful(value, models) if key in _INNER else value for key, value in node.items()}
    listed: list[Any] = node["expected"] if node["type"] == "literal" else []
    if node["type"] == "enum":
        listed = [member.value for member in node["members"]]
    reader = _READERS.get(node["type"])
    if any(isinstance(value, int | float) for value in listed) and not any(type(value) is bool for value in listed):
        reader = _number  # where 1 also means true
    if reader is None:
        return changed
    if node["type"] in _TEXT_IN_JSON:
        changed["strict"] = False
    reference = changed.pop("ref", None)  # others point to the schema with its reader
    return core_schema.no_info_before_validator_function(reader, changed, ref=reference)
