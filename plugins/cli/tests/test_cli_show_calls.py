"""`karenina show --calls`: every request and every reply of an item, also where nothing could be made of them."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from karenina_core.testing import Reply, ScriptedServer, ServedRequest

Run = Callable[..., Result]
Files = Callable[..., Path]
PROSE, CUT = "I would say\nthat it is Paris.", '{"capital": "Par'


def verified(run: Run, benchmark: Path, served: Any, script: Callable[[ServedRequest], Any], *more: str) -> Any:
    with ScriptedServer(script) as server:
        result = run("verify", benchmark, *served(server.url), *more, "--quiet", "--out", "out")
    return result, server.requests


def unreadable(request: ServedRequest) -> Any:
    """A judge that never says JSON: prose, then a reply that is cut off, then nothing."""
    if request.model == "the-answering-model":
        return "The capital is Paris."
    corrections = request.text.count("That reply cannot be used")
    seen = "was cut off" in request.text
    return Reply("", usage=(9, 0)) if seen else Reply(CUT, finish_reason="length") if corrections else PROSE


def test_every_request_and_reply_of_a_failed_item_is_printed(run: Run, write_benchmark: Files, served: Any) -> None:
    result, asked = verified(run, write_benchmark("q0", "q1"), served, unreadable)
    assert result.exit_code == 3
    (one,) = json.loads(f"[{run('show', 'out', 'q1', '--json').stdout}]")
    assert (one["metadata"]["outcome"], "calls" in one) == ("error", False)
    calls = json.loads(run("show", "out", "q1", "--calls", "--json").stdout)["calls"]
    sent = [request for request in asked if "(q1)" in request.text]
    assert len(calls) == len(sent) == 4
    assert [call["stage"] for call in calls] == ["GenerateAnswer", *["ParseTemplate"] * 3]
    for call, request in zip(calls, sent, strict=True):
        assert [message["role"] for message in call["messages"]] == [m["role"] for m in request.messages]
    assert [call["reply"]["content"] for call in calls] == ["The capital is Paris.", PROSE, CUT, ""]
    shown = run("show", "out", "q1", "--calls").stdout
    assert "Requests and replies (4)" in shown
    assert "(q0)" not in shown
    for line in ("I would say", "that it is Paris.", CUT, "(empty)"):
        assert f"\n  {line}\n" in shown
    assert shown.count("That reply cannot be used") == 2
    assert shown.count('schema: {"') == 3


def test_an_attempt_that_failed_is_there_with_what_was_asked(run: Run, write_benchmark: Files, served: Any) -> None:
    def script(request: ServedRequest) -> Any:
        if request.model == "the-answering-model":
            return "The capital is Paris." if request.number > 1 else Reply(status=500)
        return Reply(status=401, body=b'{"error": {"message": "no such key"}}')

    once = ("--set", "run.retry_max_elapsed_seconds=5")
    result, _ = verified(run, write_benchmark("q0"), served, script, *once)
    assert result.exit_code == 3
    calls = json.loads(run("show", "out", "q0", "--calls", "--json").stdout)["calls"]
    assert ["reply" if "reply" in call else call["error"]["kind"] for call in calls] == ["server", "reply", "auth"]
    assert "messages" not in calls[0], "it was asked again, and is there once"
    assert "The capital is Paris." in json.dumps(calls[2]["messages"])
    shown = run("show", "out", "q0", "--calls").stdout
    assert "Failed: server: " in shown
    assert "Failed: auth: " in shown
    assert "(not kept: the failure was transient)" in shown


def test_an_answer_that_two_judges_read_is_among_the_calls_of_both(
    run: Run, write_benchmark: Files, served: Any, tmp_path: Path
) -> None:
    def script(request: ServedRequest) -> Any:
        return "The capital is Paris." if request.model == "the-answering-model" else {"capital": "Paris"}

    with ScriptedServer(script) as server:
        judges = [
            *("--parsing-model", "second", "--parsing-interface", "openai_endpoint"),
            *("--parsing-base-url", server.url),
        ]
        result = run("verify", write_benchmark("q0"), *served(server.url), *judges, "--quiet", "--out", "out")
    assert result.exit_code == 0, result.stderr
    both = json.loads(run("show", "out", "q0", "--calls", "--json").stdout)
    judged = {one["metadata"]["parsing"]["model_name"]: one["calls"] for one in both}
    assert sorted(judged) == ["second", "the-parsing-model"]
    for name, calls in judged.items():
        assert [call["model"]["model_name"] for call in calls] == ["the-answering-model", name]


def test_secrets_stay_out(run: Run, write_benchmark: Files, served: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ODD_API_KEY", "canary-of-a-key-4711")
    result, _ = verified(run, write_benchmark("q0"), served, lambda request: "It is canary-of-a-key-4711.")
    assert result.exit_code == 3
    for options in ((), ("--json",)):
        assert "canary-of-a-key" not in run("show", "out", "q0", "--calls", *options).output


def test_it_needs_a_question_and_a_run_directory(run: Run, write_benchmark: Files, served: Any) -> None:
    verified(run, write_benchmark("q0"), served, unreadable)
    assert run("show", "out", "--calls").exit_code == 2
    shutil.copy("out/results.jsonl", "alone.jsonl")
    result = run("show", "alone.jsonl", "q0", "--calls")
    assert (result.exit_code, result.stdout) == (1, "")
    assert "name that directory" in result.stderr
