"""Template kinds: traits whose score is a record of several plain fields, described by a JSON Schema.

The schema is kept word for word: what it says about types, bounds, lengths, patterns and allowed values holds after a
benchmark was written and read again, when the class that it came from is gone.
"""

from __future__ import annotations

import copy
import json
from collections.abc import Callable, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from karenina_core.errors import FillError, one_line, shortened

if TYPE_CHECKING:
    from pydantic_core import CoreSchema, SchemaValidator

ADVICE = "use bool, int, float, str, a list of one of them, or an optional one with a default"
BOUNDS = {
    "minimum": "ge",
    "maximum": "le",
    "exclusiveMinimum": "gt",
    "exclusiveMaximum": "lt",
    "multipleOf": "multiple_of",
}
LENGTHS = {"minLength": "min_length", "maxLength": "max_length", "pattern": "pattern"}
ITEMS = {"minItems": "min_length", "maxItems": "max_length"}
UNREAD = frozenset(
    {"allOf", "oneOf", "not", "if", "then", "else", "format", "contains", "dependentRequired", "dependentSchemas"}
    | {"patternProperties", "propertyNames", "minProperties", "maxProperties", "unevaluatedProperties", "$dynamicRef"}
)
"""Keywords that mean something which is not checked here. A schema that says them is refused, not half obeyed."""
MOST_SHOWN = 80  # characters: a line
NAMED = 5
"""References that are followed before they are called a circle. Chosen, not measured."""


@frozen
class TemplateKind:
    """A trait whose score is a record of several fields, described by a JSON Schema kept word for word."""

    schema: Mapping[str, Any]
    model: type | None = field(default=None, eq=False, repr=False)
    """The pydantic class, where the trait was written in Python."""

    def to_plain(self) -> dict[str, Any]:
        return {"type": "template", "schema": dict(self.schema)}

    @classmethod
    def from_plain(cls, value: Any) -> TemplateKind:
        kind = as_kind(value)
        if not isinstance(kind, TemplateKind):
            raise TypeError(f"expected a template kind, got {value!r}")
        return kind


def as_kind(value: Any) -> Any:
    """A pydantic class or the plain data of a template kind as a `TemplateKind`; anything else as it is."""
    if isinstance(value, type) and hasattr(value, "model_json_schema"):
        try:
            return TemplateKind(value.model_json_schema(), value)
        except RuntimeError as error:  # what pydantic's own errors derive from
            problem = f"kind: {value.__name__} has no JSON Schema ({one_line(error, 300)}); {ADVICE}"
            raise ValueError(problem) from None
    if isinstance(value, Mapping) and value.get("type") == "template":
        if not isinstance(value.get("schema"), Mapping):
            raise ValueError("kind: a template kind needs a JSON Schema under 'schema'")
        return TemplateKind(value["schema"])
    return value


def check_fields(kind: TemplateKind) -> None:
    """Raises ValueError, which names the field, for a record that holds anything but plain fields."""
    _validator(kind.schema)


def record_schema(kind: TemplateKind) -> dict[str, Any]:
    """The schema that the judge is shown: the kind's own, with every field asked for."""
    return {**kind.schema, "required": list(kind.schema["properties"])}


def read_record(kind: TemplateKind, data: Mapping[str, Any]) -> dict[str, Any]:
    """The record that a reply gives, as plain data with every field; keys that are no field are left out.

    A field that was left out has its default where the schema both gives one and does not require the field. Nothing
    is converted, but 4.0 is the whole number 4. Where the kind has its class, that has to accept the record too, as
    JSON, and its validators may change values; what comes of that has to fit the schema as well. Raises FillError, in
    words for the judge.
    """
    validate = _validator(kind.schema).validate_python
    found: dict[str, Any] = _accepted(validate, data)
    if kind.model is None:
        return found
    model: Any = kind.model
    made = _accepted(model.model_validate_json, json.dumps(found))
    dumped = made.model_dump(mode="json", by_alias=True, warnings=False)  # the next line says what is wrong with it
    kept: dict[str, Any] = _accepted(validate, {name: dumped.get(name, value) for name, value in found.items()})
    return kept


def _accepted(validate: Callable[[Any], Any], data: Any) -> Any:
    from pydantic_core import ValidationError

    try:
        return validate(data)
    except ValidationError as invalid:
        problems = []
        for error in invalid.errors(include_url=False):
            path = ".".join(map(str, error["loc"])) or "the reply"
            wrong = f": {error['msg']}; got {shortened(repr(error['input']), MOST_SHOWN)}"
            problems.append(f"{path} is missing" if error["type"] == "missing" else path + wrong)
        raise FillError("\n".join(problems)) from None


def _validator(schema: Mapping[str, Any]) -> SchemaValidator:
    from pydantic_core import SchemaError, SchemaValidator, core_schema  # only rubrics with template kinds pay for it

    properties, required = schema.get("properties"), schema.get("required", [])
    if schema.get("type") != "object" or not isinstance(properties, Mapping) or not properties:
        raise ValueError("a template kind describes an object with at least one field")
    if unread := sorted(UNREAD & schema.keys()):
        raise ValueError(f"the schema of a template kind may not use {unread[0]!r}")
    if not isinstance(required, list) or any(name not in properties for name in required):
        raise ValueError(f"the schema requires {required!r}, which are not all fields of it")
    fields = {}
    for name, given in properties.items():
        try:
            made = _field(given, name in required, schema)
            SchemaValidator(made)
        except ValueError as error:
            raise ValueError(f"field {name!r}: {error}") from None
        except (SchemaError, TypeError, LookupError, AttributeError, OverflowError) as error:
            raise ValueError(f"field {name!r}: its schema cannot be used: {one_line(error, 300)}") from None
        fields[name] = core_schema.typed_dict_field(made)
    return SchemaValidator(core_schema.typed_dict_schema(fields, extra_behavior="ignore"))


