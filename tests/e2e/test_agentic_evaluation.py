"""Agents that answer and agents that judge, in whole runs: a real tool server, real folders, a model behind HTTP."""

from __future__ import annotations

import json
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from karenina_core import Benchmark, Karenina, ModelConfig, Rubric, VerificationResult, run_single_model_verification
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.testing import ScriptedServer, application
from karenina_core.values.convert import structure

STRATEGIES: Mapping[str, Mapping[str, Any]] = {
    "individual": {},
    "shared": {"agentic_rubric_strategy": "shared"},
    "by-context": {"agentic_rubric_strategy": "shared", "agentic_rubric_by_context": True},
    "parsing": {"features": ["agentic_parsing"], "agentic_judge_context": "trace_and_workspace"},
    "decision": {"features": ["agentic_parsing"], "agentic_parsing_trigger": "dynamic"},
}
INVESTIGATIONS = {"individual": 4, "shared": 1, "by-context": 3, "parsing": 4, "decision": 4}
BY_AGENT = ("parsing", "decision")
ENVIRONMENT = {name: text for name, text in os.environ.items() if not name.startswith("KARENINA_")}
READING = ["list_files", "read_file", "search_files"]
LEFT = {"out/total.txt": "42 EUR\n", "out/notes.md": "I added the amounts."}


@pytest.fixture(scope="module")
def app() -> Karenina:
    """The installed plugins and nothing else."""
    return application(installed=True)


def without_tool_servers(place: Any) -> None:
    """The programs that were started have ended."""
    for process in place.processes:
        with pytest.raises(ProcessLookupError):
            os.kill(process, 0)


def check_answer(result: VerificationResult) -> None:
    """The answer of the office's answering model, and the numbers of its work."""
    answer = result.generation
    assert str(result.outcome) == "passed"
    assert result.metadata.error is None
    assert answer.raw_llm_response.endswith("--- AI Message ---\nThe sales add up to 42 EUR.")
    roles = " ".join(row["role"] for row in answer.trace_messages)
    assert roles == "assistant tool tool assistant tool assistant tool tool assistant"
    assert answer.answering_mcp_servers == ("currencies",)
    assert not answer.recursion_limit_reached
    assert answer.agent_metrics == {
        "iterations": 4,
        "tool_calls": 5,
        "tools_used": ["currency", "list_files", "read_file", "write_file"],
        "tool_call_counts": {"currency": 1, "list_files": 1, "read_file": 1, "write_file": 2},
        "suspect_failed_tool_calls": 0,
        "suspect_failed_tools": [],
        "limit_reached": False,
        "limit": None,
    }


def check_usage(result: VerificationResult, variant: str) -> None:
    """Every investigation is one call with an attempt for each turn."""
    usage = result.generation.usage_metadata
    tasks = {"generation", "rubric_agentic_trait_investigation", "rubric_agentic_trait_extraction", "total"}
    parsing = {"agentic_parsing_investigation", "agentic_parsing_extraction"} if variant in BY_AGENT else {"parsing"}
    assert set(usage) == tasks | parsing | ({"agentic_parsing_decision"} if variant == "decision" else set())
    row = usage["generation"]
    assert (row["calls"], row["attempts"], row["input_tokens"], row["output_tokens"]) == (1, 4, 50, 9)
    looked = usage["rubric_agentic_trait_investigation"]
    # the trait that is shown the trace alone has nothing to call tools for; alone, it takes one turn
    alone = variant != "shared"
    count = INVESTIGATIONS[variant]
    assert (looked["calls"], looked["attempts"]) == (count, count * 3 - 2 * alone)
    assert usage["rubric_agentic_trait_extraction"]["calls"] == 4
    if variant in BY_AGENT:
        assert (usage["agentic_parsing_investigation"]["calls"], usage["agentic_parsing_extraction"]["calls"]) == (1, 1)
    assert usage["total"]["calls"] == sum(row["calls"] for task, row in usage.items() if task != "total")


