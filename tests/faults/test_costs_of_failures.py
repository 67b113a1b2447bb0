"""What is refused costs nothing, and what may have cost something is told as unknown: wherever a cost is told."""

from __future__ import annotations

import importlib.util
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from karenina_cli.root import karenina
from karenina_cli.summary import cost_text, shown_cost

from karenina_core import ModelConfig
from karenina_core.testing import Reply, ScriptedServer, ServedRequest

SPEC = importlib.util.spec_from_file_location("cost_world", Path(__file__).with_name("fault_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader

PRICES: dict[str, Any] = {"input_cost_per_token": 0.0001, "output_cost_per_token": 0.0002}
CHANNELS = 4
ITEMS = 4


def judged_with(faults: dict[int, Callable[[], Reply]]) -> Callable[[ServedRequest], Any]:
    def script(request: ServedRequest) -> Any:
        fault = faults.get(world.number_of(request)) if request.model == "j" else None
        return fault() if fault else Reply(world.right(request), usage=(10, 5))

    return script


def a_run(folder: Path, server: ScriptedServer, **facts: Any) -> Any:
    """Every item's answer comes; items of which the judge fails are asked for twice."""
    here = world.World(folder, questions=ITEMS)
    here.run(here.config(server.url, model={**PRICES, "temperature": 0.0}, **facts))
    return here


def told(folder: Path, *command: str) -> str:
    done = CliRunner().invoke(karenina, [*command])
    assert done.exit_code == 0, done.output
    return done.output


@pytest.mark.parametrize(
    ("fault", "failed", "kind"),
    [
        (lambda: Reply.error(400), CHANNELS, "invalid_request"),
        (lambda: Reply.error(401), 1, "auth"),
        (lambda: Reply.error(429), 2, "rate_limited"),
        (lambda: Reply.error(500), 2, "server"),
        (Reply.reset, 2, "connection"),
    ],
    ids=["400", "401", "429", "500", "reset"],
)
def test_what_nobody_has_worked_on_costs_nothing_wherever_it_is_told(
    tmp_path: Path, fault: Callable[[], Reply], failed: int, kind: str
) -> None:
    with ScriptedServer(judged_with({1: fault})) as server:
        here = a_run(tmp_path / "run", server, concurrency=1)
    assert here.outcomes() == {"passed": ITEMS - 1, f"error({kind})": 1}
    replies = 2 * ITEMS - 1
    assert server.count == replies + failed, "every request is a reply or a failed attempt"
    world.invariants.assert_run(here.folder, alone=True)
    summary = here.manifest()["summary"]
    assert (summary["calls"], summary["failed_attempts"]) == (replies, failed)
    assert (summary["unknown_cost_attempts"], summary["usage_unavailable"]) == (0, False)
    assert summary["cost_usd"] == pytest.approx(replies * (10 * 0.0001 + 5 * 0.0002))
    assert f"{replies} made, 0 reused, {failed} attempt" in told(here.folder, "status", str(here.folder))
    shown = told(here.folder, "show", str(here.folder), "q1")
    assert re.search(rf"parsing +openai_endpoint:j +0 +{failed} +0 +0 +\$0\.0000\n", shown), shown
    assert re.search(rf"total +1 +{failed} +10 +5 +\$0\.0020\n", shown), shown


def test_what_may_be_on_the_bill_is_unknown_and_leaves_the_rest_known(tmp_path: Path) -> None:
    """What comes back is no reply, but somebody has made it."""
    with ScriptedServer(judged_with({1: Reply.garbage})) as server:
        here = a_run(tmp_path / "run", server, concurrency=1)
    records = world.invariants.assert_run(here.folder, alone=True)
    summary = here.manifest()["summary"]
    failed = server.count - (2 * ITEMS - 1)
    assert failed >= 1
    assert (summary["failed_attempts"], summary["unknown_cost_attempts"]) == (failed, failed)
    assert summary["cost_usd"] == pytest.approx((2 * ITEMS - 1) * 0.002)
    row = next(row for row in records if row["metadata"]["question_id"] == "q1")
    usage = row["generation"]["usage_metadata"]
    assert (usage["parsing"]["cost_usd"], usage["parsing"]["usage_unavailable"]) == (None, True)
    assert usage["total"]["cost_usd"] == pytest.approx(0.002)
    assert "$0.0140 (plus the unknown cost of" in told(here.folder, "status", str(here.folder))


def test_a_channel_that_is_refused_costs_nothing_and_the_reply_is_one_call(tmp_path: Path) -> None:
    """The ledger has the refusals. Which of the results met with them depends on what was asked at the same time: they
    are in none."""

    def script(request: ServedRequest) -> Any:
        refused = request.model == "j" and request.channel == "json_schema"
        return Reply.error(400) if refused else Reply(world.right(request), usage=(10, 5))

    with ScriptedServer(script) as server:
        here = a_run(tmp_path / "run", server, concurrency=1)
    assert here.outcomes() == {"passed": ITEMS}
    world.invariants.assert_run(here.folder)
    summary = here.manifest()["summary"]
    assert (summary["calls"], summary["failed_attempts"]) == (2 * ITEMS, 0)
    assert summary["paid"]["failed_attempts"] == server.count - 2 * ITEMS >= 1
    assert summary["cost_usd"] == pytest.approx(2 * ITEMS * 0.002)


def test_prices_that_nobody_knows_stay_unknown_where_others_cost_nothing(tmp_path: Path) -> None:
    with ScriptedServer(judged_with({1: lambda: Reply.error(400)})) as server:
        here = world.World(tmp_path / "run", questions=ITEMS)
        answers = ModelConfig(model_name="a", interface="openai_endpoint", endpoint_base_url=server.url)
        here.run(here.config(server.url, model=PRICES, answering_models=[answers]))
    world.invariants.assert_run(here.folder, alone=True)
    assert here.manifest()["summary"]["cost_usd"] is None


def test_the_least_that_was_paid_is_not_told_as_nothing() -> None:
    assert [shown_cost(cost) for cost in (None, 0.0, 0.0000213, 0.0001, 1.0)] == [
        *("unknown", "$0.0000", "< $0.0001", "$0.0001", "$1.0000")
    ]
    assert cost_text({"cost_usd": 0.0, "unknown_cost_attempts": 1}).startswith("unknown (")
    assert cost_text({"cost_usd": None, "unknown_cost_attempts": 2}) == "unknown"
