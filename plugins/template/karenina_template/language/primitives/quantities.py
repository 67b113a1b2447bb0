"""Quantities: a number with a unit, compared in any unit of the same kind.

The units are those of the package pint (`pip install 'karenina-template[units]'`), which is imported with the first
`QuantityMatch`. A number is read here and a unit by pint's own grammar: nothing of a text is evaluated as code.
"""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from functools import lru_cache
from typing import Any

from attrs import field, frozen

from ..normalize import canonical
from .base import VerificationPrimitive, not_negative, one_of

ROUNDING = 5e-7
"""The share by which equal quantities may differ: binary fractions by 2e-16, mmHg and torr by 1.4e-7. Chosen above."""
LONGEST = 100
"""Characters. No quantity is longer; a whole paragraph is none. Chosen, not measured."""
_RAISED = "[⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺]+"
_SUPERSCRIPTS = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_SIGNS = str.maketrans({"−": "-", "–": "-", "\u2009": " ", "\u202f": " ", "μ": "µ", "×": "x", "⋅": "·", "’": "'"})
_ABOUT = r"(?i:~|≈|about\b|approximately\b|approx\.|circa\b|ca\.)\s*"
_NUMBER = r"""(?xa)
        (?P<whole>[+-]?(?:\d{1,3}(?:(?P<mark>[ ,'])\d{3})(?:(?P=mark)\d{3})*(?!\d)|\d+)?)
        (?P<rest>(?:\.\d+|,(?:\d{1,2}|\d{4,})(?![\d,]))?)
        (?:\s*[x·*]\s*10\s*(?:\^|\*\*)?\s*\(?(?P<power>[+-]?\d{1,3})\)? | [eE](?P<exponent>[+-]?\d{1,3}))?
        (?![\d.,]\d)"""
_UNIT = r"[A-Za-zµΩÅ°%/*·^().\s\d+_-]*"
_POWER = r"(?<=[A-Za-zµΩÅ°])\s?(?:(?:\^|\*\*)\s?\(?([+-]?\d)\)?|(-\d)|([23]))(?!\w)"
_SPELLED: Mapping[str, str] = {
    **{"mcg": "microgram", "Kg": "kg", "KG": "kg", "kgs": "kg", "gm": "g", "gms": "g", "cc": "cm**3", "L": "liter"},
    **{"%": "percent", "°C": "degC", "° C": "degC", "°F": "degF", "°K": "K", "ºC": "degC", "sec": "s", "secs": "s"},
    **{"mins": "min", "hrs": "h", "hr": "h", "yr": "year", "yrs": "year", "wk": "week", "wks": "week"},
    **{"mol%": "percent", "Ångström": "angstrom", "Å": "angstrom", "µ": "micrometer", "kcals": "kcal"},
}
"""What is written and pint does not know, or reads as something else."""
_COUNTED = ("cell = count", "colony_forming_unit = count = CFU = cfu", "international_unit = [potency] = IU")
"""Units of biology that pint does not have."""


@lru_cache(maxsize=1)
def units() -> Any:
    """pint's registry. Raises ValueError where pint is not installed."""
    try:
        import pint
    except ImportError:
        raise ValueError("quantities need pint; type: pip install 'karenina-template[units]'") from None
    registry: Any = pint.UnitRegistry(on_redefinition="ignore")
    for definition in _COUNTED:
        registry.define(definition)
    return registry


@frozen
class Quantity:
    """A number and the unit it was written with."""

    number: float
    unit: Any
    """Of pint."""

    def within(self, unit: Any) -> float:
        """The number in another unit. Raises ValueError where it measures something else."""
        try:
            return float(units().Quantity(self.number, self.unit).to(unit).magnitude)
        except Exception as error:  # pint's errors for this have no common base that is a ValueError
            own = "a number without a unit" if self.unit.dimensionless else str(self.unit)
            raise ValueError(f"{own} does not fit what is measured in {unit}") from error


