"""What a field may hold, where that gives its expected value away: bounds, lists with one option, and patterns.

Patterns are read, never run: one may come from anywhere, and running it could take forever.
"""

from __future__ import annotations

import itertools
import math
import re
import re._parser as parser  # type: ignore[import-not-found]  # typeshed leaves it out; hypothesis uses it too
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from decimal import Decimal
from typing import Any, Literal

from ..language.primitives.base import VerificationPrimitive
from ..language.primitives.text import ContainsAll, ContainsAny, RegexMatch
from ..language.verification import Verification
from .references import Scalar, Targets, is_common, trivial_text
from .spelling import number_of, squeezed

Severity = Literal["leak", "hint", "note"]
Weighed = tuple[Severity, str]
"""How bad it is, and what it is in words."""

NARROW, TIGHT = Decimal("0.05"), Decimal("0.01")
"""Width of an interval relative to the expected value: below, bounds point at the value or give it away. Bounds
that follow from the nature of a quantity (years of a century, a scale from 1 to 5) are wider than 5 % or hold few
values for everybody.
"""
FEW = 10
"""Whole numbers in an interval below which it is worth guessing."""
_BOUNDS = frozenset(("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"))
_NATURAL = frozenset(map(Decimal, (5, 7, 12, 24, 31, 60, 90, 180, 360, 365)))


def read_bounds(node: Mapping[str, Any], value: Scalar) -> Weighed | None:
    """What the bounds of one numeric node say about the expected value."""
    if _BOUNDS.isdisjoint(node):  # as for most
        return None
    number = number_of(value)
    if number is None:
        return None
    low, high, step = _interval(node)
    if (low is not None and number < low) or (high is not None and number > high):
        return None  # not this alternative
    if low is not None and high is not None and (found := _narrow(number, low, high, step)):
        return found
    multiple = number_of(node.get("multipleOf"))
    if multiple is not None and multiple == abs(number) and not is_common(value):
        return "hint", f"multipleOf is {multiple}, the expected value"
    # Limits such as 0, 1 and 100 are those of a quantity, not of an answer.
    if (number == low and number in (-1, 0, 1)) or (number == high and number in (0, 1, 100)):
        return None
    for limit, name in ((low, "lowest"), (high, "highest")):
        if number == limit:
            common = is_common(number) or number in _NATURAL
            return ("note" if common else "hint"), f"{number} is the {name} value allowed"
    return None


def _interval(node: Mapping[str, Any]) -> tuple[Decimal | None, Decimal | None, Decimal | None]:
    """Lowest and highest value that are allowed, and the distance between values where there is one.

    An open end of an interval of real numbers counts as closed: it makes no difference to what it reveals.
    """
    step = number_of(node.get("multipleOf")) or (Decimal(1) if node.get("type") == "integer" else None)
    low, high = number_of(node.get("minimum")), number_of(node.get("maximum"))
    over, under = number_of(node.get("exclusiveMinimum")), number_of(node.get("exclusiveMaximum"))
    if over is not None:
        over = (math.floor(over / step) + 1) * step if step else over
        low = over if low is None else max(low, over)
    if under is not None:
        under = (math.ceil(under / step) - 1) * step if step else under
        high = under if high is None else min(high, under)
    return low, high, step


def _narrow(number: Decimal, low: Decimal, high: Decimal, step: Decimal | None) -> Weighed | None:
    allowed = f"the bounds allow only {low} to {high}"
    if step is not None:
        count = math.floor(high / step) - math.ceil(low / step) + 1
        if count == 1:
            return "leak", f"the bounds allow only {number}"
        near = number != 0 and (high - low) / abs(number) <= NARROW
        return ("hint", f"{allowed}, {count} values") if near and count <= FEW else None
    if low == high:
        return "leak", f"the bounds allow only {number}"
    width = (high - low) / abs(number) if number else None
    if width is not None and width <= NARROW:
        return ("leak" if width <= TIGHT else "hint"), allowed
    return None


def read_options(options: Sequence[Any], targets: Targets, many: bool) -> Weighed | None:
    """What a list of options says where it holds nothing but expected values."""
    if not options or not all(map(targets.equal_to, options)):
        return None
    if len(options) == 1:
        return "leak", f"{options[0]!r} is the only value allowed"
    return ("hint", "every option is one of the expected values") if many else None


ANYTHING = "\0"
"""Stands for an unknown text in what `spelled_out` gives."""

_MOST_TEXTS = 64
"""Texts that a pattern is spelled out into: alternatives multiply. Chosen, not measured."""
_MOST_PATTERN = 500
"""Characters of a pattern that is spelled out; a longer one is searched for names. Chosen, not measured."""
_SET_OF_SETS = re.compile(r"\[[^\]]*(?:\[|--|&&|~~|\|\|)")
"""What Python's parser warns of, because it may mean something else one day."""


