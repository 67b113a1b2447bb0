"""`karenina batches`: how far batches at providers are, and what a user types who will not pay for more."""

from __future__ import annotations

import asyncio
import json
import re
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import Result
from karenina_runs.execute.control import RunControl
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.files.run_lock import RunLock
from karenina_runs.folder.status import read_status
from karenina_runs.journal.journal import Journal
from karenina_runs.plan.prepare import prepare

from karenina_core import Benchmark, Karenina, ModelConfig, VerificationConfig
from karenina_core.errors import RunDirectoryError
from karenina_core.testing import Reply, ScriptedBatches, ServedRequest

Run = Callable[..., Result]
COUNT = 4
CONFIG = """\
[run]
answering_models = ["m"]
parsing_models = ["m"]
[models.m]
model_name = "m"
interface = "openai_endpoint"
endpoint_base_url = "{}"
batch = true
"""


def script(request: ServedRequest) -> Any:
    return {"capital": "Paris"} if request.schema else "Paris."


@pytest.fixture
def server() -> Iterator[ScriptedBatches]:
    with ScriptedBatches(script, held=True) as found:
        yield found


@pytest.fixture
def left(server: ScriptedBatches, write_benchmark: Callable[..., Path]) -> str:
    """The directory of an interrupted run whose batch is at the provider."""
    folder = Path("out")
    source = write_benchmark(*(f"q{number}" for number in range(COUNT)))
    model = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=server.url, batch=True)
    config = VerificationConfig(answering_models=[model], parsing_models=[model])

    async def interrupted() -> None:
        app, control = Karenina.installed(), RunControl()
        prepared = prepare(Benchmark.load(source, app=app), config, app=app)
        run = asyncio.create_task(execute(prepared, Destination(run_dir=folder, source=source), control=control))
        await asyncio.to_thread(server.wait_for_batches, 1, 60.0)
        async with asyncio.timeout(60.0):
            while not at_provider(folder):
                await asyncio.sleep(0.02)
        control.drain()
        await asyncio.wait({run}, timeout=60.0)
        assert run.cancelled()

    asyncio.run(interrupted())
    return str(folder)


def at_provider(folder: Path) -> bool:
    try:
        return [batch["status"] for batch in read_status(folder).batches] == ["sent"]
    except RunDirectoryError:  # it has just begun
        return False


def printed(result: Result) -> str:
    return " ".join(result.stdout.split())


def test_the_provider_is_asked_how_far_a_batch_is(run: Run, server: ScriptedBatches, left: str) -> None:
    server.batches[0].status = "in_progress"
    server.batches[0].answers = ([b"", b""], [b""])
    result = run("batches", left)
    assert result.exit_code == 0, result.output
    assert "batch_0 openai_endpoint:m running: 2 of 4 calls made, 1 failed" in printed(result)
    (batch,) = json.loads(run("batches", left, "--json").stdout)["batches"]
    assert batch == {
        "model": "openai_endpoint:m",
        "provider_id": "batch_0",
        "calls": 4,
        "status": "running",
        "completed": 2,
        "failed": 1,
        "problem": None,
    }
    assert server.batches[0].status == "in_progress"


def test_a_cancelled_batch_is_paid_for_no_more_and_the_run_can_be_gone_on_with(
    run: Run, server: ScriptedBatches, left: str
) -> None:
    result = run("batches", left, "--cancel")
    assert result.exit_code == 0, result.output
    assert "batch_0 openai_endpoint:m cancelled: 0 of 4 calls made" in printed(result)
    assert server.batches[0].status == "cancelled"
    server.held = False
    assert run("resume", left, "--quiet").exit_code == 3
    assert "No batch" in run("batches", left).stdout
    assert server.count == 0
    assert run("resume", left, "--quiet").exit_code == 0
    assert server.count == 2 * COUNT


def test_a_batch_that_is_still_ending_says_so_and_one_that_is_over_is_left_alone(
    run: Run, server: ScriptedBatches, left: str
) -> None:
    slow = {"id": "batch_0", "status": "cancelling", "request_counts": {"total": 4, "completed": 3, "failed": 0}}
    server.fault = lambda method, path, number: Reply(body=json.dumps(slow).encode())
    assert "cancelling: 3 of 4 calls made" in printed(run("batches", left, "--cancel"))
    server.fault = lambda *asked: None
    server.batches[0].status = "completed"
    asked = len(server.asked)
    assert "ended: 0 of 4 calls made" in printed(run("batches", left, "--cancel"))
    assert ("POST", "/batches/batch_0/cancel") not in server.asked[asked:]


def test_a_batch_that_cannot_be_asked_for_is_named_with_the_reason(
    run: Run, server: ScriptedBatches, left: str
) -> None:
    server.fault = lambda *asked: Reply.error(401, "who are you?")
    result = run("batches", left, "--cancel")
    assert result.exit_code == 3
    assert "batch_0" in result.stdout
    assert "who are you?" in printed(result)


