"""Words without which a sentence says something else: negations, conditions, restrictions, doubts.

They are written folded (see `words`). A language that is not listed here has none that are known.
"""

from __future__ import annotations

import re

from .words import folded

__all__ = ["is_negation", "is_restriction", "loses_negation"]

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
"""Negations that stand behind what they negate: er hemmt MCL1 nicht."""
RESTRICTIONS = {
    "English": "without unable hardly barely scarcely rarely seldom lack lacks lacked lacking absent absence fail "
    "fails failed failing false wrong incorrect refuted disproved denied only solely merely if unless "
    "until except excepting excluding provided assuming supposing whether when whenever almost nearly "
    "partly partially sometimes occasionally possibly perhaps maybe probably presumably likely unlikely "
    "apparently allegedly reportedly supposedly putatively potentially hypothetically theoretically "
    "seemingly suspected alleged alleges claimed claims claim purported assumed assumes believed believes "
    "suggests argues said says states stated according may might could would should",
    "German": "ohne kaum selten falsch nur lediglich wenn falls sofern ausser solange ob teilweise manchmal "
    "vielleicht moglicherweise vermutlich wahrscheinlich angeblich anscheinend laut behauptet konnte "
    "durfte soll sollte",
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
REACH = 24
"""Characters on either side of a quotation that are looked at; longer than every negation."""
WORD = r"[^\W\d_]+(?:['’][^\W\d_]+)*"
BEFORE = re.compile(rf"({WORD})[*_]*\s+[*_]*$|([不没沒無无非未別别])$")
BEHIND = re.compile(rf"[*_]*\s+[*_]*({WORD})")
NEGATING = frozenset(word for words in NEGATIONS.values() for word in words.split())
RESTRICTING = frozenset(word for words in RESTRICTIONS.values() for word in words.split())


def is_negation(key: str) -> bool:
    """Whether a folded word negates."""
    return key in NEGATING or key.endswith("n't")


def is_restriction(key: str) -> bool:
    """Whether a folded word is a condition, a restriction or a doubt."""
    return key in RESTRICTING


def loses_negation(text: str, start: int, end: int) -> bool:
    """Whether a passage of a text is cut off from the negation just before it or behind it: no|death occurred."""
    before = BEFORE.search(text[max(0, start - REACH) : start])
    if before and (before[2] or is_negation(folded(before[1].replace("’", "'")))):
        return True
    behind = BEHIND.match(text[end : end + REACH])
    return behind is not None and folded(behind[1]) in FOLLOWING
