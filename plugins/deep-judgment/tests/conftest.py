"""A judge behind real HTTP, one question, and deep judgment of its answer through the whole pipeline."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from attrs import define, field

from karenina_core import Benchmark, Karenina, ModelConfig, Question, VerificationConfig, VerificationResult
from karenina_core.testing import Reply, ScriptedServer, ServedRequest, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy

PLUGINS = (
    *("validate-template", "generate-answer", "recursion-limit-auto-fail", "trace-validation-auto-fail"),
    *("parse-template", "verify-template", "standard-judgment", "declarative-runtime", "primitives"),
    *(
        "finalize-result",
        "openai_endpoint",
        "local-executor",
        "deep-judgment",
        "deep-judgment-auto-fail",
        "search-tavily",
    ),
)
STEPS = {
    "You collect evidence": "excerpts",
    "You assess whether": "assessment",
    "You reason from evidence": "reasoning",
    "You reason from a text": "reasoning_only",
    "You fill in fields": "parameters",
}
ANSWER = "Venetoclax targets BCL2. It does not inhibit MCL1. The usual dose is 400 mg once daily."
TARGET = {
    "name": "target",
    "type": "str",
    "description": "The protein that the drug binds",
    "ground_truth": "BCL2",
    "verify_with": {"type": "ExactMatch"},
    "extraction_hint": "a gene symbol",
}
DOSE = {
    "name": "dose",
    "type": "int",
    "description": "The usual dose in mg",
    "ground_truth": 400,
    "verify_with": {"type": "NumericExact"},
}
VALUES = {"target": "BCL2", "dose": 400}
QUICK = RetryPolicy(
    rate_limited=AttemptPolicy(2, 0.0, 0.01),
    timeout=AttemptPolicy(1),
    connection=AttemptPolicy(2, 0.0, 0.01),
    server=AttemptPolicy(1),
)
Scripted = Reply | str | Mapping[str, Any]


def excerpt(text: str, confidence: str = "high", explanation: str | None = None) -> dict[str, Any]:
    return {"text": text, "explanation": explanation, "confidence": confidence}


FOUND = {"target": [excerpt("Venetoclax targets BCL2.")], "dose": [excerpt("The usual dose is 400 mg", "medium")]}
REASONED = {"target": "It says that BCL2 is the target.", "dose": "It gives 400 mg."}


@define
class Judge:
    """Replies by step; several of one step are given one after the other, the last one again and again."""

    replies: dict[str, Sequence[Scripted]] = field(factory=dict)
    asked: list[tuple[str, ServedRequest]] = field(factory=list)

    def __call__(self, request: ServedRequest) -> Scripted:
        step = next((name for words, name in STEPS.items() if words in request.text), "answer")
        number = sum(asked == step for asked, _ in self.asked)
        self.asked.append((step, request))
        replies = {**USUAL, **self.replies}[step]
        return replies[min(number, len(replies) - 1)]

    @property
    def steps(self) -> list[str]:
        """Every call in its order, without the answering model's own."""
        return [step for step, _ in self.asked if step != "answer"]

    def texts(self, step: str) -> list[str]:
        """The prompts of a step."""
        return [request.text for asked, request in self.asked if asked == step]


USUAL: dict[str, Sequence[Scripted]] = {
    "answer": [ANSWER],
    "excerpts": [FOUND],
    "reasoning": [REASONED],
    "reasoning_only": [REASONED],
    "parameters": [VALUES],
}
Verify = Callable[..., VerificationResult]


@pytest.fixture
def judge() -> Judge:
    """Says what suits the usual answer; set `replies` for anything else."""
    return Judge()


@pytest.fixture
def verify(judge: Judge) -> Verify:
    """`verify(**settings of the run)`: one question, asked and judged over HTTP with deep judgment on."""

    def run(
        *plugins: Any,
        fields: Sequence[Mapping[str, Any]] = (TARGET, DOSE),
        app: Karenina | None = None,
        model: Mapping[str, Any] | None = None,
        **settings: Any,
    ) -> VerificationResult:
        question = Question(
            question="What does venetoclax bind, and what is the dose?",
            raw_answer="BCL2, 400 mg",
            answer_template=json.dumps({"fields": list(fields)}),
            template_language="karenina-template",
        )
        app = app or application(*plugins, installed=PLUGINS)
        with ScriptedServer(judge) as server:
            both: dict[str, Any] = {
                "interface": "openai_endpoint",
                "endpoint_base_url": server.url,
                "request_timeout": 5.0,
            }
            answering = ModelConfig(model_name="answering", **both)
            parsing = ModelConfig(model_name="judge", **{"max_retries": 0, **both, **(model or {})})
            config = VerificationConfig(
                answering_models=[answering],
                parsing_models=[parsing],
                retry_policy=QUICK,
                **{"deep_judgment_enabled": True, **settings},
            )
            (result,) = Benchmark(name="b", questions=[question]).run_verification(config, app=app)
        return result

    return run
