"""Models that are asked in batches: what is sent together, and when; what was sent is neither lost nor sent again."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner
from karenina_calls.limits.limiter import Gateway
from karenina_calls.ports.batch import BatchState
from karenina_calls.ports.stored_calls import StoredCall
from karenina_calls.records.requests import Request
from karenina_cli.root import karenina
from karenina_runs.batches import batching
from karenina_runs.batches.batches import Gathered
from karenina_runs.batches.batching import SENDING, Batching
from karenina_runs.execute.control import RunControl
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.folder.status import read_status
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import JournalReader
from karenina_runs.plan.prepare import prepare
from karenina_runs.resume import resume_run

from karenina_core import Benchmark, Karenina, ModelConfig, VerificationConfig, VerificationResultSet
from karenina_core.errors import ConfigError, RunDirectoryError
from karenina_core.testing import Reply, ScriptedBatches, ServedRequest, application
from karenina_core.values.config import AttemptPolicy, RetryPolicy

AT_ONCE = RetryPolicy(
    rate_limited=AttemptPolicy(3), timeout=AttemptPolicy(2), server=AttemptPolicy(3), connection=AttemptPolicy(3)
)


@pytest.fixture(autouse=True)
def _sooner(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every batch waits for others that may still come: here half as long, and for a budget a fifth."""
    monkeypatch.setattr(batching, "SETTLE", 0.1)
    monkeypatch.setattr(batching, "LOOK_AGAIN", 0.05)


def answered(request: ServedRequest) -> Any:
    return {"target": "BCL2"} if request.schema is not None else "It is BCL2."


@pytest.fixture
def make_app(plugin_names: set[str]) -> Callable[[], Karenina]:
    return lambda: application(installed={*plugin_names, "openai_endpoint"})


def model(server: ScriptedBatches, name: str = "m", **facts: Any) -> ModelConfig:
    facts = {"batch": True, "retry_policy": AT_ONCE, **facts}
    return ModelConfig(model_name=name, interface="openai_endpoint", endpoint_base_url=server.url, **facts)


def verified(
    server: ScriptedBatches,
    app: Karenina,
    questions: list[Any],
    run_dir: Path | None,
    *,
    answerer: ModelConfig | None = None,
    judge: ModelConfig | None = None,
    **facts: Any,
) -> VerificationResultSet:
    config = VerificationConfig(
        answering_models=[answerer or model(server)], parsing_models=[judge or model(server, "j")], **facts
    )
    try:
        return Benchmark(name="b", questions=questions).run_verification(config, run_dir=run_dir, app=app)
    finally:
        app.loop.close()


def outcomes(results: VerificationResultSet) -> list[str]:
    return [str(result.outcome) for result in results]


def statuses(run_dir: Path) -> list[str]:
    with JournalReader.open(run_dir) as reader:
        return [batch.status for batch in reader.batches()]


