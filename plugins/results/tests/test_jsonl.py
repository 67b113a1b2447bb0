"""The sink `jsonl`: one line a result, whatever it holds; written once, without secrets."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_results.jsonl import JsonLines
from karenina_runs.results.sinks import RunInfo

from karenina_core import ModelIdentity, VerificationResult, VerificationResultSet
from karenina_core.errors import PluginError
from karenina_core.values.result import GenerationPart, MetadataPart

ME = ModelIdentity("x", "m")


def result(result_id: str = "r1", text: str = "BCL2", **facts: Any) -> VerificationResult:
    metadata = MetadataPart(
        question_id="q", template_id="t", result_id=result_id, question_text="Why?", answering=ME, parsing=ME
    )
    return VerificationResult(metadata=metadata, generation=GenerationPart(raw_llm_response=text), **facts)


def info(run_dir: Path | None, secrets: Iterable[str] = ()) -> RunInfo:
    return RunInfo(run_name="r", run_dir=run_dir, benchmark="b", items=1, secrets=frozenset(secrets))


def write(results: Iterable[VerificationResult], run: RunInfo, target: str = "") -> None:
    async def through() -> None:
        sink = JsonLines(target)
        await sink.open(run)
        try:
            for one in results:
                await sink.write(one)
        finally:
            await sink.close({})
            await sink.close({})

    asyncio.run(through())


def lines(folder: Path) -> list[str]:
    return [line for line in (folder / "results.jsonl").read_text("utf-8").split("\n") if line]


def test_one_line_a_result(tmp_path: Path) -> None:
    written = [result("r1"), result("r2", "two\nlines")]
    write(written, info(tmp_path))
    assert len(lines(tmp_path)) == 2
    assert list(VerificationResultSet.load(tmp_path)) == written


def test_a_target_goes_before_the_run_directory(tmp_path: Path) -> None:
    write([result()], info(None), str(tmp_path / "mine.jsonl"))
    assert len(VerificationResultSet.load(tmp_path / "mine.jsonl")) == 1


def test_without_either_there_is_nowhere_to_write() -> None:
    with pytest.raises(PluginError, match="--sink jsonl:FILE"):
        write([result()], info(None))


def test_before_it_is_opened_and_after_it_is_closed_nothing_happens(tmp_path: Path) -> None:
    asyncio.run(JsonLines().write(result()))
    asyncio.run(JsonLines().close({}))


@given(st.lists(st.lists(st.sampled_from(["r1", "r2", "r3"]), max_size=4), max_size=4))
@settings(deadline=None)
def test_a_result_is_written_once_however_often_it_comes(tmp_path_factory: Any, sessions: list[list[str]]) -> None:
    """Also when the file is opened again, as after an interruption."""
    folder = tmp_path_factory.mktemp("run")
    for session in sessions:
        write([result(result_id) for result_id in session], info(folder))
    wanted = list(dict.fromkeys(result_id for session in sessions for result_id in session))
    found = lines(folder) if sessions else []
    assert [json.loads(line)["metadata"]["result_id"] for line in found] == wanted


ODD = ["\u2028", "\u2029", "\x85", "\x0b", "\x1c", "\r", "\n", "\0", '"', "\\", "\u202e", "🧬", "\ufeff"]


@given(st.text(st.characters(codec="utf-8")) | st.lists(st.sampled_from(ODD)).map("".join))
@settings(deadline=None)
def test_any_text_comes_back(tmp_path_factory: Any, text: str) -> None:
    folder = tmp_path_factory.mktemp("run")
    write([result(text=text)], info(folder))
    (loaded,) = VerificationResultSet.load(folder)
    assert loaded.generation.raw_llm_response == text


def test_what_utf8_cannot_hold_is_not_lost_and_the_line_stays_readable(tmp_path: Path) -> None:
    write([result(text="lone \ud800 surrogate")], info(tmp_path))
    (loaded,) = VerificationResultSet.load(tmp_path)
    assert loaded.generation.raw_llm_response == "lone \ud800 surrogate"


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_numbers_that_json_cannot_hold_are_null(tmp_path: Path, number: float) -> None:
    odd = {"sample": {"score": number, "scores": [1.0, number], "deep": {"x": (number, "text")}}}
    write([result(extensions=odd)], info(tmp_path))
    text = lines(tmp_path)[0]
    assert "NaN" not in text
    assert "Infinity" not in text
    (loaded,) = VerificationResultSet.load(tmp_path)
    assert loaded.extensions == {"sample": {"score": None, "scores": [1.0, None], "deep": {"x": [None, "text"]}}}


def test_values_that_json_does_not_know_are_written_as_text(tmp_path: Path) -> None:
    write([result(extensions={"sample": {"path": Path("a/b")}})], info(tmp_path))
    (loaded,) = VerificationResultSet.load(tmp_path)
    assert loaded.extensions == {"sample": {"path": "a/b"}}


def test_secrets_are_not_written(tmp_path: Path) -> None:
    write([result(text="the key is canary-123 indeed")], info(tmp_path, ["canary-123"]))
    (loaded,) = VerificationResultSet.load(tmp_path)
    assert loaded.generation.raw_llm_response == "the key is [redacted] indeed"


# Odd content


@pytest.mark.parametrize("odd", ["\u2028", "\u2029", "\x85"])
def test_odd_text_does_not_hide_what_is_there(tmp_path: Path, odd: str) -> None:
    for _ in range(2):
        write([result(text=f"a{odd}b")], info(tmp_path))
    assert len(lines(tmp_path)) == 1


def test_a_line_that_was_cut_off_costs_no_other_line(tmp_path: Path) -> None:
    write([result("r1")], info(tmp_path))
    file = tmp_path / "results.jsonl"
    file.write_text(file.read_text("utf-8") + lines(tmp_path)[0][:40], "utf-8")
    write([result("r2")], info(tmp_path))
    assert json.loads(lines(tmp_path)[-1])["metadata"]["result_id"] == "r2"


@pytest.mark.parametrize("odd", [{("a", 1): 2}, {"set": {1, "a"}}])
def test_odd_extensions_cost_no_result(tmp_path: Path, odd: Any) -> None:
    write([result(extensions={"sample": odd})], info(tmp_path))
    assert len(lines(tmp_path)) == 1


@pytest.mark.parametrize("secret", ["metadata", "question_id"])
def test_a_secret_that_looks_like_a_field_does_not_damage_the_line(tmp_path: Path, secret: str) -> None:
    written = result(text=f"{secret}!")
    write([written], info(tmp_path, [secret]))
    (loaded,) = VerificationResultSet.load(tmp_path)
    assert loaded == evolve(written, generation=GenerationPart(raw_llm_response="[redacted]!"))
