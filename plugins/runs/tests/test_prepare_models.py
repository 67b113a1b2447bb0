"""Every model of a run is checked before any is called, and all problems are told at once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from karenina_runs.plan.prepare import prepare

from karenina_core import AdapterSpec, Benchmark, Karenina, ModelConfig, VerificationConfig, hookimpl
from karenina_core.errors import ConfigError, PluginError
from karenina_core.testing import ScriptedLLM

Make = Callable[..., Any]


def untouched(here: Any) -> None:
    assert (here.answerer.calls, here.judge.calls, here.answerer.opened) == ([], [], 0)


def problems(caught: Any) -> dict[str, str]:
    return {problem.path: problem.message for problem in caught.value.problems}


# Models


def test_a_run_needs_models(world: Make) -> None:
    here = world()
    with pytest.raises(ConfigError) as caught:
        here.prepare(VerificationConfig())
    assert set(problems(caught)) == {"answering_models", "parsing_models"}


def test_duplicate_identities_are_refused() -> None:
    same = [ModelConfig(model_name="m", temperature=t) for t in (0.0, 1.0)]
    with pytest.raises(ConfigError) as caught:
        VerificationConfig(answering_models=same, parsing_models=same)
    assert {path: "its own id" in text for path, text in problems(caught).items()} == {
        "answering_models[1]": True,
        "parsing_models[1]": True,
    }
    VerificationConfig(answering_models=[same[0], ModelConfig(model_name="m", id="warm", temperature=1.0)])


def test_every_problem_of_every_model_is_told_at_once(world: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("KARENINA_TEST_KEY", raising=False)

    def check(model: ModelConfig) -> list[str]:
        return ["temperature: too warm"] if (model.temperature or 0) > 1 else []

    llm = ScriptedLLM()
    here = world(
        llm.adapter("checked", config_checker=check, requires_provider=True),
        AdapterSpec(interface="deaf", parser_factory=lambda model: llm),
        AdapterSpec(interface="busy", agent_factory=lambda model: llm),
        llm.adapter("gone", requires_modules=("there_is_no_such_package",), install_hint="pip install such"),
    )
    models = [
        ModelConfig(model_name="a", interface="anwsering"),
        ModelConfig(model_name="b", interface="checked", temperature=2.0),
        ModelConfig(model_name="c", interface="deaf"),
        ModelConfig(model_name="d", interface="gone"),
        ModelConfig(model_name="e", interface="answering", mcp_urls_dict={"tools": "http://localhost:1"}),
        ModelConfig(model_name="f", interface="answering", api_key_env="KARENINA_TEST_KEY"),
    ]
    with pytest.raises(ConfigError) as caught:
        here.prepare(
            here.config(answering_models=models, parsing_models=[ModelConfig(model_name="g", interface="busy")])
        )
    said = "\n".join(map(str, caught.value.problems))
    for expected in (
        "answering_models[0].interface: no adapter serves the interface 'anwsering' (did you mean 'answering'?)",
        "answering_models[1]: model_provider: ",
        "answering_models[1]: temperature: too warm",
        "answering_models[2]: interface: 'deaf' cannot answer questions",
        "answering_models[3].interface: interface 'gone' cannot be used here: there_is_no_such_package",
        "answering_models[4]: mcp_urls_dict: ",
        "answering_models[5].api_key_env: set the environment variable KARENINA_TEST_KEY",
        "parsing_models[0]: interface: 'busy' cannot judge answers",
    ):
        assert expected in said
    untouched(here)


def test_a_check_that_raises_is_a_problem_of_its_model(world: Make) -> None:
    def check(model: ModelConfig) -> list[str]:
        raise ZeroDivisionError("a bug in the check")

    here = world(ScriptedLLM().adapter("buggy", config_checker=check))
    with pytest.raises(ConfigError, match=r"answering_models\[0\].*ZeroDivisionError: a bug in the check"):
        here.prepare(here.config(answering_models=[ModelConfig(model_name="a", interface="buggy")]))


def test_a_fallback_is_noted_in_the_run(world: Make) -> None:
    llm = ScriptedLLM(lambda call: "BCL2")
    here = world(llm.adapter("down", availability_checker=lambda: "no licence", fallback_interface="answering"))
    config = here.config(answering_models=[ModelConfig(model_name="a", interface="down")])
    prepared = here.prepare(config)
    assert prepared.notes == ("down falls back to answering: no licence",)
    results = here.run(config)
    assert results.notes == prepared.notes
    assert results[0].metadata.answering.interface == "down"
    assert (len(llm.calls), len(here.answerer.calls)) == (0, 1)


def test_an_unknown_executor_is_refused(world: Make) -> None:
    here = world()
    with pytest.raises(ConfigError, match=r"executor: there is no 'locl' \(did you mean 'local'\?\)"):
        here.prepare(here.config(executor="locl"))


def test_broken_stage_middleware_is_refused_before_any_call(world: Make) -> None:
    class Wrapping:
        @hookimpl
        def karenina_wrap_stage(self, stage: Any) -> Any:
            raise ValueError("a bug in the middleware")

    here = world(Wrapping())
    with pytest.raises(PluginError, match="a bug in the middleware"):
        here.prepare()
    untouched(here)


@pytest.mark.parametrize(
    ("settings", "task"),
    [
        ({"abstention_enabled": True}, "abstention_detection"),
        ({"sufficiency_enabled": True}, "sufficiency_detection"),
        ({"deep_judgment_enabled": True}, "dj_template_excerpt_extraction"),
        ({"deep_judgment_mode": "reasoning_only"}, "dj_template_reasoning_only"),
        ({"embedding_check_enabled": True}, "embedding_equivalence"),
    ],
)
def test_a_judge_that_cannot_serve_a_task_is_refused_before_a_run(
    settings: dict[str, Any], task: str, make_question: Callable[..., Any]
) -> None:
    recorded = ModelConfig(interface="manual", manual_traces={"q0": {"answer": "BCL2.", "fields": {"target": "BCL2"}}})
    config = VerificationConfig(answering_models=[recorded], parsing_models=[recorded], **settings)
    benchmark = Benchmark(name="b", questions=[make_question(0)])
    with pytest.raises(ConfigError) as refused:
        prepare(benchmark, config, app=Karenina.installed())
    (problem,) = refused.value.problems
    assert problem.path == "parsing_models[0]"
    assert f"the interface 'manual' cannot serve the task {task!r}" in problem.message
    assert "--parsing-model" in problem.message
    assert "--without" in problem.message
