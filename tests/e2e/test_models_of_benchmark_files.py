"""A benchmark file decides nothing about where data and keys go: models that it describes, in whole runs."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, ClassVar

import pytest
from attrs import evolve, frozen
from karenina_calls.models.overrides import model_pool
from karenina_calls.models.untrusted_models import ForeignModelConfig

from karenina_core import (
    AgenticRubricTrait,
    Benchmark,
    DynamicRubric,
    Karenina,
    ModelConfig,
    Question,
    Rubric,
    RubricTrait,
    TraitEvaluator,
    VerificationConfig,
    VerificationResult,
    hookimpl,
    run_single_model_verification,
)
from karenina_core.errors import ConfigError
from karenina_core.testing import ScriptedServer, application

SECRET = "sk-very-secret-1"
VARIABLE = "KARENINA_TEST_KEY_OF_SOMEBODY"


def says(request: Any) -> Any:
    if request.schema is None:
        return "It is right."
    if "present" in json.dumps(request.schema):
        return dict.fromkeys(request.schema.get("properties", {}), True)
    return {"result": True}


@pytest.fixture(scope="module")
def app() -> Karenina:
    """The installed plugins and nothing else."""
    return application(installed=True)


@pytest.fixture
def mine() -> Iterator[ScriptedServer]:
    with ScriptedServer(says) as server:
        yield server


@pytest.fixture
def stranger(monkeypatch: pytest.MonkeyPatch) -> Iterator[ScriptedServer]:
    """The server that the author of a file would like to hear from."""
    monkeypatch.setenv(VARIABLE, SECRET)
    with ScriptedServer(says) as server:
        yield server


def model(server: ScriptedServer, name: str, **more: Any) -> ModelConfig:
    return ModelConfig(**{"model_name": name, "interface": "openai_endpoint", "endpoint_base_url": server.url, **more})


def trait(override: ModelConfig | None, name: str = "neat", **more: Any) -> AgenticRubricTrait:
    facts = {"kind": "boolean", "description": "Whether it is neat.", "context_mode": "trace_only", **more}
    return AgenticRubricTrait(name=name, model_override=override, **facts)


def benchmark(*traits: RubricTrait, dynamic: bool = False) -> Benchmark:
    empty = Benchmark.create("b").with_questions([Question(id="q", question="What is it?")])
    if dynamic:
        return empty.with_dynamic_rubric(DynamicRubric.from_traits(traits))
    return empty.with_rubric(Rubric.from_traits(traits))


def from_file(tmp_path: Path, app: Karenina, made: Benchmark) -> Benchmark:
    return Benchmark.load(made.save(tmp_path / "b.jsonld", app=app), app=app)


def verify(loaded: Benchmark, app: Karenina, judge: ModelConfig, **settings: Any) -> list[VerificationResult]:
    chosen = {"answering_models": [judge], "parsing_models": [judge], "evaluation_mode": "rubric_only", **settings}
    return list(loaded.run_verification(VerificationConfig(**chosen), app=app))


def investigated(results: list[VerificationResult]) -> dict[str, Any]:
    assert results[0].rubric is not None
    return dict(results[0].rubric.agentic_trait_scores)


def greedy(stranger: ScriptedServer, name: str = "theirs", **more: Any) -> ModelConfig:
    return model(stranger, name, api_key_env=VARIABLE, **more)


# What a file describes is not asked


@pytest.mark.parametrize("policy", ["sandbox", "refuse"])
@pytest.mark.parametrize("dynamic", [False, True])
def test_a_model_of_a_file_is_refused_before_any_call(
    dynamic: bool, policy: str, tmp_path: Path, app: Karenina, mine: ScriptedServer, stranger: ScriptedServer
) -> None:
    loaded = from_file(tmp_path, app, benchmark(trait(greedy(stranger)), dynamic=dynamic))
    with pytest.raises(ConfigError) as refused:
        verify(loaded, app, model(mine, "judge"), code_policy=policy)
    (problem,) = refused.value.problems
    for told in ("'neat'", "'theirs'", stranger.url, "openai_endpoint", "parsing model", "--trust", "code_policy"):
        assert told in str(problem)
    assert SECRET not in str(problem)
    assert (stranger.requests, mine.requests) == ([], [])


def test_a_file_cannot_name_the_program_that_starts(
    tmp_path: Path, app: Karenina, mine: ScriptedServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    started = tmp_path / "started"
    program = tmp_path / "claude"
    program.write_text(f"#!/bin/sh\ntouch {started}\n")
    program.chmod(0o755)
    override = ModelConfig(
        model_name="x", interface="claude_agent_sdk", extra_kwargs={"cli_path": str(program)}, endpoint_api_key="k"
    )
    loaded = from_file(tmp_path, app, benchmark(trait(override)))
    with pytest.raises(ConfigError, match=r"claude_agent_sdk.*--trust"):
        verify(loaded, app, model(mine, "judge"))
    assert not started.exists()


def test_every_such_trait_is_told_and_those_that_are_left_out_are_not(
    tmp_path: Path, app: Karenina, mine: ScriptedServer, stranger: ScriptedServer
) -> None:
    traits = [trait(greedy(stranger, f"m{n}"), f"t{n}") for n in range(3)]
    loaded = from_file(tmp_path, app, benchmark(*traits, trait(None, "plain")))
    with pytest.raises(ConfigError) as refused:
        verify(loaded, app, model(mine, "judge"))
    assert [f"'t{n}'" in str(problem) for n, problem in enumerate(refused.value.problems)] == [True, True, True]
    assert investigated(verify(loaded, app, model(mine, "judge"), rubric_trait_names=["plain"])) == {"plain": True}
    assert stranger.requests == []


def test_the_mark_of_a_file_survives_whatever_a_program_does_with_its_traits(
    tmp_path: Path, app: Karenina, mine: ScriptedServer, stranger: ScriptedServer
) -> None:
    made = trait(greedy(stranger))
    loaded = from_file(tmp_path, app, benchmark(made))
    assert loaded.rubric == Rubric.from_traits([made]), "the mark changes no value"
    (read,) = loaded.rubric.agentic_traits
    warmer = evolve(read, model_override=evolve(read.model_override, temperature=1.0))
    judge = model(mine, "judge")
    question = Question(id="q", question="What is it?")
    for rubric in (loaded.rubric, Rubric.from_traits([warmer]), Rubric.merged([loaded.rubric])):
        with pytest.raises(ConfigError, match="--trust"):
            run_single_model_verification(question, judge, judge, rubric=rubric, app=app, evaluation_mode="rubric_only")
    with pytest.raises(ConfigError, match="--trust"):
        verify(benchmark(warmer), app, judge)
    assert (stranger.requests, mine.requests) == ([], [])


# What may be asked


@pytest.mark.parametrize("role", ["parsing_models", "answering_models"])
def test_a_file_may_name_a_configured_model_and_that_one_is_asked_as_it_is_configured(
    role: str, tmp_path: Path, app: Karenina, mine: ScriptedServer, stranger: ScriptedServer
) -> None:
    theirs = greedy(stranger, "expert", extra_kwargs={"user": "stranger"}, temperature=0.9)
    loaded = from_file(tmp_path, app, benchmark(trait(theirs)))
    expert = model(mine, "expert", endpoint_api_key="sk-my-own-key", temperature=0.3)
    other = model(mine, "judge")
    results = loaded.run_verification(
        VerificationConfig(
            **{"answering_models": [other], "parsing_models": [other], role: [expert]}, evaluation_mode="rubric_only"
        ),
        app=app,
    )
    assert investigated(list(results)) == {"neat": True}
    assert stranger.requests == []
    asked = [request for request in mine.requests if "evaluation agent" in request.text]
    assert [(r.model, r.headers["authorization"], r.body["temperature"]) for r in asked] == [
        ("expert", "Bearer sk-my-own-key", 0.3)
    ]
    assert "user" not in asked[0].body
    (note,) = [note for note in results.notes if "neat" in note]
    for name in ("endpoint_base_url", "api_key_env", "extra_kwargs", "temperature"):
        assert name in note


@pytest.mark.parametrize(
    "other",
    [{"interface": "litellm"}, {"model_provider": "openai"}, {"model_name": "Judge"}],
    ids=lambda o: next(iter(o)),
)
def test_a_model_that_differs_in_interface_provider_or_name_is_another_one(
    other: dict[str, Any], tmp_path: Path, app: Karenina, mine: ScriptedServer, stranger: ScriptedServer
) -> None:
    loaded = from_file(tmp_path, app, benchmark(trait(evolve(greedy(stranger, "judge"), id=None, **other))))
    with pytest.raises(ConfigError, match="--trust"):
        verify(loaded, app, model(mine, "judge"))
    assert (stranger.requests, mine.requests) == ([], [])


def test_a_trusted_run_asks_what_the_file_describes(
    tmp_path: Path, app: Karenina, mine: ScriptedServer, stranger: ScriptedServer
) -> None:
    loaded = from_file(tmp_path, app, benchmark(trait(greedy(stranger))))
    assert investigated(verify(loaded, app, model(mine, "judge"), code_policy="trusted")) == {"neat": True}
    assert {request.headers["authorization"] for request in stranger.requests} == {f"Bearer {SECRET}"}


def test_a_model_that_the_program_itself_names_is_asked(
    app: Karenina, mine: ScriptedServer, stranger: ScriptedServer
) -> None:
    assert investigated(verify(benchmark(trait(greedy(stranger))), app, model(mine, "judge"))) == {"neat": True}
    assert stranger.requests


# Traits and stages of other packages


@frozen(kw_only=True)
class Asking(RubricTrait):
    type_name: ClassVar[str] = "asking"
    who: ModelConfig
    more: tuple[ModelConfig, ...] = ()


class AskingEvaluator(TraitEvaluator[Asking]):
    name = "asking"
    trait_class = Asking
    file_type = "AskingTrait"


class Bringing:
    @hookimpl
    def karenina_register_traits(self, registry: Any) -> None:
        registry.add(AskingEvaluator)


def test_the_models_of_other_trait_types_are_marked_too(
    tmp_path: Path, mine: ScriptedServer, stranger: ScriptedServer
) -> None:
    app = application(Bringing(), installed=True)
    asking = Asking(name="neat", description="d", who=model(mine, "judge"), more=(greedy(stranger),))
    loaded = from_file(tmp_path, app, benchmark(asking))
    with pytest.raises(ConfigError, match=r"'theirs'.*--trust"):
        verify(loaded, app, model(mine, "judge"))
    (read,) = loaded.rubric.extra_traits
    assert read == asking
    assert [type(one) for one in (read.who, *read.more)] == [ForeignModelConfig] * 2


def test_a_stage_that_asks_for_such_a_model_whatever_the_checks_said_does_not_get_it(
    mine: ScriptedServer, stranger: ScriptedServer
) -> None:
    app = application(installed=True)
    wanted = ForeignModelConfig(
        model_name="theirs", interface="openai_endpoint", endpoint_base_url=stranger.url, api_key_env=VARIABLE
    )

    async def asked(policy: Any) -> Any:
        config = VerificationConfig(parsing_models=[model(mine, "judge")], code_policy=policy)
        async with model_pool(app, config, []) as pool:
            return (await pool.model(wanted)).config

    with pytest.raises(ConfigError, match="--trust"):
        asyncio.run(asked("sandbox"))
    assert asyncio.run(asked("trusted")).endpoint_base_url == stranger.url


# Keys are not written


def test_no_key_is_written_into_a_benchmark_file(tmp_path: Path, app: Karenina, stranger: ScriptedServer) -> None:
    override = evolve(greedy(stranger), endpoint_api_key=SECRET)
    made = benchmark(trait(override))
    path = made.save(tmp_path / "b.jsonld", app=app)
    assert SECRET not in path.read_text()
    assert VARIABLE in path.read_text(), "the name of the variable is no secret"
    by_hand = path.read_text().replace(f'"{VARIABLE}"', f'"{VARIABLE}", "endpoint_api_key": "{SECRET}"')
    assert SECRET in by_hand
    path.write_text(by_hand)
    loaded = Benchmark.load(path, app=app)
    assert any("in the clear" in warning for warning in loaded.warnings)
    again = loaded.with_questions([Question(id="more", question="And this?")]).save(tmp_path / "c.jsonld", app=app)
    assert SECRET not in again.read_text()
