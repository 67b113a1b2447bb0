"""The prompts of each step of judging a trait. The port adds the shape of the reply, with the schema.

Nothing here takes or shows the expected answer: a trait is a quality of the text itself.
"""

from __future__ import annotations

from karenina_judging.scoring import scale_words
from karenina_judging.untrusted_text import UNTRUSTED_NOTE
from karenina_vocabulary.traits import ScoredTrait

from .prompts import COPYING

EXCERPTS = f"""\
You collect evidence about one trait of a text. You quote the passages that bear on the trait: those that show it, and \
those that show its opposite or the lack of it. You do not score the trait.

{COPYING}
- The criteria say what the trait is; what does not bear on them is no evidence. Quote what speaks against as readily \
as what speaks for.
- Confidence: high where the passage bears on the trait directly, medium where it implies something about it, low \
where it is weak or ambiguous.
- Where no passage bears on the trait, give one entry with an empty text, the confidence none and a reason. Never make \
a quotation up.

{UNTRUSTED_NOTE}"""

AGAIN = """\
This was asked before, and the reply gave neither a quotation nor a reason why there is none. \
Quote the passages that bear on the trait; where there are none, give the one entry that explains it, with an empty \
text and the confidence none."""

SECTIONS = """\
- Evidence: what speaks for the trait and what speaks against it, each from the {basis}.
- Interpretation: what that means by the criteria, and which of it weighs more. Where the criteria leave something \
open, say how you read them.
- Conclusion: one or two sentences that say to what degree the trait is there. Give no score, no number and no true or \
false; somebody else does that from your conclusion.
- Judge by the criteria alone. Do not complete or correct anything from knowledge of your own, unless the criteria ask \
for it."""

REASONING = f"""\
You reason from quotations to a judgment about one trait of a text, before anybody scores it.

{SECTIONS.format(basis="quotations")}
- The quotations were checked to stand in the text; you do not see the rest of it. What they do not show, you do not \
know.
- A risk beside a quotation tells how far others confirm what it says, by a search that was made about it. It counts \
only where the criteria are about truth or accuracy.

{UNTRUSTED_NOTE}"""

REASONING_FROM_TEXT = f"""\
You reason from a text to a judgment about one trait of it, before anybody scores it.

{SECTIONS.format(basis="text, with its own words")}

{UNTRUSTED_NOTE}"""

SCORE = f"""\
You turn a finished judgment about one trait of a text into its score.

- Follow the conclusion. The evidence and the interpretation tell what it means; they do not overrule it.
- Where the criteria say what a step of the scale means, they count; the words beside the steps only order them.
- Balanced evidence is no reason for the middle of the scale. Take the middle only where the conclusion says so; \
otherwise the step that the conclusion comes closest to.
- Do not judge anew, and use no knowledge of your own.

{UNTRUSTED_NOTE}"""

RUNGS = (
    *("lowest degree", "very low", "low", "below the middle", "middle"),
    *("above the middle", "high", "very high", "highest degree"),
)


def scale(trait: ScoredTrait) -> str:
    """What the judge has to reply, and for numbers what the steps of the scale are called."""
    words = f"Reply with {scale_words(trait)}."
    if trait.kind != "score" or trait.min_score is None or trait.max_score is None:
        return words
    rows = [f"  {step}: {word}" for step, word in _ladder(trait.min_score, trait.max_score)]
    return "\n".join([words, *rows])


def _ladder(low: int, high: int) -> list[tuple[int, str]]:
    """Steps of the scale and their names: every step of a short scale, the named ones of a long one.

    Both halves are alike, and only a scale with a step in its middle has a middle.
    """
    width, last = high - low, len(RUNGS) - 1
    if width <= last:
        lower = [(step, RUNGS[(2 * step * last + width) // (2 * width)]) for step in range((width + 1) // 2)]
    else:
        lower = [((2 * rung * width + last) // (2 * last), RUNGS[rung]) for rung in range(last // 2)]
    upper = [(width - step, RUNGS[last - RUNGS.index(word)]) for step, word in reversed(lower)]
    middle = [(width // 2, RUNGS[last // 2])] if width % 2 == 0 else []
    return [(low + step, word) for step, word in [*lower, *middle, *upper]]
