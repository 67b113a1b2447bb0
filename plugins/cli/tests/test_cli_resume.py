"""`karenina resume` and `karenina status`, and how a run ends early."""

from __future__ import annotations

import asyncio
import itertools
import json
import re
import shlex
import signal
import sqlite3
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result
from karenina_calls.plugin_code import code_digest
from karenina_cli.exits import Interrupted
from karenina_cli.progress import Progress
from karenina_cli.running import carried_out
from karenina_runs.folder.status import RunStatus, read_status

from karenina_core import Benchmark, ModelConfig, RunControl, VerificationConfig, resume_run
from karenina_core.testing import Reply, ScriptedServer

Run = Callable[..., Result]
Files = Callable[..., Path]
IDS = [f"q{number}" for number in range(6)]
PYTHON = """\
from karenina_core.templates import BaseAnswer

print("code that somebody has to trust")


class Answer(BaseAnswer):
    capital: str
"""


def script(request: Any) -> Any:
    return {"capital": "Paris"} if request.schema else "Paris."


@pytest.fixture
def limited(run: Run, write_benchmark: Files, served: Any) -> Iterator[ScriptedServer]:
    """A server, and in `out` a run of six items whose budget of tokens was used up."""
    with ScriptedServer(script) as server:
        flags = [*served(server.url), "--out", "out", "--budget-tokens", "500", "--concurrency", "1"]
        result = run("verify", write_benchmark(*IDS), *flags)
        assert result.exit_code == 3, result.output
        assert result.stderr.endswith("type: karenina resume out --budget-tokens MORE\n")
        assert read_status(Path("out")).is_resumable
        yield server


def outcomes() -> dict[str, int]:
    return dict(read_status(Path("out")).outcomes)


# Going on


def test_what_is_missing_is_made_and_what_is_there_is_not_asked_again(run: Run, limited: ScriptedServer) -> None:
    result = run("resume", "out", "--budget-tokens", "1000000", "--json")
    assert result.exit_code == 0, result.output
    assert json.loads(result.stdout)["outcomes"] == {"passed": 6}
    assert limited.count == 12
    assert json.loads(Path("out/manifest.json").read_text("utf-8"))["status"] == "completed"
    assert len(Path("out/results.jsonl").read_text("utf-8").splitlines()) == 6


def test_a_provider_that_wants_to_be_left_alone_ends_the_run_and_the_command_says_until_when(
    run: Run, write_benchmark: Files, served: Any
) -> None:
    well, soon = False, ["--concurrency", "2", "--set", "run.retry_policy.rate_limited.min_wait=0.01"]

    def refusing(request: Any) -> Any:
        return script(request) if well or request.number <= 4 else Reply.error(429, "later", retry_after=600)

    with ScriptedServer(refusing) as server:
        result = run("verify", write_benchmark(*IDS), *served(server.url), "--out", "out", *soon)
        assert result.exit_code == 3, result.output
        ended = result.stderr.splitlines()[-1]
        assert re.fullmatch(r"[45] of 6 items have no result; to continue, type: karenina resume out", ended), (
            result.stderr
        )
        printed = " ".join(result.stdout.split())
        assert re.search(r"asks for a pause of (600|59\d) s \(until [-\d]+ [:\d]+\)", printed), result.stdout
        assert set(outcomes()) == {"passed"}
        assert read_status(Path("out")).state == "interrupted"
        well = True
        result = run("resume", "out")
        assert result.exit_code == 0, result.output
        assert outcomes() == {"passed": 6}


def test_a_budget_is_that_of_the_whole_run(run: Run, limited: ScriptedServer) -> None:
    before = limited.count
    result = run("resume", "out")
    assert limited.count == before
    assert "is used up" in result.output
    assert "--budget-tokens" in result.output
    assert read_status(Path("out")).state == "interrupted"


def test_what_a_run_may_spend_is_what_was_last_said(run: Run, limited: ScriptedServer) -> None:
    before = limited.count
    assert run("resume", "out", "--budget-tokens", "501").exit_code == 3
    manifest = json.loads(Path("out/manifest.json").read_text("utf-8"))
    assert manifest["config"]["budget_tokens"] == 501
    assert limited.count == before


