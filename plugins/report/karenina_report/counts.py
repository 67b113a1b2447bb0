"""What the overview is made of: counted while the items are made, so that no result has to be kept."""

from __future__ import annotations

import json
from array import array
from collections import Counter
from collections.abc import Hashable, Iterator, Mapping, Sequence
from typing import Any

from attrs import define, field
from karenina_cli.summary import GOOD
from karenina_compare.measures import Item, ItemMaker
from karenina_compare.question_groups import Cluster, name_group
from karenina_results.columns.shared import failure_of
from karenina_runs.summaries.rates import Planned
from karenina_runs.summaries.summary import UNPLANNED, Tally
from karenina_runs.summaries.usage import UsageTally
from karenina_vocabulary.rubric_part import TraitOutcome

from karenina_core import VerificationResult
from karenina_core.values.fields import is_number

from .listing import Listing
from .outcomes import failure
from .texts import shown

ANSWER = "generation"
"""The task whose time is how long a model took to answer."""
MOST_QUESTIONS = 40
"""Questions that are listed on the overview; all items are in the list below it."""
Reason = tuple[str, str, str]
"""Outcome, group and reason of an item that did not pass."""


@define(eq=False)
class PairCounts:
    """An answering model and a judge."""

    failures: Counter[Reason] = field(factory=Counter)
    usage: UsageTally = field(factory=UsageTally)
    seconds: array[float] = field(factory=lambda: array("d"))
    """Of each item, from its first stage to its last."""
    answer_seconds: array[float] = field(factory=lambda: array("d"))
    """Of each answer that was generated for this judge; those that it shares with another are not here."""

    def add(self, result: VerificationResult, reason: Reason | None) -> None:
        if reason is not None:
            self.failures[reason] += 1
        self.usage.add(result)
        self.seconds.append(result.metadata.execution_time)
        own: Any = result.generation.usage_metadata.get(ANSWER)
        if isinstance(own, Mapping) and not own.get("cached") and is_number(own.get("seconds")):
            self.answer_seconds.append(own["seconds"])


@define(eq=False)
class Counts:
    """Everything that is said of all items together."""

    listing: Listing
    cluster: Cluster | None = None
    planned: Planned | None = None
    tally: Tally = field(init=False)
    items: list[Item] = field(factory=list)
    """What models are compared by."""
    named: dict[str, set[Hashable]] = field(factory=dict)
    """The groups that the items of a question name."""
    pairs: list[PairCounts] = field(init=False)
    isolation: Counter[str | None] = field(factory=Counter)
    """How the code of templates was kept apart."""
    run_name: str = ""
    """The first one."""
    hard: Mapping[str, Sequence[int]] = field(init=False)
    """See `Listing.hardest`."""
    more_hard: int = field(init=False)
    texts: dict[str, str] = field(factory=dict)
    """Of these questions."""
    traits: dict[str, int] = field(factory=dict)
    """The numbers of the traits in what the script knows of an item."""
    _reasons: dict[Reason, int] = field(factory=dict)
    _rows: list[str] = field(factory=list)
    """What the script knows of the traits of an item, as JSON; `_known` has those that are alike once."""
    _known: dict[str, str] = field(factory=dict)
    _failed: array[int] = field(factory=lambda: array("l"))
    """The number of the reason of each item; -1 where there is none."""
    _maker: ItemMaker = field(factory=ItemMaker)

    def __attrs_post_init__(self) -> None:
        self.tally = Tally(self.planned or UNPLANNED)
        self.pairs = [PairCounts() for _ in self.listing.pairs]
        self.hard, self.more_hard = self.listing.hardest(MOST_QUESTIONS)

    def add(self, result: VerificationResult, traits: Sequence[TraitOutcome]) -> None:
        """The next result in the order of the listing, and its traits."""
        about, place = result.metadata, len(self.items)
        good = about.outcome in GOOD
        reason = None if good else (about.outcome, failure_of(result)[1] or "", failure(result))
        self.tally.add(result, traits=traits)
        self.items.append(self._maker.item(result, traits))
        name_group(self.named, result, self.cluster)
        self.pairs[self.listing.pair(place)].add(result, reason)
        self.isolation[about.template_isolation] += 1
        self.run_name = self.run_name or about.run_name or ""
        if about.question_id in self.hard and self.hard[about.question_id][0] == place:
            self.texts[about.question_id] = about.question_text
        self._failed.append(-1 if reason is None else self._reasons.setdefault(reason, len(self._reasons)))
        row = packed([[self.traits.setdefault(t.name, len(self.traits)), t.state, _word(t)] for t in traits])
        self._rows.append(self._known.setdefault(row, row) if len(self._known) < MOST_ALIKE else row)

    def index(self, places: Mapping[Reason, int]) -> Iterator[str]:
        """What the script knows of every item, as JSON; `places` are those of the reasons on the page."""
        reasons = [places[reason] for reason in self._reasons] + [-1]
        for place, (row, failed) in enumerate(zip(self._rows, self._failed, strict=True)):
            outcome, pair = self.listing.outcome(place).name, self.listing.pair(place)
            yield f'{{"o":"{outcome}","p":{pair},"f":{reasons[failed]},"t":{row}}}'


MOST_ALIKE = 4096
"""Different rows of traits of which there is one object; chosen."""
packed = json.JSONEncoder(separators=(",", ":"), ensure_ascii=True).encode


def _word(trait: Any) -> str:
    """A score that items can be chosen by: those of traits with few different ones."""
    if isinstance(trait.value, bool):
        return "true" if trait.value else "false"
    if trait.kind == "literal" and trait.value is not None:
        return shown(trait.label or str(trait.value))
    return str(trait.value) if trait.kind == "score" and isinstance(trait.value, int) else ""
