"""Results in files, one after the other: each item once, as its last line has it, and never all of them in memory."""

from __future__ import annotations

import json
import tracemalloc
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_results.records import record
from karenina_runs.results.sinks import without_password
from karenina_runs.results.stored import StoredResults, stored_results

from karenina_core import Karenina, ModelIdentity, VerificationResult, VerificationResultSet
from karenina_core.errors import BenchmarkError
from karenina_core.values.result import GenerationPart, MetadataPart

ME = ModelIdentity("x", "m")
NOBODY = Karenina({})


def result(result_id: str, text: str = "BCL2", question: str = "q") -> VerificationResult:
    metadata = MetadataPart(
        question_id=question, template_id="t", result_id=result_id, question_text="?", answering=ME, parsing=ME
    )
    return VerificationResult(metadata=metadata, generation=GenerationPart(raw_llm_response=text))


def write(file: Path, *results: VerificationResult, end: str = "\n") -> Path:
    file.write_bytes("\n".join(map(record, results)).encode() + end.encode())
    return file


IDS = st.sampled_from(["0a", "0b", "0c", "not hexadecimal", 'quo"ted', "\u2028"])


@given(st.lists(st.tuples(IDS, st.sampled_from(["one", "two", "three"])), max_size=8), st.booleans())
@settings(deadline=None)
def test_each_item_comes_once_where_it_first_stood_and_as_its_last_line_has_it(
    tmp_path_factory: Any, lines: list[tuple[str, str]], whole: bool
) -> None:
    file = write(
        tmp_path_factory.mktemp("lines") / "results.jsonl",
        *(result(identifier, text) for identifier, text in lines),
        end="\n" if whole else "",
    )
    wanted = {identifier: result(identifier, text) for identifier, text in lines}
    stored = stored_results(file, NOBODY)
    assert list(stored) == list(wanted.values())
    assert list(stored) == list(stored), "it can be gone through again"
    assert list(VerificationResultSet.load(file, NOBODY)) == list(wanted.values())


