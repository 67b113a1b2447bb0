"""Models that are asked in batches, and whose provider wants to be left alone for long."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_calls.limits.limiter import Gateway
from karenina_runs.batches import batching
from karenina_runs.batches.batches import SentBatch
from karenina_runs.batches.batching import Batching
from karenina_runs.journal.reader import Batch, JournalReader
from karenina_runs.resume import resume_run

from karenina_core import Benchmark, Karenina, ModelConfig, VerificationConfig
from karenina_core.errors import PortError
from karenina_core.testing import Reply, ScriptedBatches, ServedRequest, application

Make = Callable[..., Any]


def answered(request: ServedRequest) -> Any:
    return {"target": "BCL2"} if request.schema is not None else "It is BCL2."


@pytest.mark.parametrize("path", ["/files", "/batches"])
def test_a_provider_that_takes_no_batch_for_long_costs_no_item(
    make_question: Make, plugin_names: set[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, path: str
) -> None:
    """It is asked once, however many batches there are."""
    monkeypatch.setattr(batching, "SETTLE", 0.1)
    well = False

    def fault(method: str, asked: str, number: int) -> Reply | None:
        refuses = not well and (method, asked) == ("POST", path)
        return Reply.error(429, "later", retry_after=7200) if refuses else None

    def app() -> Karenina:
        return application(installed={*plugin_names, "openai_endpoint"})

    with ScriptedBatches(answered, fault=fault) as server:
        about: dict[str, Any] = {"interface": "openai_endpoint", "endpoint_base_url": server.url, "batch": True}
        models = [ModelConfig(model_name=name, batch_max_calls=2, **about) for name in "aj"]
        config = VerificationConfig(answering_models=models[:1], parsing_models=models[1:])
        benchmark = Benchmark(name="b", questions=[make_question(number) for number in range(12)])
        first = app()
        results = benchmark.run_verification(config, run_dir=tmp_path / "run", app=first)
        first.loop.close()
        assert len(results) == 0
        assert Counter(server.asked)["POST", path] == 1
        assert "asks for a pause of 7200 s (until " in results.notes[-1]
        assert "longer than a batch waits (3600 s)" in results.notes[-1]
        well, second = True, app()
        results = resume_run(tmp_path / "run", benchmark=benchmark, config=config, app=second)
        second.loop.close()
        assert Counter(str(result.outcome) for result in results) == {"passed": 12}
        assert Counter(request.model for request in server.requests) == {"a": 12, "j": 12}
    with JournalReader.open(tmp_path / "run") as reader:
        assert {batch.status for batch in reader.batches()} == {"refused", "fetched"}


def test_nobody_sleeps_longer_than_a_batch_is_waited_for() -> None:
    class Busy:
        async def poll(self, provider_id: str) -> Any:
            raise PortError("busy", kind="rate_limited", status=429, retry_after=864_000.0)

    async def main() -> tuple[list[float], Batching]:
        slept: list[float] = []

        async def sleep(seconds: float) -> None:
            slept.append(seconds)

        way = Batching(Gateway(VerificationConfig()), sleep=sleep)
        row = Batch(id="x", model="m", provider_id="batch_1", status="sent", keys=())
        batch = SentBatch(way, row, set())
        model = ModelConfig(model_name="m", batch=True)
        batch.start(Busy(), model)  # type: ignore[arg-type] # it does nothing else
        async with asyncio.timeout(60.0):
            while not way.gateway.is_closed(model):
                await asyncio.sleep(0.01)
        return slept, way

    slept, way = asyncio.run(main())
    assert slept == []
    assert "karenina resume fetches it" in way.remarks[0]
