"""Traces as files in whole runs: runs in place that are played back, answers that share a folder, notes."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from karenina_runs.execute.item_verifier import arun_single_model_verification

from karenina_core import Karenina, Rubric
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.testing import Reply, ScriptedServer, application

PARSING = {"features": ["agentic_parsing"], "agentic_judge_context": "trace_and_workspace"}
FILED = {**PARSING, "agentic_parsing_materialize_trace": True}


@pytest.fixture(scope="module")
def app() -> Karenina:
    """The installed plugins and nothing else."""
    return application(installed=True)


def says(request: Any) -> Any:
    """An answering model that uses no tool."""
    return Reply("The sales add up to 42 EUR.", usage=(20, 3))


@pytest.mark.parametrize("by", ["trait", "template", "both"])
def test_a_run_in_place_that_keeps_traces_is_played_back_though_their_files_are_there(
    by: str, office: Any, place: Any, tmp_path: Path
) -> None:
    traits = [] if by == "template" else [office.KEPT]
    config = {"workspace_copy": False}
    if by != "trait":
        config |= {**FILED, "agentic_parsing_persist_trace": True}
    made = office.benchmark(*traits, root=place.root)

    def ran(url: str, way: str) -> Any:
        app = application(installed=True, settings={"replay": {way: str(tmp_path / "calls.jsonl")}})
        (result,) = made.run_verification(office.configured(url, **config), run_name="same", app=app)
        return result

    with ScriptedServer(office.Office(answers=says, scores=office.approves)) as server:
        live = ran(server.url, "record")
        asked = len(server.requests)
        again = [ran(server.url, "replay") for _ in range(2)]
        assert len(server.requests) == asked
    for result in (live, *again):
        assert str(result.outcome) == "passed", result.metadata.error
        if by != "template":
            assert result.rubric.trait_states["kept"]["state"] == "ok", result.rubric.trait_states
    kept = sorted((place.root / "shop" / ".karenina" / "traces").iterdir())
    assert len(kept) == 3 * (2 if by == "both" else 1)
    assert {file.read_text("utf-8") for file in kept} == {live.generation.raw_llm_response}


def test_each_judge_of_an_answer_keeps_its_trace_beside_its_own_result(
    office: Any, place: Any, app: Karenina, tmp_path: Path
) -> None:
    with ScriptedServer(office.Office(answers=says, scores=office.approves)) as server:
        models = office.models(server.url, judges=["judge", "juror"])
        config = office.configured(server.url, **models)
        results = office.benchmark(office.KEPT, root=place.root).run_verification(
            config, run_dir=tmp_path / "run", app=app
        )
    assert len(list(results)) == 2
    for result in results:
        folder = tmp_path / "run" / "workspaces" / f"q0__{result.metadata.result_id}"
        file = result.rubric.trait_details["kept"]["trace_file"]
        assert (folder / file).read_text("utf-8") == result.generation.raw_llm_response
    assert place.clean()


def test_answers_that_are_judged_at_once_in_one_folder_leave_it_as_it_was(
    office: Any, place: Any, app: Karenina
) -> None:
    lent = place.root / "shop"
    (question,) = office.benchmark()
    trait = evolve(office.KEPT, persist_trace=False)

    async def looks(request: Any) -> Any:
        await asyncio.sleep(0.01 * (request.number % 3))
        return office.looks(request)

    with ScriptedServer(office.Office(looks=looks, scores=office.approves)) as server:
        config = office.configured(server.url, workspace_copy=False)
        (answering,), (judge,) = config.answering_models, config.parsing_models

        async def one() -> Any:
            return await arun_single_model_verification(
                evolve(question, workspace_path=None),
                answering,
                judge,
                rubric=Rubric.from_traits([trait]),
                cached_answer_data=CachedAnswer(raw_llm_response="It is 42 EUR.", workspace=lent),
                app=app,
            )

        async def all_of_them() -> list[Any]:
            return await asyncio.gather(*(one() for _ in range(6)))

        results = asyncio.run(all_of_them())
    assert [result.rubric.trait_states["kept"]["state"] for result in results] == ["ok"] * 6
    assert [warning for result in results for warning in result.metadata.warnings] == []
    prompts = [json.dumps(request.body) for request in server.requests if request.schema is None]
    assert all("saved to: .karenina/traces/trace_q0.txt" in prompt for prompt in prompts)
    assert place.clean()
