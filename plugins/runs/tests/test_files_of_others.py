"""Doors through which files of others come in: what is too large, too deep or no file is an error with its path."""

from __future__ import annotations

import json
import os
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_runs.answers.answers import ReplayStore
from karenina_runs.folder.directory import read_fingerprint, read_manifest
from karenina_runs.journal import compression
from karenina_runs.journal.compression import Bodies
from karenina_runs.results.results import VerificationResultSet

from karenina_core import Benchmark, ModelConfig, Question, VerificationConfig
from karenina_core.errors import BenchmarkError, ConfigError, KareninaError
from karenina_core.testing import ScriptedLLM, application

DEEP = "[" * 100_000
READERS: dict[str, tuple[str, Callable[[Path], Any]]] = {
    "a manifest": ("manifest.json", read_manifest),
    "a fingerprint": ("fingerprint.json", read_fingerprint),
}


@pytest.fixture
def run(tmp_path: Path) -> Path:
    folder = tmp_path / "run"
    folder.mkdir()
    return folder


@pytest.fixture(scope="module")
def ended(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The directory of a run that has ended."""
    folder = tmp_path_factory.mktemp("runs") / "run"
    exact = {"type": "str", "description": "x", "ground_truth": "A", "verify_with": {"type": "ExactMatch"}}
    text = json.dumps({"fields": [{"name": "a", **exact}]})
    question = Question(id="q", question="q?", answer_template=text, template_language="karenina-template")
    model = ModelConfig(model_name="m", interface="scripted")
    llm = ScriptedLLM(lambda call: {"a": "A"} if call.task == "parsing" else "A")
    config = VerificationConfig(answering_models=[model], parsing_models=[model])
    benchmark = Benchmark.create("b").with_questions([question])
    benchmark.run_verification(config, app=application(llm, installed=True), run_dir=folder)
    return folder


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("text", [DEEP, '{"run_id": "x", "a": ' + DEEP + "}", "1" * 1_000_000, "\0", "{"])
def test_documents_of_a_run_directory_that_are_none_are_refused(name: str, text: str, run: Path) -> None:
    file, read = READERS[name]
    (run / file).write_text(text)
    with pytest.raises(ConfigError) as caught:
        read(run)
    assert str(run / file) in str(caught.value)


@pytest.mark.skipif(os.name == "nt", reason="pipes of Unix")
@pytest.mark.parametrize("name", ["results.jsonl", "journal.sqlite", "journal.sqlite-wal", "run.lock", "repairs"])
def test_a_run_directory_with_a_pipe_is_refused(name: str, run: Path) -> None:
    os.mkfifo(run / name)
    with pytest.raises(ConfigError, match="is not what a run keeps there"):
        read_manifest(run)


@pytest.mark.skipif(os.name == "nt", reason="pipes of Unix")
@pytest.mark.parametrize("name", READERS)
def test_a_pipe_in_a_run_directory_holds_up_nothing(name: str, run: Path) -> None:
    file, read = READERS[name]
    os.mkfifo(run / file)
    with pytest.raises(ConfigError):
        read(run)


def test_a_larger_document_is_not_read(run: Path) -> None:
    with (run / "manifest.json").open("wb") as sparse:
        sparse.truncate(1 << 40)
    with pytest.raises(ConfigError, match="more than 256 MB"):
        read_manifest(run)


@pytest.mark.skipif(os.name == "nt", reason="pipes of Unix")
def test_results_that_are_a_pipe_or_one_endless_line_are_refused(run: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    os.mkfifo(run / "results.jsonl")
    with pytest.raises(BenchmarkError, match="not a regular file"):
        VerificationResultSet.load(run)
    (run / "results.jsonl").unlink()
    (run / "results.jsonl").write_bytes(b"x" * 2000)
    monkeypatch.setattr("karenina_runs.results.stored.MOST_BYTES", 1000)
    with pytest.raises(BenchmarkError, match="line 1 has more than"):
        VerificationResultSet.load(run)


@pytest.mark.parametrize("name", ["manifest.json", "results.jsonl", "journal.sqlite", "run.lock"])
def test_a_run_directory_whose_files_are_links_is_refused(name: str, run: Path, tmp_path: Path) -> None:
    """Who resumes the run of a stranger writes to no file of his own."""
    mine = tmp_path / "mine"
    mine.write_text("{}")
    (run / name).symlink_to(mine)
    with pytest.raises(ConfigError, match="is a link"):
        read_manifest(run)
    assert mine.read_text() == "{}"


@pytest.mark.parametrize("name", ["repair", "repairs"])
@pytest.mark.parametrize(
    "value", ["/etc", "..", "repairs/..", "repairs/../../x", "repairs/a/b", "repairs", "repairs/", 7]
)
def test_a_manifest_leads_to_no_folder_outside(name: str, value: Any, tmp_path: Path, ended: Path) -> None:
    manifest = json.loads((ended / "manifest.json").read_text("utf-8"))
    assert read_manifest(ended)
    other = tmp_path / "other"
    other.mkdir()
    changed = manifest | {name: value if name == "repair" else [value]}
    (other / "manifest.json").write_text(json.dumps(changed), "utf-8")
    with pytest.raises(ConfigError, match=f"'{name}' cannot be what it says"):
        read_manifest(other)


def test_a_body_that_unpacks_to_more_than_it_may_is_damage(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compression, "LARGEST", 1000)
    bodies = Bodies()
    with pytest.raises(ValueError, match="holds more than"):
        bodies.unpacked(zlib.compress(b"x" * 1001))
    assert not bodies.is_readable(zlib.compress(b'"' + b"x" * 1_000_000 + b'"'))
    for length in (999, 1000, 1001):  # what is longer is not compressed at all
        assert bodies.unpacked(bodies.packed("kind", "y" * length)) == "y" * length


@pytest.mark.parametrize("text", [DEEP, '{"version": "1", "entries": ' + "[" * 200 + "]" * 200 + "}"])
def test_recorded_answers_that_are_nested_too_deeply_are_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "answers.json").write_text(text)
    with pytest.raises(ConfigError, match="nested deeper than 128 levels"):
        ReplayStore.load(tmp_path / "answers.json")


@pytest.mark.parametrize("text", [DEEP, '{"@type": "DataFeed", "a": ' + DEEP, "1" * 1_000_000, "", "\0"])
def test_a_benchmark_that_is_none_is_refused(text: str, tmp_path: Path) -> None:
    (tmp_path / "b.jsonld").write_text(text)
    with pytest.raises(BenchmarkError):
        Benchmark.load(tmp_path / "b.jsonld")


def test_an_endless_benchmark_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karenina_runs.benchmark.MAX_BYTES", 1 << 20)
    link = tmp_path / "b.jsonld"
    link.symlink_to("/dev/zero")
    with pytest.raises(KareninaError, match="more than 1 MB"):
        Benchmark.load(link)
