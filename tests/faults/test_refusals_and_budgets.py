"""Providers that refuse what comes too fast, and runs that may spend only so much."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field
from karenina_runs.folder.status import read_status

from karenina_core import ModelConfig
from karenina_core.errors import ConfigError
from karenina_core.ports import PortCapabilities
from karenina_core.testing import Reply, ScriptedLLM, ScriptedServer, ServedRequest
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.message import UsageMetadata

SPEC = importlib.util.spec_from_file_location("fault_world", Path(__file__).with_name("fault_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader

PATIENT = RetryPolicy(rate_limited=AttemptPolicy(100, 0.05, 1.0))
PRICES: dict[str, Any] = {"input_cost_per_token": 0.001, "output_cost_per_token": 0.002}


@define(eq=False)
class Metered:
    """A server that takes so many requests a second, fewer for a while, and refuses the rest."""

    rate: Callable[[float], float]
    retry_after: float | None
    burst: float = 30.0
    refused: int = 0
    first: float | None = None
    """When the first request came, on the clock of `time.monotonic`."""
    begun: float = field(factory=time.monotonic)
    _level: float = 30.0
    _at: float = 0.0

    def __call__(self, request: ServedRequest) -> Any:
        self.first = self.first or time.monotonic()
        now = time.monotonic() - self.begun
        while self._at < now:
            step = min(0.01, now - self._at)
            self._level = min(self.burst, self._level + self.rate(self._at) * step)
            self._at += step
        if self._level < 1.0:
            self.refused += 1
            return Reply.error(429, retry_after=self.retry_after)
        self._level -= 1.0
        return Reply(world.right(request), latency=0.05)


@pytest.mark.parametrize("retry_after", [0.4, None], ids=["with Retry-After", "without"])
def test_a_provider_that_refuses_and_then_takes_less_is_followed(
    tmp_path: Path, long: bool, retry_after: float | None
) -> None:
    """That every wait is kept, nothing is lost, and few attempts are wasted. How long it takes is bounded where the
    machine plays no part: on the virtual clock (`test_gateway_simulated`), and in the full form.

    The ideal is that of somebody who knows the rate at every moment. Where no time to wait is asked for, the full form
    takes 1.01 to 1.03 times as long on a quiet machine, and with `Retry-After` 1.07 to 1.10 times: for six seconds
    after the provider takes more again, the run stays below what was too much, before it finds that out. What comes
    before the first request is no part of it: up to a second."""
    questions, rate, drop = (900, 60.0, (10.0, 15.0)) if long else (100, 60.0, (1.5, 2.0))
    here = world.World(tmp_path / "run", questions=questions)
    served = Metered(lambda at: rate / 3 if drop[0] <= at < drop[1] else rate, retry_after)
    with ScriptedServer(served) as server:
        model = ModelConfig(
            model_name="m", interface="openai_endpoint", endpoint_base_url=server.url, request_timeout=60.0
        )
        config = here.config(
            server.url,
            answering_models=[model],
            parsing_models=[evolve(model, temperature=0.0)],
            retry_policy=PATIENT,
            retry_max_elapsed_seconds=600.0,
            concurrency=100 if long else 40,
        )
        served.begun = time.monotonic()
        here.run(config)
        wall = time.monotonic() - (served.first or served.begun)
        attempts = server.count
        assert here.outcomes() == {"passed": questions}
        here.check(config, server)
    ideal = (2 * questions - served.burst) / rate + (drop[1] - drop[0]) * 2 / 3
    wasted = served.refused / attempts
    print(f"{wall:.1f} s, ideal {ideal:.1f} s ({wall / ideal:.2f}); {attempts} attempts, {wasted:.0%} wasted")
    assert here.watch.undercut == []
    assert attempts == 2 * questions + served.refused
    assert served.refused > 0
    assert wasted <= 0.35
    assert wall <= (1.15 * ideal if long else 15.0), "the machine's own part included; see the simulated clock for ours"


def test_a_provider_that_takes_less_than_one_call_at_a_time_loses_nothing_with_the_default_policy(
    tmp_path: Path, long: bool
) -> None:
    """Two models that it limits together. The times are bounded where the machine plays a small part: in the full form,
    and on the virtual clock (`test_gateway_rates`)."""
    takes_few(tmp_path / "three", 6, rate=3.0, retry_after=0.5)
    if long:
        takes_few(tmp_path / "one", 20, rate=1.0, retry_after=1.0, most=1.4)
        takes_few(tmp_path / "long waits", 20, rate=1.0, retry_after=5.0, most=1.4)
        takes_few(tmp_path / "sixty", 300, rate=60.0, burst=6.0, retry_after=1.0, most=1.5)


def takes_few(
    folder: Path, questions: int, *, rate: float, retry_after: float, burst: float = 1.0, most: float | None = None
) -> None:
    here = world.World(folder, questions=questions)
    served = Metered(lambda at: rate, retry_after, burst)
    served._level = burst
    with ScriptedServer(served) as server:
        facts: dict[str, Any] = {"interface": "openai_endpoint", "endpoint_base_url": server.url}
        config = here.config(
            server.url,
            answering_models=[ModelConfig(model_name="answers", **facts)],
            parsing_models=[ModelConfig(model_name="judges", temperature=0.0, **facts)],
            retry_policy=RetryPolicy(),
            concurrency=8,
        )
        served.begun = time.monotonic()
        here.run(config)
        wall = time.monotonic() - (served.first or served.begun)
        here.check(config, server)
        assert here.outcomes() == {"passed": questions}
        assert server.count == 2 * questions + served.refused
    ideal, wasted = (2 * questions - burst) / rate, served.refused / server.count
    print(f"{wall:.1f} s, ideal {ideal:.1f} s ({wall / ideal:.2f}); {server.count} attempts, {wasted:.0%} wasted")
    assert served.refused > 0
    if most is not None:
        assert wasted <= 0.4
        assert wall <= most * ideal


def test_a_server_that_lets_calls_wait_answers_all_of_them_and_the_run_says_what_helps(tmp_path: Path) -> None:
    """As a local server does that works on one call at a time: it never refuses."""
    here, timeout = world.World(tmp_path / "run", questions=4), 3.0
    slot = asyncio.Lock()

    async def one_at_a_time(request: ServedRequest) -> Any:
        came = time.monotonic()
        async with slot:
            if time.monotonic() - came < timeout:  # else whoever asked has gone
                await asyncio.sleep(0.6 * timeout)
            return Reply(world.right(request))

    with ScriptedServer(one_at_a_time) as server:
        facts: dict[str, Any] = {"interface": "openai_endpoint", "endpoint_base_url": server.url}
        model = ModelConfig(model_name="smol", request_timeout=timeout, **facts)
        config = here.config(
            server.url,
            answering_models=[model],
            parsing_models=[evolve(model, temperature=0.0)],
            retry_policy=RetryPolicy(),
            concurrency=8,
        )
        notes = here.run(config).notes
        assert here.outcomes() == {"passed": 4}
    assert any("timed out, with up to" in note and "--concurrency 1" in note for note in notes)
    assert any("--concurrency 1" in note for note in read_status(tmp_path / "run").notes)
    lanes = here.manifest()["processes"][-1]["lanes"].values()
    assert "timed_out" in {moment["why"] for lane in lanes for moment in lane}


def costs(server: ScriptedServer) -> Counter[str]:
    return Counter(f"{world.judged(request)} {request.text}" for request in server.requests)


@pytest.mark.parametrize("unit", ["usd", "tokens"])
def test_a_budget_that_is_used_up_ends_the_run_and_with_more_it_is_finished(
    tmp_path: Path, long: bool, unit: str
) -> None:
    questions, concurrency = (1000, 50) if long else (30, 6)
    here = world.World(tmp_path / "run", questions=questions)
    used = (150, 25)
    price = used[0] * PRICES["input_cost_per_token"] + used[1] * PRICES["output_cost_per_token"]
    each = price if unit == "usd" else sum(used)
    budget = each * questions * 0.7 + each / 2
    spent: dict[str, Any] = {"budget_usd": budget} if unit == "usd" else {"budget_tokens": int(budget)}
    with ScriptedServer(lambda request: Reply(world.right(request), usage=used, latency=0.02)) as server:
        config = here.config(server.url, model=PRICES, concurrency=concurrency, **spent)
        results = here.run(config)
        paid = server.count
        assert here.manifest()["status"] == "interrupted"
        assert any(f"--budget-{unit}" in note for note in results.notes)
        assert set(here.outcomes()) == {"passed", "error(budget)"}
        assert here.outcomes()["error(budget)"] <= concurrency
        assert budget <= paid * each <= budget + server.peak * each, "no more than the calls under way too much"
        total = here.manifest()["ledger"]["total"]
        assert total["calls"] == paid
        assert total["cost_usd"] == pytest.approx(paid * price)
        more = evolve(config, **{name: value * 10 for name, value in spent.items()})
        here.resume(more)
        assert here.outcomes() == {"passed": questions}
        assert set(costs(server).values()) == {1}, "what was paid for is not paid for again"
        assert here.manifest()["ledger"]["total"]["cost_usd"] == pytest.approx(2 * questions * price)
        here.check(more, server)


@pytest.mark.parametrize("unit", ["usd", "tokens"])
def test_what_nobody_told_is_still_spent_when_the_run_is_gone_on_with(tmp_path: Path, unit: str) -> None:
    here = world.World(tmp_path / "run", questions=12)
    spent: dict[str, Any] = {"budget_usd": 12.0} if unit == "usd" else {"budget_tokens": 6000}
    with ScriptedServer(lambda request: Reply(world.right(request), usage=None)) as server:
        config = here.config(server.url, model=PRICES, concurrency=2, **spent)
        first = here.run(config).notes
        paid = server.count
        assert 4 <= paid <= 8
        for _ in range(2):
            assert here.resume(config).notes[-1] == first[-1], "it says the same"
        assert server.count == paid, "the budget is one for the whole run"
        more = evolve(config, **{name: value * 10 for name, value in spent.items()})
        here.resume(more)
        assert here.outcomes() == {"passed": 12}
        here.check(more, server)


def test_replies_of_no_use_count_against_a_budget_and_are_told_apart(tmp_path: Path) -> None:
    here = world.World(tmp_path / "run", questions=30)
    with ScriptedServer(lambda request: Reply.garbage()) as server:
        config = here.config(server.url, model=PRICES, concurrency=1, budget_tokens=4000)
        notes = here.run(config).notes
        total = here.manifest()["ledger"]["total"]
        assert "budget of 4000 tokens is used up" in notes[-1]
        assert f"in {server.count} calls" in notes[-1]
        assert (total["failed"], total["unknown_cost_attempts"]) == (server.count, server.count)
        assert (total["calls"], total["cost_usd"]) == (0, 0.0)
        assert 3 <= server.count <= 5


def test_a_price_that_nobody_knows_is_unknown_and_ends_a_budget_of_dollars(tmp_path: Path) -> None:
    with ScriptedServer(world.right) as server:
        here = world.World(tmp_path / "refused", questions=4)
        with pytest.raises(ConfigError, match="input_cost_per_token"):
            here.run(here.config(server.url, budget_usd=1.0))
        assert server.count == 0
        here = world.World(tmp_path / "unknown", questions=4)
        config = here.config(server.url)
        here.run(config)
        total = here.manifest()["ledger"]["total"]
        assert (total["cost_usd"], total["unknown_costs"], total["known_cost_usd"]) == (None, 8, 0.0)
        here.check(config, server)


def test_a_price_that_an_adapter_promises_and_does_not_tell_ends_the_run_after_one_call(tmp_path: Path) -> None:
    model = ScriptedLLM(lambda call: "It is BCL2.", usage=UsageMetadata(10, 5, 15, None))
    model.capabilities = PortCapabilities(output_channels=("text",), reports_cost=True)
    here = world.World(tmp_path / "run", questions=20, plugins=(model.adapter("silent"),))
    silent = [ModelConfig(model_name="s", interface="silent")]
    config = here.config("http://host", answering_models=silent, parsing_models=silent, budget_usd=5.0)
    results = here.run(config)
    assert len(model.calls) == 1
    assert any("the cost of calls" in note for note in results.notes)
    assert here.manifest()["status"] == "interrupted"
    assert here.manifest()["ledger"]["total"]["cost_usd"] is None
