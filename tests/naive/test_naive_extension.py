"""Extending a run: every repetition is there once, nothing is asked in silence, clashes are found before they cost."""

from __future__ import annotations

import json
import sqlite3
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from karenina_core import (
    Benchmark,
    LLMRubricTrait,
    ModelConfig,
    Question,
    Rubric,
    VerificationConfig,
    VerificationResultSet,
    extend_run,
)
from karenina_core.errors import ConfigError
from karenina_core.testing import ScriptedServer, ServedRequest

FIELD = {"name": "target", "type": "str", "description": "The protein", "ground_truth": "BCL2"}
TEMPLATE = json.dumps({"fields": [{**FIELD, "verify_with": {"type": "ExactMatch"}}]})
KIND = LLMRubricTrait(name="kind", kind="boolean", description="Whether it is kind.")


def said(request: ServedRequest) -> Any:
    if request.schema is None:
        return "It is BCL2."
    return {name: "BCL2" if name == "target" else True for name in request.schema["properties"]}


class World:
    """A finished run of two questions in `run`, and the server that counts what is asked after it."""

    def __init__(self, folder: Path, server: ScriptedServer) -> None:
        self.folder, self.server = folder, server
        told: Any = {"answer_template": TEMPLATE, "template_language": "karenina-template"}
        asked = [Question(id=name, question=f"What does {name} bind?", **told) for name in ("q0", "q1")]
        self.benchmark = Benchmark(name="targets", questions=asked, rubric=Rubric.from_traits([KIND]))
        models = [
            ModelConfig(model_name=name, interface="openai_endpoint", endpoint_base_url=server.url) for name in "aj"
        ]
        self.config = VerificationConfig(answering_models=models[:1], parsing_models=models[1:])
        self.run = folder / "run"
        self.prior = list(self.benchmark.run_verification(self.config, run_dir=self.run, run_name="run"))
        self.before = server.count

    @property
    def calls(self) -> int:
        return self.server.count - self.before


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    with ScriptedServer(said) as server:
        yield World(tmp_path, server)


# Going from one replicate to two gives each of them once

Replicates = Callable[[World, int], list[tuple[str, int | None]]]
"""The questions and replicates of an extended run."""


def extended(world: World, count: int) -> list[tuple[str, int | None]]:
    config = evolve(world.config, replicate_count=count)
    results = extend_run(world.run, run_dir=world.folder / "more", benchmark=world.benchmark, config=config)
    return [(result.metadata.question_id, result.metadata.replicate) for result in results]


def with_none_for_the_only_one(world: World, count: int) -> list[tuple[str, int | None]]:
    """A run without repetitions calls its only one None; what is not there is added."""
    there: list[tuple[str, int | None]] = [(result.metadata.question_id, None) for result in world.prior]
    wanted = [(question.id, number) for question in world.benchmark for number in range(1, count + 1)]
    return there + [row for row in wanted if row not in there]


def each_is_there_once(replicates: Replicates, world: World) -> None:
    assert Counter(replicates(world, 2)) == {(name, number): 1 for name in ("q0", "q1") for number in (1, 2)}


def test_each_replicate_is_there_once(world: World) -> None:
    each_is_there_once(extended, world)


def test_the_law_rejects_a_replicate_without_a_number(world: World) -> None:
    with pytest.raises(AssertionError):
        each_is_there_once(with_none_for_the_only_one, world)


# An answer that is not there any more is told, and not made again in silence

Extend = Callable[[World], VerificationResultSet]
"""Adds a judge."""


def more_judges(world: World) -> Any:
    second = evolve(world.config.parsing_models[0], id="second")
    return evolve(world.config, parsing_models=[*world.config.parsing_models, second])


def with_another_judge(world: World) -> VerificationResultSet:
    config = more_judges(world)
    return extend_run(world.run, run_dir=world.folder / "more", benchmark=world.benchmark, config=config)


def falling_through(world: World) -> VerificationResultSet:
    """What is known is taken over; what is not is asked for."""
    config = more_judges(world)
    return world.benchmark.run_verification(config, run_dir=world.folder / "more", reuse=[world.run])


def nothing_is_asked_in_silence(extend: Extend, world: World) -> None:
    with closing(sqlite3.connect(world.run / "journal.sqlite")) as journal, journal:
        for table in ("results", "calls"):
            journal.execute(f"UPDATE {table} SET crc = crc + 1")
    with pytest.raises(ConfigError):
        extend(world)
    assert world.calls == 0


def test_an_answer_that_is_gone_is_told(world: World) -> None:
    nothing_is_asked_in_silence(with_another_judge, world)


def test_the_law_rejects_asking_for_what_is_gone(world: World) -> None:
    with pytest.raises(pytest.fail.Exception):
        nothing_is_asked_in_silence(falling_through, world)
    assert world.calls > 0


# Two traits of one name are found before anybody is paid


def with_more_traits(world: World) -> None:
    """The run has `kind` already; the questions bring another one of that name."""
    other = Rubric.from_traits([evolve(KIND, description="Whether it is of that kind.")])
    questions = [evolve(question, question_rubric=other) for question in world.benchmark]
    extend_run(world.run, run_dir=world.folder / "more", benchmark=world.benchmark.with_questions(questions))


def merging_at_the_end(world: World) -> None:
    """Score the new rubric by itself, then put the scores beside those that are there."""
    other = Rubric.from_traits([evolve(KIND, description="Whether it is of that kind.")])
    config = evolve(world.config, evaluation_mode="rubric_only")
    scored = world.benchmark.with_rubric(other).run_verification(config)
    for before, after in zip(world.prior, scored, strict=True):
        assert before.rubric is not None
        assert after.rubric is not None
        if clash := before.rubric.llm_trait_scores.keys() & after.rubric.llm_trait_scores.keys():
            raise ConfigError(f"there are two traits {', '.join(clash)}")


def clashes_cost_nothing(extend: Callable[[World], None], world: World) -> None:
    with pytest.raises(ConfigError):
        extend(world)
    assert world.calls == 0


def test_a_clash_of_names_costs_nothing(world: World) -> None:
    clashes_cost_nothing(with_more_traits, world)


def test_the_law_rejects_looking_for_clashes_at_the_end(world: World) -> None:
    with pytest.raises(AssertionError):
        clashes_cost_nothing(merging_at_the_end, world)
