"""Values as people write them: numbers with a decimal comma or a unit, dates with dots, yes in other languages."""

from __future__ import annotations

import re
from collections.abc import Iterable
from datetime import date

POINT, COMMA = ".", ","
TRUTHS = {
    **{"yes": True, "true": True, "1": True, "no": False, "false": False, "0": False},
    **{"ja": True, "wahr": True, "waar": True, "oui": True, "vrai": True, "sí": True, "verdadero": True, "vero": True},
    **{"nein": False, "falsch": False, "onwaar": False, "non": False, "faux": False, "falso": False},
}
"""English words, and how spreadsheet programs of some languages write a truth value."""


def _thousands(mark: str) -> str:
    return rf"[+-]?(?!0)\d{{1,3}}(?:{mark}\d{{3}})+"


def _decimal(mark: str, thousands: str) -> re.Pattern[str]:
    """Numbers that show this decimal mark: by decimals behind it, or by several of the other."""
    groups = _thousands(re.escape(thousands))
    several = rf"{groups}{re.escape(thousands)}\d{{3}}"
    return re.compile(rf"{groups}{mark}\d+|{several}|[+-]?\d*{mark}\d+(?:[eE][+-]?\d+)?", re.ASCII)


_EITHER = re.compile(r"[+-]?(?!0)\d{1,3}[.,]\d{3}", re.ASCII)
"""A decimal number, or thousands."""
_WITH = {POINT: _decimal(r"\.", ","), COMMA: _decimal(",", ".")}
_SPACED = re.compile(_thousands("[ '’\u00a0\u202f]") + r"(?:[.,]\d+)?", re.ASCII)
_DAY = re.compile(r"(\d{1,2})(\.\s?|/)(\d{1,2})\2(\d{4})", re.ASCII)
_SYMBOLS = (
    "kg g mg µg μg ug ng pg mol mmol µmol μmol nmol M mM µM μM nM pM L l dL dl mL ml µL μL km m cm mm µm μm nm Å h min "
    "s ms d K °C °F % ‰ Da kDa Hz kHz MHz GHz eV keV MeV J kJ cal kcal W kW V mV A mA Pa kPa MPa bar mbar atm mmHg IU "
    "U bp kb Mb day days week weeks month months year years hour hours minute minutes second seconds"
)
"""What is taken for a unit without being said to be one."""
_UNITS = "|".join(sorted(_SYMBOLS.split(), key=len, reverse=True))
_QUANTITY = re.compile(rf"([+-]?\d(?:[\d.,'’ \u00a0\u202f]*\d)?)(\s*)((?:{_UNITS})(?:/(?:{_UNITS}))?)")


def decimal_mark(texts: Iterable[str], delimiter: str | None) -> str:
    """What stands before the decimals in these cells; nothing where they do not say it, or not with one voice.

    Programs that separate cells with semicolons do so because they write decimals with a comma.
    """
    numbers = [number for text in texts if (number := _bare(text))]
    shown = {mark for mark, form in _WITH.items() for number in numbers if _shows(number, form)}
    if not shown and delimiter == ";" and any("," in number and is_ambiguous(number) for number in numbers):
        return COMMA
    return shown.pop() if len(shown) == 1 else ""


def is_ambiguous(text: str) -> bool:
    """Whether the number in a cell depends on the decimal mark of its sheet."""
    return _EITHER.fullmatch(_bare(text)) is not None


def _bare(text: str) -> str:
    """The number at the beginning of a quantity, or the whole text."""
    text = text.replace("−", "-").strip()
    found = _QUANTITY.fullmatch(text)
    return (found[1] if found else text.removesuffix("%").lstrip("±")).strip()


def _shows(number: str, form: re.Pattern[str]) -> bool:
    return form.fullmatch(number) is not None and not is_ambiguous(number)


def number_text(text: str, mark: str) -> str:
    """The number as programs write it, where the text is one; else the text.

    Raises ValueError for one that is another number with another decimal mark, where the mark is not known.
    """
    text = text.strip().replace("−", "-")
    if _EITHER.fullmatch(text) and "," in text and not mark:
        raise ValueError(
            f"{text!r} may be {text.replace(',', '.')} or {text.replace(',', '')}; write it as one of these"
        )
    if _SPACED.fullmatch(text):
        return re.sub(r"[^\d.,+-]", "", text).replace(",", ".")
    if _EITHER.fullmatch(text):
        return text.replace(",", "" if mark == POINT else ".") if mark != COMMA else _with_point(text)
    if _WITH[COMMA].fullmatch(text):
        return _with_point(text)
    return text.replace(",", "") if _WITH[POINT].fullmatch(text) else text


def _with_point(text: str) -> str:
    return text.replace(".", "").replace(",", ".")


def quantity(text: str) -> tuple[str, str] | None:
    """The number and the unit of a text that is nothing else. A single letter is a unit behind a space only: 7A is
    rather a name than a current."""
    found = _QUANTITY.fullmatch(text.strip().replace("−", "-"))
    if found is None or (len(found[3]) == 1 and found[3].isalpha() and not found[2]):
        return None
    return found[1].strip(), found[3]


def day_text(text: str) -> str:
    """The day as 2024-05-31, where the text is one with dots (the day is first) or slashes; else the text.

    Raises ValueError where it may be another day: 3/4/2024.
    """
    found = _DAY.fullmatch(text.strip())
    if found is None:
        return text
    one, other, year = int(found[1]), int(found[3]), int(found[4])
    if found[2] == "/" and one <= 12 and other <= 12 and one != other:
        raise ValueError(
            f"{text!r} may be {year}-{other:02}-{one:02} or {year}-{one:02}-{other:02}; write one of these"
        )
    if found[2] == "/" and other > 12:
        one, other = other, one
    try:
        return date(year, other, one).isoformat()
    except ValueError:
        return text
