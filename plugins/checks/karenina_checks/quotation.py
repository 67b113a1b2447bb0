"""Whether a passage that a judge quotes stands in the text that it was shown."""

from __future__ import annotations

import unicodedata

__all__ = ["occurs"]


def occurs(quotation: str, text: str) -> bool:
    """Whether the quotation is a passage of the text.

    Letters and digits are compared, without case, accents and ligatures; white space, quotation marks, emphasis and
    other punctuation do not count, for judges change them when they copy. A quotation without any letter or digit must
    occur as it is. An empty one occurs nowhere.
    """
    wanted = _letters(quotation)
    if wanted:
        return wanted in _letters(text)
    exact = quotation.strip()
    return bool(exact) and exact in text


def _letters(text: str) -> str:
    # Twice, because folding the case of a character may leave one that can be decomposed again.
    folded = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(character for character in folded if character.isalnum())
