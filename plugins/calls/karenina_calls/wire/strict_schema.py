"""JSON Schemas as models are shown them: in words, and in the narrow form that OpenAI's strict mode accepts.

Strict mode wants every object closed, every property required, and only some keywords. Source of the list of keywords:
https://platform.openai.com/docs/guides/structured-outputs (supported schemas).
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import groupby
from typing import Any
from urllib.parse import unquote

ANNOTATIONS = frozenset({"title", "description"})
DROPPED = frozenset(
    {"default", "examples", "deprecated", "readOnly", "writeOnly", "$schema", "$id", "$comment", "discriminator"}
)
KEPT = ANNOTATIONS | frozenset(
    {"type", "enum", "pattern", "minItems", "maxItems", "multipleOf"}
    | {"minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum"}
)
FORMATS = frozenset({"date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"})
DEFINITIONS = ("$defs", "definitions")
MOST_INLINED = 500
"""References written out. Models that refer to each other grow quickly. Chosen, not measured."""
MOST_LOOKED_AT = 5000
"""Schemas that are looked at, one as often as it is referred to: some lines that refer to each other can stand for more
than there is time for. Chosen: some milliseconds."""


class _NotStrict(Exception):
    """The schema means something that strict mode cannot say."""


def strict_schema(schema: Mapping[str, Any]) -> tuple[dict[str, Any], bool]:
    """The schema in strict form and True, or a copy of it as it was and False.

    Whatever fits the strict form fits the given schema too: objects that say nothing about further properties are
    closed, and a property that may be left out becomes required only where it may be null. Free dictionaries,
    properties that are optional but never null, `oneOf`, `allOf`, string lengths and the like have no strict form.
    """
    try:
        found = _Rewriter(schema).whole()
    except (_NotStrict, RecursionError):
        return dict(schema), False
    return found, True


class _Rewriter:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.open: list[Any] = []
        """References that are being replaced by what they name: a recursive one stays a reference."""
        self.inlined = 0
        self.looked_at = 0

    def whole(self) -> dict[str, Any]:
        root = self._dereferenced(self.root) if "$ref" in self.root else self.root
        if root.get("type") != "object":
            raise _NotStrict
        strict = self.rewrite({key: value for key, value in root.items() if key not in DEFINITIONS})
        for name in DEFINITIONS:
            if isinstance(definitions := self.root.get(name), Mapping):
                strict[name] = {key: self.rewrite(value) for key, value in definitions.items()}
        return strict

    def rewrite(self, schema: Any) -> dict[str, Any]:
        if not isinstance(schema, Mapping):
            raise _NotStrict
        schema = {key: value for key, value in schema.items() if key not in DROPPED}
        if "$ref" not in schema:
            return self._keywords(schema)
        ref = schema["$ref"]
        target = self._dereferenced(schema)
        if len(schema) == 1 or ref in self.open:
            return {"$ref": ref}
        self.inlined += 1
        if self.inlined > MOST_INLINED:
            raise _NotStrict
        self.open.append(ref)
        strict = self._keywords({key: value for key, value in target.items() if key not in DROPPED})
        self.open.pop()
        return strict

    def _keywords(self, schema: Mapping[str, Any]) -> dict[str, Any]:
        kinds = _types(schema)
        if not schema.keys() & {"type", "enum", "const", "anyOf"}:
            raise _NotStrict
        if ("object" in kinds) != ("properties" in schema) or ("array" in kinds) != ("items" in schema):
            raise _NotStrict
        strict: dict[str, Any] = {}
        for key, value in schema.items():
            match key:
                case _ if key in KEPT or (key == "format" and value in FORMATS):
                    strict[key] = value
                case "const" if "enum" not in schema:
                    strict["enum"] = [value]
                case "anyOf":
                    strict[key] = [self.rewrite(branch) for branch in value]
                case "items":
                    strict[key] = self.rewrite(value)
                case "properties":
                    strict |= self._properties(value, schema)
                case _ if key != "required" and not (key == "additionalProperties" and value is False):
                    raise _NotStrict
        return strict

    def _properties(self, properties: Any, schema: Mapping[str, Any]) -> dict[str, Any]:
        required = set(schema.get("required", ()))
        if not isinstance(properties, Mapping) or required - set(properties):
            raise _NotStrict
        if any(name not in required and not self.allows_null(value) for name, value in properties.items()):
            raise _NotStrict
        rewritten = {name: self.rewrite(value) for name, value in properties.items()}
        return {"properties": rewritten, "required": list(rewritten), "additionalProperties": False}

    def allows_null(self, schema: Any, seen: tuple[str, ...] = ()) -> bool:
        """Whether null fits, judged by the keywords that strict mode knows."""
        self.looked_at += 1
        if self.looked_at > MOST_LOOKED_AT:
            raise _NotStrict
        if not isinstance(schema, Mapping):
            return schema is True
        if "$ref" in schema:
            ref = schema["$ref"]
            if ref in seen or not self.allows_null(self._target(ref), (*seen, ref)):
                return False
        if "type" in schema and "null" not in _types(schema):
            return False
        if "enum" in schema and None not in schema["enum"]:
            return False
        if schema.get("const") is not None:
            return False
        return "anyOf" not in schema or any(self.allows_null(branch, seen) for branch in schema["anyOf"])

    def _dereferenced(self, schema: Mapping[str, Any]) -> Mapping[str, Any]:
        """The schema with its reference replaced by what it names; strict mode takes no keyword beside a reference."""
        for _ in range(32):
            if "$ref" not in schema:
                return schema
            beside = {key: value for key, value in schema.items() if key not in ("$ref", *DEFINITIONS, *DROPPED)}
            if beside.keys() - ANNOTATIONS:
                raise _NotStrict
            schema = {**self._target(schema["$ref"]), **beside}
        raise _NotStrict

    def _target(self, ref: Any) -> Mapping[str, Any]:
        """What a reference names: the whole schema or one of its definitions."""
        found: Any = None
        if ref == "#":
            found = self.root
        elif (
            isinstance(ref, str) and (parts := ref.split("/"))[0] == "#" and len(parts) == 3 and parts[1] in DEFINITIONS
        ):
            name = unquote(parts[2]).replace("~1", "/").replace("~0", "~")
            found = (self.root.get(parts[1]) or {}).get(name)
        if not isinstance(found, Mapping):
            raise _NotStrict
        return found


def _types(schema: Mapping[str, Any]) -> tuple[str, ...]:
    kinds = schema.get("type", ())
    return (kinds,) if isinstance(kinds, str) else tuple(kinds)


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

NOT_FLAT = frozenset({"properties", "$ref"})


class _NoWords(Exception):
    """The schema says something for which an outline has no words."""


def outline(schema: Mapping[str, Any]) -> str | None:
    """`- name (type): description` for each value in an object of this schema, those inside of a value indented below
    it. Neighbours that differ in nothing but their names share one line.

    None where the schema says more than that, is recursive, or is larger than anyone would read.
    """
    try:
        return "\n".join(_Outline(schema).lines(schema, "", DEEPEST)) or None
    except _NoWords:
        return None


@lru_cache(maxsize=256)
def _flat(schema: str) -> tuple[str, int]:
    """The type of a value without its description, and how many parts were looked at; no type where the value has
    objects or refers to something. Templates differ in their texts, and their values in few types."""
    value = json.loads(schema)
    found = _Outline(value)
    if "$ref" in schema or any(found._inside(value, DEEPEST)):
        return "", 0
    return found._type(value, DEEPEST), found.looked_at


class _Outline:
    def __init__(self, root: Mapping[str, Any]) -> None:
        self.root = root
        self.looked_at = 0

    def lines(self, schema: Mapping[str, Any], indent: str, depth: int) -> Iterator[str]:
        if not depth:
            raise _NoWords
        values = schema.get("properties", {}).items()
        found = [(name, self._value(self._resolved(one), indent, depth)) for name, one in values]
        for ((kind, *rest), _), group in groupby(found, lambda entry: (entry[1], "," in entry[0] and entry[0])):
            names = [name for name, _ in group]
            each = "each " if len(names) > 1 else ""
            yield f"{indent}- {', '.join(names)} ({each}{kind})" + "\n".join(rest)

    def _value(self, value: Mapping[str, Any], indent: str, depth: int) -> list[str]:
        """Its type, the rest of its line, and the lines of what is inside."""
        about = value.get("description", "")
        described = f": {about}" if about else ""
        if depth == DEEPEST and not NOT_FLAT.intersection(value):
            kind, parts = _flat(json.dumps({key: part for key, part in value.items() if key != "description"}))
            self.looked_at += parts
            if self.looked_at > MOST_LOOKED_AT:
                raise _NoWords
            if kind:
                return [kind, described]
        inside = [line for one in self._inside(value, depth) for line in self.lines(one, f"{indent}  ", depth - 1)]
        return [self._type(value, depth), described, *inside]

    def _inside(self, value: Mapping[str, Any], depth: int) -> Iterator[Mapping[str, Any]]:
        """The objects in a value."""
        if not depth:
            raise _NoWords
        if "properties" in value:
            yield value
        for branch in value.get("anyOf", ()):
            yield from self._inside(self._resolved(branch), depth - 1)
        if "items" in value:
            yield from self._inside(self._resolved(value["items"]), depth - 1)

    def _type(self, value: Mapping[str, Any], depth: int) -> str:
        if not depth:
            raise _NoWords
        if "anyOf" in value:
            return " or ".join(dict.fromkeys(self._type(self._resolved(one), depth - 1) for one in value["anyOf"]))
        if choices := [value["const"]] if "const" in value else value.get("enum"):
            return f"one of {', '.join(json.dumps(choice, ensure_ascii=False) for choice in choices)}"
        kinds = [value["type"]] if isinstance(value.get("type"), str) else value.get("type") or ["any"]
        items = value.get("items", {})
        named = [
            f"list of {self._type(self._resolved(items), depth - 1)}" if kind == "array" else kind for kind in kinds
        ]
        return ", ".join((" or ".join(named), *(f"{key} {value[key]}" for key in LIMITS if key in value)))

    def _resolved(self, value: Any) -> Mapping[str, Any]:
        """What a reference names, with the keywords beside it."""
        self.looked_at += 1
        if self.looked_at > MOST_LOOKED_AT or not isinstance(value, Mapping) or value.keys() - KNOWN:
            raise _NoWords
        if value.get("additionalProperties", False) is not False or not isinstance(value.get("anyOf", ()), Sequence):
            raise _NoWords  # a free dictionary has keys that are not named
        if (ref := value.get("$ref")) is None:
            return value
        found: Any = self.root
        for step in str(ref).removeprefix("#/").split("/"):
            found = found.get(step) if isinstance(found, Mapping) else None
        if not isinstance(found, Mapping) or "$ref" in found:
            raise _NoWords
        return {**self._resolved(found), **{key: text for key, text in value.items() if key != "$ref"}}