def test_ids_that_share_a_hash_are_told_apart(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karenina_runs.results.stored.hash", lambda text: 7, raising=False)
    file = write(tmp_path / "results.jsonl", result("0a"), result("0b"), result("0a", "last"), result("0c"))
    assert list(stored_results(file)) == [result("0a", "last"), result("0b"), result("0c")]


def test_a_question_whose_id_looks_like_the_rest_of_the_line_hides_nothing(tmp_path: Path) -> None:
    tricky = '","template_id":"t","result_id":"ff"'
    file = write(tmp_path / "results.jsonl", result("0a", question=tricky), result("0b", question=tricky))
    assert [found.metadata.result_id for found in stored_results(file)] == ["0a", "0b"]


def test_what_was_cut_off_is_left_out_and_said(tmp_path: Path) -> None:
    file = write(tmp_path / "results.jsonl", result("0a"), result("0b"))
    file.write_bytes(file.read_bytes()[:-30])
    stored = stored_results(file)
    assert list(stored) == [result("0a")]
    assert stored.notes == (f"{file}, line 2 was cut off while it was written and is left out",)


def test_a_damaged_line_is_named(tmp_path: Path) -> None:
    file = write(tmp_path / "results.jsonl", result("0a"), result("0b"))
    file.write_text(file.read_text("utf-8").replace('"replicate":1', '"replicate":"one"'), "utf-8")
    with pytest.raises(BenchmarkError, match=r"results\.jsonl, line 1: not a result: metadata.replicate"):
        list(stored_results(file))


def test_metadata_are_read_alone_wherever_they_are_in_a_line(tmp_path: Path) -> None:
    file = write(tmp_path / "results.jsonl", result("0a"), result("0b"), result("0a", "last"))
    wanted = [one.metadata for one in stored_results(file)]
    assert list(stored_results(file).metadata()) == wanted
    lines = [json.loads(line) for line in file.read_text("utf-8").splitlines()]
    file.write_text("".join(f"{json.dumps(dict(reversed(line.items())))}\n" for line in lines), "utf-8")
    assert list(stored_results(file).metadata()) == wanted
    stored = StoredResults(read=lambda: iter([result("0c")]), file=file, directory=tmp_path)
    assert [about.result_id for about in stored.metadata()] == ["0c"]


def test_damaged_metadata_are_named_as_a_damaged_line_is(tmp_path: Path) -> None:
    file = write(tmp_path / "results.jsonl", result("0a"))
    file.write_text(file.read_text("utf-8").replace('"replicate":1', '"replicate":"one"'), "utf-8")
    with pytest.raises(BenchmarkError, match=r"results\.jsonl, line 1: not a result: metadata.replicate"):
        list(stored_results(file).metadata())


def test_memory_does_not_grow_with_the_number_of_results(tmp_path: Path) -> None:
    def peak(number: int) -> int:
        file = tmp_path / f"{number}.jsonl"
        with file.open("w") as lines:
            lines.writelines(f"{record(result(f'{n:016x}', 'x' * 2000))}\n" for n in range(number))
        tracemalloc.start()
        try:
            for _ in stored_results(file, NOBODY):
                pass
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    peak(10)  # what is made once
    few, many = peak(100), peak(500)
    assert many < few + 400 * 200, "200 bytes a result are enough to know where it is"


@pytest.mark.parametrize(
    ("uri", "shown"),
    [
        ("postgres:postgresql://user:pass:w@rd@host:5/db", "postgres:postgresql://user:[redacted]@host:5/db"),
        ("postgres://:word@host", "postgres://:[redacted]@host"),
        ("postgres:host=h password=word dbname=d", "postgres:host=h password=[redacted] dbname=d"),
        ("postgres:password='a \\' b' host=h", "postgres:password=[redacted] host=h"),
        ("postgres:host=h password=two words", "postgres:host=h password=[redacted]"),
        ("postgres:postgresql://h/d?password=word&a=b", "postgres:postgresql://h/d?password=[redacted]&a=b"),
        ("postgres:postgresql://user@host/db", "postgres:postgresql://user@host/db"),
        ("sqlite:/a/b.db", "sqlite:/a/b.db"),
        ("jsonl:a@b.jsonl", "jsonl:a@b.jsonl"),
    ],
)
def test_a_sink_is_shown_without_its_password(uri: str, shown: str) -> None:
    assert without_password(uri) == shown


@pytest.mark.parametrize(
    "uri",
    [
        "postgres:host=h sslpassword=WORD dbname=d",
        "postgres:host=h,password=WORD",
        "postgres:postgresql://h/d?sslpassword=WORD&sslmode=require",
        "postgres:postgresql://h/d?sslmode=require&password=WORD",
        "postgres:postgresql://h/d?options=-c%20x=1;password=WORD",
        "postgres:postgresql://h/d?passwords=WORD",
        "postgres:postgresql://u@h/d?PASSWORD=WORD",
        "--sink=postgresql://h/d?password=WORD",
        "https://h/v1?api-key=WORD",
        "https://h/v1?apiKey=WORD",
        "snowflake://a?private_key_pwd=WORD",
        "https://h?access_token_v2=WORD",
        "https://h/?pwd=WORD",
        "https://h?sig=WORD&auth=WORD",
        "https://h?credentials=WORD#there",
        "https://h?client_secret=WORD",
    ],
)
def test_an_address_is_shown_without_what_may_be_secret(uri: str) -> None:
    shown = without_password(uri)
    assert "WORD" not in shown.replace("PASSWORD", "")
    assert "=[redacted]" in shown
    assert shown.partition("=")[0] == uri.partition("=")[0]


@pytest.mark.parametrize("uri", ["jsonl:/runs/key=3/a.jsonl", "postgresql://h/d?sslmode=require&connect_timeout=3"])
def test_what_is_no_secret_is_shown(uri: str) -> None:
    assert without_password(uri) == uri


def test_a_result_set_and_its_stream_are_the_same(tmp_path: Path) -> None:
    file = write(tmp_path / "results.jsonl", result("0a"), evolve(result("0b"), evaluation_input="x"))
    (tmp_path / "manifest.json").write_text('{"left_out": [{"question_id": "q9", "reason": "why"}]}', "utf-8")
    stored, loaded = stored_results(tmp_path), VerificationResultSet.load(tmp_path)
    assert list(stored) == list(loaded)
    assert (stored.file, stored.directory) == (file, tmp_path)
    assert [left.question_id for left in loaded.left_out] == ["q9"]


def test_a_value_that_holds_itself_is_cut_off_and_the_rest_of_the_result_is_written() -> None:
    endless: dict[str, Any] = {"a": 1}
    endless["itself"] = endless
    line = record(evolve(result("0a"), extensions={"plugin": {"endless": endless}}))
    assert '"raw_llm_response":"BCL2"' in line
    assert "not written: it is nested more than 150 levels deep" in line