def test_a_text_of_the_journal_that_is_none_any_more_is_a_damaged_row(run: Run, limited: ScriptedServer) -> None:
    journal = Path("out/journal.sqlite")
    with closing(sqlite3.connect(journal, isolation_level=None)) as connection:
        (model,) = connection.execute("SELECT model FROM calls LIMIT 1").fetchone()
        connection.execute("UPDATE calls SET model = CAST(x'ff' || CAST(model AS BLOB) AS TEXT) WHERE id = 1")
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    assert model
    shown = run("status", "out")
    assert shown.exit_code == 0, shown.output
    assert "1 row of the journal cannot be read: karenina doctor out" in shown.stdout


def test_a_run_that_python_has_drained_is_gone_on_with_on_the_command_line(run: Run, write_benchmark: Files) -> None:
    benchmark = Benchmark.load(write_benchmark(*IDS))
    drains: list[Callable[[], object]] = []

    def third(request: Any) -> Any:
        if request.number == 3:
            drains[0]()
        return script(request)

    async def main(config: VerificationConfig) -> None:
        control, loop = RunControl(), asyncio.get_running_loop()
        drains.append(lambda: loop.call_soon_threadsafe(control.drain))
        with pytest.raises(asyncio.CancelledError):
            await benchmark.arun_verification(config, run_dir="out", control=control)

    with ScriptedServer(third) as server:
        model = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=server.url)
        asyncio.run(main(VerificationConfig(answering_models=[model], parsing_models=[model], concurrency=1)))
        assert 3 <= server.count < 12
        result = run("resume", "out")
        assert result.exit_code == 0, result.output
        assert server.count == 12
    assert outcomes() == {"passed": 6}
    assert benchmark.without_questions(IDS[:1]).source is None


def test_a_run_can_be_gone_on_with_while_its_calls_are_recorded_or_traced(run: Run, limited: ScriptedServer) -> None:
    extra = ["plugins.replay.record=calls.jsonl", "plugins.opentelemetry.enabled=true"]
    options = [part for setting in extra for part in ("--set", setting)]
    result = run("resume", "out", "--budget-tokens", "1000000", *options)
    assert result.exit_code == 0, result.output
    assert Path("calls.jsonl").stat().st_size > 0
    assert outcomes() == {"passed": 6}


def test_a_finished_run_says_so(run: Run, limited: ScriptedServer) -> None:
    assert run("resume", "out", "--budget-tokens", "1000000").exit_code == 0
    manifest, count = Path("out/manifest.json").read_bytes(), limited.count
    result = run("resume", "out")
    assert result.exit_code == 0
    assert "is finished: all 6 items have a result" in result.stderr
    assert limited.count == count
    assert Path("out/manifest.json").read_bytes() == manifest


def test_verify_does_not_write_over_a_run_and_says_what_to_type(run: Run, limited: ScriptedServer, served: Any) -> None:
    result = run("verify", "capitals.jsonld", *served(limited.url), "--out", "out")
    assert result.exit_code == 74
    assert "karenina resume out" in result.stderr


def test_a_benchmark_that_is_gone_is_named_with_what_to_do(run: Run, limited: ScriptedServer) -> None:
    Path("capitals.jsonld").rename("elsewhere.jsonld")
    for command in (["resume", "out"], ["extend", "out", "--replicates", "2"], ["repair", "out", "--all"]):
        result = run(*command)
        assert result.exit_code == 1
        if command[0] == "resume":
            text = "capitals.jsonld, no longer exists; put it back, or give it: --benchmark FILE, or from Python"
            assert text in result.stderr
            assert "Next: karenina resume out --budget-tokens MORE --benchmark FILE\n" in run("status", "out").stdout
            more = ["--benchmark", "elsewhere.jsonld", "--budget-tokens", "1000000"]
            assert run(*command, *more).exit_code == 0
        else:
            assert "--benchmark FILE" in result.stderr
            result = run(*command, "--benchmark", "elsewhere.jsonld")
            assert result.exit_code == 0, result.output


