"""Calls that have a reply already and are sent once more in a batch: the run is interrupted while it is at its
provider, and gone on with. The provider is asked for the batch that it has, and for nothing twice."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_calls.limits.limiter import Gateway
from karenina_runs.batches.batches import SentBatch
from karenina_runs.batches.batching import Batching
from karenina_runs.batches.provider_batches import batches_there
from karenina_runs.config.config_file import RunConfig
from karenina_runs.execute.control import RunControl
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import Batch, JournalReader

from karenina_core import (
    Benchmark,
    ModelConfig,
    RepairSelection,
    VerificationConfig,
    VerificationResultSet,
    arepair_run,
    aresume_run,
    undo_repair,
)
from karenina_core.errors import ConfigError
from karenina_core.testing import ScriptedBatches, ServedRequest, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy

COUNT = 3
ONCE = RetryPolicy(server=AttemptPolicy(1), connection=AttemptPolicy(1))
Run = Callable[..., Awaitable[VerificationResultSet]]


class Judged:
    """A server whose judge says nothing that can be read until it is `able`, and a run of it in a directory."""

    def __init__(self, server: ScriptedBatches, run_dir: Path, questions: list[Any], names: set[str]) -> None:
        self.server, self.run_dir, self.able = server, run_dir, True
        models = [
            ModelConfig(
                model_name=name,
                interface="openai_endpoint",
                endpoint_base_url=server.url,
                batch=True,
                retry_policy=ONCE,
                max_retries=0,
            )
            for name in "mj"
        ]
        self.config = VerificationConfig(answering_models=models[:1], parsing_models=models[1:])
        self.benchmark = Benchmark(name="b", questions=questions)
        self.app = application(installed={*names, "openai_endpoint"})

    def reply(self, request: ServedRequest) -> Any:
        if request.schema is None:
            return "It is BCL2."
        return {"target": "BCL2"} if self.able else {"nothing": 1}

    def verified(self) -> list[str]:
        return self._told(self.benchmark.arun_verification(self.config, run_dir=self.run_dir, app=self.app))

    def gone_on_with(self, work: Run, *arguments: Any, **options: Any) -> list[str]:
        return self._told(self._begun(work, *arguments, **options))

    def interrupted(self, work: Run, *arguments: Any, **options: Any) -> None:
        """Drain the run once its batch is at the provider, which holds it."""
        self.server.held = True
        before = len(self.server.batches)

        async def begun() -> None:
            control = RunControl()
            run = asyncio.ensure_future(self._begun(work, *arguments, control=control, **options))
            await asyncio.to_thread(self.server.wait_for_batches, before + 1, 60.0)
            async with asyncio.timeout(60.0):
                while self.statuses().count("sent") != 1:
                    await asyncio.sleep(0.02)
            control.drain()
            await asyncio.wait({run}, timeout=60.0)
            assert run.cancelled()

        asyncio.run(begun())
        self.server.held = False

    def cancelled(self) -> list[str]:
        """Have the batches at the provider cancelled; what it says of them then."""
        configured = RunConfig(app=self.app, config=self.config)
        there = asyncio.run(batches_there(self.run_dir, lambda manifest: configured, cancel=True))
        return [batch.state.status for batch in there if batch.state is not None]

    def statuses(self) -> list[str]:
        with JournalReader.open(self.run_dir) as reader:
            return [batch.status for batch in reader.batches()]

    def _begun(self, work: Run, *arguments: Any, **options: Any) -> Awaitable[VerificationResultSet]:
        given = {"benchmark": self.benchmark, "config": self.config, "app": self.app}
        return work(self.run_dir, *arguments, **given, **options)

    def _told(self, run: Awaitable[VerificationResultSet]) -> list[str]:
        async def awaited() -> list[str]:
            return [str(result.outcome) for result in await run]

        return asyncio.run(awaited())


@pytest.fixture
def judged(make_question: Callable[..., Any], plugin_names: set[str], tmp_path: Path) -> Any:
    def script(request: ServedRequest) -> Any:
        return found.reply(request)

    with ScriptedBatches(script) as server:
        found = Judged(server, tmp_path / "run", [make_question(n) for n in range(COUNT)], plugin_names)
        yield found


@pytest.mark.parametrize(("mode", "calls"), [("replay", COUNT), ("live", 2 * COUNT)])
def test_a_repair_that_is_interrupted_pays_once_for_what_it_has_sent(judged: Judged, mode: str, calls: int) -> None:
    assert judged.verified() == ["passed"] * COUNT
    judged.interrupted(arepair_run, RepairSelection(everything=True), mode=mode)
    assert judged.gone_on_with(aresume_run) == ["passed"] * COUNT
    assert [len(batch.calls) for batch in judged.server.batches] == [COUNT] * (2 + calls // COUNT)
    assert set(judged.statuses()) == {"fetched"}


@pytest.mark.parametrize("mode", ["replay", "live"])
def test_a_repair_is_not_taken_back_while_a_batch_of_it_may_still_be_made(judged: Judged, mode: str) -> None:
    assert judged.verified() == ["passed"] * COUNT
    judged.interrupted(arepair_run, RepairSelection(everything=True), mode=mode)
    before = {path: path.read_bytes() for path in judged.run_dir.rglob("*") if path.is_file()}
    with pytest.raises(ConfigError, match=rf"{COUNT} calls of the repair may still be made") as caught:
        undo_repair(judged.run_dir)
    assert f"karenina batches {judged.run_dir} --cancel" in str(caught.value)
    assert f"karenina resume {judged.run_dir}" in str(caught.value)
    after = {path: path.read_bytes() for path in judged.run_dir.rglob("*") if path.is_file()}
    assert {path.name for path in after if after[path] != before[path]} <= {"run.lock"}
    judged.server.held = True
    assert judged.cancelled() == ["cancelled"]
    assert judged.statuses()[-1] == "ending"
    undo_repair(judged.run_dir)
    assert judged.statuses() == ["fetched"] * 2
    assert judged.gone_on_with(aresume_run) == ["passed"] * COUNT


def test_a_batch_that_was_asked_to_end_is_still_fetched_when_the_repair_is_gone_on_with(judged: Judged) -> None:
    assert judged.verified() == ["passed"] * COUNT
    judged.interrupted(arepair_run, RepairSelection(everything=True))
    batch = judged.server.batches[-1]
    assert judged.cancelled() == ["ended"]  # before it could be cancelled
    assert judged.gone_on_with(aresume_run) == ["passed"] * COUNT
    assert judged.server.batches[-1] is batch
    assert set(judged.statuses()) == {"fetched"}
    undo_repair(judged.run_dir)


def test_judges_that_are_asked_again_because_they_said_nothing_readable_are_paid_for_once(judged: Judged) -> None:
    judged.able = False
    assert judged.verified() == ["error(judge)"] * COUNT
    judged.able = True
    before = len(judged.server.batches)
    judged.interrupted(aresume_run, retry_failed=True)
    assert judged.gone_on_with(aresume_run, retry_failed=True) == ["passed"] * COUNT
    assert [len(batch.calls) for batch in judged.server.batches[before:]] == [COUNT]
    assert set(judged.statuses()) == {"fetched"}


def test_a_call_that_failed_in_one_batch_is_taken_from_the_one_it_was_sent_in_again(tmp_path: Path) -> None:
    """Both are at the provider, as when another call of the first is still to be taken."""

    def made(number: int, *keys: str) -> Batch:
        names = tuple((key, 0) for key in keys)
        return Batch(id=Batch.id_of(number, 0), model="m", provider_id=f"b{number}", status="sent", keys=names)

    async def taken_up() -> None:
        journal = Journal.open(tmp_path)
        for row in (made(1, "x", "y"), made(2, "y"), made(3, "z")):
            await journal.put_batch(row)
        batching = Batching(Gateway(VerificationConfig()))
        batching.keep_in(journal)

        def holds(key: str) -> SentBatch:
            return batching.names[key, 0]

        assert [holds(key).row.provider_id for key in "xyz"] == ["b1", "b2", "b3"]
        assert [set(holds(key).open) for key in "xyz"] == [{("x", 0)}, {("y", 0)}, {("z", 0)}]
        await batching.aclose()
        await journal.aclose()

    asyncio.run(taken_up())


def test_batches_are_told_in_the_order_in_which_they_were_made() -> None:
    ids = [Batch.id_of(number, 10 * number) for number in range(1, 200)]
    assert ids == sorted(ids)
    assert [Batch(id=id_, model="", provider_id="", status="").calls_before for id_ in ids[:2]] == [10, 20]
    assert all(len(id_) <= 64 for id_ in (*ids, Batch.id_of(999_999, 10**9)))
