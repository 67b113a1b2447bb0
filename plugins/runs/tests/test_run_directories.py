"""The run directory: made before anything costs, without secrets, and honest about how the run ended."""

from __future__ import annotations

import asyncio
import json
import threading
import tracemalloc
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.files.atomic_files import write_atomically, write_json
from karenina_runs.files.run_files import MANIFEST
from karenina_runs.folder.directory import default_directory
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import Done

from karenina_core import ModelConfig, VerificationResultSet, hookimpl
from karenina_core.errors import PortError, RunDirectoryError
from karenina_core.testing import ScriptedLLM

Make = Callable[..., Any]


def manifest(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((path / MANIFEST).read_text("utf-8"))
    return found


# Refusals


def test_a_folder_with_anything_in_it_is_refused_before_any_call(world: Make, tmp_path: Path) -> None:
    (tmp_path / "notes.txt").write_text("mine", "utf-8")
    here = world()
    with pytest.raises(
        RunDirectoryError, match=r"is not empty \(other files\); choose another \(--out DIR, or --fork DIR\)"
    ):
        here.run(destination=Destination(run_dir=tmp_path))
    assert here.answerer.calls == []
    assert [path.name for path in tmp_path.iterdir()] == ["notes.txt"]


def test_a_folder_of_another_run_is_refused_with_its_state(world: Make, tmp_path: Path) -> None:
    here = world()
    here.run(destination=Destination(run_dir=tmp_path / "run"))
    with pytest.raises(RunDirectoryError, match="a run that is completed"):
        here.run(destination=Destination(run_dir=tmp_path / "run"))


@pytest.mark.parametrize("where", ["file", "file/below"])
def test_a_file_in_the_way_is_refused(world: Make, tmp_path: Path, where: str) -> None:
    (tmp_path / "file").write_text("in the way", "utf-8")
    here = world()
    with pytest.raises(RunDirectoryError, match="cannot be made"):
        here.run(destination=Destination(run_dir=tmp_path / where))
    assert here.answerer.calls == []
    assert (tmp_path / "file").read_text("utf-8") == "in the way"


def test_an_empty_folder_and_missing_parents_are_fine(world: Make, tmp_path: Path) -> None:
    here = world()
    for path in (tmp_path, tmp_path / "a" / "b"):
        path.mkdir(parents=True, exist_ok=True)
    assert here.run(destination=Destination(run_dir=tmp_path / "a" / "b")).run_dir == tmp_path / "a" / "b"


def test_default_folders_have_safe_names() -> None:
    for label in ("my bench/../mark", "..", "", "🧬" * 100, "a" * 300):
        name = default_directory(label).name
        assert "/" not in name
        assert not name.startswith(".")
        assert len(name) < 100
    assert default_directory("x") != default_directory("x")


def test_a_file_is_replaced_as_a_whole_or_not_at_all(tmp_path: Path) -> None:
    path = tmp_path / "file"
    write_atomically(path, b"first")
    path.chmod(0o640)
    write_atomically(path, b"second")
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode & 0o777 == 0o640
    with pytest.raises(TypeError):
        write_atomically(path, "not bytes")  # type: ignore[arg-type]
    assert path.read_bytes() == b"second"
    assert [p.name for p in tmp_path.iterdir()] == ["file"]


TEXT = st.text(st.characters(codec=None), max_size=5)
SCALAR = st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    st.recursive(SCALAR, lambda of: st.lists(of, max_size=3) | st.dictionaries(TEXT, of, max_size=3)),
    st.sampled_from([None, 2]),
)
def test_a_document_is_written_as_it_would_be_in_one_go(tmp_path: Path, document: Any, indent: int | None) -> None:
    """Half of a character that no file can hold is replaced, wherever it is."""
    write_json(tmp_path / "file", document, indent)
    whole = json.dumps(document, ensure_ascii=False, indent=indent)
    assert (tmp_path / "file").read_bytes() == whole.encode("utf-8", "replace")


@pytest.mark.parametrize("indent", [None, 2])
def test_the_text_of_a_document_is_never_in_memory_as_a_whole(tmp_path: Path, indent: int | None) -> None:
    """The manifest names every question, and is written once more at the end of a run."""
    document = {"questions": [f"question {number}" for number in range(100_000)]}
    tracemalloc.start()
    try:
        write_json(tmp_path / "file", document, indent)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert (tmp_path / "file").stat().st_size > 1_500_000
    assert peak < 500_000


