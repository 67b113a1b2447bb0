"""Servers that fail, hang, or talk nonsense to some of the calls: what becomes of those, and that nothing else does."""

from __future__ import annotations

import importlib.util
import logging
import socket
import statistics
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve

from karenina_core.testing import Reply, ScriptedServer, ServedRequest
from karenina_core.values.config import AttemptPolicy, RetryPolicy

SPEC = importlib.util.spec_from_file_location("fault_world", Path(__file__).with_name("fault_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader

STORM: tuple[Callable[[], Reply], ...] = (
    lambda: Reply.error(500),
    lambda: Reply.error(502, "Bad Gateway", html=True),
    lambda: Reply.error(503),
)


class Lines(logging.Handler):
    """What is written into the log."""

    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(record.getMessage())


@pytest.fixture
def log() -> Any:
    handler, logger = Lines(), logging.getLogger("karenina")
    before = logger.level
    logger.addHandler(handler)
    logger.setLevel("INFO")
    yield handler.lines
    logger.setLevel(before)
    logger.removeHandler(handler)


def asked(server: ScriptedServer) -> Counter[tuple[int, bool]]:
    """How often each call was made: `(question, to the judge)`."""
    return Counter((world.number_of(request), world.judged(request)) for request in server.requests)


def test_a_storm_of_failures_costs_no_item_and_at_most_one_line_each(tmp_path: Path, log: list[str]) -> None:
    """Every call fails several times, in all three ways, before the server recovers. Few calls: on a busy machine they
    are not under way together, and then each failure in a row is waited for."""
    here = world.World(tmp_path / "run", questions=4)
    seen: Counter[tuple[int, bool]] = Counter()

    def script(request: ServedRequest) -> Any:
        name = (world.number_of(request), world.judged(request))
        seen[name] += 1
        return STORM[seen[name] % 3]() if seen[name] <= 3 else world.right(request)

    with ScriptedServer(script) as server:
        config = here.config(server.url, retry_policy=world.tried(6, 0.01, 0.1), concurrency=4)
        here.run(config)
        assert here.outcomes() == {"passed": here.questions}
        assert set(asked(server).values()) == {4}
        assert len(log) <= here.questions, log[:5]
        here.check(config, server)


def test_a_storm_that_lasts_is_waited_out(tmp_path: Path, long: bool) -> None:
    """By the clock: nothing is served for a while, and afterwards nothing is missing."""
    here = world.World(tmp_path / "run", questions=200 if long else 20)
    seconds, turn, begun = (30.0 if long else 1.0), iter(range(10**6)), time.monotonic()

    def script(request: ServedRequest) -> Any:
        stormy = time.monotonic() < begun + seconds
        return STORM[next(turn) % 3]() if stormy else world.right(request)

    with ScriptedServer(script) as server:
        policy = RetryPolicy(server=AttemptPolicy(60, seconds / 20, seconds / 5))
        config = here.config(server.url, retry_policy=policy, concurrency=20)
        here.run(config)
        took = time.monotonic() - begun
        print(f"a storm of {seconds:g} s: the run took {took:.1f} s, {server.count} requests")
        assert here.outcomes() == {"passed": here.questions}
        assert max(asked(server).values()) <= 60
        here.check(config, server)


def test_a_storm_without_an_end_ends_the_run_and_costs_no_item(tmp_path: Path, log: list[str]) -> None:
    here = world.World(tmp_path / "run", questions=12)
    turn = iter(range(10**6))
    with ScriptedServer(lambda request: STORM[next(turn) % 3]()) as server:
        config = here.config(server.url, retry_policy=world.tried(6, 0.01, 0.05), retry_max_elapsed_seconds=2.0)
        notes = here.run(config).notes
        assert here.outcomes() == {}
        assert (len(asked(server)), here.manifest()["status"]) == (12, "interrupted")
        assert "it gets no more calls" in notes[-1]
        assert server.count <= 12 * 6, "a few each, and then one in a pause"
        assert len(log) <= 12, log[:5]
    with ScriptedServer(world.right, port=_port(server.url)) as server:
        here.resume(config)
        assert here.outcomes() == {"passed": 12}
        here.check(config, server)


def test_a_server_that_has_only_ever_failed_costs_few_requests_and_no_item(tmp_path: Path, log: list[str]) -> None:
    here = world.World(tmp_path / "run", questions=12)
    with ScriptedServer(lambda request: Reply.error(500)) as server:
        config = here.config(server.url, retry_policy=world.tried(3, 0.01, 0.05))
        notes = here.run(config).notes
        assert here.manifest()["status"] == "interrupted"
        assert "has only failed" in notes[-1]
        assert 5 <= server.count <= 12 + 2, "those under way at first, and the other attempts of one"
        assert max(asked(server).values()) == 3
        assert len(log) <= 12, log[:5]
    with ScriptedServer(world.right, port=_port(server.url)) as server:
        config = here.config(server.url, retry_policy=world.tried(3, 0.01, 0.05))
        here.resume(config)
        assert here.outcomes() == {"passed": 12}
        here.check(config, server)


def _port(url: str) -> int:
    return int(url.rpartition(":")[2].partition("/")[0])


@pytest.mark.parametrize("fault", ["refused", "reset", "truncated"])
def test_a_connection_that_breaks_is_tried_again_and_then_an_error_of_its_kind(tmp_path: Path, fault: str) -> None:
    here = world.World(tmp_path / "run", questions=6)
    broken = {2: Reply.reset if fault == "reset" else Reply.truncated}
    with ScriptedServer(world.faulty(broken)) as server:
        config = here.config(server.url, retry_policy=world.tried(3))
        if fault == "refused":
            with socket.create_server(("127.0.0.1", 0)) as unused:
                nowhere = f"http://127.0.0.1:{unused.getsockname()[1]}/v1"
            (model,) = config.answering_models
            config = evolve(config, answering_models=[evolve(model, endpoint_base_url=nowhere)])
        here.run(config)
        told = here.by_question()
        lost = set(told) if fault == "refused" else {2}  # where no server is, the others are not asked
        assert lost
        assert {number for number, outcome in told.items() if outcome == "error(connection)"} == lost
        assert {outcome for number, outcome in told.items() if number not in lost} <= {"passed"}
        failed = [kind for kind, _ in here.failures()]
        assert set(failed) == {"connection"}
        if fault == "refused":
            assert len(failed) <= 10  # items that are under way when the first one fails have tried, too
        else:
            assert (len(failed), asked(server)[2, False]) == (3, 3)
        if fault != "refused":  # else the run has stopped: see test_cli_fail_early.py
            here.check(config, server)


def test_a_server_that_hangs_or_drips_ends_at_the_time_limit_and_harms_nobody_else(tmp_path: Path, long: bool) -> None:
    limit, questions = (5.0, 100) if long else (2.0, 20)
    latency = limit / 25
    broken = {3: lambda: Reply.hang(600), 7: lambda: Reply.drip(limit / 20, "slow " * 400), 11: lambda: Reply.hang(600)}
    seconds = {}
    for name, faults in (("quiet", {}), ("broken", broken)):
        here = world.World(tmp_path / name, questions=questions)
        with ScriptedServer(world.faulty(faults, latency=latency)) as server:
            config = here.config(
                server.url,
                model={"request_timeout": limit},
                retry_policy=RetryPolicy(timeout=AttemptPolicy()),
                concurrency=10,
            )
            results = here.run(config)
            told = here.by_question()
            assert {number for number, outcome in told.items() if outcome == "error(timeout)"} == set(faults)
            assert len(told) == questions
            seconds[name] = {int(r.metadata.question_id[1:]): r.metadata.execution_time for r in results}
            here.check(config, server)
    ends = [seconds["broken"][number] for number in broken]
    others = [[took for number, took in seconds[name].items() if number not in broken] for name in ("quiet", "broken")]
    before, after = (statistics.quantiles(times, n=20)[-1] for times in others)
    print(
        f"limit {limit:g} s: ended after {[round(end, 3) for end in ends]}; p95 of others {before:.3f}, {after:.3f} s"
    )
    assert all(end >= 0.9 * limit for end in ends)
    assert all(end <= (1.1 * limit if long else 5 * limit) for end in ends)
    apart = "beside hangs that come one after the other, the others would wait for two or three of them"
    assert after <= (1.05 * before + 0.1 if long else before + 1.5 * limit), apart


NONSENSE: dict[str, Callable[[], Reply]] = {
    "malformed JSON": Reply.garbage,
    "nothing": Reply.empty,
    "a page": Reply.wrong_content_type,
    "no choices": Reply.no_choices,
    "invalid UTF-8": Reply.invalid_utf8,
    "a long page": lambda: Reply(body=b"<html>" + b"y" * 100_000),
}
WRITTEN = {"no choices": '"choices": []', "invalid UTF-8": '"content": "caf\ufffd \ufffd\ufffd"'}


@pytest.mark.parametrize("to_judge", [False, True], ids=["answer", "judge"])
def test_nonsense_instead_of_a_reply_is_an_error_and_what_came_is_kept(tmp_path: Path, to_judge: bool) -> None:
    here = world.World(tmp_path / "run", questions=12)
    faults = dict(enumerate(NONSENSE.values()))

    def script(request: ServedRequest) -> Any:
        fault = faults.get(world.number_of(request)) if world.judged(request) == to_judge else None
        return fault() if fault else world.right(request)

    with ScriptedServer(script) as server:
        config = here.config(server.url, retry_policy=world.tried(3), concurrency=1)
        here.run(config)
        told = here.by_question()
        assert told == {n: "error(bad_response)" if n in faults else "passed" for n in range(12)}
        assert set(asked(server).values()) == {1}, "nonsense is not asked for again"
        kept = here.failures()
        here.check(config, server)
    assert [kind for kind, _ in kept] == ["bad_response"] * len(NONSENSE)
    for (name, make), (_, raw) in zip(NONSENSE.items(), kept, strict=True):
        if (body := make().body) is not None:
            assert raw == (body.decode("utf-8", "replace")[:65536] or None), name
        else:  # made for the request
            assert WRITTEN[name] in (raw or ""), name
