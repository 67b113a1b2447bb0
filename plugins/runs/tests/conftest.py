"""A benchmark, two scripted models and an application: a whole run without a provider."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import field, frozen
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.plan.items import Prepared
from karenina_runs.plan.prepare import prepare

from karenina_core import Benchmark, Karenina, ModelConfig, Question, Rubric, VerificationConfig, VerificationResultSet
from karenina_core.testing import ScriptedLLM, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy

ONCE = RetryPolicy(
    rate_limited=AttemptPolicy(), timeout=AttemptPolicy(), connection=AttemptPolicy(), server=AttemptPolicy()
)
PLUGINS = {
    *("validate-template", "generate-answer", "recursion-limit-auto-fail", "trace-validation-auto-fail"),
    *("parse-template", "verify-template", "standard-judgment", "primitives", "finalize-result", "jsonl"),
    *("declarative-runtime", "in-process-runtime", "local-executor"),
}
TARGET = {
    "name": "target",
    "type": "str",
    "description": "The protein that the response names",
    "ground_truth": "BCL2",
    "verify_with": {"type": "ExactMatch"},
    "extraction_hint": "a gene symbol",
}
TEMPLATE = json.dumps({"class_name": "Answer", "fields": [TARGET]})


@frozen(kw_only=True)
class World:
    """`answerer` answers, `judge` judges; both are shared by all models of their interface."""

    answerer: ScriptedLLM
    judge: ScriptedLLM
    app: Karenina
    benchmark: Benchmark
    rubric: Rubric | None = field(default=None)

    def config(self, **facts: Any) -> VerificationConfig:
        facts.setdefault("answering_models", [ModelConfig(model_name="a", interface="answering")])
        facts.setdefault("parsing_models", [ModelConfig(model_name="j", interface="judging", max_retries=0)])
        facts.setdefault("retry_policy", ONCE)
        return VerificationConfig(**facts)

    def prepare(self, config: VerificationConfig | None = None, **facts: Any) -> Prepared:
        return prepare(self.benchmark, config or self.config(), app=self.app, **facts)

    def run(
        self, config: VerificationConfig | None = None, destination: Destination | None = None, **facts: Any
    ) -> VerificationResultSet:
        return asyncio.run(execute(self.prepare(config, **facts), destination))


def question(number: int, **facts: Any) -> Question:
    facts.setdefault("answer_template", TEMPLATE)
    facts.setdefault("template_language", "karenina-template")
    return Question(id=f"q{number}", question=f"What is target {number}?", raw_answer="BCL2", **facts)


@pytest.fixture
def times_open() -> Callable[[Path], int]:
    """How often this process has a file open."""

    def count(path: Path) -> int:
        found = 0
        for name in os.listdir("/dev/fd"):
            with contextlib.suppress(OSError):  # the list itself is closed by now
                found += os.path.samestat(os.fstat(int(name)), path.stat())
        return found

    return count


@pytest.fixture
def plugin_names() -> set[str]:
    """The installed plugins that a run needs."""
    return set(PLUGINS)


@pytest.fixture
def make_question() -> Callable[..., Question]:
    return question


@pytest.fixture
def world() -> Callable[..., World]:
    """`world(*plugins, answers=..., judge=..., questions=...)`: by default one question that is answered rightly."""

    def make(
        *plugins: Any,
        answerer: ScriptedLLM | None = None,
        judge: ScriptedLLM | None = None,
        questions: int | list[Question] = 1,
        **facts: Any,
    ) -> World:
        answerer = answerer or ScriptedLLM(lambda call: "It is BCL2.")
        judge = judge or ScriptedLLM(lambda call: {"target": "BCL2"})
        asked = [question(i) for i in range(questions)] if isinstance(questions, int) else questions
        return World(
            answerer=answerer,
            judge=judge,
            app=application(answerer.adapter("answering"), judge.adapter("judging"), *plugins, installed=PLUGINS),
            benchmark=Benchmark(name="targets", questions=asked, **facts),
        )

    return make
