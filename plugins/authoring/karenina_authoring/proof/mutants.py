"""Wrong values of a field, close to the right one, as a model may give them.

Which there are follows from the field's type, from what is expected and from the primitive. What a primitive declares
to be right, such as a number within its tolerance, is no mutant; a number of another order, sign or unit is one
whatever was declared.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from datetime import date, timedelta
from typing import Any

from karenina_template.language.primitives.dates import DateMatch, DateRange, read_moment
from karenina_template.language.primitives.expressions import ExpressionMatch
from karenina_template.language.primitives.numeric import (
    NumericMaximum,
    NumericMinimum,
    NumericRange,
    NumericRangeGraded,
    NumericThresholdGraded,
    read_number,
)
from karenina_template.language.primitives.quantities import QuantityMatch, read_quantity
from karenina_template.language.primitives.text import SetContainment

from .facts import Fact
from .names import neighbours

Wrong = tuple[str, Any]
"""How it is wrong, and the value."""
QUANTITY = re.compile(r"\s*([-+−]?\d[\d ,']*(?:\.\d+)?(?:[eE][-+]?\d+)?)\s*([^\d\s].*)?", re.DOTALL)
"""A number and what is written behind it."""
MOST_OPTIONS = 20
"""Options that are tried; all of them are compared in the same way. Chosen."""
_OTHER_UNITS = {
    **{"mg": "g", "g": "mg", "µg": "mg", "ng": "µg", "kg": "g", "mL": "L", "L": "mL", "nM": "µM", "µM": "mM"},
    **{"mM": "M", "m": "cm", "cm": "mm", "mm": "cm", "km": "m", "nm": "µm", "s": "min", "min": "h", "h": "min"},
    **{"°C": "°F", "kDa": "Da", "Da": "kDa", "kJ/mol": "kcal/mol", "kcal/mol": "kJ/mol", "days": "weeks"},
    **{"%": "‰", "hours": "days", "years": "months", "months": "years", "weeks": "days", "J": "kJ", "kJ": "J"},
}


def mutants(fact: Fact) -> Iterator[Wrong]:
    """Each kind and value once."""
    seen = {repr(fact.value)}
    for kind, value in _makers(fact)(fact):
        if repr(value) not in seen:
            seen.add(repr(value))
            yield kind, value


def _makers(fact: Fact) -> Callable[[Fact], Iterator[Wrong]]:
    value, primitive = fact.value, fact.primitive
    if isinstance(value, bool):
        return lambda fact: iter([("negation", not fact.value)])
    if fact.options:
        others = [option for option in fact.options if option != value][:MOST_OPTIONS]
        return lambda fact: (("neighbouring_entity", option) for option in others)
    if isinstance(value, int | float):
        return _numbers
    if isinstance(value, list):
        return _lists
    if isinstance(value, dict):
        return _objects
    if fact.type in ("date", "datetime") or isinstance(primitive, DateRange):
        return _dates
    if isinstance(primitive, ExpressionMatch):
        return _expressions
    if isinstance(primitive, QuantityMatch):
        return _quantities
    if type(primitive).__name__.startswith("Numeric"):
        return lambda fact: ((kind, f"{number:g}") for kind, number in _numbers(_as_number(fact)))
    return _dates if is_day(value) else _texts


def _as_number(fact: Fact) -> Fact:
    return Fact(name=fact.name, type="float", value=read_number(fact.value), primitive=fact.primitive)


def measured(text: str) -> tuple[str, str] | None:
    """The number and the unit of a text that is a quantity and nothing else."""
    found = QUANTITY.fullmatch(text)
    if found is None or not found[2] or (len(found[2]) == 1 and " " not in text and found[2].isalpha()):
        return None  # 7A is rather a name than a current
    try:
        read_quantity(text)
    except ValueError:
        return None
    return found[1].strip(), found[2]


def is_day(value: Any) -> bool:
    """Whether it is a text that is a date and nothing else."""
    try:
        return isinstance(value, str) and bool(read_moment(value))
    except ValueError:
        return False


def _declared(fact: Fact, value: Any) -> bool:
    """Whether the primitive counts this value as right."""
    try:
        return fact.primitive is not None and fact.primitive.check(value, fact.value)
    except Exception:  # primitives may come from anywhere
        return False


def _numbers(fact: Fact) -> Iterator[Wrong]:
    own = fact.value
    bounds = [own]
    if isinstance(fact.primitive, NumericRange | NumericRangeGraded):
        bounds = [bound for bound in (fact.primitive.min, fact.primitive.max) if bound is not None]
    for number in bounds:
        step = 1 if fact.type == "int" or number == int(number) else max(abs(number) * 0.01, 1e-9)
        for kind, value in (
            ("sign", -number),
            ("magnitude", number * 10),
            ("magnitude", number / 10),
            ("unit", number * 1000),
            ("unit", number / 1000),
            ("off_by_one", number + step),
            ("off_by_one", number - step),
        ):
            near = kind == "off_by_one" and (_declared(fact, value) or fact.primitive is None)
            if near or not _on_wrong_side(fact, value) or (fact.type == "int" and value != int(value)):
                continue
            if value != own:
                yield kind, int(value) if fact.type == "int" else float(f"{value:.12g}")
    if own == 0:
        yield from (("magnitude", fact.value + 10), ("sign", fact.value - 10)) if _on_wrong_side(fact, 10) else ()


def _on_wrong_side(fact: Fact, value: float) -> bool:
    """Whether a number is outside of the bounds that are asked for; true where there are none."""
    primitive = fact.primitive
    if isinstance(primitive, NumericRange | NumericRangeGraded):
        above = primitive.max is not None and value > primitive.max
        return above or (primitive.min is not None and value < primitive.min)
    upward = isinstance(primitive, NumericMinimum)
    downward = isinstance(primitive, NumericMaximum)
    if isinstance(primitive, NumericThresholdGraded):
        upward, downward = primitive.direction == "min", primitive.direction == "max"
    return not (upward and value >= fact.value) and not (downward and value <= fact.value)


def _dates(fact: Fact) -> Iterator[Wrong]:
    days = [fact.value]
    if isinstance(fact.primitive, DateRange):
        days = [bound[:10] for bound in (fact.primitive.min, fact.primitive.max) if bound]
    written = getattr(fact.primitive, "format", None) if isinstance(fact.primitive, DateMatch) else None
    for text in days:
        day = date.fromisoformat(text) if re.fullmatch(r"\d{4}-\d\d-\d\d", text) else read_moment(text).day
        shifted = [
            ("off_by_one", day + timedelta(days=1)),
            ("off_by_one", day - timedelta(days=1)),
            ("month", day + timedelta(days=31)),
            ("year", day + timedelta(days=365)),
            ("year", day - timedelta(days=366)),
            ("decade", day + timedelta(days=3652)),
            ("decade", day - timedelta(days=3652)),
        ]
        if day.day <= 12 and day.day != day.month:
            shifted.append(("swapped_fields", day.replace(day=day.month, month=day.day)))
        for kind, other in shifted:
            value = other.strftime(written) if written else other.isoformat()
            declared = _declared(fact, value)
            if not declared or (kind == "decade" and not isinstance(fact.primitive, DateRange)):
                yield kind, value


def _texts(fact: Fact) -> Iterator[Wrong]:
    text = str(fact.value)
    others = {str(name).casefold() for name in (text, *fact.accepted)}
    yield "empty", ""
    yield "negation", f"not {text}"
    for other in neighbours(text, fact.question):
        if other.casefold() not in others:
            yield "neighbouring_entity", other
    words = text.split()
    if len(words) > 1:
        for part in (" ".join(words[:-1]), " ".join(words[1:])):
            if part.casefold() not in others:
                yield "partial", part
    if measured(text):
        yield from _quantities(fact)


def _quantities(fact: Fact) -> Iterator[Wrong]:
    found = QUANTITY.fullmatch(str(fact.value))
    if found is None:
        return
    number, unit = read_number(re.sub(r"[ ,']", "", found[1]).replace("−", "-")), found[2] or ""
    written = found[1].strip()
    for kind, other in (
        ("magnitude", number * 10),
        ("magnitude", number / 10),
        ("unit", number * 1000),
        ("sign", -number),
    ):
        if number:
            yield kind, f"{other:.12g} {unit}".strip()
    if not _declared(fact, f"{number + 1:.12g} {unit}"):
        yield "off_by_one", f"{number + 1:.12g} {unit}".strip()
    if unit in _OTHER_UNITS:
        yield "unit", f"{written} {_OTHER_UNITS[unit]}"
    if unit:
        yield "unit", written
        yield "unit", f"{written} {unit}/kg"


def _expressions(fact: Fact) -> Iterator[Wrong]:
    left, mark, right = str(fact.value).rpartition("=")
    for kind, other in (
        ("sign", f"-({right})"),
        ("off_by_one", f"({right}) + 1"),
        ("magnitude", f"10 ({right})"),
        ("neighbouring_entity", f"({right})^2"),
        ("neighbouring_entity", f"1/({right})"),
    ):
        value = f"{left}{mark} {other}" if mark else other
        if not ExpressionMatch().check(value, fact.value):  # 1/1 is 1, and -0 is 0
            yield kind, value


def _lists(fact: Fact) -> Iterator[Wrong]:
    own = list(fact.value)
    mode = fact.primitive.mode if isinstance(fact.primitive, SetContainment) else None
    ordered = not isinstance(fact.primitive, SetContainment) and fact.primitive is not None
    least = getattr(fact.primitive, "min_overlap", None) or 1
    yield "empty", []
    wrong = [other for member in own[:1] for other in _members(fact, member) if other not in own]
    if mode == "overlap":
        yield "partial_list", own[: least - 1]
        yield "neighbouring_entity", [*own[: least - 1], *wrong]
        return
    if mode != "subset":
        yield "partial_list", own[:-1]
        yield "partial_list", own[1:]
    if ordered and len(own) > 1:
        yield "reordered", own[::-1]
        yield "reordered", [own[1], own[0], *own[2:]]
    for other in wrong[:2]:
        yield "neighbouring_entity", [other, *own[1:]]
        if mode != "superset":
            yield "neighbouring_entity", [*own, other]


def _members(fact: Fact, member: Any) -> list[Any]:
    inner = re.fullmatch(r"(?:list|set|tuple|frozenset)\[(.*)\]", fact.type)
    part = Fact(name=fact.name, type=inner[1] if inner else "", value=member, question=fact.question)
    return [value for kind, value in mutants(part) if kind not in ("empty", "negation", "partial")]


def _objects(fact: Fact) -> Iterator[Wrong]:
    for key, inner in fact.value.items():
        if inner is not None and inner != []:
            part = Fact(name=fact.name, type=type(inner).__name__, value=inner)
            yield from ((kind, {**fact.value, key: other}) for kind, other in list(mutants(part))[:2])
