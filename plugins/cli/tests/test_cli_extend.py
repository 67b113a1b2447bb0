"""`karenina extend`."""

from __future__ import annotations

import json
import re
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from karenina_runs.folder.status import read_status

from karenina_core.testing import Reply, ScriptedServer

Run = Callable[..., Result]
Files = Callable[..., Path]
POLITE = {
    "@type": "Rating",
    "name": "polite",
    "description": "Whether it is polite.",
    "bestRating": 1,
    "worstRating": 0,
    "additionalType": "GlobalRubricTrait",
}


def script(request: Any) -> Any:
    if not request.schema:
        return "Paris."
    return {name: "Paris" if name == "capital" else True for name in request.schema["properties"]}


@pytest.fixture
def finished(run: Run, write_benchmark: Files, served: Any) -> Iterator[ScriptedServer]:
    """A server, and in `out` a finished run of two of the three items of `capitals.jsonld`."""
    with ScriptedServer(script) as server:
        benchmark = write_benchmark("q0", "q1", "q2")
        result = run("verify", benchmark, *served(server.url), "--questions", "0-1", "--out", "out")
        assert result.exit_code == 0, result.output
        yield server


@pytest.fixture
def judge(finished: ScriptedServer) -> Callable[[str], list[str]]:
    """The options for one more judge at the server."""

    def options(name: str) -> list[str]:
        return [
            *("--parsing-model", name, "--parsing-interface", "openai_endpoint"),
            *("--parsing-base-url", finished.url),
        ]

    return options


def rows(folder: str) -> list[str]:
    return Path(folder, "results.jsonl").read_text("utf-8").splitlines()


def asked(server: ScriptedServer, before: int) -> Counter[str]:
    return Counter(request.model for request in server.requests[before:])


