"""One item through the real pipeline: a model that answers and judges, evaluators that follow a script."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from attrs import frozen
from karenina_runs.execute.item_verifier import arun_single_model_verification
from karenina_vocabulary.evaluation_parts import DeepJudgmentRubricPart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import (
    ModelConfig,
    Question,
    Rubric,
    RubricTrait,
    TraitCase,
    TraitEvaluator,
    TraitScore,
    VerificationConfig,
    VerificationResult,
    hookimpl,
)
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.testing import ScriptedCall, ScriptedLLM, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy

PLUGINS = {
    *("validate-template", "generate-answer", "recursion-limit-auto-fail", "trace-validation-auto-fail"),
    *("abstention-check", "parse-template", "verify-template", "standard-judgment", "primitives", "finalize-result"),
    *("declarative-runtime", "openai_endpoint", "rubric-evaluation", "trait-regex"),
}
ONCE = RetryPolicy(**dict.fromkeys(("rate_limited", "timeout", "connection", "server"), AttemptPolicy(1)))
ANSWER = "Aspirin inhibits COX-1 [3]."


@frozen(eq=False)
class ScriptedEvaluator(TraitEvaluator[Any]):
    """An evaluator of any type that scores each trait as scripted: `{name: score or error to raise}`.

    A callable is called with the trait and the case; a name without an entry is left out.
    """

    name: str
    does: Mapping[str, Any]
    asks_judge: bool = True

    @property
    def trait_class(self) -> type[RubricTrait]:
        return type("ScriptedTrait", (RubricTrait,), {"type_name": self.name})

    async def evaluate(self, traits: Any, case: TraitCase) -> Mapping[str, TraitScore]:
        scores = {}
        for trait in traits:
            outcome = self.does.get(trait.name, None)
            if callable(outcome):
                outcome = outcome(trait, case)
                outcome = await outcome if asyncio.iscoroutine(outcome) else outcome
            if isinstance(outcome, BaseException):
                raise outcome
            if outcome is not None:
                scores[trait.name] = outcome
        return scores

    @hookimpl
    def karenina_register_traits(self, registry: Any) -> None:
        registry.add(self)


@frozen
class Scored:
    """A result and the model that was asked."""

    result: VerificationResult
    llm: ScriptedLLM

    @property
    def rubric(self) -> RubricPart:
        assert self.result.rubric is not None
        return self.result.rubric

    @property
    def deep(self) -> DeepJudgmentRubricPart:
        assert self.result.deep_judgment_rubric is not None
        return self.result.deep_judgment_rubric

    @property
    def states(self) -> dict[str, str]:
        return {name: state["state"] for name, state in self.rubric.trait_states.items()}

    def reason(self, name: str) -> str:
        return str(self.rubric.trait_states[name]["reason"])

    @property
    def trail(self) -> dict[str, tuple[str, str]]:
        return {entry.stage: (entry.status, entry.reason) for entry in self.result.trail}


def score(
    rubric: Rubric | None,
    *plugins: Any,
    replies: Mapping[str, Any] | Callable[[ScriptedCall], Any] | None = None,
    answer: str | CachedAnswer = ANSWER,
    config: Mapping[str, Any] | None = None,
    question: Mapping[str, Any] | None = None,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
    model: Mapping[str, Any] | None = None,
    **facts: Any,
) -> Scored:
    """Score one answer; `replies` are what the judge says, by task."""
    llm = ScriptedLLM(replies if callable(replies) else lambda call: (replies or {})[call.task])
    known = {"model_name": "m", "interface": "scripted", "max_retries": 1, "retry_policy": ONCE}
    both = ModelConfig(**{**known, **(model or {})})
    given = answer if isinstance(answer, CachedAnswer) else CachedAnswer(raw_llm_response=answer)
    facts.setdefault("evaluation_mode", "rubric_only")
    settings_given = VerificationConfig(**(config or {}))
    app = application(llm, *plugins, installed=PLUGINS, settings=settings)
    asked = Question(id="q", question="What does aspirin do?", **(question or {}))
    result = asyncio.run(
        arun_single_model_verification(
            asked, both, both, rubric=rubric, config=settings_given, cached_answer_data=given, app=app, **facts
        )
    )
    return Scored(result, llm)


@pytest.fixture(scope="session")
def scored() -> Callable[..., Scored]:
    """`scored(rubric, *plugins, replies={task: reply}, answer=..., config=..., dynamic_rubric=...)`."""
    return score


@pytest.fixture(scope="session")
def scripted() -> type[ScriptedEvaluator]:
    """`scripted("llm", {trait: score})`: an evaluator with these scores."""
    return ScriptedEvaluator
