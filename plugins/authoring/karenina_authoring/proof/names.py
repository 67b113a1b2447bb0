"""Names that are mistaken for one another."""

from __future__ import annotations

import re
from collections.abc import Iterator

from karenina_template.language.primitives.numeric import read_number

_PAIRS = (
    *(
        "hyper hypo",
        "left right",
        "increase decrease",
        "increased decreased",
        "upper lower",
        "north south",
        "east west",
    ),
    *("agonist antagonist", "activator inhibitor", "activation inhibition", "positive negative", "early late"),
    *("acidic basic", "arterial venous", "systolic diastolic", "intra extra", "primary secondary", "male female"),
    *("acute chronic", "benign malignant", "dominant recessive", "gain loss", "heavy light", "alpha beta", "α β"),
    *("kappa lambda", "κ λ", "endo exo", "anabolic catabolic", "oxidation reduction", "minimum maximum", "major minor"),
    *("anterior posterior", "proximal distal", "dorsal ventral", "superior inferior", "yes no", "I II", "III IV"),
)
NEIGHBOURS = {one: other for pair in map(str.split, _PAIRS) for one, other in (tuple(pair), tuple(reversed(pair)))}
"""Words and beginnings of words that turn a statement into its neighbour."""
MIRRORED = dict(zip("RSDLdlEZ+-", "SRLDldZE-+", strict=True)) | {"cis": "trans", "trans": "cis"}
"""Descriptors of stereoisomers, each with that of its mirror image or its other form."""
_HANDS = re.compile(r"(?<=\()[RSEZ+-](?=\)-?)|\b(?:[DLdl]|cis|trans)(?=-\w)")
_WORDS = re.compile(r"[^\W_][\w.+'-]*")


def neighbours(text: str, question: str = "", most: int = 4) -> Iterator[str]:
    """Other things whose names are close to this one: another number in it, the opposite word, a prefix more, and what
    the question names."""
    found = [*_numbered(text), *_signed(text), *_handed(text), *_opposite(text)]
    named = [word for word in _WORDS.findall(question) if _is_name(word) and word.casefold() not in text.casefold()]
    found += sorted(dict.fromkeys(named), key=len, reverse=True)[:1]
    if re.fullmatch(r"[^\W\d_]{4,}", text):
        found.append(f"pro{text.lower()}")
    found = [other for other in dict.fromkeys(found) if other.casefold() != text.casefold()]
    yield from (found or [f"{text} B"])[:most]


def _numbered(text: str) -> Iterator[str]:
    """With the first number, and the last one, one higher; with another letter behind the number, as in V600E."""
    numbers = [match for match in re.finditer(r"\d+", text, re.ASCII) if len(match[0]) < 16]
    for match in dict.fromkeys((*numbers[:1], *numbers[-1:])):
        yield f"{text[: match.start()]}{int(read_number(match[0])) + 1:0{len(match[0])}}{text[match.end() :]}"
    if re.search(r"\b[A-Z]\d+[A-Z]$", text):
        yield text[:-1] + ("K" if text[-1] != "K" else "E")


def _signed(text: str) -> Iterator[str]:
    """With the other sign before a number, or of a charge behind one."""
    match = re.match(r"[+-](?=[\d.])", text) or re.search(r"(?<=[\d)])[+-]$", text)
    if match:
        yield f"{text[: match.start()]}{'-' if match[0] == '+' else '+'}{text[match.end() :]}"
    elif re.fullmatch(r"\d+(?:\.\d+)?", text):
        yield f"-{text}"


def _handed(text: str) -> Iterator[str]:
    """The other stereoisomer: (R) for (S), D for L, trans for cis, E for Z."""
    for match in _HANDS.finditer(text):
        yield f"{text[: match.start()]}{MIRRORED[match[0]]}{text[match.end() :]}"


def _opposite(text: str) -> Iterator[str]:
    for word in re.findall(r"[^\W\d_]+", text):
        for one, other in NEIGHBOURS.items():
            begins = len(one) > 3 and word.casefold().startswith(one) and len(word) > len(one)
            if word.casefold() == one.casefold() or begins:
                new = other + word[len(one) :]
                yield text.replace(word, new.capitalize() if word[:1].isupper() and other.islower() else new, 1)
                break


def _is_name(word: str) -> bool:
    """Whether a word of a question may be an answer to it: it is long, or has capitals or digits inside."""
    return len(word) > 6 or any(letter.isupper() or letter.isdigit() for letter in word[1:])