def test_a_fork_knows_the_file_that_it_was_given(run: Run, limited: ScriptedServer) -> None:
    Path("capitals.jsonld").rename("elsewhere.jsonld")
    more = ["--benchmark", "elsewhere.jsonld", "--budget-tokens", "1000000"]
    assert run("resume", "out", "--fork", "new", *more).exit_code == 0
    assert run("repair", "new", "--questions", "q0", "--quiet").exit_code == 0
    assert json.loads(Path("new/manifest.json").read_text("utf-8"))["benchmark"]["path"].endswith("elsewhere.jsonld")
    resume_run("out", benchmark=Benchmark.load("elsewhere.jsonld"), fork="another")
    manifest = json.loads(Path("another/manifest.json").read_text("utf-8"))
    assert manifest["benchmark"]["path"].endswith("elsewhere.jsonld")
    changed = Path("elsewhere.jsonld").read_text("utf-8").replace("of France? (q5)", "of Italy? (q5)")
    Path("elsewhere.jsonld").write_text(changed, "utf-8")
    refused = run("resume", "out", *more)
    assert refused.exit_code == 1
    assert "the question 'q5' has another text" in refused.stderr


def test_what_is_no_run_directory_is_named(run: Run, tmp_path: Path) -> None:
    for command in ("resume", "status"):
        result = run(command, tmp_path)
        assert result.exit_code == 1
        assert "is not a run directory: it has no manifest.json" in result.stderr


# Errors


def failing(first: Reply, calls: list[str]) -> Callable[[Any], Any]:
    """The answer to q1 fails at its first time."""

    def answer(request: Any) -> Any:
        if "(q1)" in request.text and not request.schema and not calls:
            calls.append(request.text)
            return first
        return script(request)

    return answer


ONCE = [f"run.retry_policy.{kind}.max_attempts=1" for kind in ("rate_limited", "timeout", "connection", "server")]
ONE_ATTEMPT = [part for setting in ONCE for part in ("--set", setting)]


def test_errors_that_may_be_gone_are_tried_again(run: Run, write_benchmark: Files, served: Any) -> None:
    with ScriptedServer(failing(Reply.error(500), [])) as server:
        flags = [*served(server.url), *ONE_ATTEMPT, "--out", "out"]
        assert run("verify", write_benchmark("q0", "q1"), *flags, "--sink", "jsonl:copy.jsonl").exit_code == 3
        assert outcomes() == {"passed": 1, "error": 1}
        assert read_status(Path("out")).waiting == 1
        result = run("resume", "out")
        assert result.exit_code == 0, result.output
        assert server.count == 5
    copied = [json.loads(line)["metadata"] for line in Path("copy.jsonl").read_text("utf-8").splitlines()]
    assert {about["question_id"]: about["outcome"] for about in copied} == {"q0": "passed", "q1": "passed"}
    assert outcomes() == {"passed": 2}


def test_errors_that_would_come_again_are_left_alone_unless_it_is_asked_for(
    run: Run, write_benchmark: Files, served: Any
) -> None:
    with ScriptedServer(failing(Reply.error(400), [])) as server:
        flags = [*served(server.url), "--out", "out"]
        assert run("verify", write_benchmark("q0", "q1"), *flags).exit_code == 3
        count = server.count
        left = run("resume", "out")
        assert left.exit_code == 3
        assert server.count == count
        assert outcomes() == {"passed": 1, "error": 1}
        result = run("resume", "out", "--retry-failed")
        assert result.exit_code == 0, result.output
    assert outcomes() == {"passed": 2}


@pytest.mark.parametrize("where", [["out"], ["out", "--fork", "other"]])
def test_a_judge_that_could_not_be_read_is_asked_again_when_it_is_asked_for(
    run: Run, write_benchmark: Files, served: Any, where: list[str]
) -> None:
    prose = [True]

    def judged(request: Any) -> Any:
        return "I cannot say." if prose[0] and request.schema and "(q1)" in request.text else script(request)

    with ScriptedServer(judged) as server:
        assert run("verify", write_benchmark("q0", "q1"), *served(server.url), "--out", "out").exit_code == 3
        assert outcomes() == {"passed": 1, "error": 1}
        prose[0], count = False, server.count
        assert run("resume", "out").exit_code == 3
        assert server.count == count
        result = run("resume", *where, "--retry-failed")
        assert result.exit_code == 0, result.output
        assert server.count == count + 1
    assert read_status(Path(where[-1])).outcomes == {"passed": 2}


# What has changed


def changed_file(old: str, new: str) -> None:
    path = Path("capitals.jsonld")
    text = path.read_text("utf-8")
    assert old in text
    path.write_text(text.replace(old, new, 1), "utf-8")


