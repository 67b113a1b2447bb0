"""Words without which a sentence says something else: negations, conditions, restrictions, doubts.

They are written folded (see `words`). A language that is not listed here has none that are known.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from .normalised import folded

NEGATIONS = {
    "English": "no not never none nor neither nobody nothing nowhere non cannot",
    "German": "nicht nichts nie niemals nirgends niemand weder kein keine keinen keinem keiner keines",
    "French": "ne pas jamais rien aucun aucune nul nulle",
    "Spanish": "nunca nada nadie ningun ninguna ninguno tampoco",
    "Italian": "niente nulla nessun nessuno nessuna",
    "Portuguese": "nao nem nenhum nenhuma",
    "Dutch": "niet geen nooit nergens",
    "Chinese": "不 没 沒 無 无 非 未 別 别",
}
FOLLOWING = frozenset({"nicht", "nie", "niemals", "pas", "jamais", "niet", "nooit"})
"""Negations that follow what they negate: er hemmt MCL1 nicht."""
RESTRICTIONS = {
    "English": "without unable hardly barely scarcely rarely seldom lack lacks lacked lacking absent absence fail "
    "fails failed failing false wrong incorrect refuted disproved denied only solely merely if unless "
    "until except excepting excluding provided assuming supposing whether when whenever almost nearly "
    "partly partially sometimes occasionally possibly perhaps maybe probably presumably likely unlikely "
    "apparently allegedly reportedly supposedly putatively potentially hypothetically theoretically "
    "seemingly suspected alleged alleges claimed claims claim purported assumed assumes believed believes "
    "suggests argues argue argued contends contend contended said says states stated according may might could would "
    "should thought hoped hope hopes once falsely mistakenly erroneously retracted withdrawn revoked myth pretend "
    "pretends pretended pretending ineffective far doubt doubtful doubted unproven impossible imagined fictional "
    "rumoured speculated two three four five six seven eight nine ten eleven twelve dozen hundred thousand million "
    "billion twice thrice double triple half quarter third",
    "German": "ohne kaum selten falsch nur lediglich wenn falls sofern ausser solange ob teilweise manchmal "
    "vielleicht moglicherweise vermutlich wahrscheinlich angeblich anscheinend laut behauptet konnte "
    "durfte soll sollte hofft hoffte glaubt glaubte meint zwei drei vier funf zehn hundert tausend halb doppelt",
    "French": "sans faux guere seulement uniquement si sauf hormis lorsque quand presque parfois peut probablement "
    "pretendument selon pourrait devrait dit affirme",
    "Spanish": "sin falso solo solamente unicamente salvo excepto cuando casi quizas quiza tal probablemente "
    "supuestamente segun podria puede dice afirma",
    "Italian": "senza mai soltanto se tranne quando quasi talvolta forse probabilmente presumibilmente secondo "
    "potrebbe puo",
    "Portuguese": "sem apenas somente caso exceto talvez provavelmente segundo poderia pode",
    "Dutch": "zonder alleen slechts als tenzij behalve wanneer misschien waarschijnlijk volgens zou",
    "Chinese": "只 仅 僅 若 据 據",
}
"""What is left out or untrue, conditions, restrictions, doubts, and whose claim it is."""
MEASURES = {
    "prefixes": "nano micro milli centi deci hecto kilo mega giga tera",
    "with prefixes": "gram gramm gramme meter metre mol mole liter litre second watt volt joule byte bit hertz pascal "
    "newton ampere ton tonne calorie curie becquerel",
    "scales": "hundreds thousands millions billions trillions dozens tausend tausende millionen milliarden percent "
    "percentage prozent permille promille points degree degrees grad celsius kelvin fahrenheit each",
    "times": "minute minutes hour hours day days daily week weeks weekly month months monthly year years yearly "
    "annually sekunden minuten stunden tage wochen monate jahre",
    "others": "inch inches foot feet mile miles ounce ounces pound pounds stone dollar dollars euro euros franc francs "
    "franken yen",
    "short": "kg g mg μg ug ng pg l ml dl μl mm cm m km nm μm kpa pa mpa mmhg bar hz khz mhz ghz kb mb gb tb ms s min "
    "h d mmol μmol nmol mv kv v kw mw gw j kj kcal ev kev mev usd eur gbp chf jpy us bn mio mrd $ € £ % ‰ °",
}
BESIDE_MEASURES = (
    "in of per pro a the as all values figures measured expressed given unit units square cubic body weight hundred "
    "thousand million billion 2 3 / · ² ³"
)
"""What may be beside them: in thousands of US dollars, mg / kg."""
HANGING = {
    "English": "which who whom whose where that as since because although though while being having",
    "German": "der die das den dem deren dessen da weil obwohl wobei",
    "French and Spanish": "que qui dont",
}
"""What an aside begins with that has a verb of its own and hangs on the sentence all the same."""
SUBJECTS = {
    "English": "it he she they we you i there this these",
    "German": "er sie es wir ihr",
    "French": "il elle ils elles on",
}
FINITE = {
    "English": "is are was were has had have does did do will can must",
    "German": "ist sind war waren hat haben hatte hatten wird werden wurde wurden",
    "French": "est sont etait ont",
    "Spanish": "son era fueron",
}
"""Auxiliary verbs in forms that a sentence has; those that are other words too are left out."""
REACH = 24
"""Characters on either side of a quotation that are looked at; longer than every negation."""
WORD = r"[^\W\d_]+(?:['’][^\W\d_]+)*"
BEFORE = re.compile(rf"({WORD})[*_]*\s+[*_]*$|([不没沒無无非未別别])$")
FAR = re.compile(r"\bfar\s+from\s+[*_]*$", re.IGNORECASE)
BEHIND = re.compile(rf"[*_]*\s+[*_]*({WORD})")
NEGATING = frozenset(word for words in NEGATIONS.values() for word in words.split())
RESTRICTING = frozenset(word for words in RESTRICTIONS.values() for word in words.split())
UNITS = frozenset(word for words in MEASURES.values() for word in words.split()) | frozenset(
    f"{prefix}{unit}{plural}"
    for prefix in ("", *MEASURES["prefixes"].split())
    for unit in MEASURES["with prefixes"].split()
    for plural in ("", "s")
)
OF_UNITS = frozenset((*UNITS, *BESIDE_MEASURES.split()))
SUBORDINATE = frozenset(word for words in HANGING.values() for word in words.split())
MAIN_SUBJECTS = frozenset(word for words in SUBJECTS.values() for word in words.split())
AUXILIARY = frozenset(word for words in FINITE.values() for word in words.split())


def is_negation(key: str) -> bool:
    """Whether a folded word negates."""
    return key in NEGATING or key.endswith("n't")


def is_restriction(key: str) -> bool:
    """Whether a folded word is a condition, a restriction or a doubt."""
    return key in RESTRICTING


def is_unit(keys: Sequence[str]) -> bool:
    """Whether folded words are what a number is counted in, and nothing else."""
    return any(key in UNITS for key in keys) and all(key in OF_UNITS for key in keys)


def is_clause(keys: Sequence[str]) -> bool:
    """Whether the folded words between two commas are a main clause, as far as can be seen by their first one or a
    form of an auxiliary verb."""
    if not keys or keys[0] in SUBORDINATE:
        return False
    return keys[0] in MAIN_SUBJECTS or not AUXILIARY.isdisjoint(keys)


def loses_negation(text: str, start: int, end: int) -> bool:
    """Whether a passage of a text is cut off from the negation just before it or behind it: no|death occurred."""
    before = BEFORE.search(text[max(0, start - REACH) : start])
    if FAR.search(text[max(0, start - REACH) : start]):
        return True
    if before and (before[2] or is_negation(folded(before[1].replace("’", "'")))):
        return True
    behind = BEHIND.match(text[end : end + REACH])
    return behind is not None and folded(behind[1]) in FOLLOWING
