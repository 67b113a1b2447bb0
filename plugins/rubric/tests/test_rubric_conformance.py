"""The evaluators of the published trait types keep the promises that the kit checks of anybody's evaluator."""

from __future__ import annotations

from typing import Any

import pytest
from karenina_judging.asking import closed_object
from karenina_rubric.callable_traits.evaluator import CallableEvaluator, CallableSettings
from karenina_rubric.llm import LLMEvaluator
from karenina_rubric.metrics import MetricEvaluator
from karenina_rubric.patterns import RegexEvaluator, RegexTraitSettings
from karenina_testing.checks import Check
from karenina_vocabulary.record_traits import TemplateKind

from karenina_core import CallableRubricTrait, LLMRubricTrait, MetricRubricTrait, RegexRubricTrait, VerificationConfig
from karenina_core.testing import trait_checks

LLM = [
    LLMRubricTrait(name="Concise", description="Says it in few words.", kind="boolean", higher_is_better=True),
    LLMRubricTrait(name="Hedging", description="Admits what is not known.", kind="boolean", higher_is_better=False),
    LLMRubricTrait(name="Clarity", description="Can be read at once.", kind="score", min_score=0, max_score=10),
    LLMRubricTrait(
        name="Tone",
        description="Which tone it has.",
        kind="literal",
        classes={"plain": "Everyday words.", "technical": "Terms of the trade.", "lyrical": "Poetry."},
    ),
]
OPEN = LLMRubricTrait(
    name="Agrees", description="Says what the reference says.", kind="boolean", include_ground_truth=True
)
METRIC = [
    MetricRubricTrait(name="Coverage", metrics=["recall", "f1"], tp_instructions=["names BCL2", "gives a Ki value"]),
    MetricRubricTrait(
        name="Restraint",
        evaluation_mode="full_matrix",
        metrics=["specificity", "accuracy"],
        tp_instructions=["gives the year of approval"],
        tn_instructions=["recommends a dose", "promises a cure"],
    ),
]
REGEX = [
    RegexRubricTrait(name="Cites", pattern=r"\[\d+\]"),
    RegexRubricTrait(name="Links", pattern=r"https?://", invert_result=True),
    RegexRubricTrait(name="Names it", pattern=r"bcl2", case_sensitive=False),
]
ENDLESS = RegexRubricTrait(name="Endless", pattern=r"(?!x)(a|aa)+$")
TRAP = "a" * 60 + "!"
"""A text on which the pattern above would search for years."""


def long_enough(text: str) -> bool:
    return len(text) > 20


def words(text: str) -> int:
    return min(len(text.split()), 1000)


def breaks(text: str) -> bool:
    raise RuntimeError("out of ink")


def callables() -> list[CallableRubricTrait]:
    return [
        CallableRubricTrait.from_callable("Long enough", long_enough, kind="boolean"),
        CallableRubricTrait.from_callable("Words", words, kind="score", min_score=0, max_score=1000),
    ]


RECORD = LLMRubricTrait(
    name="Claims",
    description="What it claims about the drug.",
    kind=TemplateKind(closed_object({"approved": {"type": "boolean"}, "year": {"type": "integer"}})),
)
FROM_TEXT = {"deep_judgment_rubric_mode": "enable_all", "deep_judgment_rubric_global_excerpts": False}
"""Deep judgment that reasons from the text itself: quotations would have to be real ones."""


def llm_checks(*traits: LLMRubricTrait, **config: Any) -> list[Check]:
    return trait_checks(LLMEvaluator, traits, config=VerificationConfig(**config))


CASES = {
    "patterns": trait_checks(RegexEvaluator, REGEX),
    "endless-pattern": trait_checks(
        RegexEvaluator, REGEX, text=TRAP, broken=[ENDLESS], settings=RegexTraitSettings(seconds=0.1)
    ),
    "functions": trait_checks(
        CallableEvaluator,
        callables(),
        broken=[CallableRubricTrait.from_callable("Breaks", breaks, kind="boolean")],
        settings=CallableSettings(seconds=5),
    ),
    "metrics": trait_checks(MetricEvaluator, METRIC),
    "batch": llm_checks(*LLM, OPEN, RECORD, rubric_evaluation_strategy="batch"),
    "sequential": llm_checks(*LLM, OPEN, RECORD, rubric_evaluation_strategy="sequential"),
    "deep": llm_checks(*LLM, **FROM_TEXT),
}


@pytest.mark.parametrize(
    "check", [pytest.param(check, id=f"{case}-{check.name}") for case, checks in CASES.items() for check in checks]
)
def test_the_evaluators_of_the_published_types_keep_their_promises(check: Check) -> None:
    check.run()
