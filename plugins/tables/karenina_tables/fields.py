"""A field of a template in cells: its name, type, description, what is expected and how that is compared."""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime
from decimal import Decimal, InvalidOperation
from typing import Any

from karenina_core.errors import did_you_mean

from .cells import Cell, Percent, is_blank, parsed, read_list, text_of, write_list
from .written import COMMA, POINT, TRUTHS, day_text, number_text, quantity

Spec = dict[str, Any]
TYPES: Mapping[str, tuple[str, ...]] = {
    "str": ("text", "str", "string"),
    "int": ("whole number", "int", "integer"),
    "float": ("number", "float", "decimal"),
    "bool": ("yes/no", "bool", "boolean"),
    "list_str": ("list", "list_str", "list[str]"),
    "date": ("date",),
}
"""Type of a field -> words for it; the first one is written."""
_KINDS = {
    **{"str": "a text", "int": "a whole number", "float": "a number", "bool": "yes or no", "list_str": "a list"},
    **{"date": "a date", "literal": "a choice"},
}
CHOICE = re.compile(r"(?:choice|literal|one of)\s*:(.*)", re.IGNORECASE | re.DOTALL)
LIST: Spec = {"type": "SetContainment", "normalize": ["lowercase", "strip"]}
WORDS: Mapping[str, Spec] = {
    "case sensitive": {"type": "ExactMatch", "normalize": ["strip"]},
    "at least": {"type": "NumericMinimum"},
    "at most": {"type": "NumericMaximum"},
    "in order": {"type": "OrderedMatch"},
    "all of": {**LIST, "mode": "superset"},
    "any of": {**LIST, "mode": "overlap"},
    "none but": {**LIST, "mode": "subset"},
    "meaning": {"type": "SemanticMatch"},
}
"""Ways to compare in plain words. Any primitive can be named too, or written as JSON with its parameters."""
SEARCHES: Mapping[str, tuple[str, str]] = {
    "contains any": ("ContainsAny", "substrings"),
    "contains all": ("ContainsAll", "substrings"),
    "matches": ("RegexMatch", "pattern"),
}
"""The same of those that look for what is expected in a text."""
NUMBERS = ("expected", "tolerance")
"""Facets that may be numbers."""
FLOAT_TOLERANCE = 0.001
"""Of a number without a tolerance of its own, relative; as existing tools for templates have it."""
UNIT = re.compile(r"(.+) \(in ([^()]+)\)", re.DOTALL)
ANSWER = "answer"
LARGEST = 2**53
"""Up to it a floating point number is a whole number exactly."""


class CellProblem(ValueError):
    """What is wrong with one facet of a field."""

    def __init__(self, facet: str, message: str) -> None:
        self.facet = facet
        super().__init__(message)


def may_be_number(cells: Mapping[str, Cell]) -> bool:
    """Whether what is expected in these cells is a number or a date, should it look like one."""
    word, way = (" ".join(text_of(cells.get(facet)).split()).casefold() for facet in ("type", "compare"))
    if word:
        return any(word in TYPES[type_] for type_ in ("int", "float", "date"))
    return way in ("", "at least", "at most") or way.startswith(("numeric", "date"))


def _plain(cells: Mapping[str, Cell], mark: str) -> dict[str, Cell]:
    """The cells with numbers and days as programs write them, and the unit of what is expected in a cell of its own."""
    found = dict(cells)
    for facet in NUMBERS if may_be_number(cells) else ("tolerance",):
        if not isinstance(cell := found.get(facet), str | Percent):
            continue
        text = text_of(cell)
        parts = quantity(text) if facet == "expected" and is_blank(cells.get("aliases")) else None
        if parts and text_of(cells.get("unit")).strip() in ("", parts[1]):
            text, found["unit"] = parts
        if facet == "tolerance":
            text = _in_unit(text, text_of(found.get("unit")).strip())
        ending = text[-1:] if text.endswith("%") else ""
        try:
            found[facet] = day_text(number_text(text.removesuffix(ending).lstrip("± "), mark)) + ending
        except ValueError as error:
            raise CellProblem(facet, str(error)) from None
    return found


def _in_unit(tolerance: str, unit: str) -> str:
    """The tolerance without the unit, which is that of what is expected. Raises CellProblem for another one."""
    parts = quantity(tolerance.lstrip("± ")) if unit else None
    if parts is None or parts[1] == "%" != unit:
        return tolerance
    if parts[1] != unit:
        raise CellProblem("tolerance", f"{tolerance!r:.80} is not in {unit}; write it in {unit}, or in percent")
    return tolerance if unit == "%" else parts[0]


