"""Agents that judge, from the command line: the plan names them, settings reach them, contradictions end early."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from click.testing import Result

from karenina_core.testing import ScriptedServer

Run = Callable[..., Result]
Files = Callable[..., Path]
SHOWN = ("--set", "run.agentic_judge_context=trace_only")
DYNAMIC = ("--with", "agentic_parsing", "--set", "run.agentic_parsing_trigger=dynamic")


def decided(request: Any) -> Any:
    """An answer, and a judge that takes it from the final message."""
    if "Decide whether this message alone" in request.text:
        return json.dumps({"reasoning": "it is given", "sufficient": True, "answer": {"capital": "Paris"}})
    return "The capital is Paris."


def test_the_plan_names_the_stage_in_place_of_the_judge_whenever_agents_are_sent(run: Run) -> None:
    for options in (("--with", "agentic_parsing"), DYNAMIC):
        document = json.loads(run("plan", *options, "--json").stdout)
        names = [stage["name"] for stage in document["stages"]]
        assert "AgenticParseTemplate" in names
        assert "ParseTemplate" not in names


@pytest.mark.parametrize("by", ["option", "environment"])
def test_the_trigger_decides_whether_an_agent_is_sent(
    by: str, run: Run, write_benchmark: Files, served: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = DYNAMIC if by == "option" else DYNAMIC[:2]
    if by == "environment":
        monkeypatch.setenv("KARENINA_AGENTIC_PARSING_TRIGGER", "dynamic")
    with ScriptedServer(decided) as server:
        result = run("verify", write_benchmark("q0"), *served(server.url), *options, *SHOWN, "--out", "out")
    assert result.exit_code == 0, result.stderr
    assert len(server.requests) == 2
    (line,) = Path("out/results.jsonl").read_text("utf-8").splitlines()
    part = json.loads(line)["template"]
    assert (part["dynamic_parse_decision"], part["agentic_parsing_performed"]) == ("direct", False)
    assert "reads what the judge reads without it" in result.output


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (DYNAMIC[2:], "agentic_parsing_trigger: dynamic decides"),
        ((*DYNAMIC, "--with", "deep_judgment"), "--without deep_judgment"),
        (DYNAMIC[:2], "--workspace-root"),
    ],
    ids=["dynamic alone", "deep judgment", "no root"],
)
def test_what_contradicts_itself_ends_before_any_call(
    options: tuple[str, ...], message: str, run: Run, write_benchmark: Files, served: Any
) -> None:
    shown = () if message == "--workspace-root" else SHOWN
    with ScriptedServer(decided) as server:
        result = run("verify", write_benchmark("q0"), *served(server.url), *options, *shown, "--out", "out")
    assert result.exit_code == 1
    assert message in result.stderr
    assert server.requests == []
    assert not Path("out").exists()
