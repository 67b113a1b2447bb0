"""What is asserted of every run directory is not true of every folder."""

from __future__ import annotations

import importlib.util
import json
import shutil
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karenina_core.testing import Reply, ScriptedServer


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"{name}_invariants", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


world, invariants = loaded("run_world"), loaded("invariants")


@pytest.fixture(scope="module")
def finished(forking: Any, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A run of which two items passed, one failed, and one ended in an error."""
    folder: Path = tmp_path_factory.mktemp("finished")

    def script(request: Any) -> Any:
        return Reply.error(401) if world.number_of(request) == 1 else world.said(request)

    with ScriptedServer(script) as server:
        benchmark = world.write_benchmark(folder / "capitals.jsonld", 4)
        config = world.write_config(folder / "config.toml", server.url, 2)
        started = forking.start("verify", benchmark, "--config", config, "--out", folder / "run", "--quiet")
        assert started.wait() == 3, started.stderr
        invariants.assert_run(folder / "run", judged=world.judged(server), alone=True)
        invariants.assert_replayed(folder / "run", folder / "again", lambda: server.count)
    return folder / "run"


def of_manifest(change: Callable[[dict[str, Any]], None]) -> Callable[[Path], None]:
    def spoil(run: Path) -> None:
        manifest = world.manifest(run)
        change(manifest)
        (run / "manifest.json").write_text(json.dumps(manifest), "utf-8")

    return spoil


def of_journal(*statements: str) -> Callable[[Path], None]:
    def spoil(run: Path) -> None:
        connection = sqlite3.connect(run / "journal.sqlite")
        with connection:
            for statement in statements:
                connection.execute(statement)
        connection.close()

    return spoil


def shorter(run: Path) -> None:
    lines = (run / "results.jsonl").read_text("utf-8").splitlines(keepends=True)
    (run / "results.jsonl").write_text("".join(lines[:-1]), "utf-8")


def wrong(manifest: dict[str, Any]) -> None:
    """The error is counted as a wrong answer."""
    row = manifest["summary"]["models"][0]
    row["answered_accuracy"] = row["pass_rate"] = 2 / 4


SPOILT: dict[str, Callable[[Path], None]] = {
    "a result is lost": of_journal("DELETE FROM results WHERE id = 1"),
    "a call is lost": of_journal("DELETE FROM calls WHERE id = 1"),
    "a result is there twice": of_journal(
        "CREATE TEMP TABLE twice AS SELECT * FROM results WHERE id = 1",
        "UPDATE twice SET id = 1000",
        "INSERT INTO results SELECT * FROM twice",
    ),
    "another outcome": of_journal("UPDATE results SET outcome = 'passed' WHERE outcome = 'failed'"),
    "a line is missing": shorter,
    "another ledger": of_manifest(lambda manifest: manifest["ledger"]["total"].update(calls=1)),
    "an error is a wrong answer": of_manifest(wrong),
    "an error is not counted": of_manifest(lambda manifest: manifest["summary"]["outcomes"].pop("error")),
    "a headline of its own": of_manifest(lambda manifest: manifest["summary"].update(calls=7)),
    "a failed attempt that is not told": of_manifest(lambda manifest: manifest["summary"].update(failed_attempts=0)),
    "a cost that nobody knows": of_manifest(lambda manifest: manifest["summary"].update(cost_usd=0.0)),
    "another bill": of_manifest(lambda manifest: manifest["summary"]["paid"].update(calls=1)),
    "it is not done": of_manifest(lambda manifest: manifest.update(status="interrupted")),
}


@pytest.mark.parametrize("name", SPOILT)
def test_what_does_not_hold_is_noticed(finished: Path, tmp_path: Path, name: str) -> None:
    run = tmp_path / "run"
    shutil.copytree(finished, run)
    invariants.assert_run(run)
    SPOILT[name](run)
    with pytest.raises(AssertionError):
        invariants.assert_run(run)


def test_what_was_told_and_is_not_there_is_noticed(finished: Path) -> None:
    with pytest.raises(AssertionError, match="told of is lost"):
        invariants.assert_run(finished, told=["another"])
    with pytest.raises(AssertionError, match="judge has read is lost"):
        invariants.assert_run(finished, judged=["q1"])
    with pytest.raises(AssertionError, match="reply that was acknowledged"):
        invariants.assert_journal(finished, [("another", 0)])
    with pytest.raises(AssertionError, match="result that was acknowledged"):
        invariants.assert_journal(finished, [], ["another"])