def check_rubric(result: VerificationResult, office: Any) -> None:
    part = result.rubric
    assert part is not None
    assert dict(part.agentic_trait_scores) == office.SCORES
    assert {name: row["state"] for name, row in part.trait_states.items()} == dict.fromkeys(
        ("saved", "tidy", "done", "booked"), "ok"
    )
    traces = part.agentic_trait_investigation_traces
    assert set(traces) == {"saved", "tidy", "done", "booked"}
    for name in ("saved", "tidy", "booked"):
        assert "[ERROR] there is no tool 'write_file'" in traces[name]
        assert "Seen: 42 EUR; files: data/sales.csv out/notes.md out/total.txt." in traces[name]
    assert part.trait_details["done"]["label"] == "finished"


@pytest.mark.parametrize("variant", STRATEGIES)
def test_an_agent_answers_in_a_folder_and_agents_judge_what_it_left(
    variant: str, office: Any, place: Any, app: Karenina, tmp_path: Path
) -> None:
    file = office.benchmark(*office.TRAITS).save(tmp_path / "sales.jsonld", app=app)
    with ScriptedServer(office.Office()) as server:
        config = office.configured(server.url, place.address, workspace_output_mode="produced", **STRATEGIES[variant])
        loaded = Benchmark.load(file, place.root, app=app)
        (result,) = loaded.run_verification(config, run_dir=tmp_path / "run", app=app)
        asked = server.requests
    check_answer(result)
    check_usage(result, variant)
    check_rubric(result, office)
    check_template(result, variant)
    warned = [warning.partition(" for other traits")[0] for warning in result.metadata.warnings]
    shared = "the agent of the shared investigation was shown the"
    assert warned == ([f"saved: {shared} trace", f"done: {shared} workspace"] if variant == "shared" else [])
    answering = [request for request in asked if request.model == "answerer"]
    assert office.offered(answering[0]) == ["currency", *READING, "write_file"]
    looked = [request for request in asked if request.model == "judge" and request.schema is None]
    assert all(office.offered(request) in (READING, []) for request in looked)
    assert place.clean()
    without_tool_servers(place)
    assert len(place.processes) == 1
    check_kept(tmp_path / "run", result, office)


def check_template(result: VerificationResult, variant: str) -> None:
    part = result.template
    assert part is not None
    assert part.parsed_llm_response == {"total": "42 EUR"}
    assert bool(part.agentic_parsing_performed) == (variant in BY_AGENT)
    assert ("Seen: 42 EUR" in (part.investigation_trace or "")) == (variant in BY_AGENT)
    assert part.dynamic_parse_decision == ("escalated" if variant == "decision" else None)


def check_kept(folder: Path, result: VerificationResult, office: Any) -> None:
    """The run directory: the result, how the run ended, and what the answering model made."""
    (line,) = (folder / "results.jsonl").read_text("utf-8").splitlines()
    kept = json.loads(line)
    assert kept["rubric"]["agentic_trait_scores"] == office.SCORES
    assert kept["generation"]["agent_metrics"]["tool_calls"] == 5
    assert json.loads((folder / "manifest.json").read_text("utf-8"))["status"] == "completed"
    (row,) = map(json.loads, (folder / "workspaces" / "manifest.jsonl").read_text("utf-8").splitlines())
    assert (row["status"], row["capture_mode"], row["copied_file_count"]) == ("captured", "produced", 2)
    assert row["result_id"] == result.metadata.result_id
    assert office.files(folder / "workspaces" / row["destination"]) == LEFT


def configuration(url: str, place: Any) -> str:
    """The file of `--config`: both models, and the tool server of the one that answers."""
    known = f'interface = "openai_endpoint"\nendpoint_base_url = "{url}"\nmax_retries = 0\n'
    return (
        'run = { answering_models = ["answerer"], parsing_models = ["judge"], workspace_output_mode = "full" }\n'
        f'[models.answerer]\nmodel_name = "answerer"\n{known}'
        f"[models.answerer.mcp_urls_dict]\ncurrencies = {json.dumps(place.address)}\n"
        f'[models.judge]\nmodel_name = "judge"\n{known}'
    )


