"""Agentic traits whose model cannot act as an agent: skipped with a note, and refused where nothing else is scored."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from attrs import evolve
from karenina_runs.plan.prepare import prepare

from karenina_core import (
    AgenticRubricTrait,
    Benchmark,
    Karenina,
    LLMRubricTrait,
    ModelConfig,
    RegexRubricTrait,
    Rubric,
    VerificationConfig,
)
from karenina_core.errors import ConfigError
from karenina_core.testing import ScriptedLLM, application

Make = Callable[..., Any]
UNABLE = ModelConfig(model_name="x", interface="unable")
SOUND = AgenticRubricTrait(name="sound", kind="boolean", description="Whether it is.", context_mode="trace_only")
OTHER = evolve(SOUND, name="other", model_override=UNABLE)
POLITE = LLMRubricTrait(name="polite", kind="boolean")
CITED = RegexRubricTrait(name="cited", pattern="BCL2")


def replying(call: Any) -> Any:
    if call.output is None and "JSON" not in call.text:
        return "It is BCL2."
    return {"target": "BCL2", "polite": True, "result": True}


class Models:
    def __init__(self) -> None:
        self.able, self.unable = ScriptedLLM(replying), ScriptedLLM(replying)
        self.able.capabilities = evolve(self.able.capabilities, supports_tools=True)
        self.app: Karenina = application(self.able.adapter("able"), self.unable.adapter("unable"), installed=True)

    @property
    def count(self) -> int:
        return len(self.able.calls) + len(self.unable.calls)


@pytest.fixture
def models() -> Models:
    return Models()


def config(*judges: str, mode: Any = "rubric_only") -> VerificationConfig:
    return VerificationConfig(
        answering_models=[ModelConfig(model_name="a", interface="unable")],
        parsing_models=[ModelConfig(model_name=f"j{place}", interface=name) for place, name in enumerate(judges)],
        evaluation_mode=mode,
    )


def benchmark(make_question: Make, *traits: Any) -> Benchmark:
    return Benchmark(name="b", questions=[make_question(0)], rubric=Rubric.from_traits(traits))


@pytest.mark.parametrize(
    ("traits", "judge", "states"),
    [
        ((SOUND, CITED), "unable", {"sound": "skipped", "cited": "ok"}),
        ((SOUND, POLITE), "unable", {"sound": "skipped", "polite": "ok"}),
        ((SOUND, OTHER), "able", {"other": "skipped"}),
    ],
)
def test_it_is_skipped_where_others_are_scored(
    traits: Any, judge: str, states: dict[str, str], models: Models, make_question: Make
) -> None:
    bench = benchmark(make_question, *traits)
    notes = prepare(bench, config(judge), app=models.app).notes
    name = next(name for name, state in states.items() if state == "skipped")
    told = f"agentic traits that are skipped: '{name}': the interface 'unable' cannot use tools"
    assert [note for note in notes if note.startswith(told)]
    assert models.count == 0
    (result,) = bench.run_verification(config(judge), app=models.app)
    assert result.rubric is not None
    assert {name: result.rubric.trait_states[name]["state"] for name in states} == states
    assert (result.rubric.agentic_trait_scores[name], result.rubric.agentic_trait_investigation_traces[name]) == (
        None,
        None,
    )
    assert str(result.outcome) == "scored"


def test_where_templates_are_judged_nothing_is_refused(models: Models, make_question: Make) -> None:
    mode = "template_and_rubric"
    (result,) = benchmark(make_question, SOUND).run_verification(config("unable", mode=mode), app=models.app)
    assert str(result.outcome) == "passed"
    assert result.rubric is not None
    assert result.rubric.trait_states["sound"]["state"] == "skipped"


@pytest.mark.parametrize(
    ("traits", "judges", "refused"),
    [((SOUND,), ("unable",), [0]), ((OTHER,), ("able",), [0]), ((SOUND, OTHER), ("able", "unable"), [1])],
)
def test_it_is_refused_before_any_call_where_a_judge_has_nothing_else_to_score(
    traits: Any, judges: Any, refused: list[int], models: Models, make_question: Make
) -> None:
    with pytest.raises(ConfigError, match=r"cannot use tools.*nothing else is scored") as failed:
        benchmark(make_question, *traits).run_verification(config(*judges), app=models.app)
    assert [problem.path for problem in failed.value.problems] == [f"parsing_models[{place}]" for place in refused]
    assert models.count == 0


def test_able_models_are_not_told_of(models: Models, make_question: Make) -> None:
    notes = prepare(benchmark(make_question, SOUND), config("able"), app=models.app).notes
    assert not [note for note in notes if "skipped" in note]
