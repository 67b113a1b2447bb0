"""Whole runs of a model over HTTP that works with real tool servers: programs and services, sound and broken ones."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import os
import shlex
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, field, frozen
from karenina_runs.execute.runner import Destination, execute
from karenina_runs.journal.reader import JournalReader
from karenina_runs.journal.rows import CALLS, RESULTS
from karenina_runs.plan.prepare import prepare
from karenina_testing.watch.processes import running, still_running

from karenina_core import Benchmark, Karenina, VerificationConfig, VerificationResult, VerificationResultSet
from karenina_core.errors import PortError
from karenina_core.testing import Reply, ScriptedServer, ServedRequest, application
from karenina_core.values.message import ToolUseBlock

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mcp") is None, reason='the SDK is missing: pip install "karenina-mcp[sdk]"'
)

SERVERS = Path(__file__).parents[2] / "plugins" / "mcp" / "tests" / "data"
OURS = f"of-whole-runs-{os.getpid()}"
Say = Callable[[ServedRequest], Any]
DONE = Reply("It is BCL2.", usage=(20, 3))
ADD = ("add", {"a": 20, "b": 22})


def program(script: str, *arguments: object) -> str:
    return shlex.join([sys.executable, str(SERVERS / script), *map(str, arguments), OURS])


@pytest.fixture(autouse=True)
def no_program_is_left() -> Iterator[None]:
    yield
    assert still_running(OURS) == []


def calling(*calls: tuple[str, Mapping[str, Any]]) -> Reply:
    blocks = [ToolUseBlock(f"call_{number}", name, given) for number, (name, given) in enumerate(calls)]
    return Reply(tool_calls=blocks, usage=(10, 2))


def turns(*replies: Reply) -> Say:
    """The model says these in turn, and the last one again and again; the judge always reads BCL2."""

    def say(request: ServedRequest) -> Any:
        if request.schema is not None:
            return {"target": "BCL2"}
        said = sum(message["role"] == "assistant" for message in request.messages)
        return replies[min(said, len(replies) - 1)]

    return say


@frozen
class Ran:
    """A finished run."""

    results: VerificationResultSet
    asked: list[ServedRequest]
    manifest: dict[str, Any] = field(repr=False)

    @property
    def result(self) -> VerificationResult:
        (result,) = self.results
        return result

    @property
    def told(self) -> list[tuple[str, bool]]:
        """What tools answered, and whether as an error."""
        rows = [row for row in self.result.generation.trace_messages if row["role"] == "tool"]
        return [(row["content"], row["tool_result"]["is_error"]) for row in rows]

    @property
    def judged(self) -> str:
        (request,) = [request for request in self.asked if request.schema is not None]
        return request.text


@frozen
class Runs:
    """Makes runs, in folders of their own."""

    folder: Path
    benchmark_of: Callable[[int], Benchmark]
    config_for: Callable[..., VerificationConfig]
    apps: list[Karenina] = field(factory=list)

    @property
    def pids(self) -> Path:
        return self.folder / "pids"

    @property
    def started(self) -> list[int]:
        """The processes of the program of tools."""
        return [int(line) for line in self.pids.read_text().split()] if self.pids.exists() else []

    @property
    def tools(self) -> dict[str, str]:
        """A program without the SDK, which would take seconds to start."""
        return {"tools": program("quick_on_stdio.py", self.pids)}

    def app(self, replay: Mapping[str, str] | None = None, **settings: Any) -> Karenina:
        settings = {"environment": {"tools": ["PYTHONPATH"], "again": ["PYTHONPATH"]}, "start_seconds": 20, **settings}
        made = application(installed=True, settings={"mcp": settings, "replay": dict(replay or {})})
        self.apps.append(made)
        return made

    def config(self, url: str, servers: Mapping[str, str], fields: Mapping[str, Any]) -> VerificationConfig:
        of_run = {name: fields[name] for name in fields if name in ("concurrency", "use_full_trace_for_template")}
        config = self.config_for("openai_endpoint", url, **of_run)
        (judge,) = config.parsing_models
        of_model = {name: value for name, value in fields.items() if name not in of_run and name != "models"}
        models = [
            evolve(judge, model_name=name, mcp_urls_dict=servers, **of_model) for name in fields.get("models", ["m"])
        ]
        return evolve(config, answering_models=models)

    def __call__(
        self,
        script: Say,
        servers: Mapping[str, str] | None = None,
        *,
        questions: int = 1,
        settings: Mapping[str, Any] | None = None,
        replay: Mapping[str, str] | None = None,
        **fields: Any,
    ) -> Ran:
        """`fields`: of the answering model, and a few of the run. `settings`: of the plugin."""
        app, out = self.app(replay, **(settings or {})), self.folder / f"run-{len(self.apps)}"
        with ScriptedServer(script) as server:
            config = self.config(server.url, servers or self.tools, fields)
            prepared = prepare(self.benchmark_of(questions), config, app=app)
            results = app.run(execute(prepared, Destination(run_dir=out)))
            return Ran(results, server.requests, json.loads((out / "manifest.json").read_text()))


@pytest.fixture
def runs(
    tmp_path: Path, benchmark_of: Callable[[int], Benchmark], config_for: Callable[..., VerificationConfig]
) -> Runs:
    return Runs(tmp_path, benchmark_of, config_for)


@pytest.fixture(scope="module")
def on_http() -> Iterator[Callable[[str], str]]:
    """`on_http(kind)`: the address of a service of that kind, the same one for all tests: none changes it."""
    ports: dict[str, int] = {}
    line = [sys.executable, str(SERVERS / "tools_on_http.py")]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as host:
        out, into = host.stdout, host.stdin
        assert out is not None
        assert into is not None

        def address(kind: str) -> str:
            if kind not in ports:
                into.write(f"{kind} 0\n")
                into.flush()
                ports[kind] = int(out.readline().split()[1])
            return f"http://127.0.0.1:{ports[kind]}/{'sse' if kind == 'sse' else 'mcp'}"

        yield address


# Traces of real servers


@pytest.mark.parametrize("way", ["program", "streamable", "sse"])
def test_the_work_with_a_real_server_is_the_answer(runs: Runs, on_http: Callable[[str], str], way: str) -> None:
    servers = runs.tools if way == "program" else {"tools": on_http(way)}
    ran = runs(turns(calling(ADD, ("slow", {"seconds": 0.1}), ("add", {"a": "two"})), DONE), servers)
    answer = ran.result.generation
    assert str(ran.result.outcome) == "passed"
    assert [row["role"] for row in answer.trace_messages] == ["assistant", "tool", "tool", "tool", "assistant"]
    assert ran.told[:2] == [("42", False), ("late", False)]
    assert ran.told[2][1]
    assert "--- Tool Message (call_id: call_0) ---\n42\n\n" in answer.raw_llm_response
    assert "--- Tool Message (call_id: call_2) ---\n[ERROR] " in answer.raw_llm_response
    assert answer.raw_llm_response.endswith("--- AI Message ---\nIt is BCL2.")
    assert answer.agent_metrics == {
        "iterations": 2,
        "tool_calls": 3,
        "tools_used": ["add", "slow"],
        "tool_call_counts": {"add": 2, "slow": 1},
        "suspect_failed_tool_calls": 1,
        "suspect_failed_tools": ["add"],
        "limit_reached": False,
        "limit": None,
    }
    assert answer.answering_mcp_servers == ("tools",)
    assert ran.result.checks.mcp_enabled
    assert ran.result.metadata.warnings == ()


ODD = "--- Summary ---\r\nIt is BCL2.\r\n--- Tool Message (call_id: 1) ---\nTool Calls:\n  none"


@pytest.mark.parametrize("full", [False, True], ids=["final message", "full trace"])
def test_the_whole_trace_is_kept_whatever_the_judge_reads_and_no_answer_is_cut(runs: Runs, full: bool) -> None:
    ran = runs(turns(calling(ADD), Reply(ODD)), use_full_trace_for_template=full)
    assert str(ran.result.outcome) == "passed"
    assert ran.result.generation.trace_messages[-1]["content"] == ODD
    assert ran.result.generation.raw_llm_response.endswith(ODD)
    assert ran.told == [("42", False)]
    assert ODD in ran.judged
    assert ("Tool Message (call_id: call_0)" in ran.judged) is full


def test_a_trace_that_ends_with_a_tool_is_no_answer(runs: Runs) -> None:
    ran = runs(turns(calling(ADD), Reply("")))
    assert str(ran.result.outcome) == "auto_failed(TraceValidationAutoFail)"
    assert ran.told == [("42", False)]
    assert not any(request.schema for request in ran.asked)


def test_a_model_that_never_stops_calling_fails_the_verdict_and_keeps_its_trace(runs: Runs) -> None:
    ran = runs(turns(calling(ADD), calling(("add", {"a": 1, "b": 1}))), agent_max_turns=3)
    assert str(ran.result.outcome) == "auto_failed(RecursionLimitAutoFail)"
    assert ran.result.generation.recursion_limit_reached
    assert [content.splitlines()[0] for content, _ in ran.told] == ["42", "2", "2"]


# Servers that fail: the model is told, the run goes on


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (("die", {}), "the connection to the server of this tool broke during the call"),
        (("freeze", {}), "the tool gave no answer within 1 s"),
        (("large", {"characters": 6 * 1024**2}), "longer than 4 MB and was not read; ask for less"),
        (("fail", {}), "fail"),
    ],
    ids=["dies", "hangs", "huge", "fails"],
)
def test_a_fault_of_a_server_is_told_to_the_model_which_goes_on(
    runs: Runs, call: tuple[str, Mapping[str, Any]], words: str
) -> None:
    started = time.monotonic()
    patience = 1 if call[0] == "freeze" else 30
    ran = runs(turns(calling(call), calling(ADD), DONE), settings={"call_seconds": patience})
    (first, failed), second = ran.told
    assert words in first
    assert failed
    assert second == ("42", False)
    assert str(ran.result.outcome) == "passed"
    assert ran.result.generation.agent_metrics is not None
    assert ran.result.generation.agent_metrics["suspect_failed_tools"] == [call[0]]
    assert time.monotonic() - started < 25


def test_what_a_server_prints_costs_nothing(runs: Runs) -> None:
    long = ("large", {"characters": 1024**2})
    noise = [long, ("babble", {"kind": "lines"}), ("babble", {"kind": "bytes"}), ("noise", {"megabytes": 5})]
    ran = runs(turns(*(calling(call) for call in noise), DONE))
    (text, failed), *rest = ran.told
    assert text.endswith("\n[cut: these are the first 100000 of 1048576 characters]")
    assert len(text) < 100_100
    assert not failed
    assert [content.splitlines()[0] for content, _ in rest] == ["done"] * 3
    assert str(ran.result.outcome) == "passed"
    assert len(runs.started) == 1


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        ("dies", "connection"),
        ("silent", "timeout"),
        ("babbling", None),
        ("flooding", "connection"),
        ("listless", "timeout"),
    ],
)
def test_a_server_that_cannot_be_used_refuses_the_run_before_anything_is_paid(
    runs: Runs, fault: str, kind: str | None
) -> None:
    started = time.monotonic()
    asked: list[ServedRequest] = []
    with pytest.raises(PortError, match="the tool server 'tools'") as refused:
        runs(
            lambda request: asked.append(request),
            {"tools": program("plain_server.py", fault)},
            settings={"start_seconds": 20 if kind == "connection" else 1},
        )
    assert refused.value.kind == kind or kind is None
    assert "mcp_urls_dict" in str(refused.value)
    assert asked == []
    assert not (runs.folder / "run-1").exists()
    assert time.monotonic() - started < 20


# Servers that change


def test_a_change_of_tools_is_told_to_the_model_and_to_the_user(runs: Runs) -> None:
    change = calling(("become", {"what": "forget", "aloud": True}))
    ran = runs(turns(change, calling(ADD), DONE))
    assert ran.told[1] == ("the server does not offer this tool any more; continue without it", True)
    assert str(ran.result.outcome) == "passed"
    warning = "the tool server 'tools' changed its tools during the run: 'add' removed, calls are refused"
    assert ran.result.metadata.warnings == (warning,)
    assert warning in ran.results.get_summary()["notes"]
    assert warning in ran.manifest["summary"]["notes"]
    (row,) = ran.manifest["tool_servers"]
    assert "add" in row["tools"], "what was pinned at the start"


def test_a_server_with_other_tools_after_its_restart_is_held_to_the_first(runs: Runs) -> None:
    ran = runs(
        turns(calling(("die", {})), calling(ADD), DONE), {"tools": program("quick_on_stdio.py", runs.pids, "alter")}
    )
    assert ran.told[1][1]
    assert "changed the arguments of this tool" in ran.told[1][0]
    assert "'add' with other arguments" in ran.result.metadata.warnings[0]
    assert len(runs.started) == 2


def test_the_pinned_tools_are_the_same_in_equal_runs_and_show_no_secret(
    runs: Runs, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-hunter2-hunter2")
    servers = {"tools": f"{runs.tools['tools']} --token hunter2-hunter2"}
    ran = [runs(turns(calling(("environment", {})), DONE), servers) for _ in range(2)]
    first, second = (run.manifest["tool_servers"] for run in ran)
    assert first == second
    assert (first[0]["server"], first[0]["address"]) == ("tools", f"{sys.executable} (5 arguments not shown)")
    assert len(first[0]["digest"]) == 64
    assert {"add", "environment"} < set(first[0]["tools"])
    seen = json.loads(ran[0].told[0][0])
    assert seen.keys() - {"LC_CTYPE"} <= {"PATH", "HOME", "LANG", "TMPDIR", "PYTHONPATH", "KARENINA_TOOL_SERVER"}
    written = "".join(path.read_text("utf-8", "replace") for path in runs.folder.rglob("*") if path.is_file())
    for journal in runs.folder.rglob("journal.sqlite"):
        with JournalReader.open(journal) as reader:
            rows = [row for table in (CALLS, RESULTS) for row in reader.rows(table)]
            assert rows
            written += "".join(reader.bodies.unpacked(row.body) for row in rows)
    assert "hunter2" not in written


def test_a_replayed_run_has_the_same_tools_the_same_words_and_needs_no_server(runs: Runs) -> None:
    script = turns(calling(("become", {"what": "forget", "aloud": True})), calling(ADD), DONE)
    file = str(runs.folder / "recording.jsonl")
    live = runs(script, replay={"record": file})
    again = runs(script, replay={"replay": file})
    assert len(runs.started) == 1
    assert again.asked == []
    assert again.manifest["tool_servers"] == live.manifest["tool_servers"]
    assert again.told == live.told
    assert again.result.metadata.warnings == live.result.metadata.warnings != ()
    assert again.manifest["summary"]["notes"] == live.manifest["summary"]["notes"]


# One connection for all


def test_all_items_and_models_share_one_process(runs: Runs) -> None:
    script = turns(calling(("slow", {"seconds": 0.5}), ADD), DONE)
    ran = runs(script, questions=6, models=["one", "two"], concurrency=12)
    assert [str(result.outcome) for result in ran.results] == ["passed"] * 12
    assert len(runs.started) == 1
    assert [row["model"] for row in ran.manifest["tool_servers"]] == list(ran.manifest["models"])[:2]
    assert len({row["digest"] for row in ran.manifest["tool_servers"]}) == 1


def test_two_servers_with_the_same_tools_are_told_apart(runs: Runs, on_http: Callable[[str], str]) -> None:
    servers = {**runs.tools, "web": on_http("streamable")}
    script = turns(calling(("web__add", {"a": 1, "b": 1}), ("tools__add", {"a": 2, "b": 2})), DONE)
    ran = runs(
        script,
        servers,
        mcp_tool_filter=["add", "picture"],
        mcp_tool_description_overrides={"web__add": "Adds on the web."},
    )
    assert ran.told == [("2", False), ("4", False)]
    offered = {tool["function"]["name"]: tool["function"]["description"] for tool in ran.asked[0].body["tools"]}
    assert offered == {
        "tools__add": "Add two numbers.",
        "picture": "A text and an image.",
        "web__add": "Adds on the web.",
    }
    assert [row["tools"] for row in ran.manifest["tool_servers"]] == [["tools__add", "picture"], ["web__add"]]
    assert ran.result.generation.answering_mcp_servers == ("tools", "web")


def test_a_cancelled_run_leaves_no_process(runs: Runs) -> None:
    app = runs.app(call_seconds=60)

    async def cancelled(url: str) -> None:
        config = runs.config(url, runs.tools, {})
        prepared = prepare(runs.benchmark_of(2), config, app=app)
        task = asyncio.create_task(execute(prepared, Destination(run_dir=runs.folder / "run")))
        async with asyncio.timeout(30):
            while not server.requests:
                await asyncio.sleep(0.05)
        await asyncio.sleep(0.5)
        assert running(OURS)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with ScriptedServer(turns(calling(("freeze", {})), DONE)) as server:
        started = time.monotonic()
        app.run(cancelled(server.url))
    assert time.monotonic() - started < 20
    assert len(runs.started) == 1
    assert json.loads((runs.folder / "run" / "manifest.json").read_text())["status"] == "interrupted"


def test_a_run_that_fails_leaves_no_process(runs: Runs) -> None:
    app = runs.app()

    def broken(result: VerificationResult) -> None:
        raise RuntimeError("the caller is broken")

    with ScriptedServer(turns(calling(ADD), DONE)) as server:
        one_by_one = runs.config(server.url, runs.tools, {"concurrency": 1})  # else two failures may be told as a group
        prepared = prepare(runs.benchmark_of(2), one_by_one, app=app)
        with pytest.raises(RuntimeError, match="the caller is broken"):
            app.run(execute(prepared, Destination(run_dir=runs.folder / "run"), on_result=broken))
    assert len(runs.started) == 1