def test_the_same_from_the_command_line(office: Any, place: Any, app: Karenina, tmp_path: Path, forking: Any) -> None:
    file = office.benchmark(*office.TRAITS).save(tmp_path / "sales.jsonld", app=app)
    with ScriptedServer(office.Office()) as server:
        (tmp_path / "karenina.toml").write_text(configuration(server.url, place))
        words = ["verify", file, "--config", "karenina.toml", "--workspace-root", place.root, "--out", "out"]
        done = forking.start(*words, folder=tmp_path, environment=ENVIRONMENT)
        assert done.wait() == 0, done.stderr
    (line,) = (tmp_path / "out" / "results.jsonl").read_text("utf-8").splitlines()
    result = structure(json.loads(line), VerificationResult)
    check_answer(result)
    check_rubric(result, office)
    folder = tmp_path / "out" / "workspaces"
    (row,) = map(json.loads, (folder / "manifest.jsonl").read_text("utf-8").splitlines())
    assert office.files(folder / row["destination"]) == {**LEFT, "data/sales.csv": office.SALES}
    assert place.clean()
    without_tool_servers(place)


@pytest.mark.parametrize("mode", ["rubric_only", "template_and_rubric"])
def test_a_recorded_answer_is_judged_by_agents_in_the_folder_of_its_question(
    mode: str, office: Any, place: Any, app: Karenina
) -> None:
    """Nobody worked there: the judge finds the question's own files, and says that nothing was saved."""
    recorded = ModelConfig(interface="manual", manual_traces={"q0": "The sales add up to 42 EUR."})
    with ScriptedServer(office.Office()) as server:
        config = office.configured(server.url, answering_models=[recorded], evaluation_mode=mode)
        results = office.benchmark(*office.TRAITS[:3], root=place.root).run_verification(config, app=app)
        assert {request.model for request in server.requests} == {"judge"}
    (result,) = results
    untouched = "agents judge the workspace, but manual:manual cannot work in it: they find only the question's"
    assert [untouched in said for said in (*results.notes, *result.metadata.warnings)] == [True, True]
    assert result.metadata.outcome == ("scored" if mode == "rubric_only" else "passed")
    assert dict(result.rubric.agentic_trait_scores) == {"saved": False, "tidy": 2, "done": 1}
    assert "no total; files: data/sales.csv." in result.rubric.agentic_trait_investigation_traces["saved"]
    assert result.generation.agent_metrics is None
    assert place.clean()


@pytest.mark.parametrize("brings", [False, True])
def test_only_an_answer_that_brings_its_folder_along_is_judged_by_what_was_left(
    brings: bool, office: Any, place: Any, app: Karenina, tmp_path: Path
) -> None:
    """Of an answer from before; its folder is somebody else's work, and stays."""
    left = tmp_path / "left"
    (left / "out").mkdir(parents=True)
    (left / "out" / "total.txt").write_text("42 EUR")
    recorded = ModelConfig(interface="manual", manual_traces={"q0": "The sales add up to 42 EUR."})
    cached = CachedAnswer(raw_llm_response="The sales add up to 42 EUR.", workspace=left) if brings else None
    with ScriptedServer(office.Office()) as server:
        result = run_single_model_verification(
            office.benchmark().questions[0],
            recorded,
            office.configured(server.url).parsing_models[0],
            rubric=Rubric.from_traits(office.TRAITS[:1]),
            cached_answer_data=cached,
            workspace_root=place.root,
            app=app,
        )
    assert dict(result.rubric.agentic_trait_scores) == {"saved": brings}
    warned = ["no part of the answer" in warning for warning in result.metadata.warnings]
    assert warned == ([] if brings else [True])
    assert office.files(left) == {"out/total.txt": "42 EUR"}
    assert place.clean()


# Recorded and replayed


