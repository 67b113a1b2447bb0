"""What a run may spend, on the command line, in files and in the environment."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from karenina_runs.config.config_file import Flags, configure, environment_layer, settings_layer

from karenina_core.testing import ScriptedServer

Run = Callable[..., Result]
Files = Callable[..., Path]


def city(request: Any) -> Any:
    return {"capital": "Paris"} if request.schema else "The capital is Paris."


def priced(role: str) -> str:
    return f"models.{role}={{ model_name = '{role}', input_cost_per_token = 0.001, output_cost_per_token = 0.001 }}"


def test_a_budget_in_tokens_ends_a_run_and_the_summary_says_how_to_go_on(
    run: Run, write_benchmark: Files, served: Any
) -> None:
    with ScriptedServer(city) as server:
        given = ["--budget-tokens", "1", "--concurrency", "1", "--json"]
        result = run("verify", write_benchmark("q0", "q1", "q2"), *served(server.url), *given)
        assert server.count == 1
    assert result.exit_code == 3, result.stderr
    document = json.loads(result.stdout)
    assert document["outcomes"] == {"error": 1}  # what is not begun has no result: `karenina resume` begins it
    assert document["models"][0]["errors"] == {"budget": 1}
    assert "--budget-tokens" in str(document["notes"])


def test_a_budget_in_dollars_needs_prices(run: Run, write_benchmark: Files, served: Any) -> None:
    with ScriptedServer(city) as server:
        result = run("verify", write_benchmark("q0"), *served(server.url), "--budget-usd", "0.5")
        assert server.count == 0
    assert result.exit_code == 1
    assert "input_cost_per_token" in result.stderr


def test_with_prices_a_budget_in_dollars_holds_and_the_cost_is_known(
    run: Run, write_benchmark: Files, served: Any
) -> None:
    names = ("the-answering-model", "the-parsing-model")
    with ScriptedServer(city) as server:
        benchmark = write_benchmark("q0", "q1", "q2")
        sets = [part for name in names for part in ("--set", priced(name))]
        whole = run("verify", benchmark, *served(server.url), *sets, "--json")
        assert whole.exit_code == 0, whole.stderr
        cost, calls = json.loads(whole.stdout)["cost_usd"], server.count
        assert cost > 0
        given = ["--budget-usd", str(cost / 3), "--concurrency", "1", "--json"]
        part = run("verify", benchmark, *served(server.url), *sets, *given)
        assert part.exit_code == 3, part.stderr
        assert 2 <= server.count - calls < calls


@pytest.mark.parametrize(
    "given", [("--budget-usd", "0"), ("--budget-usd", "much"), ("--budget-tokens", "0"), ("--budget-tokens", "1.5")]
)
def test_a_budget_of_nothing_is_none(run: Run, write_benchmark: Files, served: Any, given: tuple[str, str]) -> None:
    assert run("verify", write_benchmark("q0"), *served("http://127.0.0.1:9"), *given).exit_code == 2


SETTINGS: Mapping[str, tuple[str, Any]] = {
    "max_concurrent_requests": ("7", 7),
    "answerer_concurrency_limits": ("{ small = 2 }", {"small": 2}),
    "budget_usd": ("2.5", 2.5),
    "budget_tokens": ("5000", 5000),
}


@pytest.mark.parametrize("name", SETTINGS)
def test_limits_come_from_settings_and_from_the_environment(name: str) -> None:
    text, value = SETTINGS[name]
    for layer in (settings_layer([f"run.{name}={text}"]), environment_layer({f"KARENINA_{name.upper()}": text})):
        config = configure([layer], Flags(), models=False)
        assert getattr(config, name) == value


def test_one_number_is_a_limit_for_every_answering_model() -> None:
    layer = settings_layer(["run.answerer_concurrency_limits=3"])
    assert configure([layer], Flags(), models=False).answerer_concurrency_limits == 3
