"""`karenina export`: a run directory becomes a file of any format."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import karenina_results.formats
import pytest
from click.testing import CliRunner
from karenina_results.commands.export import command
from karenina_results.exporting import export
from karenina_results.jsonl import JsonLinesFile

from karenina_core import Karenina, ModelIdentity, VerificationResult, VerificationResultSet
from karenina_core.errors import BenchmarkError, ConfigError, UnknownName
from karenina_core.values.result import MetadataPart

ME = ModelIdentity("x", "m")
APP = Karenina({"formats": karenina_results.formats})


def result(number: int) -> VerificationResult:
    metadata = MetadataPart(
        question_id="q", template_id="t", result_id=f"{number:016x}", question_text="?", answering=ME, parsing=ME
    )
    return VerificationResult(metadata=metadata)


@pytest.fixture
def run_dir(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    folder = tmp_path / "my-run"
    folder.mkdir()
    JsonLinesFile().write([result(1), result(2)], folder / "results.jsonl", {})
    (folder / "manifest.json").write_text('{"run_name": "mine", "status": "completed"}', "utf-8")
    return folder


@pytest.mark.parametrize("name", ["json", "jsonl", "parquet", "sqlite"])
def test_every_format_is_written_and_loaded_again(run_dir: Path, tmp_path: Path, name: str) -> None:
    target = export(run_dir, name, tmp_path / "out", APP)
    assert target == tmp_path / "out"
    again = export(run_dir, None, tmp_path / f"out.{name}", APP)
    assert list(VerificationResultSet.load(again, APP)) == [result(1), result(2)]


def test_without_a_file_it_is_called_like_the_run(run_dir: Path, tmp_path: Path) -> None:
    assert export(run_dir, "csv", None, APP) == Path("my-run.csv")
    assert (tmp_path / "my-run.csv").exists()


def test_a_file_of_one_format_becomes_one_of_another(run_dir: Path, tmp_path: Path) -> None:
    first = export(run_dir, None, tmp_path / "a.json", APP)
    second = export(first, None, tmp_path / "b.sqlite", APP)
    third = export(second, None, tmp_path / "c.jsonl", APP)
    assert third.read_bytes() == (run_dir / "results.jsonl").read_bytes()


def test_the_file_that_is_read_is_not_overwritten(run_dir: Path) -> None:
    with pytest.raises(ConfigError, match="belongs to a run directory"):
        export(run_dir, "csv", run_dir / "results.jsonl", APP)


def test_no_file_of_a_run_and_nothing_but_a_file_is_overwritten(run_dir: Path, tmp_path: Path) -> None:
    """A device that is replaced is lost for the whole machine."""
    os.mkfifo(tmp_path / "pipe.csv")
    lines = tmp_path / "copy.jsonl"
    lines.write_bytes((run_dir / "results.jsonl").read_bytes())
    before = {path: path.read_bytes() for path in run_dir.iterdir()}
    for source, target, complaint in (
        (run_dir, run_dir / "manifest.json", "belongs to a run directory"),
        (lines, run_dir / "results.jsonl", "belongs to a run directory"),
        (run_dir, tmp_path / "pipe.csv", "not an ordinary file"),
        (run_dir, tmp_path, "not an ordinary file"),
        (lines, lines, "read or written by the same command"),
    ):
        with pytest.raises(ConfigError, match=complaint):
            export(source, "csv", target, APP)
    assert (tmp_path / "pipe.csv").is_fifo()
    assert {path: path.read_bytes() for path in run_dir.iterdir()} == before


def test_a_link_leads_to_the_file_that_is_written(run_dir: Path, tmp_path: Path) -> None:
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "link.json").symlink_to(tmp_path / "elsewhere" / "real.json")
    for _ in range(2):
        export(run_dir, None, tmp_path / "link.json", APP)
    assert (tmp_path / "link.json").is_symlink()
    assert [path.name for path in (tmp_path / "elsewhere").iterdir()] == ["real.json"]


def test_the_name_of_a_run_may_have_dots(run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    run_dir.rename(tmp_path / "gpt-4.1")
    assert export(Path("gpt-4.1"), "csv", None, APP) == Path("gpt-4.1.csv")


def test_what_cannot_be_done_is_an_error(run_dir: Path, tmp_path: Path) -> None:
    with pytest.raises(UnknownName, match="did you mean 'csv'"):
        export(run_dir, "cvs", None, APP)
    with pytest.raises(BenchmarkError, match="give a run directory"):
        export(tmp_path / "nowhere", "csv", None, APP)
    with pytest.raises(ConfigError, match=r"there is no folder .*nowhere; make it"):
        export(run_dir, None, tmp_path / "nowhere" / "x.csv", APP)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["my-run"]


def test_what_was_left_out_is_reported(run_dir: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    with (run_dir / "results.jsonl").open("a") as lines:
        lines.write('{"metadata":')
    export(run_dir, "json", tmp_path / "out.json", APP)
    assert "line 3 was cut off" in capsys.readouterr().err
    assert len(VerificationResultSet.load(tmp_path / "out.json", APP)) == 2


def test_the_command_prints_the_name_of_the_file(
    run_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    invoke: Callable[..., Any] = CliRunner().invoke
    monkeypatch.setattr(Karenina, "default", staticmethod(lambda: APP))
    done = invoke(command, [str(run_dir), "-o", str(tmp_path / "out.csv")])
    assert (done.exit_code, done.stdout) == (0, f"{tmp_path / 'out.csv'}\n")
    done = invoke(command, [str(run_dir)])
    assert done.exit_code == 2
    assert "give --format NAME, -o FILE, or both" in done.output


HEAVY = {"pandas", "numpy", "pyarrow", "psycopg", "pydantic", "litellm", "aiohttp"}
ENTRIES = "karenina_results.commands.export, karenina_results.formats, karenina_results.sinks"
ALL = (
    "karenina_results.formats.csv_file, karenina_results.formats.json_file, karenina_results.formats.parquet_file, "
    "karenina_results.jsonl, karenina_results.sinks.files, karenina_results.sinks.postgres, "
    "karenina_results.sinks.sqlite"
)


@pytest.mark.parametrize(("modules", "heavy"), [(ENTRIES, {*HEAVY, "cattrs", "sqlite3"}), (ALL, HEAVY)])
def test_nothing_heavy_is_imported_before_it_is_used(modules: str, heavy: set[str]) -> None:
    code = f"import sys, {modules}\nprint(sorted(set(sys.modules) & {heavy}))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False, timeout=60)
    assert ran.stdout.strip() == "[]", ran.stdout + ran.stderr
