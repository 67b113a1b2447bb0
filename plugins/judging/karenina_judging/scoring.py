"""Scores of boolean, score and literal traits: how a judge is asked for one, and how its reply is read.

Nothing is made up on the way: a value outside the scale is neither moved into it nor rounded, and a text that is no
class is not the nearest one. The judge is asked again with the problem.
"""

from __future__ import annotations

import re
from typing import Any

from karenina_vocabulary.record_traits import TemplateKind
from karenina_vocabulary.trait_scale import ERROR_PREFIX
from karenina_vocabulary.traits import ScoredTrait

from karenina_core.errors import FillError, shortened

TRUE, FALSE = ("true", "yes", "1"), ("false", "no", "0")
WHOLE = re.compile(r"[+-]?\d+(?:\.0*)?")
MOST_SHOWN = 80
"""Characters of a value that messages quote, about a line; no whole number of a scale is longer."""


def error_label(reason: str) -> str:
    """The label of a literal trait that could not be evaluated."""
    return f"{ERROR_PREFIX} {reason}]"


def score_schema(trait: ScoredTrait) -> dict[str, Any]:
    """The JSON Schema of one score: true or false, a whole number of the scale, or the name of a class.

    Here and below, template kinds have no one score and are refused: see `karenina_vocabulary.record_traits`.
    """
    _one_score(trait)
    if trait.kind == "boolean":
        return {"type": "boolean"}
    if trait.kind == "literal":
        return {"type": "string", "enum": trait.get_class_names()}
    return {"type": "integer", "minimum": trait.min_score, "maximum": trait.max_score}


def scale_words(trait: ScoredTrait) -> str:
    """What the judge has to reply, in one line; the classes of a literal trait one per line, in their order."""
    _one_score(trait)
    if trait.kind == "boolean":
        return "true or false"
    if trait.kind == "score":
        return f"a whole number from {trait.min_score} (lowest) to {trait.max_score} (highest)"
    rows = [f"  - {name}: {text}" if text else f"  - {name}" for name, text in (trait.classes or {}).items()]
    return "\n".join(["exactly one of these classes, by its name:", *rows])


def read_score(trait: ScoredTrait, value: Any) -> bool | int:
    """The score that a reply gives: a boolean, a whole number of the scale, or the index of a class.

    Texts such as "yes" and "4" are read; class names without regard to case and to white space around them. -1 and the
    number of a class are no class names. Raises FillError, in words for the judge.
    """
    _one_score(trait)
    if trait.kind == "boolean":
        word = str(value).strip().casefold() if isinstance(value, bool | int | str) else ""
        found: bool | int | None = True if word in TRUE else False if word in FALSE else None
    elif trait.kind == "literal":
        index = trait.get_class_index(value) if isinstance(value, str) else -1
        found = None if index < 0 else index
    else:
        found = _whole(value)
        if found is not None and not trait.validate_score(found):
            found = None
    if found is None:
        wanted = scale_words(trait) if trait.kind != "literal" else f"one of: {', '.join(trait.get_class_names())}"
        raise FillError(f"{trait.name}: expected {wanted}; got {shortened(repr(value), MOST_SHOWN)}")
    return found


def _one_score(trait: ScoredTrait) -> None:
    if isinstance(trait.kind, TemplateKind):
        raise TypeError(f"trait {trait.name!r} is scored with a record: use record_schema and read_record")


def _whole(value: Any) -> int | None:
    if isinstance(value, bool):
        return None
    if isinstance(value, str) and WHOLE.fullmatch(value.strip()) and len(value) < MOST_SHOWN:
        return int(value.strip().partition(".")[0])
    if isinstance(value, float) and value.is_integer():
        return int(value)
    return value if isinstance(value, int) else None