def read_quantity(value: Any) -> Quantity:
    """A text such as `5 mg`, `1,000 kJ/mol` or `3.2e-4 mol·L⁻¹`. Raises TypeError or ValueError.

    `,` before groups of three digits is a mark of thousands, else a decimal point; so are spaces and apostrophes. Words
    such as `about` at the beginning are read over. A plain number is a quantity without a unit.
    """
    if isinstance(value, bool) or not isinstance(value, str | int | float):
        raise TypeError(f"a quantity is a text such as '5 mg', not {value!r}")
    text = canonical(str(value)).strip().translate(_SIGNS)
    text = re.sub(_RAISED, lambda found: f"^({found[0].translate(_SUPERSCRIPTS)})", text)
    if len(text) > LONGEST:
        raise ValueError(f"a text of {len(text)} characters is not a quantity")
    text = re.sub(rf"^{_ABOUT}", "", text)
    text = re.sub(r"^10\s*(?=\^|\*\*)", "1x10", text)
    found = re.match(_NUMBER, text)
    if found is None or not re.search(r"\d", found["whole"] + found["rest"]):
        raise ValueError(f"{value!r} is not a quantity; write a number and a unit, such as '5 mg'")
    whole, rest = re.sub(r"[ ,']", "", found["whole"]), found["rest"].replace(",", ".")
    number = float(f"{whole}{rest}e{found['power'] or found['exponent'] or 0}")
    if math.isinf(number):
        raise ValueError(f"{value!r} is too large for a number; write it in a larger unit")
    return Quantity(number, _read_unit(text[found.end() :].strip()))


@lru_cache(maxsize=1024)
def _read_unit(written: str) -> Any:
    registry = units()
    text = re.sub(r"\bmm Hg\b", "mmHg", written.rstrip("."))
    text = re.sub(r"\b[Dd]egrees? ([Cc]elsius|[Ff]ahrenheit)\b", lambda found: f"deg{found[1][0].upper()}", text)
    if re.fullmatch(_UNIT, text) is None:
        raise ValueError(f"{written!r} is not a unit; write it like mg, kJ/mol or m/s^2")
    words = re.split(r"([\s/*·^()]+)", _SPELLED.get(text, text))
    text = "".join(_SPELLED.get(word, word) for word in words)
    text = re.sub(_POWER, r"**(\1\2\3)", text)
    if re.search(r"[\d^]|\*\*", re.sub(r"(?<=[^\W\d_])\*\*\([+-]?\d\)", "", text)):  # pint would compute 9^9^9^9
        raise ValueError(f"{written!r} is not a unit; powers of units have one digit, as in m/s^2")
    text = re.sub(r"\s*·\s*|(?<=[\w)])\s+(?=(?!per\b)[A-Za-zµΩÅ°(])(?<!per )", "*", text)
    try:
        return registry.parse_units(text)
    except Exception as error:  # a parser of another package, on the text of a model
        raise ValueError(f"{written!r} is not a known unit; write it like mg, kJ/mol or m/s^2") from error


@frozen
class QuantityMatch(VerificationPrimitive):
    """The same quantity, in any unit of its kind: `5 mg` is `0.005 g`. A number without its unit does not pass.

    They may differ by `tolerance`: of the expected value (`relative`) or in its own unit (`absolute`).
    """

    tolerance: float = field(default=0.0, validator=not_negative)
    mode: str = field(default="relative", validator=one_of("relative", "absolute"))

    def __attrs_post_init__(self) -> None:
        units()

    @classmethod
    def prepare(cls) -> None:
        read_quantity("1 mg/mL").within(read_quantity("1 g/L").unit)

    def check(self, extracted: Any, expected: Any) -> bool:
        wanted = read_quantity(expected)
        try:
            number = read_quantity(extracted).within(wanted.unit)
        except ValueError:
            return False
        allowed = self.tolerance * (abs(wanted.number) if self.mode == "relative" else 1)
        return abs(number - wanted.number) <= allowed + ROUNDING * abs(wanted.number)

    def remark(self, extracted: Any, expected: Any) -> str | None:
        """Why the extracted text is no such quantity; None where it is one."""
        try:
            read_quantity(extracted).within(read_quantity(expected).unit)
        except ValueError as problem:
            return f"The extracted quantity counts as wrong: {problem}."
        return None

    def check_ground_truth(self, expected: Any) -> None:
        if not isinstance(expected, str):
            raise TypeError(f"a quantity is a text such as '5 mg', not {expected!r}")
        read_quantity(expected)