@pytest.mark.parametrize("variant", ["individual", "shared", "decision"])
def test_a_replay_needs_neither_the_models_nor_the_tool_server_nor_the_same_folder(
    variant: str, office: Any, place: Any, tmp_path: Path
) -> None:
    """The prompts hold no name of a folder: those of the copies are different in every run."""
    recording = tmp_path / "calls.jsonl"
    config = {**STRATEGIES[variant], "replicate_count": 2, "concurrency": 4}

    def run(url: str, root: Path, run_dir: Path, **replay: str) -> Any:
        settings = {"replay": replay}
        made = office.configured(url, place.address, **config)
        chosen = office.benchmark(*office.TRAITS, office.KEPT, office.override(url), root=root)
        app = application(installed=True, settings=settings)
        return chosen.run_verification(made, run_name="same", run_dir=run_dir, app=app)

    with ScriptedServer(office.Office()) as server:
        live = run(server.url, place.root, tmp_path / "live", record=str(recording))
        count = server.count
    shutil.move(place.root, elsewhere := tmp_path / "elsewhere")
    place.program.unlink()
    started = place.processes
    replayed = run(server.url, elsewhere, tmp_path / "again", replay=str(recording))
    assert office.rows(replayed) == office.rows(live)
    assert [str(result.outcome) for result in live] == ["passed"] * 2
    assert server.count == count
    assert place.processes == started
    assert str(tmp_path) not in recording.read_text()
    for results, folder in ((live, tmp_path / "live"), (replayed, tmp_path / "again")):
        for result in results:
            (file,) = kept_traces(result, folder)
            assert file == ".karenina/traces/trace_q0.txt" == result.rubric.trait_details["kept"]["trace_file"]


# Traces that are kept


def kept_traces(result: VerificationResult, run_dir: Path) -> list[str]:
    """The traces beside a result, each with the whole answer in it."""
    folder = run_dir / "workspaces" / f"q0__{result.metadata.result_id}"
    found = sorted((folder / ".karenina" / "traces").iterdir())
    assert {file.read_text("utf-8") for file in found} == {result.generation.raw_llm_response}
    return [file.relative_to(folder).as_posix() for file in found]


BOTH = {
    "features": ["agentic_parsing"],
    "agentic_judge_context": "trace_and_workspace",
    "agentic_parsing_materialize_trace": True,
    "agentic_parsing_persist_trace": True,
}


@pytest.mark.parametrize("mode", ["none", "produced"])
@pytest.mark.parametrize("rooted", [True, False])
def test_traces_that_are_to_be_kept_are_in_the_run_directory_after_the_workspace_is_gone(
    rooted: bool, mode: str, office: Any, place: Any, app: Karenina, tmp_path: Path
) -> None:
    with ScriptedServer(office.Office(looks=office.approves_in_words, scores=office.approves)) as server:
        config = office.configured(server.url, workspace_output_mode=mode, **BOTH)
        made = office.benchmark(office.KEPT, root=place.root if rooted else None)
        if not rooted:
            made = made.with_questions([evolve(question, workspace_path=None) for question in made])
        results = made.run_verification(config, run_dir=tmp_path / "run", app=app)
    (result,) = results
    assert str(result.outcome) == "passed", result.metadata.error
    assert not [note for note in results.notes if "persist_trace" in note]
    file = result.rubric.trait_details["kept"]["trace_file"]
    names = kept_traces(result, tmp_path / "run")
    assert file in names
    assert len(names) == (2 if rooted else 1)  # of the template and of the trait; equal ones without a workspace
    assert place.clean()


def test_a_run_that_cannot_keep_traces_says_so_and_names_no_file(office: Any, place: Any, app: Karenina) -> None:
    with ScriptedServer(office.Office(looks=office.approves_in_words, scores=office.approves)) as server:
        results = office.benchmark(office.KEPT, root=place.root).run_verification(
            office.configured(server.url, **BOTH), app=app
        )
    (result,) = results
    told = [note for note in results.notes if "give a run directory" in note]
    assert [note.partition(" has no effect")[0] for note in told] == [
        "persist_trace of the trait 'kept'",
        "agentic_parsing_persist_trace",
    ]
    warned = [warning.partition(":")[0] for warning in result.metadata.warnings]
    assert warned == ["agentic_parsing_persist_trace", "persist_trace"]
    assert "trace_file" not in result.rubric.trait_details["kept"]
    assert place.clean()
