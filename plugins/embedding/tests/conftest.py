"""One item with a filled template, an embedder and a judge that say what a test wants, and the stage run on it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import pytest
from karenina_calls.ports.client import Model, ModelClient
from karenina_calls.services.embedding import Embeddings
from karenina_calls.services.similarity import similarities as measured
from karenina_embedding.check import EmbeddingCheck
from karenina_judging.services import SIMILARITIES

from karenina_core import (
    ArtifactKeys,
    Karenina,
    ModelConfig,
    Question,
    VerificationConfig,
    VerificationContext,
    hookimpl,
)
from karenina_core.testing import FakeHandle, ScriptedLLM, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.message import UsageMetadata

ONCE = AttemptPolicy(1)
NO_RETRIES = RetryPolicy(rate_limited=ONCE, timeout=ONCE, connection=ONCE, server=ONCE)


class Written:
    """An embedder and its plugin: two texts are as similar as `similarity` says, or the call fails."""

    def __init__(self, similarity: float | Mapping[str, float] | Exception = 1.0, problem: str | None = None) -> None:
        self.similarity = similarity
        self.unwell = problem
        self.calls: list[tuple[str, ...]] = []
        self.models: list[str] = []

    @hookimpl
    def karenina_register_embedders(self, registry: Any) -> None:
        registry.add(self, name="written")

    def problem(self) -> str | None:
        return self.unwell

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        self.calls.append(tuple(texts))
        if isinstance(self.similarity, Exception):
            raise self.similarity
        vectors: list[tuple[float, ...]] = []
        for extracted in texts[1::2]:
            close = self.similarity[extracted] if isinstance(self.similarity, Mapping) else self.similarity
            vectors += [(1.0, 0.0), (close, (1 - close * close) ** 0.5)]
        return Embeddings(vectors=tuple(vectors), model="really-used", usage=UsageMetadata(7, 0, 7, cost_usd=0.0))


def judging(*equivalent: str) -> Callable[..., Any]:
    """A judge's script: these fields are equivalent, the others that it is asked about are not."""

    def script(call: Any) -> dict[str, Any]:
        names = call.output.schema["properties"]
        return {name: {"reasoning": f"about {name}", "equivalent": name in equivalent} for name in names}

    return script


def make_context(
    expected: Mapping[str, Any],
    extracted: Mapping[str, Any],
    *,
    handle: Any = None,
    embedder: Written | None = None,
    judge: ScriptedLLM | None = None,
    enabled: bool = True,
    patterns: bool = True,
    similarities: Mapping[str, float] | None = None,
    **facts: Any,
) -> VerificationContext:
    """The context as VerifyTemplate leaves it."""
    handle = handle or FakeHandle(expected=dict(expected))
    calls: list[Any] = []
    config = ModelConfig(model_name="j", interface="scripted", max_retries=0, retry_policy=NO_RETRIES)
    judge = judge or ScriptedLLM(judging(*expected))
    app, settings = (
        application(embedder or Written()),
        VerificationConfig(
            embedding_check_enabled=enabled,
            embedding_check_embedder="written",
            embedding_check_model="wanted",
            retry_policy=NO_RETRIES,
            **facts,
        ),
    )
    about = VerificationContext(
        question=Question(question="Which?", answer_template="t", template_language="karenina-template"),
        config=settings,
        parsing=ModelClient(Model(config=config, llm=judge), calls),
        app=app,
        calls=calls,
        services={SIMILARITIES: partial(measured, app, settings, calls)},
    )
    filled = asyncio.run(handle.build(extracted))
    verdict = asyncio.run(filled.verify("the trace", similarities=similarities))
    about.set_artifact(ArtifactKeys.ANSWER, handle)
    about.set_artifact(ArtifactKeys.RAW_LLM_RESPONSE, "the trace")
    about.set_artifact(ArtifactKeys.PARSED_ANSWER, filled)
    about.set_artifact(ArtifactKeys.REGEX_VERIFICATION_RESULTS, {"success": patterns, "results": {}})
    about.set_result_field("field_results", dict(verdict.field_results))
    about.set_result_field("field_scores", dict(verdict.field_scores))
    about.set_result_field("verify_granular_result", asyncio.run(filled.granular()))
    about.record(field=verdict.result, verdict=verdict.result and patterns)
    return about


def run_stage(about: VerificationContext) -> bool:
    """Run the stage where it wants to run; whether it did."""
    stage = EmbeddingCheck()
    with about.acting(stage):
        if not stage.should_run(about):
            return False
        asyncio.run(stage.execute(about))
    return True


@pytest.fixture(scope="session")
def written() -> type[Written]:
    return Written


@pytest.fixture(scope="session")
def judge() -> Callable[..., ScriptedLLM]:
    """`judge("a", "b")`: calls these fields equivalent and no others."""
    return lambda *equivalent: ScriptedLLM(judging(*equivalent))


@pytest.fixture(scope="session")
def item() -> Callable[..., VerificationContext]:
    """`item(expected, extracted, **facts)`: a verified item, see `make_context`."""
    return make_context


@pytest.fixture(scope="session")
def check() -> Callable[[VerificationContext], bool]:
    return run_stage


@pytest.fixture(scope="session")
def app() -> Karenina:
    return Karenina.installed()
