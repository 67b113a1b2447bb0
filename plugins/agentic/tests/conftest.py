"""Agentic traits before a model on a real server that investigates and scores as a test scripts it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field, frozen
from karenina_agentic.rubric_stage import AgenticRubricEvaluation
from karenina_calls.models.models import open_models
from karenina_calls.models.overrides import model_pool
from karenina_calls.ports.client import ModelClient
from karenina_judging.services import OTHER_MODEL
from karenina_testing.adapters.replies import ServedRequest

from karenina_core import AgenticRubricTrait, ArtifactKeys, ModelConfig, Question, Rubric, VerificationConfig, hookimpl
from karenina_core.pipeline.context import VerificationContext
from karenina_core.ports.middleware import Call, CallTarget, Proceed
from karenina_core.ports.model_client import CallRecord
from karenina_core.ports.values import LLMResponse
from karenina_core.testing import Reply, ScriptedServer, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.message import ToolUseBlock

ONCE = RetryPolicy(**dict.fromkeys(("rate_limited", "timeout", "connection", "server"), AttemptPolicy(1)))
ANSWER = "I wrote the totals to totals.csv."
QUESTION = "What do the sales add up to?"
Says = Callable[[ServedRequest, bool], Any]


def look(request: ServedRequest) -> Reply:
    """What an investigator does first that has tools, unless a test says otherwise: it reads what it is given."""
    trace = re.search(r"saved to: (\S+)", request.text)
    path = trace[1] if trace else "totals.csv"
    return Reply(tool_calls=[ToolUseBlock("look", "read_file", {"path": path})])


@define(eq=False)
class Scripted:
    """What the model says: `investigates` and `scores` are replies, or functions of the request."""

    investigates: Any = "The totals are there and right."
    scores: Any = None
    requests: list[tuple[str, ServedRequest]] = field(factory=list)
    """What was asked, as `investigation` or `extraction`."""

    def __call__(self, request: ServedRequest) -> Any:
        is_extraction = "record of an investigation" in request.text
        if (
            not is_extraction
            and not callable(self.investigates)
            and request.body.get("tools")
            and request.messages[-1]["role"] != "tool"
        ):
            return look(request)
        self.requests.append(("extraction" if is_extraction else "investigation", request))
        reply = self.scores if is_extraction else self.investigates
        reply = reply(request) if callable(reply) else reply
        return json.dumps(reply) if isinstance(reply, Mapping) else reply

    def asked(self, step: str) -> list[ServedRequest]:
        return [request for kind, request in self.requests if kind == step]

    def prompts(self, step: str = "investigation") -> list[str]:
        return [request.text for request in self.asked(step)]


@frozen
class Ran:
    """The context after the stage, and what the model was asked."""

    context: VerificationContext
    scripted: Scripted
    peak: int
    calls: list[CallRecord]

    @property
    def scores(self) -> dict[str, Any]:
        return dict(self.context.get_result_field("agentic_trait_scores"))

    @property
    def traces(self) -> dict[str, str | None]:
        return dict(self.context.get_result_field("agentic_trait_investigation_traces"))

    @property
    def states(self) -> dict[str, str]:
        return {name: row["state"] for name, row in self.context.get_result_field("trait_states").items()}

    def reason(self, name: str) -> str:
        return str(self.context.get_result_field("trait_states")[name]["reason"])

    def details(self, name: str) -> dict[str, Any]:
        return dict(self.context.get_result_field("trait_details").get(name, {}))


class Pricing:
    """Middleware that knows a price: a dollar for every call."""

    @hookimpl
    def karenina_wrap_call(self, target: CallTarget) -> Any:
        return self._priced if target.kind == "llm" else None

    async def _priced(self, call: Call[LLMResponse], proceed: Proceed) -> LLMResponse:
        response = await proceed(call)
        return evolve(response, usage=evolve(response.usage, cost_usd=1.0))


def model(url: str, **more: Any) -> ModelConfig:
    known = {"model_name": "m", "interface": "openai_endpoint", "max_retries": 0, "retry_policy": ONCE}
    return ModelConfig(**{**known, "endpoint_base_url": url, **more})


def evaluate(
    traits: Sequence[AgenticRubricTrait],
    scripted: Scripted,
    *,
    workspace: Path | None = None,
    response: str = ANSWER,
    fields: Mapping[str, Any] | None = None,
    judge: Mapping[str, Any] | None = None,
    rubric: Rubric | None = None,
    plugins: Sequence[Any] = (),
    **config: Any,
) -> Ran:
    """Run the stage alone over one answer. `fields` are result fields that earlier stages set."""
    calls: list[CallRecord] = []

    async def run(url: str) -> VerificationContext:
        app = application(*plugins, installed={"openai_endpoint", "manual"})
        config_ = VerificationConfig(**config)
        own = [*traits]
        parsing = model(url, **(judge or {}))
        async with AsyncExitStack() as stack:
            opened = await stack.enter_async_context(open_models(app, config_, [parsing]))
            pool = await stack.enter_async_context(model_pool(app, config_, opened.values()))

            async def client_of(model: ModelConfig) -> ModelClient:
                return ModelClient(await pool.model(model), calls, "q/1", QUESTION)

            context = VerificationContext(
                question=Question(id="q/1", question=QUESTION),
                config=config_,
                mode="rubric_only",
                rubric=rubric or Rubric.from_traits(own).labelled("global"),
                parsing=ModelClient(opened[parsing.identity], calls, "q/1", QUESTION),
                app=app,
                workspace=workspace,
                calls=calls,
                services={OTHER_MODEL: client_of},
            )
            context.set_artifact(ArtifactKeys.RAW_LLM_RESPONSE, response)
            for name, value in (fields or {}).items():
                context.set_result_field(name, value)
            stage = AgenticRubricEvaluation()
            assert stage.should_run(context)
            with context.acting(stage):
                await stage.execute(context)
            return context

    with ScriptedServer(scripted) as server:
        context = asyncio.run(run(server.url))
        return Ran(context, scripted, server.peak, calls)


@pytest.fixture(scope="session")
def evaluated() -> Callable[..., Ran]:
    """`evaluated([trait, ...], scripted(...), workspace=..., response=..., agentic_rubric_strategy=...)`."""
    return evaluate


@pytest.fixture(scope="session")
def scripted() -> type[Scripted]:
    """`scripted(investigates=reply, scores=reply)`: a model that replies these things."""
    return Scripted


@pytest.fixture(scope="session")
def pricing() -> type[Pricing]:
    """A plugin that gives every call a price."""
    return Pricing


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    """A workspace with one file and a trace that an earlier run has left there."""
    folder = tmp_path / "work"
    (folder / ".karenina" / "traces").mkdir(parents=True)
    (folder / "totals.csv").write_text("total\n42\n")
    (folder / ".karenina" / "traces" / "trace_old.txt").write_text("an old trace")
    return folder


__all__ = ["Reply"]
