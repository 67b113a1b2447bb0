"""Words of questions and answers, as far as two texts are compared by them."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Hashable
from decimal import Decimal, InvalidOperation
from typing import Any

from karenina_template.lint.spelling import NUMBER_WORDS as COUNTED
from karenina_template.lint.spelling import number_of, squeezed

_WORD = re.compile(r"\d+(?:[.,]\d+)*|(?!(?<=['’])s\b)[^\W\d_]+|[^\W_]+")
_LITTLE = (
    "a an the of in on at by to for from with and or as is are was were be been being do does did has have had it its "
    "this that these those there which what who whom whose when where why how name give state list tell please "
    "many much about if than then into out up down over under their his her they he she we you your i can could "
    "would should will may might must not no yes called known used using"
)
_STOP = frozenset(_LITTLE.split())
_ENDINGS = ("ing", "ied", "ies", "ed", "es", "s")
NUMBER_WORDS = {**COUNTED, "none": Decimal(0), "once": Decimal(1), "twice": Decimal(2)}


def plain(text: str) -> str:
    """Without differences of width, case and accents."""
    folded = unicodedata.normalize("NFKD", text).casefold()
    return "".join(mark for mark in folded if not unicodedata.combining(mark))


def spelled(value: Any) -> Hashable:
    """An expected or an extracted value in one spelling; the members of a list in any order."""
    if isinstance(value, list):
        return tuple(sorted(map(str, map(spelled, value))))
    number = number_of(value)
    return number if number is not None else (squeezed(str(value)) or str(value))


def stem(word: str) -> str:
    """The word without an English ending, where enough of it is left."""
    for ending in _ENDINGS:
        if word.endswith(ending) and len(word) - len(ending) >= 3:
            return word[: -len(ending)]
    return word


def terms(text: str) -> list[str]:
    """The stems of what is not a stop word, and numbers in one spelling."""
    found = []
    for word in _WORD.findall(plain(text)):
        if word[0].isdigit():
            try:
                found.append(f"{Decimal(word.replace(',', '')).normalize():f}")
            except InvalidOperation:  # 1.2.3
                found.append(word)
        elif word not in _STOP:
            found.append(stem(word))
    return found


def names(text: str) -> frozenset[str]:
    """Stems of what tells apart questions of one kind: numbers, and words with a capital that begin no sentence."""
    found = set()
    for match in _WORD.finditer(text):
        word, before = match[0], text[: match.start()].rstrip(" \"'“‘(")
        opens = not before or before[-1] in ".!?:"
        has_own_form = any(map(str.isdigit, word)) or any(map(str.isupper, word[1:]))
        if has_own_form or (word[0].isupper() and not opens):
            found |= set(terms(word))
    return frozenset(found)
