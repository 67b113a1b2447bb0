"""What every procedure has in common: which numbers it takes, that it repeats, and that it is fast with many."""

from __future__ import annotations

import subprocess
import sys
import time
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_compare.statistics import (
    StatisticsError,
    bootstrap_mean,
    clopper_pearson,
    cluster_mean,
    holm,
    mean_interval,
    paired_bootstrap,
    paired_test,
    pass_at_k,
    permutation_test,
)

from karenina_core.errors import KareninaError

ONE_SAMPLE: list[Callable[[Any], Any]] = [
    mean_interval,
    lambda values: cluster_mean(values, ["c", "d", "d"]),
    lambda values: bootstrap_mean(values, resamples=100),
]
TWO_SAMPLES: list[Callable[[Any], Any]] = [
    lambda values: paired_test(values, [0, 0, 0]),
    lambda values: permutation_test([0, 0, 0], values),
    lambda values: paired_bootstrap(values, [0, 0, 0], resamples=100),
]
VALUES = st.lists(st.floats(-100, 100), min_size=2, max_size=30)


@pytest.mark.parametrize("procedure", [*ONE_SAMPLE, *TWO_SAMPLES])
@pytest.mark.parametrize(
    ("values", "message"),
    [
        ([1, float("nan"), 2], r"\[1\] is nan; leave out"),
        ([1, 2, float("inf")], r"\[2\] is inf; leave out"),
        ([1, None, 2], r"\[1\] is None, which is not a number; leave out"),
        ([1, "2", 3], r"\[1\] is '2', which is not a number"),
        ([1, 2, Decimal(3)], r"Decimal"),
        ([1, 2, 3j], "not a number"),
        ([1, 2, 1e200], "larger unit"),
        ([1, 2, 10**400], "cannot be computed with"),
        ([[1, 2], [3, 4], [5, 6]], "2 dimensions; give one list"),
        ([[1], [2, 3], [4]], "not one list of numbers"),
        (np.ma.masked_array([1.0, 2.0, 3.0], [0, 1, 0]), "masked"),
    ],
)
def test_what_is_no_finite_number_is_refused_by_place(
    procedure: Callable[[Any], Any], values: Any, message: str
) -> None:
    with pytest.raises(StatisticsError, match=message) as caught:
        procedure(values)
    assert isinstance(caught.value, KareninaError)
    assert isinstance(caught.value, ValueError)


@pytest.mark.parametrize("procedure", [*ONE_SAMPLE, *TWO_SAMPLES])
def test_booleans_arrays_generators_and_fractions_are_numbers(procedure: Callable[[Any], Any]) -> None:
    expected = procedure([1.0, 0.0, 1.0])
    same = ([True, False, True], np.array([True, False, True]), (1, 0, 1), np.array([1, 0, 1], dtype=np.uint8))
    whole = np.ma.masked_array([1, 0, 1], [0, 0, 0])
    for values in (*same, whole, [Fraction(1), 0, np.bool_(True)], iter([1, 0, 1]), {"a": 1, "b": 0, "c": 1}.values()):
        assert procedure(values) == expected


def test_labels_of_clusters_are_checked() -> None:
    with pytest.raises(StatisticsError, match="2 labels of clusters for 3 values"):
        cluster_mean([1, 2, 3], ["a", "b"])
    for missing in (None, float("nan")):
        with pytest.raises(StatisticsError, match="label of their own"):
            cluster_mean([1, 2], ["a", missing])


@settings(max_examples=30, deadline=None)
@given(VALUES, st.randoms(use_true_random=False))
def test_order_does_not_matter_to_the_last_bit(values: list[float], random: Any) -> None:
    order = list(range(len(values)))
    random.shuffle(order)
    clusters = [f"c{i % 7}" for i in range(len(values))]
    other_names = {f"c{i}": (7 - i, "x") for i in range(7)}
    shuffled = [values[i] for i in order]
    zeros = [0.0] * len(values)
    regrouped = [other_names[clusters[i]] for i in order]
    assert mean_interval(values) == mean_interval(shuffled)
    assert cluster_mean(values, clusters) == cluster_mean(shuffled, regrouped)
    assert bootstrap_mean(values, resamples=100) == bootstrap_mean(shuffled, resamples=100)
    grouped = bootstrap_mean(values, clusters, resamples=100)
    assert grouped == bootstrap_mean(shuffled, regrouped, resamples=100)
    assert permutation_test(values, zeros, resamples=100) == permutation_test(shuffled, zeros, resamples=100)
    assert paired_test(values, zeros, clusters) == paired_test(shuffled, zeros, regrouped)


def test_sums_of_clusters_do_not_depend_on_the_order_of_their_values() -> None:
    """0.1 + 0.2 + 0.3 and 0.3 + 0.2 + 0.1 are not the same for the machine."""
    clusters = ["a", "a", "a", "b"]
    assert cluster_mean([0.1, 0.2, 0.3, -0.6], clusters) == cluster_mean([0.3, 0.2, 0.1, -0.6], clusters)


def test_the_seed_is_fixed_and_can_be_changed() -> None:
    values, zeros = np.random.default_rng(1).normal(0.2, 1, 50), np.zeros(50)
    assert bootstrap_mean(values) == bootstrap_mean(values, seed=0) != bootstrap_mean(values, seed=1)
    assert permutation_test(values, zeros) == permutation_test(values, zeros, seed=0)
    assert permutation_test(values, zeros) != permutation_test(values, zeros, seed=1)
    np.random.seed(5)  # the state of numpy's own generator has no influence
    assert bootstrap_mean(values) == bootstrap_mean(values, seed=0)


def test_importing_the_statistics_imports_neither_numpy_nor_scipy() -> None:
    code = "import sys, karenina_compare.statistics as s; print({'numpy', 'scipy', 'pandas'} & set(sys.modules))"
    code += "; s.wilson(1, 2); print({'numpy', 'scipy'} & set(sys.modules))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.split() == ["set()", "set()"]


@pytest.mark.parametrize(
    "procedure",
    [
        lambda x, c: mean_interval(x),
        cluster_mean,
        lambda x, c: bootstrap_mean(x > 0),
        lambda x, c: bootstrap_mean(x, c // 100, resamples=999),
        lambda x, c: permutation_test(x > 0, x > 1),
        lambda x, c: permutation_test(np.round(x), np.round(x[::-1] * 2)),
        lambda x, c: paired_test(x, x[::-1], c),
        lambda x, c: holm(np.abs(x) / 10),
        lambda x, c: pass_at_k(c % 10, np.full(len(c), 10), 5),
        lambda x, c: clopper_pearson(len(x) // 3, len(x)),
    ],
)
def test_a_million_values_take_seconds(procedure: Callable[[Any, Any], Any]) -> None:
    values, clusters = np.random.default_rng(7).normal(size=1_000_000), np.arange(1_000_000) // 10
    began = time.process_time()
    procedure(values, clusters)
    assert time.process_time() - began < 10
