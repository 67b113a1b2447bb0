"""Answers that are worked out at the same time, and runs that end too early: nobody meets another's folder."""

from __future__ import annotations

import asyncio
import json
import os
import re
import shutil
import signal
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field
from karenina_runs.journal.journal import Journal

from karenina_core import Karenina, VerificationResult
from karenina_core.errors import RunDirectoryError
from karenina_core.testing import Reply, ScriptedServer, ServedRequest, application
from karenina_core.values.convert import structure

ENVIRONMENT = {name: text for name, text in os.environ.items() if not name.startswith("KARENINA_")}
SECONDS = 180.0


@pytest.fixture(scope="module")
def app() -> Karenina:
    return application(installed=True)


@define(eq=False)
class Meeting:
    """A script in which all answers write their own mark, wait for each other, read it back, wait again and report."""

    office: Any
    parties: int
    barriers: dict[int, asyncio.Barrier] = field(factory=dict)

    async def answers(self, request: ServedRequest) -> Any:
        turn = self.office.turn_of(request)
        if turn == 0:
            mark = f"{request.model}-{request.number}"
            write = ("write_file", {"path": "mark.txt", "content": mark})
            return self.office.calling(0, write, ("write_file", {"path": f"{mark}.txt", "content": "here"}))
        await self.all_here(turn)
        if turn == 1:  # everybody has written
            return self.office.calling(1, ("read_file", {"path": "mark.txt"}), ("list_files", {"recursive": True}))
        read, listed = self.office.told(request)[2:]
        marks = re.findall(r"^(answerer\S+)\.txt ", listed, re.MULTILINE)
        return f"mark {read.strip()} among {' '.join(marks)}"

    async def looks(self, request: ServedRequest) -> Any:
        turn = self.office.turn_of(request)
        if turn == 0:
            return self.office.calling(0, ("read_file", {"path": "mark.txt"}), ("list_files", {}))
        await self.all_here(10 + turn)
        return "\n".join(self.office.told(request))

    async def all_here(self, step: int) -> None:
        barrier = self.barriers.setdefault(step, asyncio.Barrier(self.parties))
        async with asyncio.timeout(SECONDS):
            await barrier.wait()

    def script(self) -> Any:
        return self.office.Office(answers=self.answers, looks=self.looks, scores=self.office.approves)


def check_marks(results: Sequence[Any], count: int) -> None:
    """Every answer, and its judge, has met its own mark and no other."""
    marks = set()
    for result in results:
        assert str(result.outcome) == "passed", result.metadata.error
        found = re.search(r"mark (\S+) among (\S+)$", result.generation.raw_llm_response)
        assert found is not None, result.generation.raw_llm_response
        assert found[1] == found[2]
        assert found[1].startswith(result.metadata.answering.model_name)
        report = result.rubric.agentic_trait_investigation_traces["saved"]
        assert re.findall(r"answerer[\w-]*", report) == [found[1]] * (report.count("answerer"))
        assert f"{found[1]}.txt (4 bytes)" in report
        marks.add(found[1])
    assert len(marks) == count


def test_models_and_replicates_at_work_in_the_same_instant_never_meet(office: Any, place: Any, app: Karenina) -> None:
    meeting = Meeting(office, 4)
    with ScriptedServer(meeting.script()) as server:
        config = office.configured(server.url, replicate_count=2, concurrency=4)
        (one,) = config.answering_models
        two = evolve(one, model_name="answerer-too", id=None)
        config = evolve(config, answering_models=[one, two])
        results = list(office.benchmark(office.TRAITS[0], root=place.root).run_verification(config, app=app))
        assert server.peak == 4
    check_marks(results, 4)
    assert place.clean()


# In processes of their own


def command(office: Any, place: Any, url: str, out: str, *more: str) -> list[str]:
    file = place.folder / "sales.jsonld"
    if not file.exists():
        office.benchmark(office.TRAITS[0]).save(file)
    known = f'interface = "openai_endpoint"\nendpoint_base_url = "{url}"\nmax_retries = 0\n'
    tools = f"[models.answerer.mcp_urls_dict]\ncurrencies = {json.dumps(place.address)}\n" if "tools" in more else ""
    (place.folder / "karenina.toml").write_text(
        'run = { answering_models = ["answerer"], parsing_models = ["judge"] }\n'
        f'[models.answerer]\nmodel_name = "answerer"\n{known}{tools}[models.judge]\nmodel_name = "judge"\n{known}'
    )
    flags = ["--config", "karenina.toml", "--workspace-root", place.root, "--out", out, "--quiet"]
    return list(map(str, ["verify", file, *flags]))


