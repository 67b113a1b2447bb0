"""`karenina batches`: how far batches at providers are, and what a user types who will not pay for more."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from click.testing import Result

from karenina_core import Benchmark, Karenina, ModelConfig, VerificationConfig
from karenina_core.errors import RunDirectoryError
from karenina_core.run.control import RunControl
from karenina_core.run.journal import Journal
from karenina_core.run.owner import RunLock
from karenina_core.run.prepare import prepare
from karenina_core.run.runner import Destination, execute
from karenina_core.run.standing import standing
from karenina_core.testing import Reply, ScriptedBatches, ServedRequest

Run = Callable[..., Result]
COUNT = 4


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
        return [batch["status"] for batch in standing(folder).batches] == ["sent"]
    except RunDirectoryError:  # it has just begun
        return False


def told(result: Result) -> str:
    return " ".join(result.stdout.split())


def test_the_provider_is_asked_how_far_a_batch_is(run: Run, server: ScriptedBatches, left: str) -> None:
    server.batches[0].status = "in_progress"
    server.batches[0].answers = ([b"", b""], [b""])
    result = run("batches", left)
    assert result.exit_code == 0, result.output
    assert "batch_0 openai_endpoint:m running: 2 of 4 calls made, 1 failed" in told(result)
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
    assert "batch_0 openai_endpoint:m cancelled: 0 of 4 calls made" in told(result)
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
    assert "cancelling: 3 of 4 calls made" in told(run("batches", left, "--cancel"))
    server.fault = lambda *asked: None
    server.batches[0].status = "completed"
    asked = len(server.asked)
    assert "ended: 0 of 4 calls made" in told(run("batches", left, "--cancel"))
    assert ("POST", "/batches/batch_0/cancel") not in server.asked[asked:]


def test_a_batch_that_cannot_be_asked_for_is_named_with_the_reason(
    run: Run, server: ScriptedBatches, left: str
) -> None:
    server.fault = lambda *asked: Reply.error(401, "who are you?")
    result = run("batches", left, "--cancel")
    assert result.exit_code == 3
    assert "batch_0" in result.stdout
    assert "who are you?" in told(result)


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
    assert "batch_0 openai_endpoint:m cancelled" in told(run("batches", left, "--cancel"))
    server.batches.clear()
    result = run("batches", left)
    assert (result.exit_code, "(no id)" in result.stdout) == (3, True)
    assert "4 calls: the provider does not list it" in told(result)


def test_without_a_run_nobody_is_asked(run: Run, server: ScriptedBatches) -> None:
    assert run("batches", "nowhere").exit_code == 1
    assert server.asked == []
