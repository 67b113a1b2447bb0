"""Questions that were asked several times: how often at least one of k answers passes, and how often all k do.

With n answers to a question, c of which pass, both are averages over all ways to pick k of the n, without any further
randomness: unbiased estimates of what k fresh answers would do.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable

from attrs import evolve
from karenina_runs.summaries.intervals import Estimate

from .arrays import Floats, np
from .inputs import Numbers, StatisticsError, whole, wholes
from .means import cluster_mean, mean_interval


def pass_at_k(
    passed: Numbers, samples: Numbers, k: int, level: float = 0.95, clusters: Iterable[Hashable] | None = None
) -> Estimate:
    """pass@k: the mean over questions of 1 - C(n-c, k)/C(n, k), `passed` being c and `samples` n of each question.

    M. Chen and others, "Evaluating large language models trained on code", arXiv:2107.03374 (2021), section 2.1. The
    error is that between questions (Student's t; with `clusters` of questions, cluster-robust); it contains what comes
    from the finite number of answers. The interval is cut at 0 and 1. A k larger than some n is refused.
    """
    return _over_questions(pass_at_k_by_question(passed, samples, k), f"pass@{k}", level, clusters)


def pass_hat_k(
    passed: Numbers, samples: Numbers, k: int, level: float = 0.95, clusters: Iterable[Hashable] | None = None
) -> Estimate:
    """pass^k: the mean over questions of C(c, k)/C(n, k), how reliably all of k answers pass; else like `pass_at_k`.

    S. Yao and others, "tau-bench: a benchmark for tool-agent-user interaction in real-world domains", arXiv:2406.12045
    (2024).
    """
    return _over_questions(pass_hat_k_by_question(passed, samples, k), f"pass^{k}", level, clusters)


def pass_at_k_by_question(passed: Numbers, samples: Numbers, k: int) -> Floats:
    """1 - C(n-c, k)/C(n, k) of each question."""
    c, n = _checked(passed, samples, k)
    return 1 - _all_of(n - c, n, k)


def pass_hat_k_by_question(passed: Numbers, samples: Numbers, k: int) -> Floats:
    """C(c, k)/C(n, k) of each question."""
    c, n = _checked(passed, samples, k)
    return _all_of(c, n, k)


def _all_of(chosen: Floats, n: Floats, k: int) -> Floats:
    """C(chosen, k)/C(n, k) as a product of k factors, which neither overflows nor loses digits."""
    share = np.ones(len(n))
    for drawn in range(k):
        share *= np.maximum(chosen - drawn, 0) / (n - drawn)
    return share


def _checked(passed: Numbers, samples: Numbers, k: int) -> tuple[Floats, Floats]:
    c, n = wholes(passed, "passed"), wholes(samples, "samples")
    whole(k, "k", 1)
    if len(c) != len(n):
        raise StatisticsError(f"passed has {len(c)} questions and samples {len(n)}; give both for the same questions")
    over = np.flatnonzero(c > n)
    if over.size:
        raise StatisticsError(
            f"passed[{over[0]}] is more than samples[{over[0]}]; give the passing ones of all answers"
        )
    few = int((n < k).sum())
    if few:
        raise StatisticsError(
            f"k = {k} needs at least {k} answers to every question, and {few} of {len(n)} have fewer (the fewest: "
            f"{int(n.min())}). There is no unbiased estimate from fewer than k answers: use a smaller k, run more "
            "replicates, or leave these questions out and say so"
        )
    return c, n


def _over_questions(rates: Floats, name: str, level: float, clusters: Iterable[Hashable] | None) -> Estimate:
    estimate = mean_interval(rates, level) if clusters is None else cluster_mean(rates, clusters, level)
    if estimate.interval is None:
        return evolve(estimate, method=name)
    low, high = max(0.0, estimate.interval.low), min(1.0, estimate.interval.high)
    return evolve(estimate, method=name, interval=evolve(estimate.interval, low=low, high=high))