@pytest.fixture
def started(place: Any, forking: Any) -> Iterator[Callable[[list[str]], Any]]:
    """Starts a process that carries out the command in the folder of the place."""
    running = []

    def start(words: list[str]) -> Any:
        running.append(forking.start(*words, folder=place.folder, environment=ENVIRONMENT, ends=True))
        return running[-1]

    yield start
    for process in running:
        process.kill()


def test_two_runs_in_one_root_never_meet(office: Any, place: Any, started: Any) -> None:
    meeting = Meeting(office, 2)
    with ScriptedServer(meeting.script()) as server:
        for process in [started(command(office, place, server.url, out)) for out in ("one", "two")]:
            assert process.wait(SECONDS) == 0, process.stderr
    texts = [(place.folder / out / "results.jsonl").read_text("utf-8") for out in ("one", "two")]
    check_marks([structure(json.loads(text), VerificationResult) for text in texts], 2)
    assert not list(place.folder.glob("*/workspaces"))  # nothing is kept unless it is asked for
    assert place.clean()


def hanging(office: Any, model: str) -> Any:
    """The usual script, in which this model does not reply to its second request."""

    def hangs(usual: Any) -> Any:
        return lambda request: Reply.hang(SECONDS) if office.turn_of(request) == 1 else usual(request)

    if model == "answerer":
        return office.Office(answers=hangs(office.answers))
    return office.Office(looks=hangs(office.looks))


def wait_until_hanging(server: ScriptedServer, office: Any, model: str) -> None:
    deadline = time.monotonic() + SECONDS
    while not any(r.model == model and r.schema is None and office.turn_of(r) == 1 for r in server.requests):
        assert time.monotonic() < deadline
        time.sleep(0.01)


def purposes(place: Any) -> list[str]:
    """What the folders beside the question's own are for."""
    return sorted(path.name.split("_")[1] for path in place.root.iterdir() if path.name != "shop")


def gone(process: int) -> bool:
    deadline = time.monotonic() + 5
    while time.monotonic() < deadline:
        try:
            os.kill(process, 0)
        except ProcessLookupError:
            return True
        time.sleep(0.02)
    return False


@pytest.mark.parametrize(
    ("model", "folders", "how", "tools"),
    [("answerer", ["run"], signal.SIGINT, ["tools"]), ("judge", ["look", "run"], signal.SIGTERM, [])],
)
def test_a_run_that_is_ended_leaves_no_folder_and_no_program(
    model: str, folders: list[str], how: signal.Signals, tools: list[str], office: Any, place: Any, started: Any
) -> None:
    with ScriptedServer(hanging(office, model)) as server:
        process = started(command(office, place, server.url, "out", *tools))
        wait_until_hanging(server, office, model)
        assert purposes(place) == folders
        process.send_signal(how)
        while "\n" not in process.stderr:
            assert process.poll(0.01) is None, process.stderr
        assert "interrupt again" in process.stderr.splitlines()[0]
        process.send_signal(how)
        assert process.wait(SECONDS) == 130, process.stderr
    assert "Traceback" not in process.stderr
    assert place.clean()
    assert len(place.processes) == len(tools)
    assert all(map(gone, place.processes))
    assert json.loads((place.folder / "out" / "manifest.json").read_text("utf-8"))["status"] == "interrupted"


def test_a_killed_run_leaves_folders_that_no_later_run_trips_over(office: Any, place: Any, started: Any) -> None:
    with ScriptedServer(hanging(office, "judge")) as server:
        process = started(command(office, place, server.url, "out", "tools"))
        wait_until_hanging(server, office, "judge")
        assert process.kill() == -signal.SIGKILL
    assert purposes(place) == ["look", "run"]
    assert all(map(gone, place.processes))
    before = office.files(place.root)
    with ScriptedServer(office.Office()) as server:
        again = started(command(office, place, server.url, "again"))
        assert again.wait(SECONDS) == 0, again.stderr
    result = json.loads((place.folder / "again" / "results.jsonl").read_text("utf-8"))
    assert result["rubric"]["agentic_trait_scores"] == {"saved": True}
    assert "files: data/sales.csv out/notes.md out/total.txt." in json.dumps(result)
    assert office.files(place.root) == before


# When something else fails


