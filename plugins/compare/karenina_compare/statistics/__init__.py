"""Numbers about numbers: intervals, paired comparisons, corrections for many comparisons, planning.

Pure functions on plain numbers (lists, numpy arrays); they know nothing of results and runs. Each says in its docstring
what it computes and where the formula is from. numpy and scipy are imported by the first call, not by the import.
"""

from __future__ import annotations

from karenina_runs.summaries.intervals import Estimate, Interval

from .inputs import SEED, StatisticsError
from .means import cluster_mean, mean_interval
from .multiplicity import benjamini_hochberg, benjamini_yekutieli, holm, rank_ranges, tied_groups
from .paired import McNemar, PairedTest, flips, mcnemar, paired_rate_difference, paired_test
from .planning import (
    PairedVariance,
    detectable_difference,
    mcnemar_sample_size,
    minimal_detectable_effect,
    paired_variance,
    sample_size,
)
from .proportions import (
    DifferenceBounds,
    RateBounds,
    clopper_pearson,
    cluster_rate,
    difference_bounds,
    jeffreys,
    rate_bounds,
    wilson,
)
from .replicates import pass_at_k, pass_at_k_by_question, pass_hat_k, pass_hat_k_by_question
from .resampling import PermutationTest, bootstrap_mean, paired_bootstrap, permutation_test

__all__ = [
    "SEED",
    "DifferenceBounds",
    "Estimate",
    "Interval",
    "McNemar",
    "PairedTest",
    "PairedVariance",
    "PermutationTest",
    "RateBounds",
    "StatisticsError",
    "benjamini_hochberg",
    "benjamini_yekutieli",
    "bootstrap_mean",
    "clopper_pearson",
    "cluster_mean",
    "cluster_rate",
    "detectable_difference",
    "difference_bounds",
    "flips",
    "holm",
    "jeffreys",
    "mcnemar",
    "mcnemar_sample_size",
    "mean_interval",
    "minimal_detectable_effect",
    "paired_bootstrap",
    "paired_rate_difference",
    "paired_test",
    "paired_variance",
    "pass_at_k",
    "pass_at_k_by_question",
    "pass_hat_k",
    "pass_hat_k_by_question",
    "permutation_test",
    "rank_ranges",
    "rate_bounds",
    "sample_size",
    "tied_groups",
    "wilson",
]