def read_pattern(pattern: str, targets: Targets) -> Weighed | None:
    """What a regular expression reveals about expected texts."""
    texts = spelled_out(pattern)
    if texts is None:
        words = "".join(" " if mark in "^$()[]{}|?*+." else mark for mark in pattern.replace("\\", ""))
        named = targets.named_in(words)
        contained = [value for value in named if isinstance(value, str) and not trivial_text(value)]
        return ("hint", f"the pattern {pattern!r} contains {contained[0]!r}") if contained else None
    stems = {text.strip(ANYTHING) for text in texts}
    if any(ANYTHING in stem for stem in stems):
        return None
    found = {squeezed(stem) for stem in stems}
    if found <= {squeezed(str(value)) for value in targets.values}:
        return (
            "leak" if len(targets.values) == 1 else "hint"
        ), f"the pattern {pattern!r} allows nothing but {sorted(stems)[0]!r}"
    return None


class _Unreadable(Exception):
    """The pattern uses something that this reader does not know."""


def spelled_out(pattern: str) -> frozenset[str] | None:
    """The texts that a regular expression matches, with `ANYTHING` for parts that could be many; None where there
    are too many or it cannot be read.
    """
    if len(pattern) > _MOST_PATTERN or _SET_OF_SETS.search(pattern):
        return None
    try:
        return _texts(parser.parse(pattern))
    except (_Unreadable, re.error, RecursionError, OverflowError):
        return None


def _texts(parts: Iterable[tuple[Any, Any]]) -> frozenset[str]:
    texts = frozenset({""})
    for kind, given in parts:
        found = _texts_of(kind.name, given)
        # Too many together: which of them it is does not matter any more.
        found = found if len(texts) * len(found) <= _MOST_TEXTS else frozenset({ANYTHING})
        texts = frozenset(a + b for a, b in itertools.product(texts, found))
    return texts


def _texts_of(kind: str, given: Any) -> frozenset[str]:
    """The texts of one node of the parser's tree."""
    match kind:
        case "LITERAL":
            return frozenset({chr(given)})
        case "AT":
            return frozenset({""})
        case "ANY" | "NOT_LITERAL" | "NEGATE":
            return frozenset({ANYTHING})
        case "CATEGORY":
            return frozenset({" " if given.name == "CATEGORY_SPACE" else ANYTHING})
        case "RANGE":
            return frozenset(map(chr, range(given[0], min(given[1], given[0] + 20) + 1)))
        case "IN":
            marks = frozenset[str]().union(*(_texts_of(one.name, part) for one, part in given))
            return marks if len(marks) <= 10 and ANYTHING not in marks else frozenset({ANYTHING})
        case "SUBPATTERN":
            return _texts(given[3])
        case "BRANCH":
            texts = frozenset[str]().union(*map(_texts, given[1]))
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT" if given[1] > 8:
            return frozenset({ANYTHING})
        case "MAX_REPEAT" | "MIN_REPEAT" | "POSSESSIVE_REPEAT":
            texts = frozenset[str]().union(*(_texts([*given[2]] * times) for times in range(given[0], given[1] + 1)))
        case _:
            raise _Unreadable
    if len(texts) > _MOST_TEXTS:
        raise _Unreadable
    return texts


_OPEN_ENDS = re.compile(r"^\^?\.[*+]\??|(?<!\\)\.[*+]\??\$?$")


def accepted_by(verified: Mapping[str, Verification]) -> dict[str, tuple[Any, ...]]:
    """Per field that has more right values than its expected one: the values of which each alone is right, a list where
    several are needed together. Of primitives without a ground truth these are known where they look for texts or for
    a pattern; of others they are the ground truth and its other forms.
    """
    accepted = {}
    for name, found in verified.items():
        if not found.primitive.uses_ground_truth:
            accepted[name] = accepted_texts(found.primitive)
            continue
        with suppress(Exception):  # primitives may come from anywhere
            if forms := found.primitive.other_forms(found.ground_truth):
                accepted[name] = (found.ground_truth, *forms)
    return accepted


def accepted_texts(primitive: VerificationPrimitive) -> tuple[Any, ...]:
    """The same for one primitive. Of a pattern only texts that it spells out in full, `.*` at its ends apart."""
    if isinstance(primitive, ContainsAny):
        return primitive.substrings
    if isinstance(primitive, ContainsAll):
        return (list(primitive.substrings),)
    if isinstance(primitive, RegexMatch):
        texts = spelled_out(_OPEN_ENDS.sub("", primitive.pattern)) or ()
        return tuple(sorted(text for text in texts if text and ANYTHING not in text))
    return ()