def test_all_answers_are_one_batch_and_all_judgments_another(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    with ScriptedBatches(answered) as server:
        results = verified(server, make_app(), [make_question(n) for n in range(12)], tmp_path / "run")
        assert outcomes(results) == ["passed"] * 12
        assert [len(batch.calls) for batch in server.batches] == [12, 12]
        assert server.count == 24
        assert {request.channel for request in server.requests[12:]} == {"json_schema"}, "also in a batch"
    assert statuses(tmp_path / "run") == ["fetched", "fetched"]


def test_a_full_batch_is_sent_before_the_others_and_waits_for_nobody(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    with ScriptedBatches(answered) as server:
        asked, judge = model(server, batch_max_calls=4), model(server, "j", batch_max_calls=50)
        results = verified(
            server, make_app(), [make_question(n) for n in range(10)], tmp_path / "run", answerer=asked, judge=judge
        )
        assert outcomes(results) == ["passed"] * 10
        answers = [len(batch.calls) for batch in server.batches if batch.calls[0]["body"]["model"] == "m"]
        assert sorted(answers) == [2, 4, 4]
        assert server.count == 20


def test_calls_wait_for_an_item_that_may_still_call_but_no_longer_than_they_may(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    """The answers come one by one, the last one late: judgments of the others need not wait for it."""

    def batches(wait: float, late: Callable[[ScriptedBatches], Awaitable[None]]) -> list[int]:
        async def script(request: ServedRequest) -> Any:
            if request.schema is None and "target 3" in request.text:
                await late(server)
            return answered(request)

        with ScriptedBatches(script) as server:
            asked, judge = model(server, batch=False), model(server, "j", batch_wait_seconds=wait)
            run_dir = tmp_path / f"run-{wait}"
            results = verified(
                server, make_app(), [make_question(n) for n in range(4)], run_dir, answerer=asked, judge=judge
            )
            assert outcomes(results) == ["passed"] * 4
            return [len(batch.calls) for batch in server.batches]

    async def a_while(server: ScriptedBatches) -> None:
        await asyncio.sleep(1.2)

    async def after_the_others(server: ScriptedBatches) -> None:
        async with asyncio.timeout(50.0):
            while sum(len(batch.calls) for batch in server.batches) < 3:
                await asyncio.sleep(0.02)

    assert batches(60.0, a_while) == [4]
    *before, last = batches(0.3, after_the_others)
    assert (sum(before), last) == (3, 1)


def test_what_fails_for_now_is_sent_again_and_what_fails_for_good_is_not(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    first: set[str] = set()

    def script(request: ServedRequest) -> Any:
        for status, name in ((429, "target 0"), (500, "target 1")):
            if name in request.text and request.schema is None and name not in first:
                first.add(name)
                return Reply.error(status)
        if "target 2" in request.text and request.schema is None:
            return Reply.error(404, "no such model")
        return answered(request)

    with ScriptedBatches(script) as server:
        results = verified(server, make_app(), [make_question(n) for n in range(5)], tmp_path / "run")
        found = {result.metadata.question_id: str(result.outcome) for result in results}
        assert found == {"q2": "error(invalid_request)", **dict.fromkeys(("q0", "q1", "q3", "q4"), "passed")}
        sizes = sorted(len(batch.calls) for batch in server.batches)
        assert sum(sizes) == 5 + 2 + 4
        failed = next(result for result in results if result.metadata.question_id == "q2")
        assert "no such model" in str(failed.metadata.error)
    assert set(statuses(tmp_path / "run")) == {"fetched"}


@pytest.mark.parametrize(
    ("ends", "outcome", "tries"), [("expired", "error(timeout)", 2), ("cancelled", "error(cancelled)", 1)]
)
def test_calls_of_a_batch_that_ends_without_them_have_an_error_that_says_so(
    make_app: Callable[[], Karenina],
    make_question: Callable[..., Any],
    tmp_path: Path,
    ends: str,
    outcome: str,
    tries: int,
) -> None:
    with ScriptedBatches(answered, ends=ends) as server:
        results = verified(server, make_app(), [make_question(n) for n in range(3)], tmp_path / "run")
        assert outcomes(results) == [outcome] * 3
        assert sum(len(batch.calls) for batch in server.batches) == 3 * tries
        assert server.count == 0


def test_one_call_that_the_provider_refuses_costs_the_others_of_its_batch_nothing_but_time(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    with ScriptedBatches(
        answered, ends="failed", errors=[{"code": "invalid_json", "message": "bad", "line": 2}]
    ) as server:

        def first_only(method: str, path: str, number: int) -> None:
            if (method, path) == ("POST", "/batches") and number == 2:
                server.ends, server.errors = "completed", []

        server.fault = first_only
        results = verified(server, make_app(), [make_question(n) for n in range(4)], tmp_path / "run")
        assert sorted(outcomes(results)) == ["error(invalid_request)", "passed", "passed", "passed"]
        assert [str(result.outcome) for result in results][1] == "error(invalid_request)"


def test_waiting_for_a_batch_counts_against_no_time_limit(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    with ScriptedBatches(answered, polls=1) as server:
        results = verified(server, make_app(), [make_question(0)], tmp_path / "run", retry_max_elapsed_seconds=0.4)
        assert outcomes(results) == ["passed"]
        assert [batch.polls for batch in server.batches] == [2, 2]


def test_models_that_are_asked_one_by_one_are_held_back_by_the_setting_for_items(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    def slowly(request: ServedRequest) -> Any:
        return Reply(answered(request), latency=0.05)

    with ScriptedBatches(slowly) as server:
        results = verified(
            server,
            make_app(),
            [make_question(n) for n in range(9)],
            tmp_path / "run",
            judge=model(server, "j", batch=False),
            concurrency=2,
        )
        assert outcomes(results) == ["passed"] * 9
        assert [len(batch.calls) for batch in server.batches] == [9], "which holds no answers back"
        assert server.peak == 2


def test_replies_to_nothing_that_was_asked_are_left_out_and_told(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    def muddled(lines: list[bytes]) -> list[bytes]:
        strange = json.dumps({**json.loads(lines[0]), "custom_id": "call-99"}).encode() + b"\n"
        return [*reversed(lines), strange, lines[0], b"\n", b"{]\n"]

    with ScriptedBatches(answered, output=muddled) as server:
        results = verified(server, make_app(), [make_question(n) for n in range(4)], tmp_path / "run")
        assert outcomes(results) == ["passed"] * 4
        assert any("1 reply to calls that are not in it" in note for note in results.notes)


def test_every_item_gets_its_own_reply_however_they_are_mixed(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    def script(request: ServedRequest) -> Any:
        return answered(request) if request.schema is not None else f"BCL2: {request.text}"

    with ScriptedBatches(script, output=lambda lines: lines[::-1]) as server:
        questions = [make_question(n) for n in range(11)]
        asked = model(server, batch_max_calls=3)
        results = verified(server, make_app(), questions, tmp_path / "run", answerer=asked)
        found = {result.metadata.question_id: result.generation.raw_llm_response for result in results}
        assert len(found) == 11
        assert all(question.question in found[question.id] for question in questions)
        assert [len(batch.calls) for batch in server.batches].count(3) >= 3


def test_a_reply_that_is_missing_is_an_error_and_asked_for_again(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    with ScriptedBatches(answered, output=lambda lines: lines[1:]) as server:
        results = verified(server, make_app(), [make_question(n) for n in range(3)], tmp_path / "run")
        # of three answers one is lost, then of the one that is left: always the first
        assert sorted(outcomes(results))[0] == "error(server)"
        assert any("has no reply to this call" in str(result.metadata.error) for result in results)


REFUSALS: list[tuple[dict[str, Any], str]] = [
    ({"mcp_urls_dict": {"tools": "http://127.0.0.1:9/mcp"}}, "set batch = false, or remove the tools"),
    ({"requests_per_minute": 10.0}, "the provider itself decides"),
    ({"tokens_per_minute": 10.0}, "the provider itself decides"),
    ({"batch": False, "batch_max_calls": 7}, "set batch = true, or remove it"),
    ({"batch": False, "batch_wait_seconds": 7.0}, "set batch = true, or remove it"),
]


@pytest.mark.parametrize(("facts", "remedy"), REFUSALS, ids=[next(reversed(facts)) for facts, _ in REFUSALS])
def test_what_cannot_be_done_in_batches_is_refused_before_the_run(
    make_app: Callable[[], Karenina],
    make_question: Callable[..., Any],
    tmp_path: Path,
    facts: dict[str, Any],
    remedy: str,
) -> None:
    with ScriptedBatches(answered) as server:
        with pytest.raises(ConfigError) as caught:
            verified(server, make_app(), [make_question(0)], tmp_path / "run", answerer=model(server, **facts))
        assert (server.count, server.batches) == (0, [])
    assert remedy in str(caught.value)


def test_an_interface_without_batches_is_refused(make_question: Callable[..., Any], world: Any) -> None:
    here = world()
    with pytest.raises(ConfigError, match="'answering' has no batch interface; set batch = false"):
        here.run(here.config(answering_models=[ModelConfig(model_name="a", interface="answering", batch=True)]))


def test_a_judge_that_investigates_with_tools_is_refused(
    make_question: Callable[..., Any], plugin_names: set[str], tmp_path: Path
) -> None:
    app = application(installed={*plugin_names, "openai_endpoint", "agentic-parse-template"})
    (tmp_path / "root" / "river").mkdir(parents=True)
    with ScriptedBatches(answered) as server:
        question = make_question(0, workspace_path="river")
        config = VerificationConfig(
            answering_models=[model(server, batch=False)], parsing_models=[model(server, "j")], agentic_parsing=True
        )
        benchmark = Benchmark(name="b", questions=[question], workspace_root=tmp_path / "root")
        with pytest.raises(ConfigError) as caught:
            benchmark.run_verification(config, run_dir=tmp_path / "run", app=app)
        app.loop.close()
        assert (server.count, server.asked) == (0, [])
    assert "set batch = false" in str(caught.value)


def test_batches_need_a_place_where_their_ids_are_kept(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any]
) -> None:
    with ScriptedBatches(answered) as server:
        with pytest.raises(ConfigError, match="needs a run directory"):
            verified(server, make_app(), [make_question(0)], None)
        assert server.asked == []


def test_a_budget_ends_before_more_is_sent_than_fits(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    with ScriptedBatches(lambda request: Reply(answered(request), usage=(100, 0))) as server:
        results = verified(
            server, make_app(), [make_question(n) for n in range(20)], tmp_path / "run", budget_tokens=1000
        )
        assert 9 <= server.count <= 13
        assert any("--budget-tokens" in note for note in results.notes)


CHILD = """
import json, sys
from karenina_core import Benchmark, ModelConfig, Question, VerificationConfig
from karenina_core.testing import application

url, run_dir, template, count, plugins = sys.argv[1:]
models = [ModelConfig(model_name=n, interface="openai_endpoint", endpoint_base_url=url, batch=True) for n in "mj"]
questions = [
    Question(
        id=f"q{n}", question=f"What is target {n}?", raw_answer="BCL2",
        answer_template=template, template_language="karenina-template",
    )
    for n in range(int(count))
]
config = VerificationConfig(answering_models=models[:1], parsing_models=models[1:])
app = application(installed=set(json.loads(plugins)))
print("begins", flush=True)
Benchmark(name="b", questions=questions).run_verification(config, run_dir=run_dir, app=app, run_name="n")
"""


class Child:
    """A process that runs the questions in batches, with answering model `m` and judge `j`."""

    def __init__(self, server: ScriptedBatches, run_dir: Path, questions: list[Any], names: set[str]) -> None:
        self.server, self.run_dir, self.questions, self.names = server, run_dir, questions, {*names, "openai_endpoint"}

    def run_until(self, ready: Callable[[], bool], what: int) -> str:
        """Begin it, send it the signal when it is ready, and give what it wrote to stderr."""
        arguments = (self.server.url, str(self.run_dir), self.questions[0].answer_template, str(len(self.questions)))
        process = subprocess.Popen(
            [sys.executable, "-c", CHILD, *arguments, json.dumps(sorted(self.names))],
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        try:
            deadline = time.monotonic() + 60.0
            while not ready():
                assert process.poll() is None, process.communicate()[1]
                assert time.monotonic() < deadline, "the process never came so far"
                time.sleep(0.01)
            os.kill(process.pid, what)
            return process.communicate(timeout=60.0)[1]
        finally:
            process.kill()
            process.communicate()

    def resume(self, *, batch: bool = True, **options: Any) -> VerificationResultSet:
        facts: dict[str, Any] = {"retry_policy": None, "batch": batch}
        config = VerificationConfig(
            answering_models=[model(self.server, **facts)], parsing_models=[model(self.server, "j", **facts)]
        )
        app = application(installed=self.names)
        try:
            benchmark = Benchmark(name="b", questions=self.questions)
            return resume_run(self.run_dir, app=app, benchmark=benchmark, config=config, **options)
        finally:
            app.loop.close()

    def status(self) -> list[tuple[str, str]]:
        try:
            with JournalReader.open(self.run_dir) as reader:
                return [(batch.status, batch.provider_id) for batch in reader.batches()]
        except RunDirectoryError:
            return []


def test_after_kill_9_the_batch_at_the_provider_is_fetched_and_not_sent_again(
    make_question: Callable[..., Any], plugin_names: set[str], tmp_path: Path
) -> None:
    with ScriptedBatches(answered, held=True) as server:
        child = Child(server, tmp_path / "run", [make_question(n) for n in range(6)], plugin_names)
        child.run_until(lambda: child.status() == [("sent", "batch_0")], signal.SIGKILL)
        (waiting,) = read_status(tmp_path / "run").batches
        assert waiting == {"model": waiting["model"], "provider_id": "batch_0", "status": "sent", "calls": 6}
        shown = CliRunner().invoke(karenina, ["status", str(tmp_path / "run")])
        assert f"batch_0: 6 calls of {waiting['model']}, sent" in shown.stdout
        server.held = False
        results = child.resume()
        assert read_status(tmp_path / "run").batches == []
        assert outcomes(results) == ["passed"] * 6
        assert [len(batch.calls) for batch in server.batches] == [6, 6], "answers, then judgments; nothing twice"
        assert server.count == 12
    assert statuses(tmp_path / "run") == ["fetched", "fetched"]


def test_after_kill_9_a_batch_whose_id_never_came_is_found_at_the_provider(
    make_question: Callable[..., Any], plugin_names: set[str], tmp_path: Path
) -> None:
    """The provider has made the batch, and the process ends before it is told."""
    with ScriptedBatches(answered) as server:
        child = Child(server, tmp_path / "run", [make_question(n) for n in range(4)], plugin_names)
        server.late = 30.0
        child.run_until(lambda: len(server.batches) == 1, signal.SIGKILL)
        assert child.status() == [("sending", "")]
        server.late = 0.0
        results = child.resume()
        assert outcomes(results) == ["passed"] * 4
        assert [len(batch.calls) for batch in server.batches] == [4, 4]


def test_after_kill_9_before_anything_was_sent_the_calls_are_sent(
    make_question: Callable[..., Any], plugin_names: set[str], tmp_path: Path
) -> None:
    with ScriptedBatches(answered) as server:
        child = Child(server, tmp_path / "run", [make_question(n) for n in range(4)], plugin_names)
        server.fault = lambda method, path, number: Reply.error(503) if path == "/files" else None
        child.run_until(lambda: ("POST", "/files") in server.asked, signal.SIGKILL)
        assert (child.status(), server.batches) == ([("sending", "")], [])
        server.fault = lambda *asked: None
        results = child.resume()
        assert outcomes(results) == ["passed"] * 4
        assert [len(batch.calls) for batch in server.batches] == [4, 4]
    assert sorted(statuses(tmp_path / "run")) == ["fetched", "fetched", "lost"]
    assert any("does not list the batch" in note and "4 calls are sent again" in note for note in results.notes)


def test_a_batch_that_the_provider_has_forgotten_is_sent_again_in_a_resumed_run(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], plugin_names: set[str], tmp_path: Path
) -> None:
    with ScriptedBatches(answered, held=True) as server:
        questions = [make_question(0)]
        asyncio.run(drained(server, make_app(), questions, tmp_path / "run"))
        server.held, server.batches[0].id = False, "another"
        results = Child(server, tmp_path / "run", questions, plugin_names).resume()
        assert outcomes(results) == ["passed"]
        assert any("does not know the batch batch_0" in note for note in results.notes)


async def drained(server: ScriptedBatches, app: Karenina, questions: list[Any], run_dir: Path) -> float:
    """Run until there is a batch, then drain; the seconds that it took until the run was over."""
    config = VerificationConfig(answering_models=[model(server)], parsing_models=[model(server, "j")])
    prepared = prepare(Benchmark(name="b", questions=questions), config, app=app, run_name="n")
    control = RunControl()
    run = asyncio.create_task(execute(prepared, Destination(run_dir=run_dir), control=control))
    await asyncio.to_thread(server.wait_for_batches, 1, 60.0)
    async with asyncio.timeout(60.0):
        while not server.late and statuses(run_dir) != ["sent"]:
            await asyncio.sleep(0.02)
    begun = time.monotonic()
    control.drain()
    await asyncio.wait({run}, timeout=60.0)
    assert run.cancelled()
    return time.monotonic() - begun


def test_draining_leaves_the_batch_at_the_provider_and_says_so(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    with ScriptedBatches(answered, held=True) as server:
        questions = [make_question(n) for n in range(5)]
        seconds = asyncio.run(drained(server, make_app(), questions, tmp_path / "run"))
        assert seconds < SENDING / 2, "it waits for nobody"
        polls = len(server.asked)
        manifest = json.loads((tmp_path / "run" / "manifest.json").read_text("utf-8"))
        assert manifest["status"] == "interrupted"
        assert (manifest["ledger"]["total"]["calls"], manifest["ledger"]["total"]["failed"]) == (0, 0)
        (told,) = (note for note in manifest["summary"]["notes"] if "left at the provider" in note)
        assert "batch_0" in told
        assert "5 calls" in told
        assert statuses(tmp_path / "run") == ["sent"]
        assert len(server.asked) == polls, "nobody asks any more"
        assert server.batches[0].status not in ("cancelling", "cancelled")


def test_draining_waits_for_the_id_of_a_batch_that_is_being_sent(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    with ScriptedBatches(answered, held=True) as server:
        server.late = 0.8
        asyncio.run(drained(server, make_app(), [make_question(0)], tmp_path / "run"))
        with JournalReader.open(tmp_path / "run") as reader:
            assert [(batch.status, batch.provider_id) for batch in reader.batches()] == [("sent", "batch_0")]


def test_a_run_that_goes_on_without_batches_says_what_it_leaves_at_the_provider(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], plugin_names: set[str], tmp_path: Path
) -> None:
    with ScriptedBatches(answered, held=True) as server:
        questions = [make_question(n) for n in range(2)]
        asyncio.run(drained(server, make_app(), questions, tmp_path / "run"))
        results = Child(server, tmp_path / "run", questions, plugin_names).resume(batch=False)
        assert outcomes(results) == ["passed"] * 2
        assert any("batch_0" in note and "left at the provider" in note for note in results.notes)


def test_a_provider_that_fails_for_now_is_asked_again_and_its_waits_are_kept(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    def fault(method: str, path: str, number: int) -> Reply | None:
        if number > 2:
            return None
        if (method, path) in (("POST", "/files"), ("POST", "/batches")):
            return Reply.error(429, retry_after=0.2) if number == 1 else None
        if path == "/batches/batch_0":
            return Reply.error(503, retry_after=0.3) if number == 1 else Reply.reset()
        return Reply.error(500, html=True) if path.endswith("batch_0-output/content") and number == 1 else None

    with ScriptedBatches(answered, fault=fault) as server:
        results = verified(server, make_app(), [make_question(n) for n in range(3)], tmp_path / "run")
        assert outcomes(results) == ["passed"] * 3
        assert [len(batch.calls) for batch in server.batches] == [3, 3]
        assert server.asked.count(("POST", "/files")) == 3


def test_a_batch_that_cannot_be_sent_is_an_error_of_its_calls(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    def fault(method: str, path: str, number: int) -> Reply | None:
        return Reply.error(401, "who are you?") if path == "/files" else None

    with ScriptedBatches(answered, fault=fault) as server:
        results = verified(server, make_app(), [make_question(n) for n in range(3)], tmp_path / "run")
        assert outcomes(results) == ["error(auth)"] * 3
        assert server.asked.count(("POST", "/files")) == 1, "one attempt for all of them"
    assert statuses(tmp_path / "run") == ["refused"]


def test_a_provider_that_cannot_be_asked_any_more_keeps_the_batch_for_a_resumed_run(
    make_question: Callable[..., Any], plugin_names: set[str], make_app: Callable[[], Karenina], tmp_path: Path
) -> None:
    def refused(method: str, path: str, number: int) -> Reply | None:
        return Reply.error(401, "the key has expired") if path.startswith("/batches/") else None

    with ScriptedBatches(answered, fault=refused) as server:
        questions = [make_question(n) for n in range(3)]
        results = verified(server, make_app(), questions, tmp_path / "run")
        assert outcomes(results) == ["error(auth)"] * 3
        assert any("left at the provider" in note and "--retry-failed" in note for note in results.notes)
        assert statuses(tmp_path / "run") == ["sent"]
        server.fault = lambda *asked: None
        child = Child(server, tmp_path / "run", questions, plugin_names)
        assert outcomes(child.resume(retry_failed=True)) == ["passed"] * 3
        assert server.count == 6, "the answers are fetched, not asked for again"


LOST = {"no reply": Reply.reset(), "a gateway's reply": Reply.error(502, html=True), "no id": Reply(body=b"{}")}


@pytest.mark.parametrize("instead", LOST.values(), ids=LOST)
@pytest.mark.parametrize("attempts", [1, 3])
def test_a_batch_whose_reply_is_lost_is_looked_for_and_not_sent_again(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path, instead: Reply, attempts: int
) -> None:
    every = RetryPolicy(server=AttemptPolicy(attempts), connection=AttemptPolicy(attempts))
    with ScriptedBatches(answered) as server:
        server.instead = [instead] * 20
        asked, judge = (model(server, name, retry_policy=every) for name in "mj")
        questions = [make_question(n) for n in range(3)]
        results = verified(server, make_app(), questions, tmp_path / "run", answerer=asked, judge=judge)
        assert outcomes(results) == ["passed"] * 3
        assert [len(batch.calls) for batch in server.batches] == [3, 3], "answers, then judgments; nothing twice"
        assert server.count == 6
        assert results.notes == ()
    assert statuses(tmp_path / "run") == ["fetched", "fetched"]


@pytest.mark.parametrize(("status", "outcome", "how"), [(503, "server", {}), (401, "auth", {"retry_failed": True})])
def test_a_batch_that_may_be_at_the_provider_is_looked_for_by_a_resumed_run(
    make_app: Callable[[], Karenina],
    make_question: Callable[..., Any],
    plugin_names: set[str],
    tmp_path: Path,
    status: int,
    outcome: str,
    how: dict[str, Any],
) -> None:
    """Every reply is lost, and the list is not to be had: nobody can tell whether the provider has the batch."""
    with ScriptedBatches(answered) as server:
        server.instead = [Reply.reset()]
        server.fault = lambda method, path, number: (
            Reply.error(status) if (method, path) == ("GET", "/batches") else None
        )
        questions = [make_question(n) for n in range(3)]
        results = verified(server, make_app(), questions, tmp_path / "run")
        assert outcomes(results) == [f"error({outcome})"] * 3
        assert any("is not known whether the provider took the batch" in note for note in results.notes)
        assert (statuses(tmp_path / "run"), len(server.batches)) == (["sending"], 1)
        server.fault = lambda *asked: None
        assert outcomes(Child(server, tmp_path / "run", questions, plugin_names).resume(**how)) == ["passed"] * 3
        assert [len(batch.calls) for batch in server.batches] == [3, 3], "nothing is sent twice"
        assert server.count == 6
    assert statuses(tmp_path / "run") == ["fetched", "fetched"]


def test_a_batch_that_is_sent_again_because_the_provider_has_no_list_is_told(
    make_app: Callable[[], Karenina], make_question: Callable[..., Any], tmp_path: Path
) -> None:
    def no_list(method: str, path: str, number: int) -> Reply | None:
        return Reply.error(404) if (method, path) == ("GET", "/batches") else None

    with ScriptedBatches(answered, fault=no_list) as server:
        server.instead = [Reply.reset()]
        results = verified(server, make_app(), [make_question(n) for n in range(3)], tmp_path / "run")
        assert outcomes(results) == ["passed"] * 3
        assert [len(batch.calls) for batch in server.batches] == [3, 3, 3]
        (note,) = results.notes
        assert server.batches[0].facts["metadata"]["karenina_batch"] in note
        assert "paid for twice" in note


class Compared(str):
    """A key that counts how often it is held against another."""

    __slots__ = ()
    times = 0
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        Compared.times += 1
        return str.__eq__(self, other)


def test_calls_that_are_given_up_together_cost_no_look_at_all_others_each() -> None:
    async def main() -> None:
        asked = ModelConfig(model_name="m", interface="openai_endpoint", batch=True, batch_max_calls=5000)
        lane: Any = Batching(Gateway(VerificationConfig())).lane(asked)
        request = Request("llm", {}, "answer", 0, ())
        turns = [await lane.enter(StoredCall(Compared(f"key {n}"), 0, request)) for n in range(2000)]
        waiting = [asyncio.create_task(turn.ask(Waits(0), "{}")) for turn in turns]
        await asyncio.sleep(0)
        assert len(lane.gathered) == 2000
        for task in waiting:
            task.cancel()
        await asyncio.wait(waiting, timeout=60.0)
        assert (len(lane.gathered), lane._bytes) == (0, 0)
        await lane.batching.aclose()

    asyncio.run(main())
    assert Compared.times < 20 * 2000


class Waits:
    """A port whose batch is over after so many questions."""

    def __init__(self, polls: int) -> None:
        self.left = polls

    async def submit(self, name: str, calls: Any) -> str:
        return "b"

    async def poll(self, batch_id: str) -> BatchState:
        self.left -= 1
        return BatchState(status="ended" if self.left < 0 else "running")

    async def fetch(self, batch_id: str) -> AsyncIterator[tuple[str, Any]]:
        yield "call-0", {"said": "yes"}


class Silent(Waits):
    """A port whose batch is made, and nobody says so in time."""

    def __init__(self) -> None:
        super().__init__(0)
        self.made: list[str] = []

    async def submit(self, name: str, calls: Any) -> str:
        self.made.append(name)
        raise TimeoutError

    async def find(self, name: str) -> str | None:
        return "b" if name in self.made else None


async def outcome_in(run_dir: Path, port: Any, sleep: Callable[[float], Awaitable[None]]) -> Any:
    """What comes of a batch of one call."""
    journal = Journal.open(run_dir)
    batching = Batching(Gateway(VerificationConfig()), sleep=sleep)
    batching.keep_in(journal)
    call = Gathered(("key", 0), port, "{}")
    batching.send(ModelConfig(model_name="m", interface="openai_endpoint", batch=True), [call])
    async with asyncio.timeout(60.0):
        found = await call.outcome
    await batching.aclose()
    await journal.aclose()
    return found


def test_a_batch_that_is_not_confirmed_in_time_is_looked_for_and_not_sent_again(tmp_path: Path) -> None:
    port = Silent()
    assert asyncio.run(outcome_in(tmp_path, port, lambda seconds: asyncio.sleep(0))) == {"said": "yes"}
    assert len(port.made) == 1


def test_the_longer_a_batch_takes_the_less_often_is_the_provider_asked(tmp_path: Path) -> None:
    waits: list[float] = []

    async def sleep(seconds: float) -> None:
        waits.append(seconds)
        await asyncio.sleep(0)

    assert asyncio.run(outcome_in(tmp_path, Waits(20), sleep)) == {"said": "yes"}
    assert len(waits) == 20
    assert waits[0] == 0.5
    assert waits == sorted(waits)
    assert waits[-1] == 60.0