def read_field(cells: Mapping[str, Cell], whole: bool = True, mark: str = "") -> Spec:
    """The field as the declarative language has it. Raises CellProblem.

    `whole`: it is the only field of its template, and need not have a name. `mark` stands before decimals in its sheet.
    """
    cells = _plain(cells, mark)
    expected = cells.get("expected")
    if is_blank(expected):
        raise CellProblem("expected", "is empty; write the value that is right, or clear the other cells of the field")
    written = text_of(cells.get("field")).strip() or (ANSWER if whole else "")
    if not written:
        raise CellProblem("field", "a template with several fields needs a name for each; write one")
    type_, values = _read_type(cells.get("type"), expected)
    if type_ == "int" and is_blank(cells.get("type")) and not is_blank(cells.get("tolerance")):
        type_ = "float"  # what a tolerance allows need not be whole
    spec: Spec = {"name": _identifier(written), "type": type_, "description": _description(cells, written)}
    if values:
        spec["literal_values"] = values
    try:
        spec["ground_truth"] = _read_value(type_, expected)
    except (ValueError, ArithmeticError):
        word = TYPES.get(type_, (type_,))[0]
        raise CellProblem(
            "expected", f"{text_of(expected)!r:.80} is not valid for the type {word}; correct it or the type"
        ) from None
    spec["verify_with"] = _primitive(type_, spec["ground_truth"], cells)
    return spec


def _identifier(written: str) -> str:
    return re.sub(r"\W+", "_", written).strip("_") or written


def _description(cells: Mapping[str, Cell], written: str) -> str:
    text, unit = text_of(cells.get("description")).strip(), text_of(cells.get("unit")).strip()
    if not text:
        named = written.replace("_", " ")
        text = (
            "The final answer that the response gives to the question"
            if written == ANSWER
            else f"What the response gives as its answer for: {named}"
        )
    return f"{text} (in {unit})" if unit else text


def _read_type(cell: Cell, expected: Cell) -> tuple[str, list[str]]:
    text = text_of(cell).strip()
    if match := CHOICE.fullmatch(text):
        return "literal", read_list(match[1])
    if not text:
        return _guessed_type(expected), []
    for type_, words in TYPES.items():
        if text.casefold() in words:
            return type_, []
    known = [words[0] for words in TYPES.values()]
    raise CellProblem(
        "type", f"there is no {text!r:.80}{did_you_mean(text, known)}; write {', '.join(known)}, or choice: a | b"
    )


def _guessed_type(expected: Cell) -> str:
    if isinstance(expected, list):
        return "list_str"
    text = text_of(expected).strip()
    if text.casefold() in TRUTHS and not text.isdecimal():
        return "bool"
    if re.fullmatch(r"[+-]?\d{1,15}", text, re.ASCII):
        return "int"
    if re.fullmatch(r"[+-]?\d{1,15}\.\d{1,15}([eE][+-]?\d{1,3})?", text, re.ASCII):
        return "float"
    if re.fullmatch(r"\d{4}-\d\d-\d\d", text, re.ASCII):
        return "date"
    return "list_str" if "|" in text or "\n" in text or isinstance(parsed(text), list) else "str"


def _read_value(type_: str, cell: Cell) -> Any:
    text = text_of(cell).strip()
    if type_ == "bool":
        if text.casefold() not in TRUTHS:
            raise ValueError(text)
        return TRUTHS[text.casefold()]
    if type_ in ("int", "float"):
        number = float(text)
        if number - number != 0:  # infinite, or no number
            raise ValueError(text)
        if type_ == "float":
            return number
        return int(text) if re.fullmatch(r"[+-]?\d+", text, re.ASCII) else int(number) if number % 1 == 0 else number
    if type_ == "date":
        return (cell if isinstance(cell, date) else datetime.fromisoformat(text)).isoformat()[:10]
    return read_list(cell if not isinstance(cell, list) else json.dumps(cell)) if type_ == "list_str" else text


def _primitive(type_: str, expected: Any, cells: Mapping[str, Cell]) -> Spec:
    word = text_of(cells.get("compare")).strip()
    aliases = read_list(cells.get("aliases"))
    tolerance = text_of(cells.get("tolerance")).strip()
    named = re.fullmatch(r"[A-Z]\w+", word) is not None
    if (aliases or tolerance) and word and not named:
        facet = "aliases" if aliases else "tolerance"
        raise CellProblem(facet, f"say how to compare, and {word!r:.80} does, too; clear one of the two")
    taken = f"{text_of(cells.get('expected'))!r:.80} is taken for {_KINDS[type_]}"
    parameters = {**({"aliases": aliases} if aliases else {}), **(_tolerance(type_, tolerance) if tolerance else {})}
    if named:
        return {"type": word, **parameters}
    if aliases and type_ != "str":
        raise CellProblem("aliases", f"are other words for a text, but {taken}; clear the cell, or write text as type")
    if tolerance and type_ not in ("int", "float", "date"):
        raise CellProblem("tolerance", f"is for numbers and dates, but {taken}; correct one of the two")
    if word:
        return _compared(word, expected)
    if parameters:
        name = "AliasMatch" if aliases else "DateTolerance" if type_ == "date" else "NumericTolerance"
        return {"type": name, **parameters}
    if type_ == "float":
        return {"type": "NumericTolerance", "tolerance": FLOAT_TOLERANCE, "mode": "relative"}
    if type_ == "list_str":
        return dict(LIST)
    names = {"bool": "BooleanMatch", "int": "NumericExact", "date": "DateMatch"}
    return {"type": names.get(type_, "LiteralMatch" if type_ == "literal" else "ExactMatch")}