def test_nothing_is_cancelled_while_a_process_works_on_the_run(run: Run, server: ScriptedBatches, left: str) -> None:
    with RunLock(Path(left)):
        result = run("batches", left, "--cancel")
        assert (result.exit_code, "end it first" in result.stderr) == (1, True)
        assert run("batches", left).exit_code == 0
    assert server.batches[0].status == "validating"


def test_a_batch_whose_id_never_came_is_looked_for_by_its_name(run: Run, server: ScriptedBatches, left: str) -> None:
    async def forgotten() -> None:
        journal = Journal.open(Path(left))
        (row,) = journal.reader.batches()
        await journal.put_batch(evolve(row, provider_id="", status="sending"))
        await journal.aclose()

    asyncio.run(forgotten())
    assert "batch_0 openai_endpoint:m cancelled" in printed(run("batches", left, "--cancel"))
    server.batches.clear()
    result = run("batches", left)
    assert (result.exit_code, "(no id)" in result.stdout) == (3, True)
    assert "4 calls: the provider does not list it" in printed(result)


@pytest.mark.parametrize("command", [["resume", "out", "--fork", "new"], ["verify", "--reuse", "out", "--out", "new"]])
def test_calls_that_are_at_the_provider_are_not_sent_again_by_a_run_that_reuses_theirs(
    run: Run, server: ScriptedBatches, left: str, command: list[str]
) -> None:
    flags = []
    if command[0] == "verify":
        Path("b.toml").write_text(CONFIG.format(server.url), "utf-8")
        flags = ["capitals.jsonld", "--config", "b.toml"]
    server.held = False
    result = run(*command, *flags)
    assert result.exit_code == 1, result.output
    assert "4 calls in batches at the provider" in result.stderr
    assert f"type: karenina resume {left}\n" in result.stderr
    assert f"type: karenina batches {left} --cancel\n" in result.stderr
    assert (len(server.batches), Path("new").exists()) == (1, False)
    assert run("resume", left, "--quiet").exit_code == 0
    result = run(*command, *flags)
    assert result.exit_code == 0, result.output
    assert server.count == 2 * COUNT


@pytest.mark.parametrize("known", [True, False])
def test_a_run_whose_batches_were_cancelled_can_be_reused(
    run: Run, server: ScriptedBatches, left: str, known: bool
) -> None:
    if not known:
        server.batches.clear()
    assert run("batches", left, "--cancel").exit_code == (0 if known else 3)
    assert [batch["status"] for batch in read_status(Path(left)).batches] == ["ending"]
    server.held = False
    result = run("resume", left, "--fork", "new", "--quiet")
    assert result.exit_code == 0, result.output
    assert server.count == 2 * COUNT


def test_a_batch_that_could_not_be_asked_for_is_not_taken_to_be_cancelled(
    run: Run, server: ScriptedBatches, left: str
) -> None:
    server.fault = lambda *asked: Reply.error(401, "who are you?")
    assert run("batches", left, "--cancel").exit_code == 3
    assert run("resume", left, "--fork", "new").exit_code == 1


def test_a_run_that_waits_for_its_batches_is_waited_for(run: Run, server: ScriptedBatches, left: str) -> None:
    with RunLock(Path(left)):
        result = run("resume", left, "--fork", "new")
    assert result.exit_code == 1
    assert "wait until it ends" in result.stderr
    assert "type:" not in result.stderr, "neither could be done now"


def test_a_run_in_the_place_of_one_that_others_reused_does_not_stand_in_its_own_way(
    run: Run, server: ScriptedBatches, left: str
) -> None:
    Path("b.toml").write_text(CONFIG.format(server.url), "utf-8")
    server.held = False
    assert run("verify", "capitals.jsonld", "--config", "b.toml", "--out", "other", "--quiet").exit_code == 0
    for name, reused in (("other", left), (left, "other")):
        path = Path(name, "manifest.json")
        printed = json.loads(path.read_text("utf-8")) | {"reuse": [str(Path(reused).absolute())]}
        path.write_text(json.dumps(printed), "utf-8")
    result = run("resume", left, "--quiet")
    assert result.exit_code == 0, result.output


def test_an_interrupted_command_says_which_batches_stay_and_what_ends_them(
    run: Run, server: ScriptedBatches, write_benchmark: Callable[..., Path], forking: Any
) -> None:
    Path("b.toml").write_text(CONFIG.format(server.url), "utf-8")
    words = ("verify", write_benchmark("q0", "q1"), "--config", "b.toml", "--out", "out")
    process = forking.start(*words, ends=True)
    server.wait_for_batches(1, 60.0)
    deadline = time.monotonic() + 60
    while not at_provider(Path("out")):
        assert time.monotonic() < deadline
        time.sleep(0.02)
    process.send_signal(signal.SIGINT)
    assert process.wait(60) == 130, process.stderr
    assert "left at the provider: batch_0: 2 calls of openai_endpoint:m, sent\n" in process.stderr
    (cancel,) = re.findall(r"To cancel them, type: karenina (.*)", process.stderr)
    assert "batch_0 openai_endpoint:m cancelled" in printed(run(*cancel.split()))


def test_without_a_run_nobody_is_asked(run: Run, server: ScriptedBatches) -> None:
    assert run("batches", "nowhere").exit_code == 1
    assert server.asked == []
