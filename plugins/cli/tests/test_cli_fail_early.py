"""Runs that stop early: a model that never answers, `--fail-fast`, `--max-errors`; and how they continue."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from karenina_core.testing import Reply, ScriptedServer

Run = Callable[..., Result]
Files = Callable[..., Path]
MANY = [f"q{number}" for number in range(60)]
SOME = MANY[:24]
IMPATIENT = "{ connection = { max_attempts = 3, min_wait = 0.0, max_wait = 0.001 } }"


def city(request: Any) -> Any:
    return {"capital": "Paris"} if request.schema else "The capital is Paris."


class Server:
    """A scripted server that is down until it is `up`: every connection breaks. `count` counts requests."""

    def __init__(self) -> None:
        self.up = False
        self.server = ScriptedServer(lambda request: city(request) if self.up else Reply.reset())

    @property
    def url(self) -> str:
        return self.server.url

    @property
    def count(self) -> int:
        return self.server.count


@pytest.fixture
def dead() -> Iterator[Server]:
    found = Server()
    with found.server:
        yield found


def quick(*models: str) -> list[str]:
    return [part for name in models for part in ("--set", f"models.{name}.retry_policy={IMPATIENT}")]


def test_a_dead_server_costs_some_ten_requests(run: Run, write_benchmark: Files, served: Any, dead: Server) -> None:
    options = quick("the-answering-model", "the-parsing-model")
    result = run("verify", write_benchmark(*SOME), *served(dead.url), *options, "--out", "out", "--json")
    assert result.exit_code == 3, result.stderr
    assert 5 <= dead.count <= 12, "those that are under way when the model is given up are not called back"
    (why,) = [line for line in result.stderr.splitlines() if line.startswith("stopped: ")]
    assert "cannot be reached" in why
    assert "see whether its server runs" in why
    (line,) = [line for line in result.stderr.splitlines() if "to continue, type: karenina " in line]
    assert json.loads(result.stdout)["num_results"] <= 5
    dead.up, before = True, dead.count
    again = run(*line.partition("type: karenina ")[2].split(), "--json")
    assert dead.count - before == 2 * len(SOME)
    assert again.exit_code == 0, again.stderr
    assert json.loads(again.stdout)["outcomes"] == {"passed": len(SOME)}


def test_nobody_at_the_address_costs_ten_attempts_at_most(run: Run, write_benchmark: Files, served: Any) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        url = f"http://127.0.0.1:{taken.getsockname()[1]}/v1"
    options = quick("the-answering-model", "the-parsing-model")
    result = run("verify", write_benchmark(*MANY), *served(url), *options)
    assert result.exit_code == 3, result.stderr
    (count,) = re.findall(r"stopped: .* \((\d+) of \1 requests failed", result.stderr)
    assert 5 <= int(count) <= 10


@pytest.mark.parametrize(("status", "words"), [(401, "give it a key that is valid"), (404, "the name of the model")])
def test_a_wrong_key_and_an_unknown_model_cost_ten_requests_at_most(
    status: int, words: str, run: Run, write_benchmark: Files, served: Any
) -> None:
    broken = [True]

    def say(request: Any) -> Any:
        return Reply.error(status, "that is wrong") if broken[0] else city(request)

    with ScriptedServer(say) as server:
        result = run("verify", write_benchmark(*SOME), *served(server.url), "--out", "out")
        assert result.exit_code == 3, result.stderr
        assert 3 <= server.count <= 10
        (why,) = [line for line in result.stderr.splitlines() if line.startswith("stopped: ")]
        assert words in why
        assert "that is wrong" in why
        line = next(line for line in result.stderr.splitlines() if "to continue, type: karenina " in line)
        broken[0], before = False, server.count
        again = run(*line.partition("type: karenina ")[2].split(), "--json")
        assert server.count - before == 2 * len(SOME)
    assert json.loads(again.stdout)["outcomes"] == {"passed": len(SOME)}


@pytest.mark.parametrize(
    ("reply", "limit", "words"),
    [
        (Reply.error(500, "out of memory"), 30, "has only failed"),
        (Reply("", latency=0.5), 0.05, "has answered nothing in time"),
    ],
    ids=["500", "timeouts"],
)
def test_a_server_that_only_fails_or_is_too_slow_costs_few_requests(
    reply: Reply, limit: float, words: str, run: Run, write_benchmark: Files, served: Any
) -> None:
    broken = [True]
    retries = "{ server = { max_attempts = 2, max_wait = 0.001 }, timeout = { max_attempts = 2, max_wait = 0.001 } }"
    with ScriptedServer(lambda request: reply if broken[0] else city(request)) as server:
        result = run(
            *("verify", write_benchmark(*MANY), *served(server.url), "--out", "out", "--json"),
            *("--set", f"run.retry_policy={retries}", "--set", f"run.request_timeout={limit}"),
        )
        assert result.exit_code == 3, result.stderr
        assert 5 <= server.count <= 12
        (why,) = [line for line in result.stderr.splitlines() if line.startswith("stopped: ")]
        assert words in why
        line = next(line for line in result.stderr.splitlines() if "to continue, type: karenina " in line)
        broken[0] = False
        again = run(*line.partition("type: karenina ")[2].split(), "--set", "run.request_timeout=30", "--json")
    assert json.loads(again.stdout)["outcomes"] == {"passed": len(MANY)}, again.stderr


def test_a_run_whose_items_have_all_failed_says_why_too(run: Run, write_benchmark: Files, served: Any) -> None:
    with ScriptedServer(lambda request: Reply.error(401)) as server:
        result = run("verify", write_benchmark("q0", "q1", "q2"), *served(server.url), "--out", "out")
    assert result.exit_code == 3
    assert "stopped: openai_endpoint:the-answering-model at" in result.stderr
    assert "3 items ended in an error; to try again, type: karenina resume out\n" in result.stderr


def test_of_two_models_the_one_that_answers_goes_on(
    run: Run, write_benchmark: Files, served: Any, dead: Server
) -> None:
    ids = SOME[:20]
    with ScriptedServer(city) as server:
        facts = f"model_name = 'dead', interface = 'openai_endpoint', endpoint_base_url = '{dead.url}'"
        result = run(
            *("verify", write_benchmark(*ids), *served(server.url)[6:], "--out", "out", "--json"),
            *("--set", f"models.dead={{ {facts}, retry_policy = {IMPATIENT} }}", "--answering-model", "dead"),
            *("--set", f"models.well={{ {facts.replace(dead.url, server.url)} }}", "--answering-model", "well"),
        )
        assert server.count == 2 * len(ids), result.stderr
    assert dead.count <= 10
    assert json.loads(result.stdout)["outcomes"]["passed"] == len(ids)
    assert result.exit_code == 3


def test_no_answers_are_paid_for_where_the_judge_is_dead(
    run: Run, write_benchmark: Files, served: Any, dead: Server
) -> None:
    """But those that are under way until that is known."""
    with ScriptedServer(city) as server:
        result = run(
            *("verify", write_benchmark(*SOME), *served(server.url), "--parsing-base-url", dead.url),
            *(*quick("the-parsing-model"), "--out", "out"),
        )
        assert result.exit_code == 3, result.stderr
        assert dead.count <= 10
        assert server.count <= 20
        dead.up = True
        again = run("resume", "out")
        assert again.exit_code == 0, again.stderr
        assert server.count == len(SOME)


def test_a_few_refused_connections_at_the_beginning_stop_nothing(run: Run, write_benchmark: Files, served: Any) -> None:
    def say(request: Any) -> Any:
        return Reply.reset() if request.number <= 3 else city(request)

    with ScriptedServer(say) as server:
        options = quick("the-answering-model", "the-parsing-model")
        result = run("verify", write_benchmark(*SOME[:20]), *served(server.url), *options, "--json")
    assert result.exit_code == 0, result.stderr
    assert json.loads(result.stdout)["outcomes"] == {"passed": 20}


def failing(*numbers: int, status: int = 500, prose: bool = False) -> Callable[[Any], Any]:
    """A server that fails for these questions, or whose judge says nothing that can be read."""

    def say(request: Any) -> Any:
        bad = any(f"(q{number})" in str(request.body) for number in numbers)
        if not bad or (prose and not request.schema):
            return city(request)
        return "I would rather not." if prose else Reply.error(status)

    return say


ONE_BY_ONE = ("--concurrency", "1", "--set", "run.retry_policy={ server = { max_attempts = 1 } }")


def test_fail_fast_stops_at_an_error_and_resume_asks_the_rest(run: Run, write_benchmark: Files, served: Any) -> None:
    path, broken = write_benchmark(*SOME[:8]), [True]
    with ScriptedServer(lambda request: failing(2)(request) if broken[0] else city(request)) as server:
        result = run("verify", path, *served(server.url), *ONE_BY_ONE, "--fail-fast", "--out", "out", "--json")
        assert result.exit_code == 3, result.stderr
        assert json.loads(result.stdout)["outcomes"] == {"passed": 2, "error": 1}
        assert "stopped: fail_fast: an item ended in an error (q2, answered by" in result.stderr
        assert "5 of 8 items have no result; to continue, type: karenina resume out" in result.stderr
        broken[0], before = False, server.count
        again = run("resume", "out", "--json")
        assert server.count - before == 2 * 6
    assert json.loads(again.stdout)["outcomes"] == {"passed": 8}


def test_fail_fast_does_not_stop_for_what_a_model_says(run: Run, write_benchmark: Files, served: Any) -> None:
    with ScriptedServer(failing(2, prose=True)) as server:
        result = run("verify", write_benchmark(*SOME[:6]), *served(server.url), *ONE_BY_ONE, "--fail-fast", "--json")
    document = json.loads(result.stdout)
    assert document["outcomes"] == {"passed": 5, "error": 1}
    assert document["models"][0]["errors"] == {"judge": 1}
    assert "stopped" not in result.stderr


@pytest.mark.parametrize(
    ("limit", "made"), [("0", 2), ("1", 3), ("2", 10), ("10%", 3), ("20%", 10), ("19.9%", 3), ("100%", 10)]
)
def test_more_errors_than_may_be_stop_a_run(
    limit: str, made: int, run: Run, write_benchmark: Files, served: Any
) -> None:
    """The second and the third of ten questions fail."""
    with ScriptedServer(failing(1, 2)) as server:
        options = (*served(server.url), *ONE_BY_ONE, "--max-errors", limit, "--json")
        result = run("verify", write_benchmark(*SOME[:10]), *options)
    assert json.loads(result.stdout)["num_results"] == made, result.stderr
    assert result.exit_code == (0 if made == 10 else 4)
    assert ("stopped: max_errors: " in result.stderr) == (made < 10)


def test_a_limit_of_errors_that_only_the_last_item_exceeds_leaves_nothing_undone(
    run: Run, write_benchmark: Files, served: Any
) -> None:
    with ScriptedServer(failing(1)) as server:
        options = (*served(server.url), *ONE_BY_ONE, "--max-errors", "0", "--out", "out")
        result = run("verify", write_benchmark("q0", "q1"), *options)
    assert result.exit_code == 4
    assert "stopped" not in result.stderr
    assert json.loads(Path("out/manifest.json").read_text("utf-8"))["status"] == "completed"


def test_a_key_that_is_not_there_is_said_before_any_call(
    run: Run, write_benchmark: Files, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("MY_KEY", raising=False)
    with ScriptedServer(city) as server:
        result = run("verify", write_benchmark("q0"), *served(server.url), "--parsing-api-key-env", "MY_KEY")
        assert server.count == 0
    assert result.exit_code == 1
    assert "set the environment variable MY_KEY to your key" in result.stderr