@pytest.mark.parametrize(
    ("change", "named", "asked"),
    [
        (("of France? (q5)", "of Italy? (q5)"), "the question 'q5' has another text", 2),
        (('ground_truth\\": \\"Paris', 'ground_truth\\": \\"Rome'), "the question 'q0' has another template", 0),
        (('"@id": "q5"', '"@id": "q9"'), "the question 'q5' is gone", 0),
    ],
)
def test_a_changed_question_is_named_and_a_fork_asks_only_what_is_new(
    run: Run, limited: ScriptedServer, change: tuple[str, str], named: str, asked: int
) -> None:
    assert run("resume", "out", "--budget-tokens", "1000000").exit_code == 0
    changed_file(*change)
    count, results = limited.count, Path("out/results.jsonl").read_bytes()
    result = run("resume", "out")
    assert result.exit_code == 1
    assert named in result.stderr
    assert "karenina resume out --fork NEWDIR" in result.stderr
    assert limited.count == count
    fork = run("resume", "out", "--fork", "other", "--budget-tokens", "1000000")
    assert fork.exit_code == 0, fork.output
    assert limited.count == count + asked
    assert Path("out/results.jsonl").read_bytes() == results
    forked = json.loads(Path("other/manifest.json").read_text("utf-8"))["forked_from"]
    assert forked["run_id"] == json.loads(Path("out/manifest.json").read_text("utf-8"))["run_id"]


@pytest.mark.parametrize(
    ("setting", "named"),
    [
        ("models.the-answering-model.temperature=0.7", "temperature was 0.1 and is 0.7"),
        ("run.features=['abstention']", "the setting features"),
        ("run.replicate_count=2", "the setting replicate_count was 1 and is 2"),
        ("models.the-parsing-model.model_name=other", "the parsing model openai_endpoint:other"),
    ],
)
def test_a_changed_setting_is_named(run: Run, limited: ScriptedServer, setting: str, named: str) -> None:
    count = limited.count
    result = run("resume", "out", "--set", setting)
    assert result.exit_code == 1, result.output
    assert named in result.stderr
    assert limited.count == count


def test_changed_code_of_a_plugin_is_named(
    run: Run, write_benchmark: Files, served: Any, install: Callable[..., Path]
) -> None:
    source = """\
from karenina_core import hookimpl

@hookimpl
def karenina_register_embedders(registry):
    registry.add("odd_plugin:Odd", name="odd")
"""
    folder = install("karenina-odd", {"odd": "odd_plugin"}, "karenina.plugins", odd_plugin=source)
    code_digest.cache_clear()
    with ScriptedServer(failing(Reply.error(500), [])) as server:
        flags = [*served(server.url), *ONE_ATTEMPT, "--out", "out"]
        assert run("verify", write_benchmark("q0", "q1"), *flags).exit_code == 3
        (folder / "odd_plugin.py").write_text(f"{source}\n# more\n", "utf-8")
        code_digest.cache_clear()
        result = run("resume", "out")
        code_digest.cache_clear()
        assert result.exit_code == 1
        assert "the code of karenina-odd 1.0 (plugin 'odd') has changed" in result.stderr
        (folder / "odd_plugin.py").write_text(source, "utf-8")
        assert run("resume", "out").exit_code == 0


def test_settings_that_change_no_number_may_change(run: Run, limited: ScriptedServer) -> None:
    Path("more.toml").write_text("[run]\nbudget_tokens = 1000000\nrequest_timeout = 7.0\n", "utf-8")
    result = run("resume", "out", "--config", "more.toml", "--concurrency", "3")
    assert result.exit_code == 0, result.output


# What was not written


