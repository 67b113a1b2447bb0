"""What stages declare, as far as the context of an item checks it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from enum import IntEnum
from typing import Any, ClassVar, NamedTuple, Protocol, get_origin, get_type_hints

from ..errors import ContractError
from ..values.result import OWN, GenerationPart, MetadataPart, VerificationResult
from ..values.result_parts import field_names, result_parts
from .artifact_keys import VERDICT_VIEWS, Key

ROOT_FIELDS = frozenset({"evaluation_input", "used_full_trace", "trace_extraction_error"})
METADATA_FIELDS = frozenset({"few_shot_example_count", "template_isolation", "caveats"})


class Category(IntEnum):
    """Where in the pipeline a stage belongs.

    Stages run in the order of these numbers, unless their data says otherwise.
    """

    SETUP = 10
    GENERATION = 20
    GUARD = 30
    PRE_PARSE_CHECK = 40
    TEMPLATE = 50
    ENHANCEMENT = 60
    RUBRIC = 70
    FINALIZATION = 90


class Declaration(Protocol):
    """What a stage lets its context check; `Stage` describes each."""

    name: ClassVar[str]
    category: ClassVar[Any]
    requires: ClassVar[Any]
    reads: ClassVar[Any]
    produces: ClassVar[Any]
    result_fields: ClassVar[Any]
    revises: ClassVar[Any]
    extends: ClassVar[Any]
    final: ClassVar[bool]


class Usual(NamedTuple):
    """What a stage declares, for a quick look, which is all that most values need: the artifacts, the result fields,
    and what is both, that it may write, each with the usual types that it takes, and what it may read."""

    artifacts: Mapping[Any, frozenset[type]] = {}
    fields: Mapping[str, frozenset[type]] = {}
    readable: frozenset[str] = frozenset()
    both: Mapping[str, frozenset[type]] = {}


def usual(stage: Declaration) -> Usual:
    known, views = field_types(), VERDICT_VIEWS
    artifacts = {key: key.usual for key in stage.produces if isinstance(key, Key) and key not in views}
    fields = {name: known[name].usual for name in stage.result_fields if name in known and name not in views}
    both = {str(key): types & fields[key] for key, types in artifacts.items() if key in fields}
    return Usual(artifacts, fields, frozenset({*stage.requires, *stage.reads, *stage.produces} - views), both)


def result_fields() -> Mapping[str, str]:
    """Result field -> part (`""` for the root). Names are unique across parts."""
    return _tables(result_parts())[0]


def check_result_field(name: str, value: Any) -> None:
    """Refuse a value that the result could not be read back with. Raises ContractError."""
    if (known := field_types().get(name)) is not None:
        known.check(value)
        return
    try:
        json.dumps(value, default=None)
    except (TypeError, ValueError, RecursionError) as error:
        raise ContractError(f"{str(name)!r} must be data that JSON can hold: {error}") from None


def field_types() -> Mapping[str, Key[Any]]:
    """The declared type of every field that a stage may set; where a result keeps a tuple, a list will do."""
    return _tables(result_parts())[1]


class _Tables:
    made: tuple[Any, Mapping[str, str], Mapping[str, Key[Any]]] | None = None


def _tables(parts: Mapping[str, type]) -> tuple[Mapping[str, str], Mapping[str, Key[Any]]]:
    """Made once for the parts that are known: every field that a stage sets is looked up here."""
    if _Tables.made is None or _Tables.made[0] is not parts:
        classes = {"generation": GenerationPart, **parts}
        homes = {name: part for part, cls in classes.items() for name in field_names(cls)}
        homes |= {name: "" for name in OWN if name in ROOT_FIELDS} | dict.fromkeys(METADATA_FIELDS, "metadata")
        types: dict[str, Key[Any]] = {}
        for cls in (*classes.values(), MetadataPart, VerificationResult):
            for name, hint in get_type_hints(cls).items():
                if name in homes:
                    types.setdefault(name, Key(name, hint | list if get_origin(hint) is tuple else hint))
        _Tables.made = (parts, homes, types)
    return _Tables.made[1], _Tables.made[2]