# What the manifest says


def test_the_manifest_names_everything_that_affects_the_numbers(world: Make, tmp_path: Path) -> None:
    source = tmp_path / "bench.json"
    source.write_bytes(b"{}")
    here = world(questions=2)
    results = here.run(destination=Destination(run_dir=tmp_path / "run", source=source), run_name="mine")
    said = manifest(tmp_path / "run")
    assert (said["status"], said["run_name"], said["evaluation_mode"], said["items"]) == (
        "completed",
        "mine",
        "template_only",
        2,
    )
    assert said["benchmark"]["sha256"] == "44136fa355b3678a1146ad16f7e8649e94fb4fc21fe77e8310c060f61caaff8a"
    assert said["questions"] == ["q0", "q1"]
    assert said["models"]["answering:a"]["served_by"] == "answering"
    assert "VerifyTemplate" in said["stages"]
    assert {"name": "verify-template", "version": "0.1.0"}.items() <= next(
        plugin for plugin in said["plugins"] if plugin["name"] == "verify-template"
    ).items()
    assert said["config"]["concurrency"] == 8
    assert set(said["versions"]) >= {"python", "karenina-core"}
    assert said["summary"] == json.loads(json.dumps(results.get_summary()))
    assert said["created_at"] < said["updated_at"]


def test_what_is_on_disk_is_what_was_returned(world: Make, tmp_path: Path) -> None:
    here = world(ScriptedLLM(), questions=3)
    results = here.run(destination=Destination(run_dir=tmp_path / "run"))
    loaded = VerificationResultSet.load(tmp_path / "run")
    assert sorted(loaded, key=repr) == sorted(results, key=repr)
    assert loaded.run_dir == tmp_path / "run"


# Secrets

CANARY = 'canary-"quoted"-\\-ü-0123456789'


@pytest.mark.parametrize("canary", ["canary-0123456789", CANARY])
@pytest.mark.parametrize("place", ["key", "named", "environment", "placed"])
def test_no_key_is_in_any_byte_of_the_folder(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, canary: str, place: str
) -> None:
    """Wherever the key comes from, and although the provider repeats it in an error and in an answer."""
    facts: dict[str, Any] = {}
    if place == "key":
        facts["endpoint_api_key"] = canary
    elif place == "named":
        facts["api_key_env"] = "ACME_CREDENTIALS"
        monkeypatch.setenv("ACME_CREDENTIALS", canary)
    elif place == "placed":
        facts["extra_kwargs"] = {"api_key": canary, "headers": {"Authorization": f"Bearer {canary}"}}
    else:
        monkeypatch.setenv("OTHER_API_KEY", canary)
    if place != "placed":
        facts["extra_kwargs"] = {"user": f"with {canary} inside"}
        facts["endpoint_base_url"] = f"http://localhost/?k={canary}"

    def script(call: Any) -> Any:
        if call.context.question_id == "q0":
            raise PortError(f"invalid key {canary}", kind="auth", raw=f"your key {canary} is invalid")
        return f"Your key is {canary}."

    class Leaky:
        name = "leaky"

        @hookimpl
        def karenina_register_sinks(self, registry: Any) -> None:
            registry.add(lambda target: self, name="leaky")

        async def open(self, run: Any) -> None: ...

        async def write(self, result: Any) -> None:
            raise OSError(f"cannot connect to http://user:{canary}@localhost")

        async def close(self, summary: Any) -> None: ...

    here = world(Leaky(), answerer=ScriptedLLM(script), questions=2)
    model = ModelConfig(model_name="a", interface="answering", **facts)
    here.run(here.config(answering_models=[model]), Destination(run_dir=tmp_path / "run", sinks=["leaky"]))
    forms = {canary.encode(), json.dumps(canary)[1:-1].encode(), json.dumps(canary, ensure_ascii=False)[1:-1].encode()}
    files = [path for path in (tmp_path / "run").rglob("*") if path.is_file()]
    assert len(files) >= 2
    for path in files:
        found = path.read_bytes()
        assert [form for form in forms if form in found] == [], path.name
    loaded = VerificationResultSet.load(tmp_path / "run")
    assert sorted(r.metadata.question_id for r in loaded) == ["q0", "q1"]


