"""A judge's schema as a list of places where something can be read, each with the field that it belongs to."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal

from attrs import field, frozen

from .references import words_of
from .spelling import squeezed

Path = tuple[str, ...]
Where = Literal[
    "description",
    "title",
    "default",
    "examples",
    "const",
    "enum",
    "enum_order",
    "pattern",
    "bounds",
    "hint",
    "name",
    "extra",
]
"""Part of a template that the judge reads. `enum_order` is the order of the options, `hint` the extraction hint,
`extra` whatever is no keyword of JSON Schema, such as a leftover of `json_schema_extra`.
"""

MOST_NODES = 20_000
"""Where a schema is larger than this (models that refer to each other many times over), the rest is not read. Chosen,
not measured."""

_NAMED = ("patternProperties", "dependentSchemas")
_LISTED = ("anyOf", "oneOf", "allOf", "prefixItems")
_SINGLE = ("items", "additionalProperties", "not", "if", "then", "else", "contains", "propertyNames")
_DEFINITIONS = ("$defs", "definitions")
_OTHERS = (
    *("type", "properties", "required", "title", "description", "default", "examples", "enum", "const", "pattern"),
    *("format", "$ref", "$schema", "$id", "discriminator", "minimum", "maximum", "exclusiveMinimum"),
    *("exclusiveMaximum", "multipleOf", "minLength", "maxLength", "minItems", "maxItems", "minProperties"),
    *("maxProperties", "uniqueItems", "readOnly", "writeOnly", "deprecated"),
)
_STEPS = frozenset((*_NAMED, *_LISTED, *_SINGLE, "$ref", "properties"))
LIMITS = frozenset(
    (
        *("enum", "const", "pattern", "minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"),
        *("minItems", "maxItems"),
    )
)
"""Keywords of what a field may hold, beside its type, that may give a value away."""
_KEYWORDS = frozenset((*_NAMED, *_LISTED, *_SINGLE, *_DEFINITIONS, *_OTHERS))


@frozen
class Place:
    """One thing that the judge reads."""

    path: Path
    """Names of the field and of those nested in it; empty for the template as a whole."""
    where: Where
    label: str
    """How a message names the place."""
    value: Any = field(repr=False)
    """A text for `description`, `title`, `hint` and `name`, JSON data for the others."""
    key: str = ""
    """The keyword of an `extra`."""


@frozen
class Reading:
    """A schema, read."""

    places: tuple[Place, ...]
    nodes: Mapping[Path, Sequence[Mapping[str, Any]]] = field(repr=False)
    """The parts of the schema that say what a field may hold; alternatives are listed one by one."""
    is_open: bool = field()
    """Whether nothing but types says what the fields may hold."""

    @is_open.default
    def _is_open(self) -> bool:
        return all(LIMITS.isdisjoint(node) for parts in self.nodes.values() for node in parts)

    def described(self, descriptions: Mapping[str, str]) -> Reading:
        """With other descriptions of these fields, by name, of each of which there is one."""
        places = (
            Place(place.path, place.where, place.label, descriptions[place.path[0]])
            if place.where == "description" and len(place.path) == 1 and place.path[0] in descriptions
            else place
            for place in self.places
        )
        return Reading(tuple(places), self.nodes, self.is_open)

    def options(self, path: Path) -> tuple[Any, ...]:
        """The values among which the judge chooses, in their order; empty where the field is open."""
        if self.is_open:
            return ()
        found: list[Any] = []
        for node in self.nodes.get(path, ()):
            found += node["enum"] if isinstance(node.get("enum"), list) else ()
            found += [node["const"]] if "const" in node else ()
        return tuple(
            option for number, option in enumerate(found) if option is not None and option not in found[:number]
        )


def dotted(path: Path) -> str:
    """`dose.value`."""
    return ".".join(path)


def scalars(data: Any) -> Iterator[tuple[tuple[str, ...], Any]]:
    """Every text, number and truth value in JSON data, with the keys on the way to it."""
    if isinstance(data, Mapping):
        for key, value in data.items():
            yield from (((str(key), *keys), scalar) for keys, scalar in scalars(value))
    elif isinstance(data, list | tuple):
        for value in data:
            yield from scalars(value)
    elif data is not None:
        yield (), data


def read_schema(schema: Mapping[str, Any]) -> Reading:
    """Take a schema apart. References are followed, definitions that nothing refers to are read too."""
    nodes: dict[Path, list[Mapping[str, Any]]] = {}
    places: dict[tuple[Path, Where, str, str], Place] = {}
    for path, node in itertools.islice(_all_nodes(schema), MOST_NODES):
        nodes.setdefault(path, []).append(node)
        for place in _places(path, node):
            places.setdefault((place.path, place.where, place.label, repr(place.value)), place)
    return Reading(tuple(places.values()), nodes)


def _all_nodes(schema: Mapping[str, Any]) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    used: set[str] = set()
    for path, node in _nodes(schema, (), schema, frozenset()):
        if isinstance(node.get("$ref"), str):
            used.add(node["$ref"])
        yield path, node
    for group in _DEFINITIONS:
        for name, node in _members(schema.get(group)):
            if f"#/{group}/{name}" not in used:
                yield from _nodes(node, (), schema, frozenset())


def _nodes(
    node: Any, path: Path, schema: Mapping[str, Any], followed: frozenset[str]
) -> Iterator[tuple[Path, Mapping[str, Any]]]:
    if not isinstance(node, Mapping):
        return
    yield path, node
    if _STEPS.isdisjoint(node):  # as for most nodes: there is nothing inside
        return
    reference = node.get("$ref")
    if isinstance(reference, str) and reference not in followed:
        target: Any = schema
        for step in filter(None, reference.removeprefix("#").split("/")):
            target = target.get(step.replace("~1", "/").replace("~0", "~")) if isinstance(target, Mapping) else target
        if target is not schema or reference in ("#", "#/"):
            yield from _nodes(target, path, schema, followed | {reference})
    inside: Iterable[Any] = itertools.chain(
        *(node[key] for key in _LISTED if isinstance(node.get(key), list)),
        (node[key] for key in _SINGLE if key in node),
        *((part for _, part in _members(node.get(key))) for key in _NAMED),
    )
    for part in inside:
        yield from _nodes(part, path, schema, followed)
    for name, part in _members(node.get("properties")):
        yield from _nodes(part, (*path, name), schema, followed)


def _members(value: Any) -> Iterable[tuple[str, Any]]:
    return value.items() if isinstance(value, Mapping) else ()


def _places(path: Path, node: Mapping[str, Any]) -> Iterator[Place]:
    of = f"of {dotted(path)!r}" if path else "of the template"
    if isinstance(text := node.get("description"), str):
        yield Place(path, "description", f"the description {of}" if path else "the class docstring", text)
    title = node.get("title")
    if isinstance(title, str) and not (path and squeezed(title) == squeezed(path[-1])):
        yield Place(path, "title", f"the title {of}", title)
    if node.get("default") is not None:
        yield Place(path, "default", f"the default {of}", node["default"])
    if node.get("examples"):
        yield Place(path, "examples", f"the examples {of}", node["examples"])
    for name, _ in _members(node.get("properties")):
        yield Place((*path, name), "name", f"the name of field {dotted((*path, name))!r}", words_of(name))
    for key, value in node.items():
        if key not in _KEYWORDS:
            yield Place(path, "extra", f"the entry {key!r} in the schema {of}", value, key)