def test_a_key_that_was_not_written_is_asked_for(
    run: Run, write_benchmark: Files, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    with ScriptedServer(failing(Reply.error(500), [])) as server:
        key = ["--set", "models.the-answering-model.endpoint_api_key=a-key-of-mine-0123"]
        table = ["--set", "models.the-answering-model.model_name=the-answering-model"]
        flags = [*served(server.url), *ONE_ATTEMPT, *key, *table, "--out", "out"]
        assert run("verify", write_benchmark("q0", "q1"), *flags).exit_code == 3
        assert all(b"a-key-of-mine" not in file.read_bytes() for file in Path("out").iterdir())
        result = run("resume", "out")
        assert result.exit_code == 1
        assert "--set models.the-answering-model.api_key_env=VARIABLE" in result.stderr
        monkeypatch.setenv("MINE", "a-key-of-mine-0123")
        result = run("resume", "out", "--set", "models.the-answering-model.api_key_env=MINE")
        assert result.exit_code == 0, result.output


def test_recorded_answers_that_were_not_written_are_asked_for(
    run: Run, write_benchmark: Files, write_answers: Files
) -> None:
    answers = write_answers(q0="Paris", q1="Rome")
    flags = ["--answering-interface", "manual", "--manual-traces", answers, "--out", "out"]
    assert run("verify", write_benchmark("q0", "q1"), *flags).exit_code == 0
    assert "--manual-traces FILE" in run("resume", "out").stderr
    assert run("resume", "out", "--manual-traces", answers).exit_code == 0
    result = run("resume", "out", "--manual-traces", write_answers(q0="Paris", q1="Paris"))
    assert result.exit_code == 1
    assert "recorded_answers" in result.stderr


def test_a_sink_whose_password_was_not_written_is_asked_for(
    run: Run, write_benchmark: Files, served: Any, tmp_path: Path
) -> None:
    with ScriptedServer(failing(Reply.error(500), [])) as server:
        sink = f"jsonl:{tmp_path}/copy.jsonl?password=canary-secret"
        flags = [*served(server.url), *ONE_ATTEMPT, "--out", "out", "--sink", sink]
        assert run("verify", write_benchmark("q0", "q1"), *flags).exit_code == 3
        result = run("resume", "out")
        assert result.exit_code == 1
        assert "--sink NAME:TARGET" in result.stderr
        assert "canary-secret" not in result.output
        assert run("resume", "out", "--sink", sink).exit_code == 0
    assert all(b"canary-secret" not in file.read_bytes() for file in Path("out").iterdir())


# Status


def test_the_status_says_how_far_a_run_is_and_what_to_type(run: Run, limited: ScriptedServer) -> None:
    files = {path.name: path.read_bytes() for path in Path("out").iterdir()}
    shown = run("status", "out")
    assert shown.exit_code == 0
    assert "Next: karenina resume out --budget-tokens MORE\n" in shown.stdout
    shown_status = json.loads(run("status", "out", "--json").stdout)
    (note,) = shown_status["notes"]
    assert note.startswith("budget_tokens: the budget of 500 tokens is used up")
    assert f"Notes\n  {note}\n" in shown.stdout, "why it was left"
    assert {path.name: path.read_bytes() for path in Path("out").iterdir()} == files
    assert (shown_status["state"], shown_status["items"], shown_status["pid"]) == ("interrupted", 6, None)
    assert shown_status["outcomes"] == outcomes()
    assert shown_status["ledger"]["total"]["calls"] == limited.count
    run("resume", "out", "--budget-tokens", "1000000")
    done = run("status", "out").stdout
    assert "Next: karenina show out" in done
    assert "Notes" not in done


def test_the_status_says_that_a_run_has_to_be_trusted_again(run: Run, limited: ScriptedServer) -> None:
    assert run("resume", "out", "--trust").exit_code == 3
    line = "karenina resume out --budget-tokens MORE --trust"
    assert f"Next: {line}\n" in run("status", "out").stdout
    assert json.loads(run("status", "out", "--json").stdout)["next"] == line
    assert "--trust" in run("resume", "out", "--budget-tokens", "1000000").stderr
    assert run("resume", "out", "--budget-tokens", "1000000", "--trust").exit_code == 0


def test_a_run_whose_source_is_gone_is_refused_and_a_fork_says_what_is_missing(
    run: Run, limited: ScriptedServer, served: Any
) -> None:
    benchmark = json.loads(Path("out/manifest.json").read_text("utf-8"))["benchmark"]["path"]
    flags = [*served(limited.url), "--concurrency", "1", "--reuse", "out", "--trust", "--budget-tokens", "100"]
    assert run("verify", benchmark, *flags, "--out", "a second").exit_code == 3
    assert json.loads(Path("a second/manifest.json").read_text("utf-8"))["reuse"] == [str(Path("out").absolute())]
    Path("out").rename("away")
    count = limited.count
    more = ["--budget-tokens", "1000000"]
    refused = run("resume", "a second", "--trust", *more)
    assert (refused.exit_code, limited.count) == (1, count)
    assert "put it back" in refused.stderr
    (line,) = re.findall(r": karenina (resume 'a second' --fork NEWDIR.*)", refused.stderr)
    assert line.endswith(" --trust")
    forked = run(*shlex.split(line.replace("NEWDIR", "third")), *more)
    assert forked.exit_code == 0, forked.output
    assert f"Warning: {Path('out').absolute()} no longer exists" in forked.stderr


def test_a_run_whose_items_were_all_made_goes_on_without_its_source(
    run: Run, write_benchmark: Files, served: Any
) -> None:
    with ScriptedServer(failing(Reply.error(500), [])) as server:
        flags = [*served(server.url), *ONE_ATTEMPT]
        assert run("verify", write_benchmark("q0"), *flags, "--out", "first").exit_code == 0
        verify = ["verify", write_benchmark("q0", "q1"), *flags, "--reuse", "first", "--out", "out"]
        assert run(*verify).exit_code == 3
        assert outcomes() == {"passed": 1, "error": 1}
        Path("first").rename("away")
        assert "Next: karenina resume out\n" in run("status", "out").stdout
        count = server.count
        result = run("resume", "out")
        assert result.exit_code == 0, result.output
        assert f"Warning: {Path('first').absolute()} no longer exists" in result.stderr
        assert server.count == count + 2
    assert outcomes() == {"passed": 2}


def test_an_item_that_was_cut_short_may_need_what_is_gone(run: Run, write_benchmark: Files, served: Any) -> None:
    with ScriptedServer(script) as server:
        flags = served(server.url)
        assert run("verify", write_benchmark("q0"), *flags, "--out", "first").exit_code == 0
        verify = ["verify", write_benchmark("q1"), *flags, "--reuse", "first", "--budget-tokens", "1", "--out", "out"]
        assert run(*verify).exit_code == 3
        assert read_status(Path("out")).errors == {"budget": 1}
        Path("first").rename("away")
        refused = run("resume", "out", "--budget-tokens", "1000000")
        assert refused.exit_code == 1
        assert "cannot be found; put it back, or" in refused.stderr


def test_a_finished_run_whose_results_are_gone_is_read_from_its_journal(run: Run, limited: ScriptedServer) -> None:
    assert run("resume", "out", "--budget-tokens", "1000000").exit_code == 0
    before, count = Path("out/results.jsonl").read_bytes(), limited.count
    Path("out/results.jsonl").unlink()
    again = run("resume", "out", "--json")
    assert (again.exit_code, limited.count) == (0, count)
    assert json.loads(again.stdout)["outcomes"] == {"passed": 6}
    assert Path("out/results.jsonl").read_bytes() == before


def test_the_resume_command_has_everything_without_which_it_would_be_refused(
    run: Run, write_benchmark: Files, write_answers: Files, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    answers = write_answers(q0="Paris", q1="Paris", q2="Paris")
    with ScriptedServer(script) as server:
        flags = ["--answering-interface", "manual", "--manual-traces", answers, *served(server.url)[6:], "--trust"]
        flags += ["--set", "models.the-parsing-model.endpoint_api_key=a-key-of-mine-0123"]
        flags += ["--set", "models.the-parsing-model.model_name=the-parsing-model"]
        flags += ["--budget-tokens", "60", "--concurrency", "1", "--out", "out"]
        result = run("verify", write_benchmark("q0", "q1", "q2"), *flags)
        assert result.exit_code == 3, result.output
        (line,) = re.findall(r"to continue, type: karenina (.*)", result.stderr)
        assert f"Next: karenina {line}\n" in run("status", "out").stdout
        monkeypatch.setenv("MINE", "a-key-of-mine-0123")
        for placeholder, value in {"MORE": "100000", "VARIABLE": "MINE", "FILE": str(answers)}.items():
            assert placeholder in line
            line = line.replace(placeholder, value)
        result = run(*line.split())
        assert result.exit_code == 0, result.output


def test_where_code_is_trusted_all_that_was_typed_is_typed_again(
    run: Run, write_benchmark: Files, write_answers: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("KARENINA_DISABLE", "sandbox-runtime")
    answers = write_answers(q0="Paris")
    flags = ["--answering-interface", "manual", "--manual-traces", answers, "--out", "out"]
    assert run("verify", write_benchmark("q0"), *flags).exit_code == 0
    write_benchmark("q0", "q1", template=PYTHON, language="python")
    extension = ["extend", "out", "--questions", "all", "--manual-traces", str(answers)]
    printed = run(*extension)
    assert printed.exit_code == 1
    assert shlex.join(["karenina", "extend", "--trust", *extension[1:]]) in printed.stderr.splitlines()
    fork = ["resume", "out", "--fork", "new", "--manual-traces", str(answers)]
    printed = run(*fork)
    assert printed.exit_code == 1
    assert shlex.join(["karenina", "resume", "--trust", *fork[1:]]) in printed.stderr.splitlines()


# Signals


def begun(forking: Any, benchmark: Path, flags: list[str]) -> Any:
    return forking.start("verify", benchmark, *flags, "--out", "out", "--concurrency", "2", ends=True)


def wait_for(wanted: Callable[[RunStatus], bool]) -> RunStatus:
    deadline = time.monotonic() + 60
    while True:
        if Path("out/manifest.json").exists() and wanted(found := read_status(Path("out"))):
            return found
        assert time.monotonic() < deadline
        time.sleep(0.02)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_first_signal_waits_for_the_calls_that_are_under_way(
    number: signal.Signals, run: Run, write_benchmark: Files, served: Any, forking: Any, draining: Any
) -> None:
    ended, asked = threading.Event(), itertools.count(1)

    async def slow(request: Any) -> Any:
        if next(asked) > 4:
            await asyncio.to_thread(ended.wait, 60)
        return script(request)

    with ScriptedServer(slow) as server:
        started = begun(forking, write_benchmark(*IDS), [*served(server.url), "--trust"])
        server.wait_for(6, timeout=60)
        live = read_status(Path("out"))
        assert (live.state, live.pid) == ("running", started.pid)
        count = server.count
        assert count == 6  # the two that are under way are the fifth and the sixth
        started.send_signal(number)
        draining(started)
        assert started.poll() is None
        ended.set()
        assert started.wait(60) == 130, started.stderr
        assert "interrupted: 2 of 6 items are done, kept in out" in started.stderr
        (line,) = re.findall(r"To continue, type: karenina (.*)", started.stderr)
        assert line == "resume out --trust"
        found = read_status(Path("out"))
        assert found.state == "interrupted"
        assert server.count == count
        assert found.ledger["total"]["calls"] == count
        assert run(*line.split()).exit_code == 0
        assert server.count == 12


def test_the_second_interrupt_ends_the_run_at_once(
    run: Run, write_benchmark: Files, served: Any, forking: Any, draining: Any
) -> None:
    hanging = [True]

    def hangs(request: Any) -> Any:
        return Reply.hang(30) if "(q1)" in request.text and hanging[0] else script(request)

    with ScriptedServer(hangs) as server:
        started = begun(forking, write_benchmark("q0", "q1", "q2"), served(server.url))
        wait_for(lambda found: found.done == 2)
        started.send_signal(signal.SIGINT)
        draining(started)
        assert started.poll() is None
        at = time.monotonic()
        started.send_signal(signal.SIGINT)
        assert started.wait(60) == 130, started.stderr
        assert time.monotonic() - at < 20  # the call that is under way would take 30
        assert "interrupted: 2 of 3 items are done" in started.stderr
        assert "Traceback" not in started.stderr
        hanging[0] = False
        assert run("resume", "out").exit_code == 0
    assert outcomes() == {"passed": 3}


def test_where_nothing_has_begun_there_is_nothing_to_continue(tmp_path: Path) -> None:
    async def work(on_result: Any, control: RunControl) -> Any:
        raise asyncio.CancelledError

    with pytest.raises(Interrupted, match=r"^interrupted: 0 of 3 items are done$"):
        carried_out(work, Progress(3, quiet=True), tmp_path)


def test_a_drain_that_finishes_everything_is_no_interruption(
    write_benchmark: Files, served: Any, forking: Any, draining: Any
) -> None:
    ended = threading.Event()

    async def slow(request: Any) -> Any:
        if request.schema:
            await asyncio.to_thread(ended.wait, 60)
        return script(request)

    with ScriptedServer(slow) as server:
        started = begun(forking, write_benchmark("q0"), served(server.url))
        server.wait_for(2, timeout=60)
        started.send_signal(signal.SIGINT)
        draining(started)
        ended.set()
        assert started.wait(60) == 0, started.stderr
    assert read_status(Path("out")).state == "completed"
