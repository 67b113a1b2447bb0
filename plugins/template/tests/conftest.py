"""One item and the template stages, run on a real engine with a scripted judge."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import karenina_template.standard_judgment
import pytest
from karenina_calls.ports.client import Model, ModelClient
from karenina_calls.services.similarity import similarities
from karenina_judging.services import LOAD_TEMPLATE, SIMILARITIES
from karenina_template.declarative_templates import DeclarativeRuntime
from karenina_template.language import searches
from karenina_template.language.searches import Expression
from karenina_template.parse import ParseTemplate
from karenina_template.primitives import NAMES
from karenina_template.python_source import InProcessRuntime
from karenina_template.validate import ValidateTemplate
from karenina_template.verify import VerifyTemplate

from karenina_core import ArtifactKeys, ModelConfig, Question, Stage, VerificationContext, VerificationResult
from karenina_core import templates as primitives
from karenina_core.pipeline.assemble import bare_result
from karenina_core.pipeline.engine import Engine
from karenina_core.testing import ScriptedLLM, application
from karenina_core.values.question import TemplateSource

FIELD = {
    "name": "target",
    "type": "str",
    "description": "The protein that the response names",
    "ground_truth": "BCL2",
    "verify_with": {"type": "ExactMatch"},
    "extraction_hint": "a gene symbol",
}
PRIMITIVES = {name: getattr(primitives, name) for name in NAMES}
TEMPLATE = json.dumps({"fields": [FIELD]})


class Last(Stage):
    """Takes the place of the stage that assembles the result."""

    produces = (ArtifactKeys.FINAL_RESULT,)
    final = True

    def should_run(self, context: VerificationContext) -> bool:
        return True

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact(ArtifactKeys.FINAL_RESULT, bare_result(context))


async def load(source: TemplateSource) -> Any:
    runtime: Any = InProcessRuntime() if source.language == "python" else DeclarativeRuntime()
    return await runtime.load(source.text, PRIMITIVES)


def make_context(
    template: str | None = TEMPLATE, judge: ScriptedLLM | None = None, answer: str | None = "It is BCL2.", **facts: Any
) -> VerificationContext:
    language = "python" if template and "class Answer" in template else "karenina-template"
    calls: list[Any] = []
    config = ModelConfig(model_name="j", interface="scripted", max_retries=facts.pop("max_retries", 0))
    about = VerificationContext(
        question=Question(question="Which?", answer_template=template, template_language=language),
        parsing=ModelClient(Model(config=config, llm=judge or ScriptedLLM({"target": "BCL2"})), calls),
        services={
            LOAD_TEMPLATE: load,
            SIMILARITIES: lambda pairs: similarities(about.app, about.config, calls, pairs),
        },
        calls=calls,
        app=facts.pop("app", None) or application(karenina_template.standard_judgment),
        **facts,
    )
    if answer is not None:
        about.set_artifact(ArtifactKeys.RAW_LLM_RESPONSE, answer)
    return about


def trail_of(about: VerificationContext, *stages: Stage) -> dict[str, tuple[str, str]]:
    """`{stage: (status, reason)}`."""
    result: VerificationResult = asyncio.run(Engine([*stages, Last()]).run(about))
    return {entry.stage: (entry.status, entry.reason) for entry in result.trail}


def all_three(about: VerificationContext) -> dict[str, tuple[str, str]]:
    return trail_of(about, ValidateTemplate(), ParseTemplate(), VerifyTemplate())


@pytest.fixture
def limit(monkeypatch: pytest.MonkeyPatch) -> Callable[[float], None]:
    """`limit(seconds)` in place of the two seconds that a search may take."""

    def limited(seconds: float) -> None:
        monkeypatch.setattr(searches, "SECONDS", seconds)
        monkeypatch.setattr(Expression.search, "__defaults__", (seconds, None))

    return limited


@pytest.fixture
def quick(limit: Callable[[float], None]) -> None:
    """A search may take a tenth of a second."""
    limit(0.1)


@pytest.fixture
def context() -> Callable[..., VerificationContext]:
    """`context(template, judge, answer, **facts)`: one item with an answer to extract from."""
    return make_context


@pytest.fixture
def run() -> Callable[..., dict[str, tuple[str, str]]]:
    """`run(context, *stages)`: what became of the stages, all three where none are named."""
    return lambda about, *stages: trail_of(about, *stages) if stages else all_three(about)