@pytest.mark.parametrize("placeholder", ["e", "none", "EMPTY", "passed"])
def test_a_placeholder_for_a_key_is_no_secret(world: Make, tmp_path: Path, placeholder: str) -> None:
    here = world(answerer=ScriptedLLM(lambda call: f"{placeholder} {placeholder}"))
    model = ModelConfig(model_name="a", interface="answering", endpoint_api_key=placeholder)
    results = here.run(here.config(answering_models=[model]), Destination(run_dir=tmp_path / "run"))
    assert list(VerificationResultSet.load(tmp_path / "run")) == list(results)


# Interruption


def test_an_interrupted_run_keeps_what_is_finished(world: Make, tmp_path: Path) -> None:
    reached = asyncio.Event()

    async def script(call: Any) -> Any:
        if call.context.question_id == "q2":
            reached.set()
            await asyncio.sleep(60)
        return "It is BCL2."

    here = world(answerer=ScriptedLLM(script), questions=4)
    prepared = here.prepare(here.config(concurrency=1))

    async def interrupted() -> None:
        task = asyncio.create_task(execute(prepared, Destination(run_dir=tmp_path / "run")))
        await asyncio.wait_for(reached.wait(), 60)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    said = manifest(tmp_path / "run")
    assert said["status"] == "interrupted"
    assert said["summary"]["outcomes"] == {"passed": 2}
    assert [r.metadata.question_id for r in VerificationResultSet.load(tmp_path / "run")] == ["q0", "q1"]
    assert here.answerer.closed >= 1
    with pytest.raises(RunDirectoryError, match="an unfinished run"):
        here.run(destination=Destination(run_dir=tmp_path / "run"))


def test_a_result_that_is_being_written_when_the_run_is_ended_is_counted(
    world: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Nobody waits for it any more, and it gets to the disk all the same."""
    written: list[str] = []
    running: list[asyncio.Task[Any]] = []
    put_result = Journal.put_result

    async def ended_meanwhile(self: Journal, done: Done, *facts: Any) -> None:
        written.append(done.task)
        if len(written) == 2:
            running[0].cancel()
            asyncio.current_task().cancel()  # type: ignore[union-attr] # a task is what runs here
        await put_result(self, done, *facts)

    monkeypatch.setattr(Journal, "put_result", ended_meanwhile)
    here = world(questions=4)
    prepared = here.prepare(here.config(concurrency=1))

    async def interrupted() -> None:
        running.append(asyncio.create_task(execute(prepared, Destination(run_dir=tmp_path / "run"))))
        await running[0]

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(interrupted())
    stored = VerificationResultSet.load(tmp_path / "run")
    assert len(stored) == len(written) == 2
    summary = manifest(tmp_path / "run")["summary"]
    assert summary["outcomes"] == {"passed": 2}
    assert (summary["calls"], summary["paid"]["calls"]) == (4, 4)


def test_while_it_runs_the_manifest_says_so(world: Make, tmp_path: Path) -> None:
    seen: list[str] = []

    def script(call: Any) -> str:
        seen.append(manifest(tmp_path / "run")["status"])
        return "It is BCL2."

    world(answerer=ScriptedLLM(script)).run(destination=Destination(run_dir=tmp_path / "run"))
    assert seen == ["running"]


def test_a_run_that_fails_as_a_whole_says_so(world: Make, tmp_path: Path) -> None:
    class Broken:
        @hookimpl
        def karenina_register_executors(self, registry: Any) -> None:
            registry.add(self, name="broken")

        async def execute(self, jobs: Any, work: Any, *, concurrency: int) -> None:
            raise RuntimeError("no machines")

    here = world(Broken())
    with pytest.raises(RuntimeError, match="no machines"):
        here.run(here.config(executor="broken"), Destination(run_dir=tmp_path / "run"))
    assert manifest(tmp_path / "run")["status"] == "failed"


def test_synchronous_callers_inside_a_running_loop_are_served(world: Make, tmp_path: Path) -> None:
    here = world(questions=2)

    async def notebook() -> Any:
        return here.benchmark.run_verification(here.config(), app=here.app, run_dir=tmp_path / "run")

    results = asyncio.run(notebook())
    assert [r.metadata.outcome for r in results] == ["passed", "passed"]
    assert threading.active_count() >= 2
    here.app.loop.close()
