"""What is told from an addition before a run is extended, and folders that are gone."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from karenina_runs.amend.extension_checks import added_traits, changes, check_folders, prior_of
from karenina_runs.answers.answers import ReplayStore
from karenina_runs.execute.runner import Destination
from karenina_runs.folder.fingerprint import fingerprint

from karenina_core import AgenticRubricTrait, LLMRubricTrait, ModelConfig, Rubric, aextend_run, extend_run, resume_run
from karenina_core.errors import ConfigError

Make = Callable[..., Any]
KIND = LLMRubricTrait(name="kind", kind="boolean", description="Whether it is kind.")
BRIEF = LLMRubricTrait(name="brief", kind="boolean", description="Whether it is brief.")
JUDGES = [ModelConfig(model_name=name, interface="judging", max_retries=0) for name in ("j", "j2")]
TESTED = AgenticRubricTrait(name="tested", kind="boolean", description="Whether its tests pass.")


def told(here: Any, **facts: Any) -> Any:
    """The fingerprint of a run, as it is written."""
    return json.loads(json.dumps(fingerprint(here.prepare(here.config(**facts))), default=str))


def test_more_of_everything_is_no_change(world: Make) -> None:
    before = told(world(questions=2))
    now = told(world(questions=3), parsing_models=JUDGES, replicate_count=2)
    assert changes(before, now) == []
    assert changes(now, before) == [
        "the question 'q2' is gone",
        "the parsing model judging:j2 is gone",
    ]


def test_other_plugins_may_be_there_and_those_of_before_must(world: Make) -> None:
    before = told(world())
    plugin = {"distribution": "more", "version": "1", "digest": "0"}
    more = {**before, "code": {**before["code"], "more": plugin}, "plugins": {**before["plugins"], "more": {"a": 1}}}
    assert changes(before, more) == []
    assert changes(more, before) == ["the setting plugins.more: a was 1 and is null", "the plugin 'more' is gone"]
    other = {**more, "code": {**before["code"], "more": {**plugin, "version": "2"}}}
    assert changes(more, other) == ["more (plugin 'more') was version 1 and is 2"]


def test_a_rubric_whose_traits_nobody_wrote_down_may_only_stay(world: Make) -> None:
    here = world(questions=2)
    before = told(here)
    parts = {name: {**parts, "rubric": "0123456789abcdef"} for name, parts in before["questions"].items()}
    untold = {**before, "questions": parts, "rubrics": {}}
    assert changes(untold, untold) == []
    assert changes(untold, before) == [
        "the questions 'q0' and 1 more have another rubric, and the run does not name its traits"
    ]


def with_rubric(here: Any, *traits: Any, root: Path | None = None) -> Any:
    prepared = here.prepare()
    rubric = Rubric.from_traits(traits) if traits else None
    return evolve(prepared, rubrics={q.id: rubric for q in prepared.questions}, workspace_root=root)


def test_traits_are_told_by_what_they_are(world: Make) -> None:
    here = world(questions=2)
    fingerprints = [
        json.loads(json.dumps(fingerprint(with_rubric(here, *traits)), default=str))
        for traits in ([KIND], [BRIEF, KIND])
    ]
    one, two = fingerprints
    assert changes(one, two) == []
    found = added_traits(one, two, with_rubric(here, BRIEF, KIND))
    assert {name: list(rubric) for name, rubric in found.items()} == {"q0": [BRIEF], "q1": [BRIEF]}
    assert added_traits(one, one, with_rubric(here, KIND)) == {}
    assert changes(two, one) == ["the questions 'q0' and 1 more have no trait 'brief' any more"]


# Folders


def test_traits_that_look_into_folders_cannot_be_added(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    prepared = with_rubric(here, KIND, TESTED, root=tmp_path)
    before = {"models": {"answering": ["answering:a"], "parsing": ["judging:j"]}}
    prior = prior_of({"questions": ["q0", "q1"], "config": {"replicate_count": 1}}, before)
    with pytest.raises(ConfigError, match=r"rubric: agents investigate the folders .*question q0 and 1 more"):
        check_folders(prepared, prior, {name: Rubric.from_traits([TESTED]) for name in ("q0", "q1")})
    check_folders(prepared, prior, {"q0": Rubric.from_traits([KIND])})
    check_folders(evolve(prepared, workspace_root=None), prior, {"q0": Rubric.from_traits([TESTED])})
    check_folders(prepared, evolve(prior, questions=frozenset()), {})


def test_judges_that_look_into_folders_cannot_be_added(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    prepared = with_rubric(here, TESTED, root=tmp_path)
    more = evolve(prepared, config=evolve(prepared.config, parsing_models=JUDGES))
    before = {"models": {"answering": ["answering:a"], "parsing": ["judging:j"]}}
    prior = prior_of({"questions": ["q0"], "config": {"replicate_count": 1}}, before)
    with pytest.raises(ConfigError, match="parsing_models: agents investigate the folders"):
        check_folders(more, prior, {})
    check_folders(prepared, prior, {})


def test_judges_that_are_added_read_what_was_worked_out_in_a_folder(
    world: Make, make_question: Make, tmp_path: Path
) -> None:
    (tmp_path / "root" / "x").mkdir(parents=True)
    here = world(questions=[make_question(0, workspace_path="x")], workspace_root=tmp_path / "root")
    first = here.run(destination=Destination(run_dir=tmp_path / "run"))
    about: Any = {"run_dir": tmp_path / "more", "benchmark": here.benchmark, "app": here.app}
    found = extend_run(tmp_path / "run", **about, config=here.config(parsing_models=JUDGES))
    assert len(here.answerer.calls) == 1
    assert len(here.judge.calls) == 2
    assert found.get_summary()["reused_calls"] == 0
    assert {result.generation.raw_llm_response for result in found} == {first[0].generation.raw_llm_response}


# Directories


def test_results_are_those_of_one_run(world: Make, tmp_path: Path) -> None:
    here = world(questions=1)
    here.run(destination=Destination(run_dir=tmp_path / "run"), run_name="one")
    path = tmp_path / "run" / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    about: Any = {"run_dir": tmp_path / "more", "benchmark": here.benchmark, "app": here.app}
    about["config"] = here.config(replicate_count=2)
    path.write_text(json.dumps({**manifest, "run_name": "other"}), "utf-8")
    with pytest.raises(ConfigError, match="has no result"):
        extend_run(tmp_path / "run", **about)
    path.write_text(json.dumps({**manifest, "run_name": None}), "utf-8")
    with pytest.raises(ConfigError, match=r"'run_name' cannot be what it says; put manifest\.json back"):
        extend_run(tmp_path / "run", **about)
    path.write_text(json.dumps({**manifest, "questions": []}), "utf-8")
    with pytest.raises(ConfigError, match="none of the run's questions"):
        extend_run(tmp_path / "run", **about)
    assert len(here.answerer.calls) == 1


def test_results_that_the_run_does_not_tell_of_are_refused(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    here.run(destination=Destination(run_dir=tmp_path / "run"))
    path = tmp_path / "run" / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    path.write_text(json.dumps({**manifest, "questions": ["q0"]}), "utf-8")
    written = tmp_path / "run" / "fingerprint.json"
    told = json.loads(written.read_text("utf-8"))
    del told["questions"]["q1"]
    written.write_text(json.dumps(told), "utf-8")
    about: Any = {"run_dir": tmp_path / "more", "benchmark": here.benchmark, "app": here.app}
    with pytest.raises(ConfigError, match=r"1 result in .* do not belong to the run"):
        extend_run(tmp_path / "run", **about, config=here.config(replicate_count=2))


def test_a_run_without_results_is_not_extended(world: Make, tmp_path: Path) -> None:
    here = world(questions=1)
    here.run(destination=Destination(run_dir=tmp_path / "run"))
    connection = sqlite3.connect(tmp_path / "run" / "journal.sqlite")
    connection.execute("DELETE FROM results")
    connection.commit()
    connection.close()
    about: Any = {"run_dir": tmp_path / "more", "benchmark": here.benchmark, "app": here.app}
    with pytest.raises(ConfigError, match="has no results to extend"):
        extend_run(tmp_path / "run", **about, config=here.config(replicate_count=2))


def test_a_benchmark_that_is_in_no_file_is_asked_for(world: Make, tmp_path: Path) -> None:
    here = world(questions=1)
    here.run(destination=Destination(run_dir=tmp_path / "run"))
    with pytest.raises(ConfigError, match=r"karenina_core\.extend_run\(.*benchmark="):
        extend_run(tmp_path / "run", run_dir=tmp_path / "more", app=here.app)


def test_the_configuration_is_that_of_the_finished_run(world: Make, tmp_path: Path) -> None:
    here, more = world(questions=1), world(questions=2)
    here.run(here.config(request_timeout=7.0), Destination(run_dir=tmp_path / "run"))
    about: Any = {"run_dir": tmp_path / "more", "benchmark": more.benchmark, "app": here.app}
    assert len(asyncio.run(aextend_run(tmp_path / "run", **about, questions=["q1"]))) == 2
    config = json.loads((tmp_path / "more" / "manifest.json").read_text("utf-8"))["config"]
    assert config["request_timeout"] == 7.0
    with pytest.raises(ConfigError, match="there is no question 'q9'"):
        extend_run(tmp_path / "run", **{**about, "run_dir": tmp_path / "other"}, questions=["q9"])


def test_another_run_in_the_place_of_the_extended_one_is_noticed(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    here.run(destination=Destination(run_dir=tmp_path / "run"))
    about: Any = {"benchmark": here.benchmark, "app": here.app, "config": here.config(replicate_count=2)}
    extend_run(tmp_path / "run", run_dir=tmp_path / "more", **about)
    path = tmp_path / "more" / "manifest.json"
    manifest = json.loads(path.read_text("utf-8"))
    told = {**manifest["extends"], "taken_over": False, "run_id": "another"}
    path.write_text(json.dumps({**manifest, "extends": told}), "utf-8")
    with pytest.raises(ConfigError, match="holds another run"):
        resume_run(tmp_path / "more", **about)


def test_models_are_asked_for_answers_that_were_not_given_only_where_that_is_said(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)
    first = here.run(destination=Destination(run_dir=tmp_path / "first"))
    here.run(destination=Destination(run_dir=tmp_path / "given"), answers=ReplayStore.from_results(first))
    about: dict[str, Any] = {"benchmark": here.benchmark, "app": here.app, "config": here.config(replicate_count=2)}
    before = len(here.answerer.calls)
    with pytest.raises(ConfigError, match="ask_missing=True of extend_run"):
        extend_run(tmp_path / "given", run_dir=tmp_path / "refused", **about)
    assert len(here.answerer.calls) == before
    assert len(extend_run(tmp_path / "given", run_dir=tmp_path / "more", ask_missing=True, **about)) == 4
    assert len(here.answerer.calls) == before + 2
    with pytest.raises(ConfigError, match="given none"):
        extend_run(tmp_path / "first", run_dir=tmp_path / "refused", ask_missing=True, **about)
