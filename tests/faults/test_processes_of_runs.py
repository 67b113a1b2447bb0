"""What the manifest tells of the processes of a run: each what it did, and what it failed with."""

from __future__ import annotations

import importlib.util
import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from karenina_cli.root import karenina
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.folder.status import read_status
from karenina_runs.plan.prepare import prepare

from karenina_core import RepairSelection, VerificationConfig, VerificationResult, repair_run
from karenina_core.testing import Reply, ScriptedServer, ServedRequest

SPEC = importlib.util.spec_from_file_location("process_world", Path(__file__).with_name("fault_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader

KEY = "canary-of-the-model"
QUESTIONS = 4


def answered(request: ServedRequest) -> Any:
    return Reply.error(429, retry_after=0.01) if request.number == 1 else world.right(request)


def failed(folder: Path, server: ScriptedServer) -> tuple[Any, VerificationConfig]:
    """A run that failed after the first result."""

    def broken(result: VerificationResult) -> None:
        raise RuntimeError(f"no place for it\nwith {KEY}")

    here = world.World(folder, questions=QUESTIONS)
    config: VerificationConfig = here.config(server.url, concurrency=1, model={"endpoint_api_key": KEY})
    app = here.app()
    try:
        prepared = prepare(here.benchmark, config, app=app, run_name="run")
        with pytest.raises(RuntimeError):
            app.run(execute(prepared, Destination(run_dir=folder), on_result=broken))
    finally:
        app.loop.close()
    return here, config


def lanes_of(process: dict[str, Any]) -> dict[str, list[str]]:
    return {lane.split()[0]: [moment["why"] for moment in moments] for lane, moments in process["lanes"].items()}


def test_a_run_that_failed_says_what_it_failed_with_until_it_is_gone_on_with(tmp_path: Path) -> None:
    with ScriptedServer(answered) as server:
        here, config = failed(tmp_path / "run", server)
        manifest = here.manifest()
        assert (manifest["status"], manifest["failure_type"]) == ("failed", "RuntimeError")
        assert manifest["failure_message"].startswith("no place for it with ")
        assert KEY not in json.dumps(manifest)
        assert read_status(here.folder).failure.startswith("RuntimeError: no place for it with ")
        said = CliRunner().invoke(karenina, ["status", str(here.folder)])
        assert "RuntimeError: no place for it" in said.output
        document = json.loads(CliRunner().invoke(karenina, ["status", str(here.folder), "--json"]).output)
        assert document["failure"].startswith("RuntimeError: no place")
        here.resume(config)
    assert (here.manifest()["failure_type"], here.manifest()["failure_message"]) == (None, None)
    assert read_status(here.folder).failure == ""


def test_every_process_that_asked_somebody_is_told_of(tmp_path: Path) -> None:
    with ScriptedServer(answered) as server:
        here, config = failed(tmp_path / "run", server)
        (first,) = here.manifest()["processes"]
        assert first["status"] == "failed"
        assert lanes_of(first) == {
            "openai_endpoint:a": ["start", "rate_limited", "now"],
            "openai_endpoint:j": ["start", "now"],
        }
        here.resume(config)
        app = here.app()
        try:
            repair_run(
                here.folder,
                RepairSelection(question_ids=["q1"]),
                benchmark=here.benchmark,
                config=config,
                app=app,
            )
        finally:
            app.loop.close()
        here.resume(config)  # nothing is left, and nobody is asked
    processes = here.manifest()["processes"]
    assert processes[0] == first, "what was told of a process stays"
    assert [process["status"] for process in processes] == ["failed", "completed", "completed"]
    both = {"openai_endpoint:a": ["start", "now"], "openai_endpoint:j": ["start", "now"]}
    assert [lanes_of(process) for process in processes[1:]] == [both, {"openai_endpoint:j": ["start", "now"]}]
    moments = [process[name] for process in processes for name in ("began_at", "ended_at")]
    assert moments == sorted(moments)
    assert all(isinstance(note, str) for process in processes for note in process["notes"])


def test_only_the_last_processes_are_told_of(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karenina_runs.folder.directory.MOST_PROCESSES", 1)
    with ScriptedServer(answered) as server:
        here, config = failed(tmp_path / "run", server)
        here.resume(config)
    (last,) = here.manifest()["processes"]
    assert last["status"] == "completed"
