"""One item through the real pipeline, with one scripted model that answers and judges."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from typing import Any

import pytest
from attrs import frozen
from karenina_runs.execute.item_verifier import arun_single_model_verification

from karenina_core import ArtifactKeys, Category, ModelConfig, Question, Stage, VerificationConfig, VerificationResult
from karenina_core.pipeline.stage import with_traits
from karenina_core.testing import ScriptedCall, ScriptedLLM, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy

PLUGINS = {
    *("validate-template", "generate-answer", "recursion-limit-auto-fail", "trace-validation-auto-fail"),
    *("abstention-check", "sufficiency-check", "parse-template", "verify-template", "standard-judgment"),
    *("primitives", "finalize-result", "declarative-runtime", "in-process-runtime", "openai_endpoint"),
}
ONCE = RetryPolicy(**dict.fromkeys(("rate_limited", "timeout", "connection", "server"), AttemptPolicy(1)))
ANSWER = "It is BCL2."
FOUND = {"evidence": "It is BCL2", "found": True}
REPLIES: Mapping[str, Any] = {
    "generation": ANSWER,
    "abstention_detection": {
        "answer": None,
        "disclaimer": None,
        "reasoning": "it names a protein",
        "abstention_detected": False,
    },
    "stated": {"target": None},
    "sufficiency_detection": {"fields": {"target": FOUND}, "reasoning": "all is there", "sufficient": True},
    "parsing": {"target": "BCL2"},
}


def declarative(*names: str, **facts: Any) -> str:
    """A template of text fields that all expect BCL2."""
    fields = [
        {
            "name": name,
            "type": "str",
            "description": f"The {name} that the response names",
            "ground_truth": "BCL2",
            "verify_with": {"type": "ExactMatch"},
            **facts,
        }
        for name in names
    ]
    return json.dumps({"fields": fields})


class Rubrics(Stage):
    """Takes the place of the stage that scores traits."""

    category = Category.RUBRIC
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (ArtifactKeys.RUBRIC_RESULT,)
    included_when = with_traits("regex")

    def scores(self, type_name: str) -> bool:
        return type_name == "regex"

    def execute(self, context: Any) -> None:
        context.set_artifact(ArtifactKeys.RUBRIC_RESULT, {})


@frozen
class Verified:
    """A result, the model that was asked, and what became of every stage: `{stage: (status, reason)}`."""

    result: VerificationResult
    llm: ScriptedLLM
    trail: Mapping[str, tuple[str, str]]

    @property
    def outcome(self) -> str:
        return str(self.result.outcome)

    def finding(self, check: str) -> tuple[Any, Any, Any, Any]:
        """Performed, detected, override applied, reasoning."""
        names = ("check_performed", "detected", "override_applied", "reasoning")
        found = tuple(getattr(self.result.checks, f"{check}_{name}") for name in names)
        return found[0], found[1], found[2], found[3]

    def prompt(self, check: str) -> str:
        """The first prompt of a check."""
        return self.llm.asked(f"{check}_detection")[0].text


def script(replies: Mapping[str, Any]) -> Callable[[ScriptedCall], Any]:
    """Replies by task; a list is given one by one, its last entry again and again. `stated` is the
    reply to AbstentionCheck's question for the values of the template."""
    counts: dict[str, int] = {}

    def reply(call: ScriptedCall) -> Any:
        task = call.task
        if task == "abstention_detection" and "abstention_detected" not in call.output.schema["properties"]:
            task = "stated"
        found = {**REPLIES, **replies}[task]
        if not isinstance(found, list):
            return found
        number = counts[task] = counts.get(task, 0) + 1
        return found[min(number, len(found)) - 1]

    return reply


def item(
    *plugins: Any,
    replies: Mapping[str, Any] | None = None,
    template: str | None = None,
    config: Mapping[str, Any] | None = None,
    model: Mapping[str, Any] | None = None,
    installed: Any = PLUGINS,
    features: tuple[str, ...] = ("abstention", "sufficiency"),
    question: str = "Which protein?",
    **facts: Any,
) -> Verified:
    llm = ScriptedLLM(script(replies or {}))
    settings = {"model_name": "m", "interface": "scripted", "max_retries": 1, "retry_policy": ONCE, **(model or {})}
    text = declarative("target") if template is None else template
    language = "python" if "class Answer" in text else "karenina-template"
    result = asyncio.run(
        arun_single_model_verification(
            Question(id="q", question=question, answer_template=text, template_language=language),
            ModelConfig(**settings),
            ModelConfig(**settings),
            config=VerificationConfig(code_policy="trusted", **(config or {})),
            features=features,
            app=application(llm, *plugins, installed=installed),
            **facts,
        )
    )
    return Verified(result, llm, {entry.stage: (entry.status, entry.reason) for entry in result.trail})


@pytest.fixture(scope="session")
def verify() -> Callable[..., Verified]:
    """`verify(*plugins, replies={task: reply}, template=..., config=..., model=..., cached_answer_data=...)`."""
    return item


@pytest.fixture(scope="session")
def template_of() -> Callable[..., str]:
    """`template_of("target", "dose")`: a template of these fields, right where they are BCL2."""
    return declarative


@pytest.fixture(scope="session")
def rubric_stage() -> type[Stage]:
    return Rubrics
