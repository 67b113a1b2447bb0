"""A template's fields as cases are made from them: what is expected, and how it is compared."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen
from karenina_template.language.primitives.base import VerificationPrimitive, primitive_from_spec
from karenina_template.language.primitives.dates import DateMatch, DateRange, read_moment
from karenina_template.language.primitives.numeric import (
    NumericMaximum,
    NumericMinimum,
    NumericRange,
    NumericRangeGraded,
    NumericThresholdGraded,
)
from karenina_template.language.primitives.text import ContainsAll
from karenina_vocabulary.handle import TemplateField, TemplateHandle

from karenina_core.errors import TemplateError


@frozen(kw_only=True)
class Fact:
    """One field."""

    name: str
    type: str
    """As an author writes it, without the null that every field may be: `int`, `list[str]`."""
    value: Any
    """What is expected, as JSON data: a value that has to pass."""
    primitive: VerificationPrimitive | None = field(default=None, repr=False)
    """None where the template's own code compares."""
    options: Sequence[Any] = ()
    """What it may be, where that is limited."""
    accepted: Sequence[Any] = ()
    """Other values that are right as well."""
    question: str = ""


@frozen
class Facts:
    """Of a whole template."""

    fields: Sequence[Fact]
    left_out: Mapping[str, str]
    """The fields without cases, and why."""
    keys: Mapping[str, str]
    """What each field is called in a judge's reply."""
    others: Mapping[str, Any]
    """Values of fields that cases are not made for."""

    def filled(self, changed: Mapping[str, Any]) -> dict[str, Any]:
        """Values for all fields: the expected ones but for these."""
        return {**self.others, **{fact.name: fact.value for fact in self.fields}, **changed}


def facts_of(handle: TemplateHandle, question: str, primitives: Mapping[str, type]) -> Facts:
    """Of a loaded template. `primitives` are those that are installed."""
    schema, expected, declared = handle.schema(), handle.ground_truth(), handle.fields()
    accepted_by = getattr(handle, "accepted", None)
    accepted: Mapping[str, Sequence[Any]] = accepted_by() if callable(accepted_by) else {}
    properties: Mapping[str, Any] = schema.get("properties") or {}
    keys = {item.name: item.name for item in declared}
    if len(properties) == len(declared):  # the author's own keys are in the order of the fields
        keys = {item.name: key for item, key in zip(declared, properties, strict=True)}
    found: list[Fact] = []
    left_out = {item.name: "it is decided on the text of an answer" for item in handle.trace_fields()}
    others: dict[str, Any] = {}
    for item in declared:
        node = _resolved(properties.get(keys[item.name], {}), schema)
        fact = Fact(
            name=item.name,
            type=item.type.removesuffix(" | None"),
            value=expected.get(item.name),
            primitive=_primitive(item, primitives),
            options=node.get("enum") or ([node["const"]] if "const" in node else ()),
            accepted=accepted.get(item.name, ()),
            question=question,
        )
        value = _own_value(fact) if item.name in expected else None
        others[item.name] = _placeholder(node) if expected.get(item.name) is None else expected[item.name]
        if item.semantic:
            left_out[item.name] = "it is compared by meaning, which needs an embedder"
        elif item.name not in expected:
            if item.verified:
                left_out[item.name] = "no value is known that has to pass"
        elif value is None:
            left_out[item.name] = "no value is known that has to pass; give one as its ground truth"
        else:
            found.append(evolve(fact, value=value))
    return Facts(found, left_out, keys, others)


def _primitive(item: TemplateField, primitives: Mapping[str, type]) -> VerificationPrimitive | None:
    if item.primitive is None:
        return None
    try:
        return primitive_from_spec(item.primitive, primitives)
    except TemplateError:  # a class of the template's own
        return None


def _resolved(node: Mapping[str, Any], schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """The schema of a field without null and references."""
    for part in node.get("anyOf", ()):
        if part.get("type") != "null":
            return _resolved(part, schema)
    name = str(node.get("$ref", "")).rpartition("/")[2]
    found = schema.get("$defs", {}).get(name)
    return _resolved(found, schema) if found else node


def _placeholder(node: Mapping[str, Any]) -> Any:
    """Something of the kind that the schema wants."""
    if options := node.get("enum"):
        return options[0]
    if "const" in node:
        return node["const"]
    empty: Mapping[str, Any] = {"string": "", "integer": 0, "number": 0, "boolean": False, "array": []}
    if node.get("type") == "object":
        return {key: _placeholder(part) for key, part in (node.get("properties") or {}).items()}
    return empty.get(str(node.get("type")))


def _own_value(fact: Fact) -> Any:
    """The value that has to pass: what is expected or, where a bound or a list is expected, what fulfils it."""
    primitive, expected = fact.primitive, fact.value
    if primitive is None:
        return expected
    if isinstance(primitive, DateMatch) and primitive.format and fact.type == "str":
        return read_moment(expected).day.strftime(primitive.format) if not _passes(fact, expected) else expected
    candidates = [expected, *_within(primitive, expected)]
    if not primitive.uses_ground_truth:
        candidates += fact.accepted
        if isinstance(primitive, ContainsAll):
            candidates.append(" ".join(primitive.substrings))
    elif primitive.matches_ground_truth and not _within(primitive, expected):
        return expected
    return next((value for value in candidates if _passes(fact, value)), None)


def _within(primitive: VerificationPrimitive, expected: Any) -> list[Any]:
    """Values within the bounds that the primitive keeps."""
    if isinstance(primitive, NumericRange | NumericRangeGraded):
        low, high = primitive.min, primitive.max
        if low is not None and high is not None:
            return [(low + high) / 2, (low + high) // 2, low, high]
        return [low + 1 if low is not None else (high or 0) - 1]
    if isinstance(primitive, NumericMinimum | NumericMaximum | NumericThresholdGraded) and primitive.exclusive:
        return [expected + 1, expected - 1]
    if isinstance(primitive, DateRange):
        return [bound[:10] for bound in (primitive.min, primitive.max) if bound]
    return []


def _passes(fact: Fact, value: Any) -> bool:
    if fact.type == "int" and value != int(value):
        return False
    try:
        assert fact.primitive is not None
        return fact.primitive.check(value, fact.value)
    except Exception:  # a placeholder that cannot be compared; primitives may come from anywhere
        return False
