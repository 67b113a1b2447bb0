"""The public names of comparisons."""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, Mapping[str, str]] = {
    "karenina_core": {
        "compare_models": "karenina_compare.comparison.compare",
        "compare_runs": "karenina_compare.comparison.loaded",
        "headline_numbers": "karenina_compare.numbers",
        "judge_agreement": "karenina_compare.agreement",
    },
}
