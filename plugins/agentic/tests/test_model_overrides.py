"""Models that traits name in place of the judge: opened once for a whole run, accounted for, recorded, kept secret."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import karenina_agentic
import pytest
from attrs import define, field
from karenina_agentic import rubric_stage
from karenina_testing.adapters.replies import ServedRequest

from karenina_core import (
    AgenticRubricTrait,
    Benchmark,
    Karenina,
    ModelConfig,
    Question,
    Rubric,
    VerificationConfig,
    VerificationResult,
    VerificationResultSet,
    hookimpl,
    run_single_model_verification,
)
from karenina_core.errors import ConfigError, PortError
from karenina_core.ports.middleware import Call, CallTarget, Proceed
from karenina_core.testing import Reply, ScriptedServer, application

INSTALLED = {
    *("generate-answer", "recursion-limit-auto-fail", "trace-validation-auto-fail", "finalize-result"),
    *("rubric-evaluation", "deep-judgment-rubric-auto-fail", "openai_endpoint", "local-executor", "jsonl", "replay"),
}


def says(request: ServedRequest) -> Any:
    if "record of an investigation" in request.text:
        return json.dumps({"result": True})
    return f"It adds up, says {request.model}."


def trait(name: str, model: ModelConfig | None = None) -> AgenticRubricTrait:
    return AgenticRubricTrait(
        name=name, kind="boolean", description=f"Whether it is {name}.", model_override=model, context_mode="trace_only"
    )


def at(url: str, name: str, **more: Any) -> ModelConfig:
    facts = {"interface": "openai_endpoint", "max_retries": 0, "endpoint_base_url": url, **more}
    return ModelConfig(model_name=name, **facts)


@define(eq=False)
class Doors:
    """Middleware that counts how often each model is opened and closed; `locked` ones cannot be opened."""

    locked: Sequence[str] = ()
    opened: list[str] = field(factory=list)
    closed: list[str] = field(factory=list)

    @hookimpl
    def karenina_wrap_call(self, target: CallTarget) -> Any:
        return _Door(target.model, self) if target.kind == "llm" else None


@define(eq=False)
class _Door:
    name: str
    doors: Doors

    async def aopen(self) -> None:
        if self.name in self.doors.locked:
            raise PortError(f"{self.name} is locked", kind="connection")
        self.doors.opened.append(self.name)

    async def __call__(self, call: Call[Any], proceed: Proceed) -> Any:
        return await proceed(call)

    async def aclose(self) -> None:
        self.doors.closed.append(self.name)


def run(
    url: str, traits: Sequence[AgenticRubricTrait], app: Karenina, run_dir: Path | None = None, count: int = 3
) -> VerificationResultSet:
    model = at(url, "judge")
    questions = [Question(id=f"q{number}", question=f"What is {number}?") for number in range(count)]
    benchmark = Benchmark(name="b", questions=questions, rubric=Rubric.from_traits(traits))
    config = VerificationConfig(answering_models=[model], parsing_models=[model], evaluation_mode="rubric_only")
    return benchmark.run_verification(config, run_dir=run_dir, app=app)


def once(url: str, traits: Sequence[AgenticRubricTrait], app: Karenina) -> VerificationResult:
    model, rubric = at(url, "judge"), Rubric.from_traits(traits)
    question = Question(id="q", question="What?")
    return run_single_model_verification(question, model, model, rubric=rubric, evaluation_mode="rubric_only", app=app)


def test_a_model_that_traits_name_is_opened_once_for_all_items_and_closed_with_the_run() -> None:
    doors = Doors()
    with ScriptedServer(says) as server:
        expert = at(server.url, "expert")
        traits = [trait("right"), trait("neat", expert), trait("short", at(server.url, "expert"))]
        results = list(run(server.url, traits, application(rubric_stage, doors, installed=INSTALLED)))
    assert doors.opened.count("expert") == 1
    assert "expert" in doors.closed
    assert doors.opened.count("judge") == 2  # one for each of its roles
    assert len(results) == 3
    for result in results:
        assert result.rubric is not None
        assert dict(result.rubric.agentic_trait_scores) == {"right": True, "neat": True, "short": True}
        assert "says expert" in result.rubric.agentic_trait_investigation_traces["neat"]
        row = result.generation.usage_metadata["rubric_agentic_trait_investigation"]
        assert row["calls"] == 3


def test_an_override_that_is_the_judge_itself_shares_its_connection() -> None:
    doors = Doors()
    with ScriptedServer(says) as server:
        run(
            server.url, [trait("right", at(server.url, "judge"))], application(rubric_stage, doors, installed=INSTALLED)
        )
    assert sorted(doors.opened) == ["judge", "judge"]


def test_equal_names_with_other_settings_are_other_models() -> None:
    doors = Doors()
    with ScriptedServer(says) as server:
        traits = [trait("right", at(server.url, "judge", temperature=0.7))]
        run(server.url, traits, application(rubric_stage, doors, installed=INSTALLED))
        asked = [request for request in server.requests if "evaluation agent" in request.text]
    assert len(doors.opened) == 3
    assert {request.body.get("temperature") for request in asked} == {0.7}


def test_a_model_that_cannot_be_opened_costs_only_its_traits_in_every_item() -> None:
    doors = Doors(locked=["expert"])
    with ScriptedServer(says) as server:
        traits = [trait("right"), trait("neat", at(server.url, "expert"))]
        results = list(run(server.url, traits, application(rubric_stage, doors, installed=INSTALLED)))
    assert len(results) == 3
    for result in results:
        assert (result.outcome.name, result.metadata.error) == ("scored", None)
        assert result.rubric is not None
        assert dict(result.rubric.agentic_trait_scores) == {"right": True, "neat": None}
        assert dict(result.rubric.trait_states["neat"])["state"] == "error"
        assert "expert is locked" in result.rubric.trait_states["neat"]["reason"]


def test_a_single_verification_opens_and_closes_it_too() -> None:
    doors = Doors()
    with ScriptedServer(says) as server:
        traits = [trait("neat", at(server.url, "expert"))]
        result = once(server.url, traits, application(rubric_stage, doors, installed=INSTALLED))
    assert result.rubric is not None
    assert dict(result.rubric.agentic_trait_scores) == {"neat": True}
    assert doors.opened.count("expert") == 1
    assert "expert" in doors.closed
    assert "expert" in result.generation.usage_metadata["rubric_agentic_trait_investigation"]["model"]


@pytest.mark.parametrize("single", [True, False])
@pytest.mark.parametrize(
    ("facts", "message"),
    [
        ({"api_key_env": "KARENINA_TEST_NO_SUCH_KEY"}, "KARENINA_TEST_NO_SUCH_KEY"),
        ({"mcp_urls_dict": {"library": "http://127.0.0.1:9/mcp"}}, "a judge uses no tool servers"),
        ({"interface": "no_such_thing"}, "no_such_thing"),
    ],
    ids=["key", "servers", "interface"],
)
def test_an_override_that_is_configured_wrongly_is_refused_before_any_call(
    facts: dict[str, Any], message: str, single: bool
) -> None:
    app = application(rubric_stage, installed=INSTALLED)
    with ScriptedServer(says) as server:
        verify = once if single else run
        with pytest.raises(ConfigError, match=f"trait 'neat'.*{message}"):
            verify(server.url, [trait("neat", at(server.url, "expert", **facts))], app)
        assert server.count == 0


def test_the_key_of_an_override_is_in_nothing_that_a_run_writes(tmp_path: Path) -> None:
    key = "sk-canary-0123456789abcdef"

    def echoes(request: ServedRequest) -> Any:
        return Reply.error(401, f"the key {key} is not known") if request.model == "expert" else says(request)

    with ScriptedServer(echoes) as server:
        traits = [trait("right"), trait("neat", at(server.url, "expert", endpoint_api_key=key))]
        app = application(rubric_stage, installed=INSTALLED)
        (result,) = run(server.url, traits, app, run_dir=tmp_path / "run", count=1)
    assert result.rubric is not None
    assert result.rubric.agentic_trait_scores["neat"] is None
    written = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert any(b"neat" in path.read_bytes() for path in written)
    assert [path.name for path in written if key.encode() in path.read_bytes()] == []


def test_calls_to_an_override_are_recorded_and_come_back_without_its_server(tmp_path: Path) -> None:
    recording = tmp_path / "calls.jsonl"

    def scores(url: str, mode: str) -> Any:
        settings = {"replay": {mode: str(recording)}}
        app = application(rubric_stage, installed=INSTALLED, settings=settings)
        (result,) = run(url, [trait("neat", at(url, "expert"))], app, count=1)
        assert result.rubric is not None
        return dict(result.rubric.agentic_trait_scores), dict(result.rubric.agentic_trait_investigation_traces)

    with ScriptedServer(says) as server:
        before = scores(server.url, "record")
        assert {request.model for request in server.requests} == {"judge", "expert"}
    assert before[0] == {"neat": True}
    assert scores(server.url, "replay") == before


def test_the_plugin_needs_nothing_of_the_run() -> None:
    """Models of traits come through the context: a stage does not open them itself."""
    for path in Path(karenina_agentic.__path__[0]).rglob("*.py"):
        assert "karenina_runs" not in path.read_text("utf-8"), path.name
