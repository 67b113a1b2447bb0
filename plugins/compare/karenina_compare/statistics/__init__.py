"""Numbers about numbers: intervals, paired comparisons, corrections for many comparisons, planning.

Pure functions on plain numbers (lists, numpy arrays); they know nothing of results and runs. Each says in its docstring
what it computes and where the formula is from. numpy and scipy are imported by the first call, not by the import.
"""

from __future__ import annotations

from karenina_runs.summaries.estimates import Estimate, Interval

from .bootstrap import bootstrap_mean, paired_bootstrap
from .clustered import cluster_rate
from .inputs import SEED, StatisticsError
from .means import cluster_mean, mean_interval
from .missing import DifferenceBounds, RateBounds, difference_bounds, rate_bounds
from .multiplicity import benjamini_hochberg, benjamini_yekutieli, holm
from .paired import McNemar, PairedTest, flips, mcnemar, paired_rate_difference, paired_test
from .permutation import PermutationTest, permutation_test
from .planning import (
    PairedVariance,
    detectable_difference,
    mcnemar_sample_size,
    minimal_detectable_effect,
    paired_variance,
    sample_size,
)
from .proportions import clopper_pearson, jeffreys, wilson
from .replicates import pass_at_k, pass_at_k_by_question, pass_hat_k, pass_hat_k_by_question
from .tied import rank_ranges, tied_groups

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
