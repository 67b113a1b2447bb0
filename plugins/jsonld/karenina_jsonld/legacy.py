"""Global traits that older files keep as JSON inside root properties."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karenina_vocabulary.traits import Trait

from karenina_core.values.rubric import Rubric

from .nodes import Findings, identical
from .syntax import parse
from .traits import read_fields
from .vocabulary import LEGACY_LISTS

__all__ = ["legacy_traits", "untouched_lists"]


def legacy_traits(metadata: Mapping[str, Any], taken: set[str], findings: Findings) -> dict[str, list[Trait | None]]:
    """By property, its traits; None for one whose name a rating has already, in which case the rating is used."""
    found: dict[str, list[Trait | None]] = {}
    for name, cls in LEGACY_LISTS.items():
        traits: list[Trait | None] = []
        for index, entry in enumerate(findings.attempt(name, _entries, metadata.get(name)) or []):
            label = f"{name}[{index}] (trait {entry.get('name')!r})"
            trait = findings.attempt(label, read_fields, cls, _renamed(entry), None, None)
            if trait is not None and trait.name in taken:
                findings.warnings.append(f"{label}: a rating has the same name and is used instead")
                trait = None
            traits.append(trait)
        found[name] = traits
    return found


def _entries(value: Any) -> list[dict[str, Any]]:
    if isinstance(value, str):
        value = parse(value)
    if value is None:
        return []
    if not isinstance(value, list) or not all(isinstance(entry, dict) for entry in value):
        raise ValueError("must be a list of traits, or one as JSON inside a text")
    return value


def _renamed(entry: Mapping[str, Any]) -> dict[str, Any]:
    renamed = dict(entry)
    if "invert" in renamed:
        renamed.setdefault("invert_result", renamed.pop("invert"))
    return renamed


def untouched_lists(found: Mapping[str, list[Trait | None]], rubric: Rubric | None) -> list[str]:
    """The properties whose traits are all still in the rubric, unchanged and at the end of their list."""
    kept = []
    for name, traits in found.items():
        cls = LEGACY_LISTS[name]
        current = list(getattr(rubric, cls.list_name, ()))
        if identical(current[len(current) - len(traits) :], traits):
            kept.append(name)
    return kept