@pytest.mark.parametrize("who", ["answerer", "judge", "investigator"])
def test_a_model_that_fails_leaves_no_folder(who: str, office: Any, place: Any, app: Karenina) -> None:
    def fails(request: ServedRequest) -> Any:
        return Reply.error(400)

    def late(request: ServedRequest) -> Any:
        return office.answers(request) if office.turn_of(request) < 3 else Reply.error(400)

    scripts = {"answerer": {"answers": late}, "judge": {"scores": fails}, "investigator": {"looks": fails}}
    outcomes = {"answerer": "error(invalid_request)", "judge": "error(judge)", "investigator": "passed"}
    with ScriptedServer(office.Office(**scripts[who])) as server:
        config = office.configured(server.url)
        (result,) = office.benchmark(office.TRAITS[0], root=place.root).run_verification(config, app=app)
    assert str(result.outcome) == outcomes[who]
    if who == "answerer":
        assert result.generation.agent_metrics["tool_call_counts"]["write_file"] == 2
    else:
        state = result.rubric.trait_states.get("saved") if result.rubric else None
        assert state is None or state["state"] == "error"
    assert place.clean()


def test_results_that_cannot_be_written_leave_no_folder(
    office: Any, place: Any, tmp_path: Path, app: Karenina, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def full(*_: object) -> None:
        raise RunDirectoryError("no space left on device")

    monkeypatch.setattr(Journal, "put_result", full)
    with ScriptedServer(office.Office()) as server:
        config = office.configured(server.url, workspace_output_mode="full")
        chosen = office.benchmark(office.TRAITS[0], count=3, root=place.root)
        with pytest.raises(RunDirectoryError, match="no space left"):
            chosen.run_verification(config, run_dir=tmp_path / "run", app=app)
    assert place.clean()
    assert json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))["status"] == "failed"


def test_an_answer_that_outgrows_the_limits_costs_no_more_disk(office: Any, place: Any, app: Karenina) -> None:
    def writes(request: ServedRequest) -> Any:
        if office.turn_of(request):
            return "I am done."
        return office.calling(0, *(("write_file", {"path": f"{n}.txt", "content": "x" * 90_000}) for n in range(5)))

    with ScriptedServer(office.Office(answers=writes, scores=office.approves)) as server:
        config = office.configured(server.url, workspace_max_bytes=100_000)
        (result,) = office.benchmark(office.TRAITS[0], root=place.root).run_verification(config, app=app)
    told = [row for row in result.generation.trace_messages if row["role"] == "tool"]
    refused = [row["content"] for row in told if row["tool_result"]["is_error"]]
    assert len(refused) == 4
    assert all("only 9971 bytes may still be written" in text for text in refused)
    assert result.rubric.trait_states["saved"]["state"] == "ok"
    assert place.clean()


def test_an_answer_makes_no_more_files_than_can_be_copied_for_its_judges(
    office: Any, place: Any, app: Karenina
) -> None:
    def writes(request: ServedRequest) -> Any:
        if office.turn_of(request):
            return "I am done."
        return office.calling(0, *(("write_file", {"path": f"{n}.txt", "content": ""}) for n in range(12)))

    with ScriptedServer(office.Office(answers=writes, scores=office.approves)) as server:
        config = office.configured(server.url, workspace_max_files=10)
        (result,) = office.benchmark(office.TRAITS[0], root=place.root).run_verification(config, app=app)
    told = [row for row in result.generation.trace_messages if row["role"] == "tool"]
    refused = [row["content"] for row in told if row["tool_result"]["is_error"]]
    assert 0 < len(refused) < 12
    assert all("only 0 new files and folders may still be made" in text for text in refused)
    assert result.rubric.trait_states["saved"]["state"] == "ok"
    assert place.clean()


def test_temporary_folders_are_gone_too(
    office: Any, place: Any, app: Karenina, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    elsewhere = tmp_path / "temporary"
    elsewhere.mkdir()
    monkeypatch.setenv("TMPDIR", str(elsewhere))
    monkeypatch.setattr("tempfile.tempdir", None)
    with ScriptedServer(office.Office()) as server:
        config = office.configured(server.url)
        (result,) = office.benchmark(*office.TRAITS, office.KEPT, root=place.root).run_verification(config, app=app)
    assert str(result.outcome) == "passed"
    assert list(elsewhere.iterdir()) == []
    shutil.rmtree(elsewhere)
    assert place.clean()
