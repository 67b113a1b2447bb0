"""The evaluators of the published trait types keep the promises that the kit checks of anybody's evaluator."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import pytest
from karenina_rubric.callable_traits.evaluator import CallableEvaluator
from karenina_rubric.checks import JUDGED
from karenina_rubric.llm import LLMEvaluator
from karenina_rubric.metrics import MetricEvaluator
from karenina_rubric.patterns import RegexEvaluator
from karenina_testing.checks import Check
from karenina_testing.plugins import declared_options

from karenina_core import LLMRubricTrait, VerificationConfig
from karenina_core.testing import trait_checks

DECLARED: dict[str, Any] = {
    name: declared_options(name) for name in ("trait-callable", "trait-llm", "trait-metric", "trait-regex")
}
FROM_TEXT = {"deep_judgment_rubric_mode": "enable_all", "deep_judgment_rubric_global_excerpts": False}
"""Deep judgment that reasons from the text itself: quotations would have to be real ones."""


LLM = DECLARED["trait-llm"]["llm"]
FUNCTIONS, METRICS, PATTERNS = (DECLARED[f"trait-{name}"][name] for name in ("callable", "metric", "regex"))


def llm_checks(traits: Sequence[LLMRubricTrait] = LLM["traits"], **config: Any) -> list[Check]:
    return trait_checks(LLMEvaluator, traits, config=VerificationConfig(**config))


CASES = {
    "patterns": trait_checks(RegexEvaluator, PATTERNS["traits"]),
    "endless-pattern": trait_checks(RegexEvaluator, **PATTERNS),
    "functions": trait_checks(CallableEvaluator, **FUNCTIONS),
    "metrics": trait_checks(MetricEvaluator, **METRICS),
    "batch": llm_checks(rubric_evaluation_strategy="batch"),
    "sequential": llm_checks(rubric_evaluation_strategy="sequential"),
    "deep": llm_checks(JUDGED, **FROM_TEXT),
}


@pytest.mark.parametrize(
    "check", [pytest.param(check, id=f"{case}-{check.name}") for case, checks in CASES.items() for check in checks]
)
def test_the_evaluators_of_the_published_types_keep_their_promises(check: Check) -> None:
    check.run()
