"""`karenina verify --answers`: another judge for answers that are there."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from karenina_core.testing import ScriptedServer

Run = Callable[..., Result]
Files = Callable[..., Path]
IDS = [f"q{number}" for number in range(4)]


def script(request: Any) -> Any:
    return {"capital": "Paris"} if request.schema else "Paris."


@pytest.fixture
def server() -> Iterator[ScriptedServer]:
    with ScriptedServer(script) as found:
        yield found


@pytest.fixture
def first(run: Run, write_benchmark: Files, served: Any, server: ScriptedServer) -> list[str]:
    """A finished run of four items in `first`. The flags for another one with another judge."""
    flags = served(server.url)
    assert run("verify", write_benchmark(*IDS), *flags, "--out", "first", "--quiet").exit_code == 0
    return ["verify", "capitals.jsonld", *flags, "--parsing-model", "another", "--quiet"]


def answered(server: ScriptedServer) -> int:
    return sum(request.schema is None for request in server.requests)


@pytest.mark.parametrize("given", ["first", "first/results.jsonl", "all.json"])
def test_answers_are_taken_from_a_directory_and_from_files_of_results(
    run: Run, first: list[str], server: ScriptedServer, given: str
) -> None:
    assert run("export", "first", "--format", "json", "-o", "all.json").exit_code == 0
    result = run(*first, "--answers", given, "--out", "second", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["outcomes"] == {"passed": 8}
    assert answered(server) == 4
    assert printed["paid"]["calls"] == 8
    assert "4 of 4 answers are replayed; their models are not called" in printed["notes"]
    shown = run("show", "second", "q0")
    assert "answer replayed" in shown.stdout
    assert "the-answering-model, replicate 1" in " ".join(shown.stdout.split())


def test_what_is_missing_is_named_before_anything_is_asked(run: Run, first: list[str], server: ScriptedServer) -> None:
    count = server.count
    result = run(*first, "--answers", "first", "--replicates", "2", "--out", "second")
    assert result.exit_code == 1
    assert "4 of 8 answers are missing" in result.stderr
    assert "q0, openai_endpoint:the-answering-model, replicate 2" in result.stderr
    assert "--ask-missing" in result.stderr
    assert "the answers that were given: 4 of openai_endpoint:the-answering-model" in result.stderr
    assert server.count == count
    assert not Path("second").exists()
    result = run(*first, "--answers", "first", "--replicates", "2", "--ask-missing", "--out", "second")
    assert result.exit_code == 0, result.output
    assert answered(server) == 8


def test_the_models_whose_answers_there_are_can_be_seen_where_none_fits(run: Run, first: list[str]) -> None:
    result = run(*first, "--answering-model", "renamed", "--answers", "first", "--out", "second")
    assert result.exit_code == 1
    assert "4 of 8 answers are missing" in result.stderr
    assert "q0, openai_endpoint:renamed, replicate 1" in result.stderr
    assert "the answers that were given: 4 of openai_endpoint:the-answering-model" in result.stderr


def test_only_what_is_answered_can_be_judged(run: Run, write_benchmark: Files, first: list[str], server: Any) -> None:
    write_benchmark(*IDS, "q4", "q5")
    count = answered(server)
    result = run(*first, "--answers", "first", "--only-answered", "--out", "second", "--json")
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert printed["outcomes"] == {"passed": 8}
    assert [row["question_id"] for row in printed["left_out"]] == ["q4", "q5"]
    assert {row["reason"] for row in printed["left_out"]} == {
        "lacks an answer to be replayed from some model or replicate"
    }
    assert answered(server) == count
    assert run("resume", "second").exit_code == 0
    extended = run("extend", "second", "--out", "third", "--replicates", "2")
    assert extended.exit_code == 1
    assert "answers are missing" in extended.stderr


def test_a_run_without_any_question_left_is_refused(run: Run, write_benchmark: Files, first: list[str]) -> None:
    write_benchmark("q8", "q9")
    result = run(*first, "--answers", "first", "--only-answered", "--out", "second")
    assert result.exit_code == 1
    assert "no question has all of its answers; the answers that were given: 4 of openai_endpoint" in result.stderr
    both = run(*first, "--answers", "first", "--only-answered", "--ask-missing", "--out", "second")
    assert both.exit_code == 1
    assert "give one of them" in both.stderr


def test_captured_fields_spare_the_judge(run: Run, first: list[str], server: ScriptedServer) -> None:
    count = server.count
    result = run(*first[:-3], "--answers", "first", "--parsed", "--out", "second")
    assert result.exit_code == 0, result.output
    assert server.count == count


def test_a_file_of_another_kind_is_refused(run: Run, first: list[str], write_answers: Files) -> None:
    result = run(*first, "--answers", write_answers(q0="Paris"), "--out", "second")
    assert result.exit_code == 1
    assert "--manual-traces" in result.stderr
    assert run(*first, "--answers", "nowhere", "--out", "second").exit_code == 2


@pytest.mark.parametrize("option", ["--ask-missing", "--only-answered", "--parsed"])
def test_options_without_answers_have_no_effect_and_are_refused(run: Run, first: list[str], option: str) -> None:
    result = run(*first, option, "--out", "second")
    assert result.exit_code == 1
    assert f"{option}: " in result.stderr
    assert "add --answers DIR" in result.stderr


def test_the_answers_stay_with_the_run_and_are_reported_of_in_its_manifest(run: Run, first: list[str]) -> None:
    assert run(*first, "--answers", "first", "--out", "second").exit_code == 0
    entries = json.loads(Path("second/answers.json").read_text("utf-8"))["entries"]
    assert [entry["key"]["question_id"] for entry in entries] == IDS
    assert run("resume", "second").exit_code == 0
    Path("second/answers.json").write_text('{"version": 1, "entries": []}', "utf-8")
    result = run("resume", "second")
    assert result.exit_code == 1
    assert "answers" in result.stderr
