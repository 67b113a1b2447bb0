"""What workers say as values. They belong to the author of a template, so nothing is taken as it comes."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping
from operator import itemgetter
from typing import Any

from attrs import field, frozen
from karenina_vocabulary.handle import FieldVerdict, RegexVerdict, TemplateField

from karenina_core.errors import ConfigError, TemplateError
from karenina_core.values.convert import structure

MOST_SCHEMA = 200_000
"""Characters of the schema of a template: a judge reads all of it with every answer. Chosen: that of a template with a
thousand fields."""


@frozen(kw_only=True)
class Facts:
    """What loading a template has shown."""

    fields: tuple[TemplateField, ...]
    trace_fields: tuple[TemplateField, ...]
    schema: Mapping[str, Any]
    ground_truth: Mapping[str, Any]
    warnings: tuple[str, ...] = ()
    accepted: Mapping[str, tuple[Any, ...]] = field(factory=dict)


def facts(said: Mapping[str, Any]) -> Facts:
    """Raises TemplateError."""
    try:
        found = structure(dict(said), Facts)
    except ConfigError as error:
        raise _unusable("the template", error) from None
    if (length := len(json.dumps(found.schema))) > MOST_SCHEMA:
        raise TemplateError(
            f"the schema of the template has {length:,} characters, and {MOST_SCHEMA:,} are the most: a judge reads it "
            "with every answer; ask for fewer fields, or describe them in fewer words"
        )
    return found


def values_of(said: Mapping[str, Any], names: frozenset[str]) -> tuple[dict[str, Any], dict[str, str]]:
    """The extracted values, and the fields that cannot be accepted, with the reason."""
    values, refused = said.get("values"), said.get("not_acceptable")
    if not isinstance(values, dict) or values.keys() != names or not _texts(refused):
        raise _unusable("the extracted values", values)
    return values, dict(refused or {})


def verdict(said: Mapping[str, Any], names: frozenset[str]) -> FieldVerdict:
    try:
        result, stable, results, scores, strategy, remarks = _verdict_of(said)
    except KeyError:
        raise _unusable("the verdict", dict(said)) from None
    usable = (
        (result is True or result is False)
        and (stable is True or stable is False)
        and _are_of(results, names, _is_passed)
        and _are_of(scores, names, _is_credit)
        and (strategy is None or isinstance(strategy, str))
        and isinstance(remarks, list)
        and (not remarks or all(isinstance(remark, str) for remark in remarks))
    )
    if not usable:
        raise _unusable("the verdict", dict(said))
    return FieldVerdict(result, results, scores, strategy, tuple(remarks), stable)


_verdict_of = itemgetter("result", "stable", "field_results", "field_scores", "composition_strategy", "remarks")


def score(said: Mapping[str, Any]) -> float | None:
    found = said.get("score")
    if found is not None and not _is_number(found):
        raise _unusable("the partial credit", found)
    return None if found is None else float(found)


def regex_verdict(said: Mapping[str, Any]) -> RegexVerdict:
    try:
        found = structure(dict(said), RegexVerdict)
        json.dumps(found.details, allow_nan=False)
    except (ConfigError, ValueError) as error:
        raise _unusable("what the patterns found", error) from None
    return found


def _are_of(found: Any, names: frozenset[str], fits: Callable[[Any], bool]) -> bool:
    """Whether it has values for some of the fields. Of most templates it is empty."""
    return isinstance(found, dict) and (not found or (found.keys() <= names and all(map(fits, found.values()))))


def _is_passed(value: Any) -> bool:
    return value is None or isinstance(value, bool)


def _is_credit(value: Any) -> bool:
    return value is None or (_is_number(value) and 0 <= value <= 1)


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) <= sys.float_info.max


def _texts(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(item, str) for item in value.values())


def _unusable(what: str, found: object) -> TemplateError:
    return TemplateError(f"the process of the template sent something else than {what}: {found!s:.200}")