def _compared(word: str, expected: Any) -> Spec:
    plain = " ".join(word.casefold().split())
    if plain in WORDS:
        return dict(WORDS[plain])
    if plain in SEARCHES:
        name, parameter = SEARCHES[plain]
        parts = expected if isinstance(expected, list) else read_list(str(expected))
        value = str(expected) if parameter == "pattern" else parts
        return {"type": name, parameter: value} | ({} if parameter == "pattern" else {"normalize": ["lowercase"]})
    if word.startswith("{"):
        if isinstance(spec := parsed(word), dict):
            return spec
        raise CellProblem("compare", 'is not JSON; write {"type": "NumericRange", "min": 1, "max": 2}')
    known = [*WORDS, *SEARCHES]
    raise CellProblem(
        "compare", f"there is no {word!r:.80}{did_you_mean(word, known)}; write {', '.join(known)}, or a primitive"
    )


def _tolerance(type_: str, text: str) -> Spec:
    """`5 %` is relative, `0.5` in the value's own unit, `3 days` of a date."""
    try:
        if type_ == "date":
            number, _, unit = text.partition(" ")
            return {"tolerance": int(number)} | ({"unit": unit.strip()} if unit else {})
        relative = text.endswith("%")
        number_ = Decimal(text.removesuffix("%").lstrip("±").strip()) / (100 if relative else 1)
        if not number_.is_finite() or number_ < 0:
            raise ValueError(text)
        return {"tolerance": float(number_), "mode": "relative" if relative else "absolute"}
    except (InvalidOperation, ValueError, OverflowError):
        hint = "3 days" if type_ == "date" else "5 % or 0.5"
        raise CellProblem("tolerance", f"{text!r:.80} is not a tolerance; write it like {hint}") from None


# and back


def written_field(spec: Spec, whole: bool, facets: Collection[str], mark: str = "") -> dict[str, Cell] | None:
    """The cells that are read as this field, of facets that have a column; None where there are none."""
    with suppress(KeyError, TypeError, AttributeError, ValueError):  # of templates that are wrong
        type_ = f"choice: {write_list(spec['literal_values'])}" if spec["type"] == "literal" else TYPES[spec["type"]][0]
        for truth in _truths(spec, mark):
            cells: dict[str, Cell] = {"field": spec["name"], "type": type_, "expected": truth}
            for words in _descriptions(spec["description"]):
                for way in _ways(spec["verify_with"], spec["type"], mark):
                    found = {facet: cell for facet, cell in {**cells, **words, **way}.items() if facet in facets}
                    with suppress(CellProblem):
                        if _same(read_field(found, whole, mark), spec):
                            return found
    return None


def _same(one: Any, other: Any) -> bool:
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def _truths(spec: Spec, mark: str) -> Iterator[Cell]:
    truth = spec["ground_truth"]
    if isinstance(truth, bool):
        yield "yes" if truth else "no"
    elif isinstance(truth, int | float):
        if isinstance(truth, float) and truth.is_integer() and abs(truth) < LARGEST:
            truth = int(truth)
        yield (number := _number(truth, mark))
        if match := UNIT.fullmatch(spec["description"]):
            yield f"{number} {match[2]}"
    elif isinstance(truth, list):
        yield from (write_list(truth), " | ".join(truth), json.dumps(truth, ensure_ascii=False))
    else:
        yield truth


def _descriptions(text: str) -> Iterator[dict[str, str]]:
    yield {}
    if match := UNIT.fullmatch(text):
        yield {"unit": match[2]}
        yield {"description": match[1], "unit": match[2]}
    yield {"description": text}


def _number(number: float, mark: str) -> Cell:
    """The cell of a number; a text, where it is written with a comma."""
    return repr(number).replace(POINT, COMMA) if mark == COMMA and isinstance(number, float) else number


def _ways(primitive: Spec, type_: str, mark: str) -> Iterator[dict[str, str]]:
    yield {}
    if "tolerance" in primitive:
        amount = primitive["tolerance"]
        if type_ == "date":
            cell = f"{amount} {primitive.get('unit', '')}".strip()
        elif primitive.get("mode") == "relative":
            share = f"{(Decimal(repr(amount)) * 100).normalize():f}"
            cell = f"{share.replace(POINT, COMMA if mark == COMMA else POINT)} %"
        else:
            cell = text_of(_number(amount, mark))
        yield {"tolerance": cell}
        yield {"tolerance": cell, "compare": str(primitive.get("type"))}
    name = str(primitive.get("type"))
    if aliases := primitive.get("aliases"):
        yield {"aliases": write_list(aliases)}
        yield {"aliases": write_list(aliases), "compare": name}
    for word in (*WORDS, *SEARCHES, name):
        yield {"compare": word}
    yield {"compare": json.dumps(primitive, ensure_ascii=False)}
