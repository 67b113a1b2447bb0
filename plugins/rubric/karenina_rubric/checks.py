"""What the conformance checks of the evaluators are given: traits to score, and some that cannot be scored."""

from __future__ import annotations

from typing import Any

from karenina_judging.asking import closed_object
from karenina_vocabulary.record_traits import TemplateKind

from karenina_core import CallableRubricTrait, LLMRubricTrait, MetricRubricTrait, RegexRubricTrait

from .callable_traits.code import CallableSettings
from .patterns import RegexTraitSettings

JUDGED = [
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
RECORD = LLMRubricTrait(
    name="Claims",
    description="What it claims about the drug.",
    kind=TemplateKind(closed_object({"approved": {"type": "boolean"}, "year": {"type": "integer"}})),
)
METRICS = [
    MetricRubricTrait(name="Coverage", metrics=["recall", "f1"], tp_instructions=["names BCL2", "gives a Ki value"]),
    MetricRubricTrait(
        name="Restraint",
        evaluation_mode="full_matrix",
        metrics=["specificity", "accuracy"],
        tp_instructions=["gives the year of approval"],
        tn_instructions=["recommends a dose", "promises a cure"],
    ),
]
PATTERNS = [
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


def functions() -> dict[str, Any]:
    """Made when they are asked for: code of traits is serialized."""
    traits = [
        CallableRubricTrait.from_callable("Long enough", long_enough, kind="boolean"),
        CallableRubricTrait.from_callable("Words", words, kind="score", min_score=0, max_score=1000),
    ]
    broken = [CallableRubricTrait.from_callable("Breaks", breaks, kind="boolean")]
    return {"callable": {"traits": traits, "broken": broken, "settings": CallableSettings(seconds=5)}}


LLM: dict[str, Any] = {"llm": {"traits": [*JUDGED, OPEN, RECORD]}}
METRIC: dict[str, Any] = {"metric": {"traits": METRICS}}
REGEX: dict[str, Any] = {
    "regex": {"traits": PATTERNS, "text": TRAP, "broken": [ENDLESS], "settings": RegexTraitSettings(seconds=0.1)}
}
