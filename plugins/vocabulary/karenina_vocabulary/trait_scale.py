"""What the scale of a trait says about its scores. Who evaluates and who reads results asks here: so they agree."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karenina_core.values.fields import is_number

MISSING_LABEL = "[MISSING_FROM_RESPONSE]"
"""The label of a literal trait about which nothing was replied."""
ERROR_PREFIX = "[EVALUATION_ERROR:"
"""How the label of a literal trait begins that could not be evaluated; the reason and a bracket follow."""
Scale = Mapping[str, Any]
"""As `RubricTrait.scale()` gives it."""


def scale_kind(scale: Scale) -> str | None:
    """The kind that a scale names; one that names none but has a `min` and a `max` is of the kind `score`."""
    if scale.get("kind"):
        return str(scale["kind"])
    return "score" if is_number(scale.get("min")) and is_number(scale.get("max")) else None


def scale_classes(scale: Scale) -> list[str]:
    """The classes in the order of their ranks; none where the scale does not say them."""
    classes = scale.get("classes")
    return [str(name) for name in classes] if isinstance(classes, list | tuple | Mapping) else []


def misfit(kind: str | None, scale: Scale, value: Any) -> str:
    """What a score of this kind on this scale would be, where the value is none; else nothing.

    Nothing is known of kinds that only another package knows, and every value is a score of theirs.
    """
    if kind == "boolean":
        return "" if isinstance(value, bool) else "true or false"
    if kind == "score":
        low, high = scale.get("min"), scale.get("max")
        if not is_number(low) or not is_number(high):
            return "" if is_number(value) else "a number"
        return "" if is_number(value) and low <= value <= high else f"a number from {low} to {high}"
    if kind == "literal":
        classes = scale_classes(scale)
        fits = isinstance(value, int) and not isinstance(value, bool) and value >= 0
        if not classes:
            return "" if fits else "the index of a class"
        return "" if fits and value < len(classes) else f"the index of a class, from 0 to {len(classes) - 1}"
    if kind == "template":
        return "" if isinstance(value, Mapping) and value else "a table of fields"
    if kind == "metric":
        return "" if isinstance(value, Mapping) and value else "a table of counts and metrics"
    return ""
