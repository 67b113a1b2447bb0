"""Bounds where items are missing: nothing that the missing items could be is left out."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_compare.statistics import StatisticsError, difference_bounds, rate_bounds, wilson

OBSERVED = st.integers(0, 200).flatmap(
    lambda total: st.integers(0, total).flatmap(
        lambda seen: st.tuples(st.integers(0, seen), st.just(seen), st.just(total))
    )
)
CELLS = st.lists(st.tuples(*[st.sampled_from([None, 0.0, 1.0])] * 2), min_size=1, max_size=5)


@settings(deadline=None)
@given(OBSERVED)
def test_bounds_hold_every_way_the_missing_could_have_come_out(counts: tuple[int, int, int]) -> None:
    passed, seen, total = counts
    ours = rate_bounds(passed, seen, total)
    if total == 0:
        assert (ours.worst, ours.best, ours.coverage, ours.interval, ours.missing) == (None, None, None, None, 0)
        return
    rates = [(passed + more) / total for more in range(total - seen + 1)]
    assert (ours.worst, ours.best) == (rates[0], rates[-1])
    assert (ours.missing, ours.coverage) == (total - seen, seen / total)
    ends = [wilson(passed, total), wilson(passed + total - seen, total)]
    assert ours.interval is not None
    assert ours.interval.low == ends[0].low  # type: ignore[union-attr]  # there are items
    assert ours.interval.high == ends[1].high  # type: ignore[union-attr]  # there are items


def test_without_missing_items_it_is_the_plain_rate() -> None:
    ours, plain = rate_bounds(7, 10, 10), wilson(7, 10)
    assert ours.worst == ours.best == 0.7
    assert ours.interval is not None
    assert plain is not None
    assert (ours.interval.low, ours.interval.high) == (plain.low, plain.high)


def test_errors_hide_more_than_the_rate_of_the_rest_shows() -> None:
    """90 of 90 answered items pass, and 10 are missing: 100 % is only the best case."""
    ours = rate_bounds(90, 90, 100)
    assert (ours.worst, ours.best, ours.coverage, ours.missing) == (0.9, 1.0, 0.9, 10)


@settings(deadline=None)
@given(CELLS)
def test_differences_hold_every_way_the_missing_could_have_come_out(
    cells: list[tuple[float | None, float | None]],
) -> None:
    first, second = zip(*cells, strict=True)
    ours = difference_bounds(first, second)
    options = [[value] if value is not None else [0.0, 1.0] for value in (*first, *second)]
    n = len(cells)
    all_ways = [(sum(way[:n]) - sum(way[n:])) / n for way in itertools.product(*options)]
    assert (ours.worst, ours.best) == (pytest.approx(min(all_ways)), pytest.approx(max(all_ways)))
    assert ours.missing == sum(None in cell for cell in cells)
    assert ours.coverage == pytest.approx(1 - ours.missing / n)


def test_scores_have_their_own_range() -> None:
    ours = difference_bounds([5, None], [1, 3], lowest=1, highest=5)
    assert (ours.worst, ours.best) == ((4 - 2) / 2, (4 + 2) / 2)
    assert difference_bounds([], []).worst is None


def test_impossible_items_are_refused() -> None:
    with pytest.raises(StatisticsError, match="total counts the missing"):
        rate_bounds(1, 3, 2)
    with pytest.raises(StatisticsError, match="give the range"):
        difference_bounds([2.0], [0.0])
    with pytest.raises(StatisticsError, match="same items"):
        difference_bounds([1.0], [])
