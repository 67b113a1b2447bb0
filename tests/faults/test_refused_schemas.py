"""Servers that refuse schemas: what a run says depends neither on the order of its calls nor on interruptions."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve

from karenina_core import Benchmark, Question
from karenina_core.testing import Reply, ScriptedServer, ServedRequest

SPEC = importlib.util.spec_from_file_location("fault_world", Path(__file__).with_name("fault_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader

QUESTIONS = 8
ODD = 2
"""The question whose schema some servers refuse."""
Refuses = Callable[[ServedRequest], bool]


def of_every(request: ServedRequest) -> bool:
    return True


def of_one(request: ServedRequest) -> bool:
    return f"no. {ODD}." in json.dumps(request.schema)


REFUSING = pytest.mark.parametrize("refuses", [of_every, of_one])


def benchmark() -> Benchmark:
    """Every question has a schema of its own; the last has that of the first."""
    questions = []
    for number in range(QUESTIONS):
        template = json.loads(world.TEMPLATE)
        template["fields"][0]["description"] += f", no. {number % (QUESTIONS - 1)}."
        asked = f"What is the target of drug {number}?"
        facts = {"template_language": "karenina-template", "raw_answer": "BCL2"}
        questions.append(Question(id=f"q{number}", question=asked, answer_template=json.dumps(template), **facts))
    return Benchmark(name="targets", questions=questions)


@define(eq=False)
class Refusing:
    """A server that does not take some schemas as `json_schema`."""

    refuses: Refuses
    away: bool = False

    def __call__(self, request: ServedRequest) -> Any:
        if self.away:
            return Reply.error(401, "the key has expired")
        if request.channel == "json_schema" and self.refuses(request):
            return Reply.error(400, "response_format json_schema is not supported")
        return Reply(world.right(request), usage=(100, 10))


def the_world(folder: Path) -> Any:
    here = world.World(folder, questions=QUESTIONS)
    here.benchmark = benchmark()
    return here


def results_of(here: Any) -> dict[str, Any]:
    """By question, without times and the ids of the run."""
    records = world.invariants.assert_run(here.folder)
    plain = (world.invariants.without(record, {*world.invariants.TIMES, "run_name", "result_id"}) for record in records)
    return {record["metadata"]["question_id"]: record for record in plain}


def channels(results: dict[str, Any]) -> list[str]:
    return [results[f"q{number}"]["template"]["judge_channel"] for number in range(QUESTIONS)]


def expected(refuses: Refuses) -> list[str]:
    odd = ["tool_call" if number == ODD else "json_schema" for number in range(QUESTIONS)]
    return odd if refuses is of_one else ["tool_call"] * QUESTIONS


@REFUSING
def test_many_at_once_end_as_one_after_the_other(tmp_path: Path, refuses: Refuses) -> None:
    found = []
    for concurrency in (1, 8):
        here = the_world(tmp_path / str(concurrency))
        with ScriptedServer(Refusing(refuses)) as server:
            config = here.config(server.url, concurrency=concurrency)
            here.run(config)
            found.append(results_of(here))
            if concurrency == 1:
                refused = 1 if refuses is of_one else QUESTIONS - 1
                assert server.count == 2 * QUESTIONS + refused, "a schema is refused once"
            here.check(config, server)
    one, many = found
    assert one == many
    assert channels(one) == expected(refuses)


@REFUSING
def test_an_interrupted_run_ends_as_one_that_was_not(tmp_path: Path, refuses: Refuses, long: bool) -> None:
    """The budget ends it, and with more it is gone on with."""
    with ScriptedServer(Refusing(refuses)) as server:
        whole = the_world(tmp_path / "whole")
        config = whole.config(server.url, concurrency=1)
        whole.run(config)
        asked = server.count
        for cut in (0.15, 0.35, 0.55, 0.75) if long else (0.15, 0.55):
            parts, before = the_world(tmp_path / f"parts {cut}"), server.count
            parts.run(evolve(config, budget_tokens=int(2 * QUESTIONS * 110 * cut)))
            assert parts.manifest()["status"] == "interrupted"
            assert 0 < server.count - before < asked
            parts.resume(evolve(config, budget_tokens=10**6))
            assert server.count - before == asked, "what is asked in one run is asked in two parts, and nothing twice"
            assert results_of(parts) == results_of(whole)
            assert channels(results_of(parts)) == expected(refuses)


@REFUSING
def test_a_finished_run_is_reused_without_asking_anybody(tmp_path: Path, refuses: Refuses) -> None:
    script = Refusing(refuses)
    with ScriptedServer(script) as server:
        first, again, gone = (the_world(tmp_path / name) for name in ("first", "again", "gone"))
        config = first.config(server.url, concurrency=1)
        first.run(config)
        asked = server.count
        again.run(evolve(config, concurrency=8), reuse=[first.folder])
        script.away = True
        gone.run(evolve(config, concurrency=3), reuse=[again.folder])
        assert server.count == asked, "somebody was asked"
        assert results_of(again) == results_of(gone) == results_of(first)
        gone.check(config, server)


def test_a_request_that_is_too_long_takes_no_channel_away_from_the_others(tmp_path: Path) -> None:
    """Neither in the run that meets it, nor in the one that finishes it: nothing is asked on a weaker channel."""
    too_long = True

    def script(request: ServedRequest) -> Any:
        if too_long and world.judged(request) and world.number_of(request) == 0:
            said = "This model's maximum context length is 8192 tokens"
            return Reply.error(400, said, code="context_length_exceeded")
        return world.right(request)

    here = world.World(tmp_path / "run", questions=6)
    with ScriptedServer(script) as server:
        config = here.config(server.url, concurrency=1)
        here.run(config)
        assert here.outcomes() == {"passed": 5, "error(invalid_request)": 1}
        judged = [request for request in server.requests if world.judged(request)]
        assert {request.channel for request in judged} == {"json_schema"}
        assert sum(world.number_of(request) == 0 for request in judged) == 1, "one request"
        here.check(config, server)
        before, too_long = server.count, False
        again = world.World(tmp_path / "again", questions=6)
        again.run(config, reuse=tmp_path / "run")
        assert again.outcomes() == {"passed": 6}
        assert {request.channel for request in server.requests[before:]} == {"json_schema"}
