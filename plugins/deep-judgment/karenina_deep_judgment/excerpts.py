"""Collecting quotations that are really there: the judge is shown which of its quotations are not, and asked again.

Knows nothing of templates: what is quoted for has a name, and how the judge is asked is a function.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from attrs import asdict, define, field, frozen

from karenina_core.errors import ParseError

from .replies import Offered

if TYPE_CHECKING:
    from .quotations.matching import Source

LARGE = 20_000
"""Characters; longer texts are searched in a thread, so that other items continue meanwhile."""

OFFERS_PER_EXCERPT = 4
"""So many times the wanted number of quotations is looked up; a judge may offer thousands."""
MOST_REJECTED = 20
"""Rejected quotations that the judge is shown: the latest."""
MOST_SHOWN = 500
"""Characters of a rejected quotation that the judge is shown again."""


@frozen(kw_only=True)
class ExcerptRules:
    """How many quotations, how true to the letter, how often asked again."""

    most: int = 3
    """Accepted quotations per name."""
    threshold: float = 0.80
    """See `matching`."""
    retries: int = 2
    """How often the judge may be asked again."""
    enough: int | None = None
    """Once so many are accepted for a name, it is not asked for again; None: `most`."""
    deterministic: bool = False
    """Whether the judge replies to the same request in the same way, so that it is no use to repeat one."""
    explained: bool = False
    """Whether it has to be explained that there is nothing to quote, by an entry without text and with the confidence
    `none`. A name about which a reply says nothing is then asked for again."""


@frozen(kw_only=True)
class Excerpt:
    """A quotation that was found, or the explanation of why there is none (without text, start and end)."""

    text: str
    confidence: str
    similarity_score: float
    start: int | None = None
    """The first character of the passage in the text that the judge read."""
    end: int | None = None
    explanation: str | None = None
    left_out: tuple[str, ...] | None = None
    """Asides of the passage that the quotation leaves out, as they were written; None where it leaves out none."""
    search_results: tuple[Mapping[str, Any], ...] | None = None
    """What a search found, each `{"title", "url", "content"}`; empty where it found nothing, None where it was not
    made or failed."""
    search_error: str | None = None
    hallucination_risk: str | None = None
    hallucination_justification: str | None = None

    def row(self) -> dict[str, Any]:
        """As plain data, without what is not known."""
        known = {name: value for name, value in asdict(self, recurse=False).items() if value is not None}
        if self.search_results is not None:
            known["search_results"] = [dict(result) for result in self.search_results]
        if self.left_out is not None:
            known["left_out"] = list(self.left_out)
        return known

    def shown(self, *, results: bool = True) -> dict[str, Any]:
        """What a judge is shown of it; `results`: with what a search found."""
        row = self.row()
        found = ("search_results",) if results else ()
        keys = ("text", "left_out", "confidence", "hallucination_risk", "hallucination_justification", *found)
        return {key: row[key] for key in keys if key in row}


@frozen
class Rejected:
    """A quotation that is not in the text."""

    name: str
    text: str

    @property
    def shown(self) -> str:
        """What the judge is shown of it."""
        return self.text[:MOST_SHOWN]


@frozen(kw_only=True)
class Gathered:
    """The outcome for all names."""

    excerpts: Mapping[str, tuple[Excerpt, ...]]
    without: tuple[str, ...]
    """Names for which no quotation was accepted, in their order."""
    rejected: tuple[Rejected, ...]
    """What the last reply that could be read offered and is not in the text."""
    retries: int

    @property
    def invented(self) -> tuple[str, ...]:
        """Names for which the judge in the end had nothing but quotations that are not in the text. Of the others in
        `without` it replied that the text has nothing, or did not reply."""
        offered = {found.name for found in self.rejected}
        return tuple(name for name in self.without if name in offered)


Ask = Callable[[Sequence[str], Sequence[Rejected]], Awaitable[Mapping[str, Sequence[Offered]]]]
"""Asks the judge for quotations about some names, showing it which ones were rejected. Raises ParseError."""


async def gather(ask: Ask, names: Sequence[str], source: Source, rules: ExcerptRules) -> Gathered:
    """Ask, look every quotation up, and ask again while some are not there.

    A quotation that was accepted is kept. Asked again are the names with a rejected quotation and those that have none
    at all; a name without any is no reason to ask again by itself, because a text may have nothing to quote, unless
    the rules want that explained. What was rejected to the last is dropped. Of one reply and name, 4 quotations are
    looked up for each one that is wanted, and the judge is shown the latest 20 that were rejected.

    A reply that cannot be used ends it, for the port has had it corrected as often as it may be. Raises ParseError
    where that was the first one, or a name that had to be asked for again is still without any: what the judge would
    have replied is not known.
    """
    held = {name: _Held() for name in names}
    enough = rules.most if rules.enough is None else rules.enough
    rejected: dict[Rejected, None] = {}
    asked, wanting = tuple(names), set(names)
    refused: list[Rejected] = []
    failure: ParseError | None = None
    sent: list[tuple[Any, ...]] = []
    while len(sent) <= rules.retries:
        shown = [r for r in rejected if r.name in asked][-MOST_REJECTED:]
        request = (asked, shown, bool(sent))
        if rules.deterministic and request in sent:
            break
        sent.append(request)
        try:
            offered = await ask(asked, shown)
        except ParseError as error:
            failure = error
            break
        refused = await _sifted({name: offered[name] for name in asked}, held, source, rules)
        rejected.update(dict.fromkeys(refused))
        wanting = {found.name for found in refused if len(held[found.name].excerpts) < enough}
        wanting |= {name for name in asked if rules.explained and not held[name].rows()}
        if not wanting:
            break
        asked = tuple(name for name in names if name in wanting or not held[name].excerpts)
    if failure is not None and not (len(sent) > 1 and all(held[name].excerpts for name in wanting)):
        raise failure
    return Gathered(
        excerpts={name: found.rows() for name, found in held.items() if found.rows()},
        without=tuple(name for name, found in held.items() if not found.excerpts),
        rejected=tuple(refused),
        retries=len(sent) - 1,
    )


@define
class _Held:
    """What has been accepted for one name so far."""

    excerpts: list[Excerpt] = field(factory=list)
    explanation: str | None = None

    def rows(self) -> tuple[Excerpt, ...]:
        if self.excerpts or self.explanation is None:
            return tuple(self.excerpts)
        return (Excerpt(text="", confidence="none", similarity_score=0.0, explanation=self.explanation),)

    def take(self, offered: Sequence[Offered], source: Source, rules: ExcerptRules) -> list[str]:
        """Keep what is in the text; the texts of the others. The results of earlier attempts are dropped."""
        reasons = [o for o in offered if not o.text and o.explanation]
        if rules.explained:
            reasons = [o for o in reasons if o.confidence == "none"]
        self.explanation = reasons[0].explanation if reasons else None
        refused = []
        different: dict[str, Offered] = {}
        for candidate in offered:
            different.setdefault(candidate.text, candidate)
        different.pop("", None)
        for candidate in islice(different.values(), OFFERS_PER_EXCERPT * rules.most):
            if len(self.excerpts) >= rules.most:
                break
            place = source.find(candidate.text, rules.threshold)
            if place is None:
                refused.append(candidate.text)
            elif (place.start, place.end) not in {(found.start, found.end) for found in self.excerpts}:
                self.excerpts.append(
                    Excerpt(
                        text=candidate.text,
                        confidence=candidate.confidence,
                        similarity_score=place.similarity,
                        start=place.start,
                        end=place.end,
                        explanation=candidate.explanation or None,
                        left_out=tuple(source.text[start:end].strip() for start, end in place.left_out) or None,
                    )
                )
        return refused


async def _sifted(
    offered: Mapping[str, Sequence[Offered]], held: Mapping[str, _Held], source: Source, rules: ExcerptRules
) -> list[Rejected]:
    def sift() -> list[Rejected]:
        return [Rejected(name, text) for name, rows in offered.items() for text in held[name].take(rows, source, rules)]

    return await asyncio.to_thread(sift) if len(source.text) > LARGE else sift()
