"""What a function returned, as a score of its trait. Read in the function's thread: it may be of anybody's class."""

from __future__ import annotations

import inspect
import math
from typing import Any

from karenina_calls.ports.text import sanitize
from karenina_vocabulary.evaluators import TraitScore
from karenina_vocabulary.traits import CallableRubricTrait

from karenina_core.errors import shortened

__all__ = ["score_of"]

MOST_SHOWN = 80


def score_of(trait: CallableRubricTrait, value: Any) -> TraitScore:
    """The score that a value is. One of the wrong type is an error; one that the trait's scale does not have, invalid.

    True is no number. Numbers are kept as they are: neither rounded nor moved into the scale.
    """
    if trait.kind == "boolean":
        return _boolean(trait, value)
    return _literal(trait, value) if trait.kind == "literal" else _number(trait, value)


def _boolean(trait: CallableRubricTrait, value: Any) -> TraitScore:
    if type(value) is not bool:
        return _unfit(value, "True or False")
    return TraitScore(value=value is not trait.invert_result)


def _number(trait: CallableRubricTrait, value: Any) -> TraitScore:
    if isinstance(value, bool) or not isinstance(value, int | float):
        return _unfit(value, "a number")
    number = float(value) if isinstance(value, float) else int(value)
    low, high = trait.min_score, trait.max_score
    if isinstance(number, float) and not math.isfinite(number):
        return TraitScore(state="invalid", reason=f"its function returned {number}, which is no number of a scale")
    if not trait.validate_score(number):
        reason = f"its function returned {_shown(number)}, which is not between {low} and {high}"
        return TraitScore(state="invalid", reason=reason)
    return TraitScore(value=number)


def _literal(trait: CallableRubricTrait, value: Any) -> TraitScore:
    if not isinstance(value, str):
        return _unfit(value, "the name of a class")
    text, _ = sanitize(str(value))
    index = trait.get_class_index(text)
    if index < 0:
        known = ", ".join(trait.get_class_names())
        return TraitScore(
            state="invalid", reason=f"its function returned {_shown(text)}, which is not one of: {known}", label=text
        )
    label = trait.get_class_names()[index]
    return TraitScore(value=index, label=label, details={"label": label})


def _unfit(value: Any, wanted: str) -> TraitScore:
    if inspect.iscoroutine(value):
        value.close()  # else Python warns that it was never awaited
    what = "nothing" if value is None else f"{_shown(value)} ({type(value).__name__})"
    return TraitScore(state="error", reason=f"its function returned {what}; it must return {wanted}")


def _shown(value: Any) -> str:
    try:
        shown = repr(value)
    except Exception:  # anybody's class; and Python writes no number of thousands of digits
        return f"something ({type(value).__name__}) that cannot be shown"
    return shortened(shown, MOST_SHOWN)
