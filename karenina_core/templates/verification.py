"""The comparison of extracted fields with their ground truth: metadata of a field, results, partial credit."""

from __future__ import annotations

import copy
import math
from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from ..errors import TemplateError, one_line
from .primitives import VerificationPrimitive

__all__ = ["Comparison", "Verification", "compare"]

_IMMUTABLE = (str, int, float, bool, bytes, frozenset, type(None))


@frozen(eq=False)
class Verification:
    """How one field is verified. It travels beside the field, never inside a schema, and keeps the value's own type."""

    # Not in the repr: pydantic prints a field's metadata in error messages, and some of those are read by a judge.
    ground_truth: Any = field(repr=False)
    primitive: VerificationPrimitive = field(repr=False)
    weight: float = 1.0
    hint: str | None = None

    def expected(self) -> Any:
        """The ground truth, as a copy where it could be changed in place: no item can spoil it for the next."""
        value = self.ground_truth
        return value if isinstance(value, _IMMUTABLE) else copy.deepcopy(value)


@frozen
class Comparison:
    """Results and scores per verified field, and their weighted mean."""

    results: Mapping[str, bool | None]
    scores: Mapping[str, float | None]
    granular: float
    """Weighted mean of the scores; a field without a value counts 0, and so does a template whose weights sum to 0.
    """

    @property
    def passed(self) -> bool:
        """Whether every verified field is right. A field without a value is not."""
        return all(result is True for result in self.results.values())


def compare(verified: Mapping[str, Verification], values: Mapping[str, Any]) -> Comparison:
    """Compare the values of all verified fields. Raises TemplateError where a primitive cannot compare a value."""
    results: dict[str, bool | None] = {}
    scores: dict[str, float | None] = {}
    total = weights = 0.0
    for name, verification in verified.items():
        weights += verification.weight
        value = values.get(name)
        if value is None:
            results[name] = scores[name] = None
            continue
        results[name] = result = _check(name, verification, value)
        scores[name] = score = _score(verification, value, result)
        total += verification.weight * score
    return Comparison(results, scores, min(total / weights, 1.0) if weights else 0.0)


def _check(name: str, verification: Verification, value: Any) -> bool:
    primitive = verification.primitive
    try:
        result = primitive.check(value, verification.expected())
    except Exception as error:  # primitives may come from anywhere
        raise TemplateError(f"field {name!r}: {type(primitive).__name__} raised {one_line(error)}") from error
    if result is not True and result is not False:
        raise TemplateError(
            f"field {name!r}: {type(primitive).__name__}.check returned {result!r}; it must return True or False"
        )
    return result


def _score(verification: Verification, value: Any, result: bool) -> float:
    """The primitive's own score within 0 and 1; where it has none to give, the plain result counts."""
    primitive = verification.primitive
    if type(primitive).score is VerificationPrimitive.score:
        return float(result)
    try:
        score = float(primitive.score(value, verification.expected()))
    except Exception:  # the verdict stands without it
        return float(result)
    return float(result) if math.isnan(score) else min(max(score, 0.0), 1.0)
