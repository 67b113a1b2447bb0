"""What people and a judge say about the same items, and how the items were drawn that people looked at."""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence

from attrs import frozen
from karenina_compare.statistics.arrays import Floats, Integers, np
from karenina_compare.statistics.inputs import Numbers, StatisticsError, cluster_codes, numbers

__all__ = ["Sample"]


@frozen(eq=False)
class Sample:
    """Items that a judge has rated, some of which people have rated, too. All arrays have one place for each item."""

    judge: Floats
    """What the judge says: 0 or 1, or a score."""
    people: Floats
    """What people say, in the same unit; NaN where there is no label."""
    questions: Integers
    """The number of the question of each item. Items of one question are never taken as independent."""
    strata: Integers
    """The number of the stratum that an item was drawn from: within one, each item was as likely as the others."""

    @classmethod
    def of(
        cls,
        judge: Numbers,
        people: Sequence[float | None],
        questions: Iterable[Hashable] | None = None,
        strata: Iterable[Hashable] | None = None,
    ) -> Sample:
        """`people` has None where an item has no label; `questions` and `strata` have a name for each item.

        Raises StatisticsError for lists of different length, for what is no finite number, and for a stratum of which
        no item has a label: nothing is known of it.
        """
        said = numbers(judge, "judge")
        items = len(said)
        if len(people) != items:
            raise StatisticsError(
                f"judge has {items} values and people {len(people)}; give None where there is no label"
            )
        given = np.asarray([value is not None for value in people], dtype=bool)
        labels = np.full(items, np.nan)
        labels[given] = numbers([value for value in people if value is not None], "people")
        found = cls(
            said,
            labels,
            cluster_codes(range(items) if questions is None else questions, items),
            cluster_codes([0] * items if strata is None else strata, items),
        )
        if empty := sorted(set(found.strata.tolist()) - set(found.strata[given].tolist())):
            raise StatisticsError(f"stratum {empty[0]} has no label; label at least one of its items, or join strata")
        return found

    @property
    def labelled(self) -> Integers:
        """The places of the items with a label."""
        return np.flatnonzero(~np.isnan(self.people))

    @property
    def binary(self) -> bool:
        """Whether all values, of the judge and of people, are 0 or 1."""
        values = np.concatenate([self.judge, self.people[self.labelled]])
        return bool(((values == 0) | (values == 1)).all())

    @property
    def labelled_questions(self) -> int:
        """How many questions have an item with a label."""
        return int(np.count_nonzero(np.bincount(self.questions[self.labelled])))

    @property
    def strata_used(self) -> Integers:
        """The numbers of the strata that have an item."""
        return np.flatnonzero(np.bincount(self.strata))

    @property
    def independent(self) -> bool:
        """Whether no question has more than one item."""
        return bool((np.bincount(self.questions) <= 1).all())

    def at(self, places: Integers, questions: Integers) -> Sample:
        """These items, of questions with other numbers."""
        return Sample(self.judge[places], self.people[places], questions, self.strata[places])
