"""What a quotation may leave out: an aside that the text itself sets apart, and that the rest does not hang on."""

from __future__ import annotations

import re
import unicodedata

from attrs import frozen

from .normalised import CHARACTERS, HANGUL, UNSPACED, Words, folded
from .sense import is_clause, is_negation, is_restriction, is_unit

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
LONGEST = 300
"""Characters; what is longer is no aside, and looking further costs time."""
OPENING = re.compile(r"[(\[]|, |(?<= )- ")
ASIDE = re.compile(
    rf"\([^()]{{1,{LONGEST}}}\)|\[[^\[\]]{{1,{LONGEST}}}\]|, [^,;:.!?()\[\]]{{1,{LONGEST}}},"
    rf"|- [^;:.!?()\[\]]{{1,{LONGEST}}}? -(?= )"
)
"""In brackets, between two commas, or between two dashes; commas and dashes enclose no end of a sentence."""
COORDINATED = re.compile(r" ?(?:and|or|but|nor|und|oder|aber|et|ou|mais|ni|y|e|o|pero|ma|en|of)\b")
"""Behind the second comma: what was between was an item of a list or a clause of its own."""
NUMBERED = re.compile(r"[(\[]\d[\d\s,-]*[)\]]")
YEAR = re.compile(r"(?:1[5-9]|20)\d\d(?=[a-z]?[)\];,])")
"""Of a citation: (Smith 2019; Jones 2020a)."""
REFERRING = frozenset(
    {"abb", "appendix", "chapter", "eq", "equation", "fig", "figs", "figure", "figures", "kapitel", "page", "panel"}
    | {"ref", "refs", "reference", "section", "step", "tab", "tabelle", "table", "tables", "tableau"}
)
"""Words before a number that says where to look, and no quantity."""
NAME = re.compile(r"[^\W\d_]-?$")
"""Just before the digits of a name: BCL2, ABT-199. With `endpos`, `$` is where they begin."""
STATISTIC = re.compile(
    r"(?<!\w)(?:n|p|k|r2?|t|z|f|df|or|hr|rr|ci|sd|sem?|iqr|auc|mean|median|range|aged?)(?: of)?(?: ?[=<>≤≥]+ ?| )[-.\d]"
)
"""How a report of a statistic looks in a folded text: (n = 45), (95 % CI 1.2-3.4), (median 3)."""
COUNT = re.compile(r"\(\d[\d.,]* (?!per(?!\w))[^\W\d_]{2,}[^\d%()]*\)|\([A-Z]{2,5} \d+\)")
"""(45 patients), (AMG 510): a number of things, or a name with a number, if none of the words is a unit."""
YEARS = re.compile(r"[(\[](?:1\d|20)\d\d ?(?:-|to|bis) ?(?:(?:1\d|20)\d)?\d\d?[)\]]")
HARMLESS = frozenset("/&_'")


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


@frozen
class Aside:
    """A part of a normalised text that a quotation may leave out."""

    behind: int
    """The number of the first token behind it."""
    start: int
    """Its first character."""
    end: int
    """Behind its last one."""


def aside_at(words: Words, number: int) -> Aside | None:
    """The aside that begins with this token (not the first); None where there is none that may be left out.

    It may not hold a negation, a condition, a restriction or a doubt, nor a quantity, and not be the unit of a number
    or a clause of its own: without them the rest would say something else. The numbers of a reference (`[12]`, `Fig.
    3`, `Smith 2019`), of a statistic (`n = 45`), a count (`45 patients`) or a span of years are no quantities.
    """
    before = words.ends[number - 1]
    opening = OPENING.search(words.text, before, words.starts[number])
    found = ASIDE.match(words.text, opening.start()) if opening else None
    if found is None:
        return None
    is_comma = found.group().startswith(",")
    if is_comma and COORDINATED.match(words.text, found.end()):
        return None
    behind = words.first_from(found.end())
    tokens = () if NUMBERED.fullmatch(found.group()) else range(number, behind)
    keys = words.keys[number:behind]
    if is_unit(keys) or (is_comma and is_clause(keys)):
        return None
    figures = False  # whether the numbers in brackets report on the sentence and are no part of what it says
    if not is_comma:
        aside = found.group()
        counted = COUNT.fullmatch(aside) is not None and not any(is_unit([key]) for key in keys)
        figures = counted or YEARS.fullmatch(aside) is not None or STATISTIC.search(folded(aside)) is not None
    if any(_counts(words, token, bracketed=not is_comma, figures=figures) for token in tokens):
        return None
    return Aside(behind, found.start(), found.end())


def _counts(words: Words, number: int, *, bracketed: bool, figures: bool) -> bool:
    """Whether the text would say something else without this token."""
    key, start = words.keys[number], words.starts[number]
    if figures and not key[0].isalpha():
        return False
    if key[0].isdecimal():
        if NAME.search(words.text, max(0, start - 2), start):
            return False
        return not (bracketed and (words.keys[number - 1] in REFERRING or YEAR.match(words.text, start)))
    if key[0].isalpha():
        return is_negation(key) or is_restriction(key)
    return key not in HARMLESS
