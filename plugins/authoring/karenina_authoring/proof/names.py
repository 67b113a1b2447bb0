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
_WORDS = re.compile(r"[^\W_][\w.+'-]*")


def neighbours(text: str, question: str = "", most: int = 3) -> Iterator[str]:
    """Other things whose names are close to this one: another number in it, the opposite word, a prefix more, and what
    the question names."""
    found = [*_numbered(text), *_opposite(text)]
    named = [word for word in _WORDS.findall(question) if _is_name(word) and word.casefold() not in text.casefold()]
    found += sorted(dict.fromkeys(named), key=len, reverse=True)[:1]
    if re.fullmatch(r"[^\W\d_]{4,}", text):
        found.append(f"pro{text.lower()}")
    found = [other for other in dict.fromkeys(found) if other.casefold() != text.casefold()]
    yield from (found or [f"{text} B"])[:most]


def _numbered(text: str) -> Iterator[str]:
    match = re.search(r"\d+", text)
    if match and len(match[0]) < 16:
        yield f"{text[: match.start()]}{int(read_number(match[0])) + 1:0{len(match[0])}}{text[match.end() :]}"


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