def test_a_judge_and_a_question_are_added(run: Run, finished: ScriptedServer, judge: Any) -> None:
    before, old = finished.count, rows("out")
    result = run("extend", "out", "--out", "more", "--questions", "2", *judge("second"), "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["outcomes"] == {"passed": 6}
    assert asked(finished, before) == {"the-answering-model": 1, "the-parsing-model": 1, "second": 3}
    assert "6 items (2 from out; 4 more), into more" in result.stderr
    assert set(old) <= set(rows("more"))
    assert len(rows("more")) == 6
    assert read_status(Path("more")).state == "completed"


def test_replicates_are_counted_with_those_that_are_there(run: Run, finished: ScriptedServer) -> None:
    before = finished.count
    result = run("extend", "out", "--out", "more", "--replicates", "2", "--quiet")
    assert result.exit_code == 0, result.output
    assert asked(finished, before) == {"the-answering-model": 2, "the-parsing-model": 2}
    assert len(rows("more")) == 4


def test_an_answering_model_of_the_run_can_judge_too(run: Run, finished: ScriptedServer) -> None:
    before = finished.count
    result = run("extend", "out", "--out", "more", "--parsing-model", "the-answering-model", "--quiet")
    assert result.exit_code == 0, result.output
    assert asked(finished, before) == {"the-answering-model": 2}
    config = json.loads(Path("more/manifest.json").read_text("utf-8"))["config"]
    assert config["parsing_models"][1]["endpoint_base_url"] == finished.url


def test_a_newer_file_brings_questions_and_traits(run: Run, finished: ScriptedServer, write_benchmark: Files) -> None:
    newer = write_benchmark("q0", "q1", "q2", "q3", name="newer.jsonld", rating=[POLITE])
    before = finished.count
    result = run("extend", "out", "--out", "more", "--benchmark", newer, "--questions", "all")
    assert result.exit_code == 0, result.output
    assert asked(finished, before) == {"the-answering-model": 2, "the-parsing-model": 2 + 4}
    assert "4 items (2 from out; 2 more; 2 get 1 more trait), into more" in result.stderr
    scores = [json.loads(row)["rubric"]["llm_trait_scores"] for row in rows("more")]
    assert scores == [{"polite": True}] * 4
    manifest = json.loads(Path("more/manifest.json").read_text("utf-8"))
    assert manifest["benchmark"]["path"] == str(newer)


def test_a_configuration_file_lists_all_models_and_flags_add_to_it(run: Run, finished: ScriptedServer) -> None:
    Path("more.toml").write_text(
        '[run]\nparsing_models = ["the-parsing-model", "second"]\n'
        f'[models.second]\nmodel_name = "second"\ninterface = "openai_endpoint"\nendpoint_base_url = "{finished.url}"\n'
        f'[models.third]\nmodel_name = "3"\ninterface = "openai_endpoint"\nendpoint_base_url = "{finished.url}"\n',
        "utf-8",
    )
    before = finished.count
    flags = ["--config", "more.toml", "--parsing-model", "third", "--quiet"]
    result = run("extend", "out", "--out", "more", *flags)
    assert result.exit_code == 0, result.output
    assert asked(finished, before) == {"second": 2, "3": 2}


@pytest.mark.parametrize("named", [[], ["--set", "models.second.model_name=second"]])
def test_what_has_no_flag_is_set_under_the_name_of_the_model_that_is_added(
    run: Run, finished: ScriptedServer, judge: Any, named: list[str]
) -> None:
    prices = [f"models.second.{way}_cost_per_token=0.01" for way in ("input", "output")]
    sets = [*named, *("--set", prices[0]), *("--set", prices[1])]
    before = finished.count
    result = run("extend", "out", "--out", "more", *judge("second"), *sets, "--quiet")
    assert result.exit_code == 0, result.output
    assert asked(finished, before) == {"second": 2}
    manifest = json.loads(Path("more/manifest.json").read_text("utf-8"))
    assert manifest["tables"]["parsing"] == ["the-parsing-model", "second"]
    assert manifest["ledger"]["total"]["cost_usd"] > 0.0
    assert manifest["config"]["parsing_models"][1]["endpoint_base_url"] == finished.url


def test_a_flag_wins_over_what_is_set_of_a_model_that_is_added(run: Run, finished: ScriptedServer, judge: Any) -> None:
    elsewhere = ["--set", "models.second.endpoint_base_url=http://127.0.0.1:1/v1"]
    before = finished.count
    named = ["--set", "models.second.model_name=other"]
    result = run("extend", "out", "--out", "more", *judge("second"), *elsewhere, *named, "--quiet")
    assert result.exit_code == 0, result.output
    assert asked(finished, before) == {"other": 2}


def test_a_budget_is_that_of_the_extension_and_the_rest_is_resumed(
    run: Run, finished: ScriptedServer, judge: Any
) -> None:
    limits = ["--budget-tokens", "60", "--concurrency", "1"]
    result = run("extend", "out", "--out", "more", "--replicates", "3", *limits)
    assert result.exit_code == 3
    assert read_status(Path("more")).is_resumable
    before = len(rows("more"))
    assert 2 <= before < 6
    count = finished.count
    result = run("resume", "more", "--budget-tokens", "1000000")
    assert result.exit_code == 0, result.output
    assert len(rows("more")) == 6
    assert finished.count - count <= 2 * (6 - 2)
    assert read_status(Path("more")).state == "completed"


def test_traits_that_a_judge_does_not_score_now_are_scored_when_it_is_gone_on_with(
    run: Run, write_benchmark: Files, served: Any
) -> None:
    well, soon = False, ["--set", "run.retry_policy.rate_limited.min_wait=0.01"]

    def refusing(request: Any) -> Any:
        scores = request.schema and "capital" not in request.schema["properties"]
        return Reply.error(429, "later", retry_after=600) if scores and not well else script(request)

    with ScriptedServer(refusing) as server:
        ids = [f"q{number}" for number in range(3)]
        assert run("verify", write_benchmark(*ids), *served(server.url), "--out", "out").exit_code == 0
        traits = write_benchmark(*ids, name="more.jsonld", rating=[POLITE])
        result = run("extend", "out", "--out", "more", "--benchmark", traits, *soon)
        assert result.exit_code == 3, result.output
        assert read_status(Path("more")).is_resumable
        well, before = True, server.count
        assert run("resume", "more").exit_code == 0
        assert server.count == before + 3
        assert read_status(Path("more")).state == "completed"
        assert [json.loads(row)["rubric"]["llm_trait_scores"] for row in rows("more")] == [{"polite": True}] * 3


def test_the_directory_is_chosen_where_none_is_named(run: Run, finished: ScriptedServer) -> None:
    assert run("extend", "out", "--questions", "q2", "--quiet").exit_code == 0
    (folder,) = Path("karenina-runs").iterdir()
    assert len(rows(str(folder))) == 3


@pytest.mark.parametrize(
    ("flags", "printed"),
    [
        ([], r"nothing is added.*the benchmark has 1 question that the run does not have \(--questions all\)"),
        (["--replicates", "1"], "nothing is added"),
        (["--questions", "q0"], "nothing is added"),
        (["--questions", "q9"], "there is no question 'q9'"),
        (["--parsing-model", "the-parsing-model"], "the-parsing-model is already in the run"),
        (["--parsing-base-url", "http://127.0.0.1:1/v1"], "name one with --parsing-model"),
        (["--set", "models.the-parsing-model.temperature=0.9", "--questions", "2"], "temperature was 0.1 and is 0.9"),
        (["--set", "run.parsing_models=[]", "--questions", "2"], "parsing"),
        (["--benchmark", "gone.jsonld", "--questions", "2"], "there is no file gone.jsonld"),
    ],
)
def test_what_cannot_be_extended_is_refused_before_a_call(
    run: Run, finished: ScriptedServer, flags: list[str], printed: str
) -> None:
    before = finished.count
    result = run("extend", "out", "--out", "more", *flags)
    assert result.exit_code in (1, 2), result.output
    assert re.search(printed, " ".join(result.output.split())), result.output
    assert finished.count == before
    assert not Path("more").exists()


def test_what_has_changed_is_named_with_the_way_around_it(run: Run, finished: ScriptedServer) -> None:
    result = run("extend", "out", "--set", "models.the-answering-model.temperature=0.7", "--questions", "2")
    assert result.exit_code == 1
    assert "temperature was 0.1 and is 0.7" in result.stderr
    assert "--reuse out" in result.stderr


def test_a_run_that_is_not_finished_is_refused_with_what_to_type(run: Run, write_benchmark: Files, served: Any) -> None:
    with ScriptedServer(script) as server:
        limits = ["--budget-tokens", "60", "--concurrency", "1"]
        run("verify", write_benchmark("q0", "q1"), *served(server.url), *limits, "--out", "out")
        result = run("extend", "out", "--out", "more", "--replicates", "2")
    assert result.exit_code == 1
    assert "karenina resume out" in result.stderr


def test_a_directory_that_is_not_empty_is_refused(run: Run, finished: ScriptedServer) -> None:
    before = finished.count
    result = run("extend", "out", "--out", "out", "--questions", "2")
    assert result.exit_code == 74
    assert finished.count == before
    assert len(rows("out")) == 2


def test_sinks_get_the_results_that_were_there_first(run: Run, finished: ScriptedServer) -> None:
    result = run("extend", "out", "--out", "more", "--questions", "2", "--sink", "jsonl:all.jsonl")
    assert result.exit_code == 0, result.output
    ids = [json.loads(line)["metadata"]["question_id"] for line in Path("all.jsonl").read_text("utf-8").splitlines()]
    assert ids == ["q0", "q1", "q2"]
    assert rows("out") == Path("all.jsonl").read_text("utf-8").splitlines()[:2]


def test_help_needs_no_run(run: Run) -> None:
    result = run("extend", "--help")
    assert result.exit_code == 0
    assert "--replicates" in result.output


def test_what_was_asked_now_is_told_apart_from_what_was_there(run: Run, finished: ScriptedServer, judge: Any) -> None:
    result = run("extend", "out", "--out", "more", *judge("second"), "--quiet")
    assert "Taken over: the results of out, made in this run: 2 calls (" in result.stdout
    went_on = run("resume", "more", "--quiet")
    assert f"Taken over: the results of {Path('out').absolute()}, made in this run: 2 calls (" in went_on.stdout
    assert "made in this run" not in run("resume", "out", "--quiet").stdout


def test_models_are_asked_for_answers_that_were_not_given_where_that_is_said(
    run: Run, finished: ScriptedServer, served: Any
) -> None:
    flags = served(finished.url)
    given = run("verify", "capitals.jsonld", *flags, "--questions", "0-1", "--answers", "out", "--out", "given")
    assert given.exit_code == 0, given.output
    before = finished.count
    refused = run("extend", "given", "--out", "more", "--questions", "all")
    assert (refused.exit_code, finished.count) == (1, before)
    assert "Error: answers: 1 of 3 answers are missing" in refused.stderr, "one problem, reported once"
    assert "\n  q2, openai_endpoint:the-answering-model, replicate 1\n" in refused.stderr
    assert "--ask-missing" in refused.stderr
    result = run("extend", "given", "--out", "more", "--questions", "all", "--ask-missing", "--json")
    assert result.exit_code == 0, result.output
    assert asked(finished, before) == {"the-answering-model": 1, "the-parsing-model": 1}
    printed = json.loads(result.stdout)
    assert printed["outcomes"] == {"passed": 3}
    assert "2 of 3 answers are replayed; their models are not called" in printed["notes"]
    again = run("extend", "more", "--out", "most", "--replicates", "2", "--quiet")
    assert again.exit_code == 0, "which goes for later extensions, too"


def test_asking_for_what_is_missing_is_refused_where_nothing_was_given(run: Run, finished: ScriptedServer) -> None:
    result = run("extend", "out", "--out", "more", "--questions", "all", "--ask-missing")
    assert result.exit_code == 1
    assert "--ask-missing: applies to answers that a run was given" in result.stderr


def test_a_run_that_reuses_an_extension_is_led_back_to_what_that_took_over(
    run: Run, finished: ScriptedServer, served: Any
) -> None:
    verify = ["verify", "capitals.jsonld", *served(finished.url), "--questions", "0-1", "--quiet", "--json"]
    assert run("extend", "out", "--out", "more", "--replicates", "2", "--quiet").exit_code == 0
    assert run("extend", "more", "--out", "most", "--replicates", "3", "--quiet").exit_code == 0
    before = finished.count
    result = run(*verify, "--replicates", "3", "--reuse", "most", "--out", "again")
    assert (result.exit_code, finished.count) == (0, before), result.output
    assert "not there any more" not in result.output
    reused = json.loads(Path("again/manifest.json").read_text("utf-8"))["reuse"]
    assert reused == [str(Path(name).absolute()) for name in ("most", "more", "out")]

    Path("out").rename("away")
    printed = f"{Path('out').absolute()} no longer exists"
    result = run(*verify, "--replicates", "3", "--reuse", "most", "--out", "once-more")
    assert (result.exit_code, finished.count) == (0, before + 4), result.output
    assert f"Warning: {printed}" in result.stderr, "before it is paid for"
    assert [printed in note for note in json.loads(result.stdout)["notes"]] == [True]


def test_a_run_whose_manifest_is_damaged_is_reused_as_far_as_it_goes_and_that_is_reported(
    run: Run, finished: ScriptedServer, served: Any
) -> None:
    assert run("extend", "out", "--out", "more", "--replicates", "2", "--quiet").exit_code == 0
    Path("more/manifest.json").write_text("{", "utf-8")
    verify = ["verify", "capitals.jsonld", *served(finished.url), "--questions", "0-1", "--replicates", "2"]
    before = finished.count
    result = run(*verify, "--reuse", "more", "--reuse", "out", "--out", "again")
    assert (result.exit_code, finished.count) == (0, before), result.output
    assert "Warning: the manifest of more cannot be read" in result.stderr
    assert "(--reuse)" in result.stderr