def _field(given: Any, required: bool, root: Mapping[str, Any]) -> CoreSchema:
    from pydantic_core import core_schema

    node, nullable = _branch(_resolved(given, root), root)
    if nullable and "default" not in node:
        raise ValueError("it may be None, but has no default; give it one")
    made = _list(node, root) if node.get("type") == "array" else _plain(node, nullable)
    if nullable:
        made = core_schema.nullable_schema(made)
    if "default" not in node:
        return made
    _check_value("default", node["default"], made)
    if required:
        return made
    return core_schema.with_default_schema(made, default_factory=partial(copy.deepcopy, node["default"]))


def _resolved(node: Any, root: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema with its reference replaced by what it names: pydantic keeps enumerations that way."""
    for _ in range(NAMED):
        if not isinstance(node, Mapping):
            raise ValueError(f"{node!r:.80} is no schema; {ADVICE}")
        if "$ref" not in node:
            return node
        parts = str(node["$ref"]).split("/")
        known = root.get(parts[1], {}) if len(parts) == 3 and parts[1] in ("$defs", "definitions") else {}
        if parts[-1] not in known:
            raise ValueError(f"it refers to {node['$ref']!r}, which is not in the schema")
        node = {**known[parts[-1]], **{key: value for key, value in node.items() if key != "$ref"}}
    raise ValueError(f"it refers to itself; {ADVICE}")


def _branch(node: Mapping[str, Any], root: Mapping[str, Any]) -> tuple[Mapping[str, Any], bool]:
    """The one type of a field as a schema, and whether the field may be null. Raises ValueError for several types."""
    nullable = False
    if "anyOf" in node:
        every = [_resolved(branch, root) for branch in node["anyOf"]]
        branches = [branch for branch in every if branch.get("type") != "null"]
        if len(branches) != 1:
            raise ValueError(f"a union of several types; {ADVICE}")
        nullable = len(every) > 1
        node = {**{key: value for key, value in node.items() if key != "anyOf"}, **branches[0]}
    kinds = node.get("type")
    if isinstance(kinds, list):
        nullable = nullable or "null" in kinds
        kinds = [kind for kind in kinds if kind != "null"]
        if len(kinds) != 1:
            raise ValueError(f"a union of several types; {ADVICE}")
        node = {**node, "type": kinds[0]}
    if unread := sorted(UNREAD & node.keys()):
        raise ValueError(f"it may not use {unread[0]!r}; {ADVICE}")
    return node, nullable


def _list(node: Mapping[str, Any], root: Mapping[str, Any]) -> CoreSchema:
    from pydantic_core import core_schema

    if "prefixItems" in node or node.get("uniqueItems"):
        raise ValueError(f"a {'tuple' if 'prefixItems' in node else 'set'}; {ADVICE}")
    if {"enum", "const"} & node.keys():
        raise ValueError("allowed values are given for the whole list; give them for its items")
    inner, nullable = _branch(_resolved(node.get("items", {}), root), root)
    if nullable or inner.get("type") == "array":
        raise ValueError(f"a list of {'optional values' if nullable else 'lists'}; {ADVICE}")
    return core_schema.list_schema(_plain(inner), strict=True, **_limits(node, ITEMS))


def _plain(node: Mapping[str, Any], nullable: bool = False) -> CoreSchema:
    from pydantic_core import core_schema

    listed = node.get("enum", [node["const"]] if "const" in node else None)
    values = None if listed is None else [value for value in listed if not (nullable and value is None)]
    # Where the schema says no type, it is the one that all allowed values have.
    names = {bool: "boolean", int: "integer", float: "number", str: "string"}
    kinds = [node["type"]] if "type" in node else list({names.get(type(value)) for value in values or ()})
    if len(kinds) > 1:
        raise ValueError(f"a union of several types; {ADVICE}")
    kind = kinds[0] if kinds else None
    match kind:
        case "boolean":
            made: CoreSchema = core_schema.bool_schema(strict=True)
        case "integer":
            whole = core_schema.int_schema(strict=True, **_limits(node, BOUNDS))
            made = core_schema.no_info_before_validator_function(
                lambda value: int(value) if isinstance(value, float) and value.is_integer() else value, whole
            )
        case "number":
            made = core_schema.float_schema(strict=True, allow_inf_nan=False, **_limits(node, BOUNDS))
        case "string":
            made = core_schema.str_schema(strict=True, **_limits(node, LENGTHS))
        case "object":
            raise ValueError(f"a nested object or a dictionary; {ADVICE}")
        case _:
            raise ValueError(f"{'it says no type' if kind is None else f'its type is {kind!r}'}; {ADVICE}")
    if values is None:
        return made
    for value in values:
        _check_value("allowed value", value, made)
    allowed = list(map(float, values)) if kind == "number" else values
    return core_schema.chain_schema([made, core_schema.literal_schema(allowed)])


def _limits(node: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    return {names[key]: value for key, value in node.items() if key in names and value is not None}


def _check_value(what: str, value: Any, made: CoreSchema) -> None:
    from pydantic_core import SchemaValidator, ValidationError

    try:
        SchemaValidator(made).validate_python(value)
    except ValidationError as error:
        raise ValueError(f"its {what} {value!r} does not fit: {error.errors()[0]['msg']}") from None
