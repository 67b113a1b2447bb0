"""The right value of a field in other forms, as a judge may find it in a response.

What an author has excluded on purpose is no variant: capitals where the normalizers of a text leave out `lowercase`,
or dates in another format than the given one.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

from karenina_template.language.primitives.dates import DateMatch, DateRange, DateTolerance, read_moment
from karenina_template.language.primitives.expressions import ExpressionMatch
from karenina_template.language.primitives.numeric import NumericTolerance
from karenina_template.language.primitives.quantities import QuantityMatch, read_quantity
from karenina_template.language.primitives.text import ContainsAll, ContainsAny, RegexMatch, SetContainment

from .facts import Fact
from .mutants import QUANTITY, is_day, measured

Right = tuple[str, Any]
"""What is changed, and the value."""
_MONTHS = (
    *("January", "February", "March", "April", "May", "June", "July", "August", "September", "October", "November"),
    "December",
)
_SYMBOL = re.compile(r"[A-Z][a-z]|[a-z][A-Z]")
"""Such as Au and pH, which are others in capitals."""
_KNOWN = ("ExactMatch", "LiteralMatch", "AliasMatch", "OrderedMatch", "SetContainment")
"""Primitives that compare whole texts; of others only the forms that they name themselves are known."""


def variants(fact: Fact) -> Iterator[Right]:
    """Each value once."""
    seen = {repr(fact.value)}
    for kind, value in (*(("alias", other) for other in fact.accepted), *_makers(fact)(fact)):
        if repr(value) not in seen:
            seen.add(repr(value))
            yield kind, value


def _makers(fact: Fact) -> Callable[[Fact], Iterator[Right]]:
    value, primitive = fact.value, fact.primitive
    if isinstance(value, bool | dict) or fact.options:
        return _nothing
    if isinstance(value, int | float):
        return _numbers
    if isinstance(value, list):
        return _lists
    if isinstance(primitive, ExpressionMatch):
        return _expressions
    if isinstance(primitive, QuantityMatch):
        return _quantities
    if fact.type in ("date", "datetime"):
        return lambda fact: iter([("dates", fact.value.replace("-", ""))] if len(fact.value) == 10 else [])
    if isinstance(primitive, DateMatch | DateTolerance | DateRange):
        return _dates
    if type(primitive).__name__.startswith("Numeric"):
        return _thousands
    if primitive is not None and type(primitive).__name__ not in _KNOWN:
        return _found_in if isinstance(primitive, ContainsAll | ContainsAny | RegexMatch) else _nothing
    return _dates if is_day(value) else _texts


def _nothing(fact: Fact) -> Iterator[Right]:
    return iter(())


def _numbers(fact: Fact) -> Iterator[Right]:
    number, primitive = fact.value, fact.primitive
    if isinstance(number, int) or number == int(number):
        yield "notation", float(number) if isinstance(number, int) else int(number)
    if isinstance(primitive, NumericTolerance) and primitive.tolerance:
        allowed = 0.9 * primitive.tolerance * (abs(number) if primitive.mode == "relative" else 1)
        for other in (number + allowed, number - allowed):
            if fact.type != "int" or round(other) != number:
                yield "tolerance", round(other) if fact.type == "int" and allowed >= 1 else other


def _thousands(fact: Fact) -> Iterator[Right]:
    if re.fullmatch(r"\d{4,}", str(fact.value)):
        yield "thousands", f"{int(fact.value):,}"


def _normalizers(fact: Fact) -> tuple[Any, ...] | None:
    """Those of the primitive; None where nothing was chosen."""
    chosen = getattr(fact.primitive, "normalize", None)
    return None if chosen is None or (not chosen and isinstance(fact.primitive, SetContainment)) else chosen


def _texts(fact: Fact) -> Iterator[Right]:
    text, chosen = str(fact.value), _normalizers(fact)
    quantity = measured(text)
    if (chosen is None or "lowercase" in chosen) and not quantity and not _SYMBOL.fullmatch(text):
        yield from (("case", other) for other in (text.upper(), text.lower()) if len(other) == len(text))
    for one, other in (("-", "\u2011"), ("\u00b5", "\u03bc"), ("\u03bc", "\u00b5")):
        if one in text:
            yield "typography", text.replace(one, other)
    yield "typography", re.sub(r"^-(?=[\d.])|(?<=\d)-$", "\u2212", text)
    yield from (("range", other) for other in _ranges(text))
    yield from (("number", other) for other in _numerals(text))
    if quantity:
        number, unit = quantity
        yield from (("units", other) for other in (f"{number}{unit}", f"{number} {unit}") if other != text)
    number = quantity[0] if quantity else text
    if re.fullmatch(r"[1-9]\d{4,}", number):  # one of four digits may be a year
        yield "thousands", text.replace(number, f"{int(number):,}")


def _ranges(text: str) -> Iterator[str]:
    """Two ascending numbers with something between them."""
    found = re.fullmatch(r"(\d+(?:\.\d+)?)(\s?[-–]\s?| to )(\d+(?:\.\d+)?)(\s.+|%)?", text, re.ASCII)
    if found and float(found[1]) < float(found[3]):
        for joint in ("-", "–", " to "):
            yield f"{found[1]}{joint}{found[3]}{found[4] or ''}"


def _numerals(text: str) -> Iterator[str]:
    """A text that is a number with a comma or an exponent and nothing else."""
    if re.fullmatch(r"[+-]?\d{1,3}(?:,\d{3})+(?:\.\d+)?", text, re.ASCII):
        yield text.replace(",", "")
    elif re.fullmatch(r"[+-]?\d+,\d+", text, re.ASCII):
        yield text.replace(",", ".")
    elif found := re.fullmatch(r"([+-]?\d+(?:\.\d+)?)[eE]\+?(-?\d+)", text, re.ASCII):
        yield f"{found[1]} × 10^{found[2]}"


def _found_in(fact: Fact) -> Iterator[Right]:
    """Of primitives that search: the text that they find, with other words around it."""
    yield "surroundings", f"{fact.value} (as stated)"


def _dates(fact: Fact) -> Iterator[Right]:
    if getattr(fact.primitive, "format", None):
        return
    day = read_moment(fact.value).day
    month = _MONTHS[day.month - 1]
    for text in (
        day.isoformat(),
        f"{day.day} {month} {day.year:04}",
        f"{month} {day.day}, {day.year:04}",
        f"{day.day} {month[:3]} {day.year:04}",
        f"{day.day:02}.{day.month:02}.{day.year:04}",
    ):
        yield "dates", text


def _quantities(fact: Fact) -> Iterator[Right]:
    found = QUANTITY.fullmatch(str(fact.value))
    if found is None:
        return
    written, unit = found[1].strip(), found[2] or ""
    quantity = read_quantity(fact.value)
    yield "units", f"{written}{unit}"
    yield "units", f"{written} {quantity.unit}".strip()
    if quantity.number >= 1000 and quantity.number == int(quantity.number):
        yield "thousands", f"{int(quantity.number):,} {unit}".strip()
    yield "notation", f"{quantity.number:.12e} {unit}".strip()
    base = (1 * quantity.unit).to_base_units().units
    try:
        yield "units", f"{quantity.within(base):.12g} {base:~C}".strip()
    except ValueError:  # a temperature is no multiple of its base unit
        return


def _expressions(fact: Fact) -> Iterator[Right]:
    text = str(fact.value)
    yield "typography", f"${text}$"
    yield "space", re.sub(r"(?<![A-Za-z\\]) | (?![A-Za-z])", "", text)
    if "=" not in text:
        yield "equivalence", f"({text}) + 0"
        yield "equivalence", f"\\frac{{2({text})}}{{2}}"


def _lists(fact: Fact) -> Iterator[Right]:
    own, chosen = list(fact.value), _normalizers(fact)
    if isinstance(fact.primitive, SetContainment):
        yield "reordered", own[::-1]
        yield "repetition", [*own, *own[:1]]
    if not all(isinstance(member, str) for member in own):
        return
    if chosen is None or "lowercase" in chosen:
        yield "case", [member.upper() for member in own]
        yield "case", [member.lower() for member in own]
