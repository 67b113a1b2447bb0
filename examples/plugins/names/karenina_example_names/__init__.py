"""Primitives for templates: the same gene under several symbols, and the same molecular formula."""

import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import field, frozen

from karenina_core import hookimpl
from karenina_core.templates import VerificationPrimitive

KARENINA_API = 1
SYMBOLS: Mapping[str, Sequence[str]] = {
    "ABL1": ("ABL", "c-ABL"),
    "BCL2": ("BCL-2", "B-cell lymphoma 2"),
    "CD274": ("PD-L1", "PDL1", "B7-H1"),
    "CDKN1A": ("p21", "CIP1", "WAF1"),
    "CDKN2A": ("p16", "INK4A"),
    "EGFR": ("ERBB1", "HER1"),
    "ERBB2": ("HER2", "NEU"),
    "KMT2A": ("MLL", "MLL1"),
    "PDCD1": ("PD-1", "PD1", "CD279"),
    "PTGS2": ("COX-2", "COX2"),
    "TNF": ("TNFA", "TNF-α", "cachectin"),
    "TP53": ("p53",),
}
"""Symbols of human genes, each with others that are in use for it."""
GREEK = str.maketrans({"α": "A", "β": "B", "γ": "G", "δ": "D", "κ": "K"})
DIGITS = str.maketrans("₀₁₂₃₄₅₆₇₈₉", "0123456789")
TOKEN = re.compile(r"([A-Z][a-z]?)(\d{0,4})|([([])|([)\]])(\d{0,4})")


def symbol(text: Any) -> str:
    """A gene's name without what its spellings differ in. Raises TypeError and ValueError for what is no name."""
    if not isinstance(text, str):
        raise TypeError(f"the name of a gene is a text, not {text!r}")
    bare = re.sub(r"[\s_-]|\bgene\b", "", text.translate(GREEK)).upper()
    if not bare:
        raise ValueError("the name of a gene is not empty")
    return bare


def _texts(value: Iterable[str]) -> tuple[str, ...]:
    if isinstance(value, str):
        raise TypeError(f"aliases needs a list of texts, not {value!r}")
    return tuple(value)


@frozen
class GeneMatch(VerificationPrimitive):
    """The same gene: its symbol, another one that `SYMBOLS` knows, or one of the `aliases`."""

    aliases: tuple[str, ...] = field(default=(), converter=_texts)

    def check(self, extracted: Any, expected: Any) -> bool:
        names = (expected, *self.other_forms(expected))
        return bool(str(extracted).strip()) and symbol(extracted) in map(symbol, names)

    def check_ground_truth(self, expected: Any) -> None:
        symbol(expected)

    def other_forms(self, expected: Any) -> Sequence[str]:
        known, wanted = [(one, *others) for one, others in SYMBOLS.items()], symbol(expected)
        found = [name for names in known if wanted in map(symbol, names) for name in names if symbol(name) != wanted]
        return (*found, *self.aliases)


def atoms(text: Any) -> Counter[str]:
    """How many atoms of each element a formula has: `Ca(OH)2`, `CuSO4·5H2O`. Raises TypeError and ValueError."""
    if not isinstance(text, str):
        raise TypeError(f"a molecular formula is a text, not {text!r}")
    total: Counter[str] = Counter()
    for part in re.split(r"[·.*]", "".join(text.translate(DIGITS).replace("_", "").split())):
        factor = re.match(r"\d{0,3}", part)
        assert factor is not None
        position, levels = factor.end(), [Counter[str]()]
        while position < len(part):
            match = TOKEN.match(part, position)
            if match is None or (match[4] and len(levels) < 2) or len(levels) > 10:
                raise ValueError(f"a molecular formula has elements, numbers and brackets: {text[:60]!r}")
            position = match.end()
            if match[1]:
                levels[-1][match[1]] += int(match[2] or 1)
            elif match[3]:
                levels.append(Counter())
            else:
                inner = levels.pop()
                levels[-1].update({name: count * int(match[5] or 1) for name, count in inner.items()})
        if len(levels) > 1 or not levels[0]:
            raise ValueError(f"a molecular formula has elements, and its brackets are closed: {text[:60]!r}")
        total.update({name: count * int(factor[0] or 1) for name, count in levels[0].items()})
    return total


@frozen
class FormulaMatch(VerificationPrimitive):
    """The same numbers of atoms. Isomers are not told apart, and a text that is no formula does not pass."""

    def check(self, extracted: Any, expected: Any) -> bool:
        wanted = atoms(expected)
        try:
            return atoms(extracted) == wanted
        except ValueError:
            return False

    def check_ground_truth(self, expected: Any) -> None:
        atoms(expected)

    def other_forms(self, expected: Any) -> Sequence[str]:
        """In Hill's order: carbon, hydrogen, the rest by the alphabet."""
        found = atoms(expected)
        first = ("C", "H") if "C" in found else ()
        order = sorted(found, key=lambda name: (first.index(name) if name in first else len(first), name))
        hill = "".join(f"{name}{found[name] if found[name] > 1 else ''}" for name in order)
        return (hill,) if hill != expected else ()


@hookimpl
def karenina_register_primitives(registry: Any) -> None:
    registry.add(GeneMatch, name="GeneMatch")
    registry.add(FormulaMatch, name="FormulaMatch")
