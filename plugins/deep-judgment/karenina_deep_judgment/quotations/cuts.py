"""Where a text may be cut: between words and numbers, and never between a number and what gives it its meaning."""

from __future__ import annotations

import re
import unicodedata

from .normalised import CHARACTERS, HANGUL, UNSPACED

__all__ = ["is_torn"]

REACH = 16
"""Characters on either side of a cut that are looked at."""
MYRIADS = "十百千万萬亿億兆십백천만억조"
PARTICLES = "은|는|이|가|을|를|의|에|에서|에게|와|과|도|로|으로|부터|까지|보다|처럼|입니다|이다"
PREFIXES = "non|anti|counter|contra|pseudo|quasi|semi|half|self|multi|inter|intra|over|under|post|pre|sub|low|high"
REVERSING = (
    "negative|free|less|deficient|null|naive|independent|resistant|refractory|insensitive|inactive|lacking|depleted"
    "|sparing|poor|knock|fold|like"
)
WORD = rf"[^\W{UNSPACED}{HANGUL}]"
UNIT = r"[^\W\d_]{1,5}"
TORN = re.compile(
    rf"""
      {WORD}\x00{WORD} | [{HANGUL}]\x00[^\W{UNSPACED}]  # in a word or a number; BCL2|를 is two
    | [\w)][-']\x00\w | \w\x00[-']\w                    # in a compound: non-|effective, can|'t, (-)-|form
    | (?<!\w)[!¬]\x00[\w(]                              # behind a negation: !|enabled
    | (?:[-+±⁻.负負]|零下)\x00\.?\d                      # behind a sign or a decimal point
    | (?:(?<!-)[<>]=?|[≤≥≦≧⩽⩾≠≈≃≲≳≪≫~∼]|!==?)\ ?\x00[-+]?\.?\d  # behind a bound
    | [\^/⁄∕]\ ?\x00[-+]?\.?\d                          # behind what divides or raises
    | \d[.,:]\x00\d | \d\x00[.,:]\d                     # in 2.5
    | (?<![\w.,])\d{{1,3}}(?:\x00\ |\ \x00)\d{{3}}(?!\d)  # in 1 000
    | \d(?:\ ?{UNIT})?(?:\x00\ -\ |\ -\ \x00)\d         # in 100 - 200
    | \d\x00(?:\ ?[%‰]|[°^/⁻]|\ ?[⁄∕]|\ /\ ?\d|[{MYRIADS}])  # before what gives a number its meaning
    | \d\ ?{UNIT}\x00(?:/|[·⋅∙×]\w|\ /\ ?{UNIT}(?!\w))  # 400 mg|/day, 40 mg| / kg, 40 mg|·kg
    | \w\x00(?:[-+](?!\w)|[⁺⁻]|\ ?\([-+]\))             # HER2|-, Na|⁺, HER2| (-)
    """,
    re.VERBOSE,
)
"""A text is torn where this fits around the cut, which is the \\x00."""
WHOLE = re.compile(
    rf"""
      \x00's(?!\w)
    | [{HANGUL}]\x00(?:{PARTICLES})(?!\w)
    | (?<!\w)(?!\d|(?:{PREFIXES})\x00)(?=\w*[^\W\d_])\w{{3,}}\x00-(?!{REVERSING})[a-z]{{4,}}
    | (?<!\w)(?<!\d\ )(?!\d)(?=\w*[^\W\d_])\w{{4,}}\x00[⁰¹²³⁴-⁹]{{1,3}}(?![\w⁺⁻])
    """,
    re.VERBOSE,
)
"""Endings that leave the word before them as it is: drug|'s, a Korean particle, BCL2|-selective, BCL2|¹."""
ALIKE = str.maketrans({**CHARACTERS, **dict.fromkeys("\0\u00a0\u2007\u2009\u202f", " "), "*": "", "\\": ""})


def is_torn(text: str, position: int) -> bool:
    """Whether a cut at this position tears a word or a number apart, or a number from its sign, bound or unit."""
    before, after = text[max(0, position - REACH) : position], text[position : position + REACH]
    if not after or not before:
        return False
    cut = "\0".join(side.translate(ALIKE) for side in (before, after))
    if TORN.search(cut):
        return WHOLE.search(cut) is None
    return _is_mark(after[0]) or (_is_mark(before[-1]) and re.match(rf"[^\W{UNSPACED}]", after) is not None)


def _is_mark(character: str) -> bool:
    """Whether it belongs to the letter before it: accents, vowel signs."""
    return character > "\u02ff" and unicodedata.category(character)[0] == "M"
