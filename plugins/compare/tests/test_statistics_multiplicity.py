"""Corrections for many comparisons, and which models cannot be distinguished."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_compare.statistics import (
    StatisticsError,
    benjamini_hochberg,
    benjamini_yekutieli,
    holm,
    rank_ranges,
    tied_groups,
)

Correction = Callable[[Sequence[float]], tuple[float, ...]]
CORRECTIONS = [(holm, "holm"), (benjamini_hochberg, "fdr_bh"), (benjamini_yekutieli, "fdr_by")]
ANY_P = st.one_of(st.floats(0, 1, allow_subnormal=False), st.sampled_from([0.0, 0.01, 0.05, 1.0]))
P_VALUES = st.lists(ANY_P, max_size=40)
MODELS = ["a", "b", "c", "d", "e", "f"]

BENJAMINI_HOCHBERG = [
    0.0001, 0.0004, 0.0019, 0.0095, 0.0201, 0.0278, 0.0298, 0.0344, 0.0459, 0.3240, 0.4262, 0.5719, 0.6528, 0.7590, 1.0,
]  # fmt: skip
"""Fifteen comparisons of two treatments: Y. Benjamini, Y. Hochberg, JRSS B 57 (1995), section 4.1."""


@pytest.mark.parametrize(("ours", "theirs"), CORRECTIONS)
def test_corrections_equal_statsmodels(ours: Correction, theirs: str) -> None:
    @settings(max_examples=2 if ours is holm else 12, deadline=None)  # for Holm, it collects garbage in every call
    @given(P_VALUES)
    def law(p_values: list[float]) -> None:
        from statsmodels.stats.multitest import multipletests

        expected = multipletests(p_values, method=theirs)[1] if p_values else []
        assert ours(p_values) == pytest.approx(tuple(expected), abs=1e-9)

    law()


@settings(deadline=None)
@given(st.lists(ANY_P, max_size=6))
def test_holm_closes_the_test_of_bonferroni(p_values: list[float]) -> None:
    """A p-value is adjusted to the largest of Bonferroni's for all sets of hypotheses that it is in: R. Marcus,
    E. Peritz, K. R. Gabriel, Biometrika 63 (1976) 655-660."""
    places = range(len(p_values))
    sets = [some for size in places for some in itertools.combinations(places, size + 1)]
    bonferroni = {some: min(1.0, len(some) * min(p_values[place] for place in some)) for some in sets}
    expected = [max(p for some, p in bonferroni.items() if place in some) for place in places]
    assert holm(p_values) == pytest.approx(tuple(expected), abs=1e-9)


@pytest.mark.parametrize("correction", [pair[0] for pair in CORRECTIONS])
@settings(deadline=None)
@given(p_values=P_VALUES, seed=st.randoms(use_true_random=False))
def test_order_does_not_matter_and_nothing_gets_smaller(
    correction: Correction, p_values: list[float], seed: object
) -> None:
    adjusted = dict(zip(p_values, correction(p_values), strict=True))
    assert all(p <= adjusted[p] <= 1 or adjusted[p] == pytest.approx(p) for p in p_values)
    shuffled = list(p_values)
    seed.shuffle(shuffled)  # type: ignore[attr-defined]  # a random.Random
    assert correction(shuffled) == tuple(adjusted[p] for p in shuffled)


def test_the_fifteen_comparisons_of_benjamini_and_hochberg() -> None:
    """At 0.05, their procedure rejects the four smallest; procedures that bound any false claim reject three."""
    assert [p <= 0.05 for p in benjamini_hochberg(BENJAMINI_HOCHBERG)] == [True] * 4 + [False] * 11
    assert [p <= 0.05 for p in holm(BENJAMINI_HOCHBERG)] == [True] * 3 + [False] * 12


@pytest.mark.parametrize("p_values", [[-0.1], [1.1], [float("nan")], [None], ["0.1"]])
@pytest.mark.parametrize("correction", [pair[0] for pair in CORRECTIONS])
def test_only_probabilities_are_corrected(correction: Correction, p_values: list[float]) -> None:
    with pytest.raises(StatisticsError, match="leave out"):
        correction(p_values)


# Groups


def test_a_model_between_two_others_is_tied_with_both() -> None:
    values = {"best": 0.9, "middle": 0.85, "worst": 0.8}
    p_values = {("best", "worst"): 0.01, ("best", "middle"): 0.2, ("worst", "middle"): 0.3}
    assert tied_groups(values, p_values) == (("best", "middle"), ("middle", "worst"))
    assert rank_ranges(values, p_values) == {"best": (1, 2), "middle": (1, 3), "worst": (2, 3)}


def test_all_apart_and_all_tied() -> None:
    values = {"y": 0.5, "x": 0.5, "z": 0.9}
    assert tied_groups(values, {}) == (("z", "x", "y"),)
    assert rank_ranges(values, {}) == {"z": (1, 3), "x": (1, 3), "y": (1, 3)}
    apart = dict.fromkeys(itertools.combinations(values, 2), 0.0)
    assert tied_groups(values, apart) == (("z",), ("x",), ("y",))
    assert tied_groups({}, {}) == ()
    assert tied_groups({"only": 1.0}, {}) == (("only",),)


def test_a_p_value_of_alpha_distinguishes() -> None:
    assert tied_groups({"a": 1, "b": 0}, {("a", "b"): 0.05}, 0.05) == (("a",), ("b",))
    assert tied_groups({"a": 1, "b": 0}, {("a", "b"): 0.0501}, 0.05) == (("a", "b"),)


@settings(deadline=None)
@given(st.data(), st.integers(1, 6))
def test_groups_are_the_maximal_sets_without_a_distinguishable_pair(data: st.DataObject, count: int) -> None:
    names = MODELS[:count]
    values = {name: data.draw(st.sampled_from([0.1, 0.5, 0.9])) for name in names}
    pairs = list(itertools.combinations(names, 2))
    p_values = {pair: data.draw(st.sampled_from([0.001, 0.5])) for pair in pairs}
    tied = [
        set(some)
        for size in range(1, count + 1)
        for some in itertools.combinations(names, size)
        if all(p_values[pair] > 0.05 for pair in pairs if set(pair) <= set(some))
    ]
    maximal = [some for some in tied if not any(some < other for other in tied)]
    ours = tied_groups(values, p_values)
    assert sorted(map(sorted, ours)) == sorted(map(sorted, maximal))
    shuffled = {name: values[name] for name in data.draw(st.permutations(names))}
    turned = {pair[::-1]: p for pair, p in p_values.items()}
    assert tied_groups(shuffled, turned) == ours
    for group in ours:
        assert [values[name] for name in group] == sorted((values[name] for name in group), reverse=True)
    for name, (best, worst) in rank_ranges(values, p_values).items():
        assert 1 <= best <= 1 + sum(value > values[name] for value in values.values())
        assert count >= worst >= count - sum(value < values[name] for value in values.values())


@pytest.mark.parametrize(
    "p_values",
    [
        {("a", "x"): 0.1},
        {("a", "a"): 0.1},
        {("a", "b"): 1.5},
        {("a", "b"): float("nan")},
        {("a", "b"): 0.1, ("b", "a"): 0.2},
    ],
)
def test_pairs_that_make_no_sense_are_refused(p_values: dict[tuple[str, str], float]) -> None:
    with pytest.raises(StatisticsError):
        tied_groups({"a": 1.0, "b": 0.0}, p_values)


def test_who_is_ahead_is_what_the_comparison_says_and_not_the_values() -> None:
    """`a` answered only hard questions: its value is lower, and it is better on every question that both answered."""
    values, p_values = {"a": 0.5, "b": 0.7, "c": 0.6}, {("a", "b"): 0.001, ("b", "c"): 0.5, ("c", "a"): 0.5}
    assert rank_ranges(values, p_values)["a"] == (2, 3)
    for differences in ({("a", "b"): 0.2}, {("b", "a"): -0.2}):
        assert rank_ranges(values, p_values, 0.05, differences) == {"a": (1, 2), "b": (2, 3), "c": (1, 3)}


@pytest.mark.parametrize("of", [tied_groups, rank_ranges])
def test_what_cannot_be_ranked_is_refused(of: Callable[..., object]) -> None:
    for alpha in (0, 1, 2, -0.1):
        with pytest.raises(StatisticsError, match="alpha"):
            of({"x": 1.0, "y": 2.0}, {}, alpha)
    for value in (float("nan"), float("inf")):
        with pytest.raises(StatisticsError, match="values"):
            of({"x": 1.0, "y": value}, {})
