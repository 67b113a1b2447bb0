"""Runs that are given answers of another run: their models are not called."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from karenina_runs.answers.answers import ReplayEntry, ReplayKey, ReplayStore
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.folder.fingerprint import Changed
from karenina_runs.journal.reader import JournalReader
from karenina_runs.plan.items import check_answers

from karenina_core import AgenticRubricTrait, ModelConfig, Rubric, VerificationResultSet, aresume_run
from karenina_core.errors import ConfigError
from karenina_core.testing import ScriptedLLM

Make = Callable[..., Any]
ANSWERERS = [ModelConfig(model_name=name, interface="answering") for name in ("a1", "a2")]
JUDGES = [ModelConfig(model_name=name, interface="judging", max_retries=0) for name in ("j1", "j2", "j3")]


def store_of(results: Any, **facts: Any) -> ReplayStore:
    return ReplayStore.from_results(results, **facts)


def test_the_judges_read_the_answers_of_before_and_nobody_answers_again(world: Make) -> None:
    said = ScriptedLLM(lambda call: f"BCL2, to {call.messages[-1].text}")
    facts: dict[str, Any] = {"answering_models": ANSWERERS, "replicate_count": 2}
    first, here = world(questions=3, answerer=said), world(questions=3)
    before = first.run(first.config(**facts))
    after = here.run(here.config(**facts, parsing_models=JUDGES), answers=store_of(before))
    assert here.answerer.calls == []
    assert len(here.judge.calls) == 36
    assert [r.generation.raw_llm_response for r in after[::3]] == [r.generation.raw_llm_response for r in before]
    assert after.get_summary()["outcomes"] == {"passed": 36}
    assert "12 of 12 answers are replayed; their models are not called" in after.notes


def test_results_say_whose_answer_it_is(world: Make) -> None:
    before = world().run(run_name="the first")
    (after,) = world().run(answers=store_of(before))
    (first,) = before
    assert after.generation.replayed_from == {
        "run_name": "the first",
        "answering_model": "answering:a",
        "replicate": 1,
        "timestamp": first.metadata.timestamp,
    }
    assert first.generation.replayed_from is None
    (trail,) = [entry for entry in after.trail if entry.stage == "GenerateAnswer"]
    assert "was given to the run" in trail.reason


def test_answers_recorded_by_hand_are_judged_as_those_of_the_model_that_is_named(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    traces = {"q0": "It is BCL2, they said.", "q1": {"answer": "BCL2", "fields": {"target": "BAX"}}}
    models = {"answering_model": "answering:a1", "parsing_model": "judging:j1"}
    store = ReplayStore.from_manual_traces(traces, here.benchmark.questions, **models)
    with pytest.raises(ConfigError, match="answering:a2"):
        here.run(here.config(answering_models=ANSWERERS), answers=store)
    config = here.config(answering_models=ANSWERERS[:1], parsing_models=JUDGES[:1], replicate_count=2)
    results = here.run(config, answers=store, destination=Destination(run_dir=tmp_path / "run"))
    assert here.answerer.calls == []
    assert len(here.judge.calls) == 2, "what q1 says was recorded too"
    assert [result.metadata.outcome for result in results] == ["passed", "passed", "failed", "failed"]
    assert {result.metadata.answering_model for result in results} == {"answering:a1"}
    assert results[0].generation.raw_llm_response == "It is BCL2, they said."
    assert results[0].generation.replayed_from == {
        "run_name": None,
        "answering_model": "answering:a1",
        "replicate": None,
        "timestamp": None,
    }


def test_what_an_answer_took_is_told_and_counted_nowhere(world: Make, tmp_path: Path) -> None:
    before = world().run(destination=Destination(run_dir=tmp_path / "first"))
    here = world()
    after = here.run(
        here.config(parsing_models=JUDGES), Destination(run_dir=tmp_path / "run"), answers=store_of(before)
    )
    summary = after.get_summary()
    assert summary["calls"] == summary["paid"]["calls"] == 3
    assert set(summary["usage"]) == {"parsing"}
    for row in after:
        usage = row.generation.usage_metadata
        assert usage["generation"]["cached"] is True
        assert usage["total"]["calls"] == 1
    with JournalReader.open(tmp_path / "run") as reader:
        assert reader.ledger().to_dict() == after.ledger
        assert reader.ledger().total.calls == 3


# What is missing


def test_what_is_missing_is_named_before_anybody_is_asked(world: Make, tmp_path: Path) -> None:
    before = world(questions=2).run()
    here = world(questions=9)
    with pytest.raises(ConfigError) as caught:
        here.run(here.config(replicate_count=2), Destination(run_dir=tmp_path / "run"), answers=store_of(before))
    said = str(caught.value)
    assert "16 of 18 answers are missing" in said
    assert "q0, answering:a, replicate 2" in said
    assert "q2, answering:a, replicate 1" in said
    assert "and 11 more" in said
    assert "--ask-missing" in said
    assert (here.answerer.calls, here.judge.calls) == ([], [])
    assert not (tmp_path / "run").exists()


def test_what_is_missing_is_asked_for_where_that_is_wanted(world: Make) -> None:
    before = world(questions=2).run()
    here = world(questions=5)
    after = here.run(answers=store_of(before, miss_policy="fall_through"))
    assert len(here.answerer.calls) == 3
    assert "2 of 5 answers are replayed; their models are not called" in after.notes
    assert [r.generation.replayed_from is not None for r in after] == [True, True, False, False, False]


def test_an_answer_for_any_model_serves_all_of_them(world: Make) -> None:
    before = world().run()
    ((_, found),) = store_of(before)
    store = ReplayStore()
    store.register(ReplayKey("q0"), found)
    here = world()
    after = here.run(here.config(answering_models=ANSWERERS, replicate_count=3), answers=store)
    assert here.answerer.calls == []
    assert len(after) == 6


def test_answers_that_differ_are_told_in_the_notes(world: Make) -> None:
    rows = [*world(answerer=ScriptedLLM(lambda call: "BCL2")).run(), *world().run()]
    after = world().run(answers=store_of(rows))
    assert any("given twice and differ" in note for note in after.notes)


def test_work_that_was_done_in_a_folder_cannot_be_replayed_for_agents_that_look_there(
    world: Make, make_question: Make, tmp_path: Path
) -> None:
    (tmp_path / "task").mkdir()
    here = world(questions=[make_question(0, workspace_path="task")])
    looks = AgenticRubricTrait(name="tidy", description="It is tidy.", kind="boolean", context_mode="workspace_only")
    prepared = here.prepare(workspace_root=tmp_path)
    (plan,) = prepared.plans.values()
    about: dict[str, Any] = {"rubrics": {"q0": Rubric.from_traits([looks])}, "plans": {frozenset({"agentic"}): plan}}
    prepared = evolve(prepared, answers=store_of(world().run()), **about)
    with pytest.raises(ConfigError, match="folder in which the answer was made, which is gone"):
        check_answers(prepared)
    assert here.run(workspace_root=tmp_path, answers=store_of(world().run()))[0].metadata.outcome == "passed"


# Fields


def test_captured_fields_are_taken_in_place_of_asking_their_judge(world: Make) -> None:
    first, here = world(questions=2), world(questions=2)
    before = first.run(first.config(parsing_models=JUDGES[:2]))
    after = here.run(here.config(parsing_models=JUDGES), answers=store_of(before, parsed=True))
    assert len(here.judge.calls) == 2
    assert here.answerer.calls == []
    assert after.get_summary()["outcomes"] == {"passed": 6}
    assert [r.template.judge_channel is None for r in after if r.template] == [True, True, False] * 2


@pytest.mark.parametrize("policy", ["strict", "fall_through"])
def test_fields_that_no_longer_fit_are_an_error_or_the_judge_is_asked(
    world: Make, make_question: Make, policy: Any
) -> None:
    before = world().run()
    other = {"name": "other", "type": "int", "description": "A number", "ground_truth": 1}
    template = json.dumps({"fields": [{**other, "verify_with": {"type": "NumericExact"}}]})
    judge = ScriptedLLM(lambda call: {"other": 1})
    here = world(questions=[make_question(0, answer_template=template)], judge=judge)
    (after,) = here.run(answers=store_of(before, parsed=True, miss_policy=policy))
    if policy == "strict":
        assert str(after.outcome) == "error(judge)"
        assert "captured fields no longer fit the template" in str(after.metadata.error)
        assert judge.calls == []
    else:
        assert str(after.outcome) == "passed"
        assert any("the judge was asked" in warning for warning in after.metadata.warnings)


# Resuming


class Stopped(Exception):
    """Ends a run."""


def interrupted(here: Any, folder: Path, store: ReplayStore) -> None:
    def stop(_: Any) -> None:
        raise Stopped

    with pytest.raises(Stopped):
        asyncio.run(execute(here.prepare(run_name="run", answers=store), Destination(run_dir=folder), on_result=stop))


def resumed(here: Any, folder: Path, **facts: Any) -> VerificationResultSet:
    return asyncio.run(aresume_run(folder, benchmark=here.benchmark, app=here.app, config=here.config(), **facts))


def test_a_run_that_goes_on_has_the_answers_that_it_was_given(world: Make, tmp_path: Path) -> None:
    store, here = store_of(world(questions=4).run()), world(questions=4)
    interrupted(here, tmp_path / "run", store)
    after = resumed(here, tmp_path / "run")
    assert here.answerer.calls == []
    assert len(after) == 4
    assert all(r.generation.replayed_from for r in after)


def test_a_run_does_not_go_on_with_other_answers(world: Make, tmp_path: Path) -> None:
    store, here = store_of(world(questions=4).run()), world(questions=4)
    interrupted(here, tmp_path / "run", store)
    file = tmp_path / "run" / "answers.json"
    file.write_bytes(file.read_bytes().replace(b"BCL2", b"BAX0"))
    with pytest.raises(Changed, match="the answers that the run was given have changed"):
        resumed(here, tmp_path / "run")
    file.unlink()
    with pytest.raises(Changed, match="the answers that the run was given"):
        resumed(here, tmp_path / "run")
    assert here.answerer.calls == []


def test_a_run_that_was_forked_keeps_the_answers(world: Make, tmp_path: Path) -> None:
    store, here = store_of(world(questions=4).run()), world(questions=4)
    interrupted(here, tmp_path / "run", store)
    after = resumed(here, tmp_path / "run", fork=tmp_path / "fork")
    assert here.answerer.calls == []
    assert len(after) == 4
    assert (tmp_path / "fork" / "answers.json").is_file()


def test_secrets_in_answers_are_not_kept_with_the_run(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_API_KEY", "hunter22-hunter22")
    before = world(answerer=ScriptedLLM(lambda call: "BCL2 hunter22-hunter22")).run()
    here = world()
    here.run(destination=Destination(run_dir=tmp_path / "run"), answers=store_of(before))
    files = [file for file in (tmp_path / "run").rglob("*") if file.is_file()]
    assert tmp_path / "run" / "answers.json" in files
    assert not [file for file in files if b"hunter22" in file.read_bytes()]


def test_what_is_registered_by_hand_is_given_too(world: Make) -> None:
    here, store = world(), ReplayStore()
    answer = store_of(world().run()).lookup("q0", "answering:a", 1)
    assert answer is not None
    store.register(ReplayKey("q0"), ReplayEntry(answer=answer.answer))
    (after,) = here.run(answers=store)
    assert after.generation.replayed_from == dict.fromkeys(("run_name", "answering_model", "replicate", "timestamp"))
