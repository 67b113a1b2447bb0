"""What an agent does, as karenina sees it: messages, tools, permissions, files, commands, usage and limits."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from karenina_core.errors import PortError
from karenina_core.ports.values import AgentConfig, AgentResult, CallContext, Tool, ToolOutcome
from karenina_core.values.message import Message, ThinkingBlock

ASK = (Message.system("Be exact."), Message.user("What is the target of venetoclax?"))
USAGE = {"totalTokens": 19, "inputTokens": 10, "outputTokens": 4, "cachedReadTokens": 3, "cachedWriteTokens": 2}
KEY = "sk-canary-0123456789-abcdef"


def run(agent: Any, config: AgentConfig | None = None, tools: Any = (), task: str = "generation") -> AgentResult:
    return asyncio.run(agent.arun(ASK, tools, None, config, call=CallContext(task)))


def shown(result: AgentResult) -> list[tuple[str, Any]]:
    return [
        (message.role, message.text or [call.name for call in message.tool_calls] or message.content[0].content)  # type: ignore[union-attr]  # the last one is the answer of a tool
        for message in result.trace_messages
    ]


def test_the_work_is_a_trace_of_messages_calls_and_answers(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(
        says.thought("Where "),
        says.thought("to look?"),
        says.text("Let me "),
        says.text("look."),
        says.call("c1", rawInput={"path": "notes.txt"}),
        says.done("c1", "BCL2"),
        says.text("It is "),
        says.text("BCL2."),
        says.stop(usage=USAGE),
    )
    result = run(agent(program))
    assert shown(result) == [("assistant", "Let me look."), ("tool", "BCL2"), ("assistant", "It is BCL2.")]
    first = result.trace_messages[0]
    assert first.content[0] == ThinkingBlock("Where to look?")
    assert [(call.name, dict(call.input)) for call in first.tool_calls] == [("read", {"path": "notes.txt"})]
    assert (result.final_response, result.turns, result.limit) == ("It is BCL2.", 2, None)
    usage = result.usage
    assert (usage.input_tokens, usage.output_tokens, usage.total_tokens) == (15, 4, 19)
    assert (usage.cache_read_tokens, usage.cache_creation_tokens, usage.cost_usd) == (3, 2, None)
    assert not result.usage_unavailable
    assert result.session_id == "s-1"


def test_the_agent_is_begun_as_the_protocol_says(scripted: Any, says: Any, agent: Any, tmp_path: Path) -> None:
    program = scripted(says.text("So."), says.stop())
    folder = tmp_path / "work"
    folder.mkdir()
    run(agent(program), AgentConfig(workspace_path=folder, system_prompt="You code."))
    (hello,) = program.asked("initialize")
    assert hello["protocolVersion"] == 1
    able = {"fs": {"readTextFile": True, "writeTextFile": True}, "terminal": True}
    assert hello["clientCapabilities"] == able
    assert program.asked("session/new") == [{"cwd": str(folder), "mcpServers": []}]
    (prompt,) = program.asked("session/prompt")
    text = "You code.\n\nBe exact.\n\nWhat is the target of venetoclax?"
    assert prompt == {"sessionId": "s-1", "prompt": [{"type": "text", "text": text}]}
    assert program.noted("folder") == [str(folder)]
    assert program.noted("ended"), "it was not left to end by itself"


def test_usage_that_no_agent_reports_is_unknown(scripted: Any, says: Any, agent: Any) -> None:
    result = run(agent(scripted(says.text("So."), says.used(1200, 0.25), says.stop())))
    assert result.usage_unavailable
    assert (result.usage.total_tokens, result.usage.cost_usd) == (0, 0.25)
    assert run(agent(scripted(says.text("So."), says.used(9, 0.25, "EUR"), says.stop()))).usage.cost_usd is None


def test_tools_of_karenina_are_offered_by_a_server_on_stdio(scripted: Any, says: Any, agent: Any) -> None:
    given: list[Mapping[str, Any]] = []

    async def half_life(arguments: Mapping[str, Any]) -> ToolOutcome:
        given.append(arguments)
        return ToolOutcome({"digoxin": "36 h"}[arguments["drug"]])

    schema = {"type": "object", "properties": {"drug": {"type": "string"}}, "required": ["drug"]}
    tool = Tool(name="half_life", description="Of a drug.", input_schema=schema, run=half_life)
    calls = [{"name": "half_life", "arguments": {"drug": drug}} for drug in ("digoxin", "Digoxin")]
    program = scripted(("use", [*calls, {"name": "other", "arguments": {}}]), says.text("36 h"), says.stop())
    result = run(agent(program), tools=[tool])
    assert given == [{"drug": "digoxin"}, {"drug": "Digoxin"}]
    assert program.noted("tools") == [[{"name": "half_life", "description": "Of a drug.", "inputSchema": schema}]]
    assert program.noted("mcp")[0]["protocolVersion"] == "2025-06-18"
    called = [message.tool_calls[0].name for message in result.trace_messages if message.tool_calls]
    assert called == ["half_life", "half_life", "other"]
    answers = [message.content[0] for message in result.trace_messages if message.role == "tool"]
    assert [(block.content, block.is_error) for block in answers] == [  # type: ignore[union-attr]  # answers of tools
        ("36 h", False),
        ("the tool failed: KeyError: 'Digoxin'", True),
        ("there is no tool 'other'", True),
    ]


def test_a_call_beyond_the_limit_is_not_run(scripted: Any, says: Any, agent: Any) -> None:
    ran: list[Any] = []

    async def look(arguments: Mapping[str, Any]) -> ToolOutcome:
        ran.append(arguments)
        return ToolOutcome("nothing")

    calls = [{"name": "look", "arguments": {"at": number}} for number in range(4)]
    program = scripted(("use", calls), ("until_cancelled", {"stopReason": "cancelled", "usage": USAGE}))
    result = run(agent(program), AgentConfig(max_tool_calls=2), [Tool(name="look", run=look)])
    assert (result.limit, len(ran)) == ("tool_calls", 2)
    assert result.usage.total_tokens == 19, "what it reports when it is cancelled counts"


def test_servers_that_the_agent_connects_to_itself_are_passed_on(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(says.text("So."), says.stop())
    servers = {
        "web": "https://example.com/mcp",
        "files": "/bin/cat --all",
        "own": {"type": "http", "url": "http://a", "headers": []},
    }
    asyncio.run(agent(program).arun(ASK, (), servers))
    assert program.asked("session/new")[0]["mcpServers"] == [
        {"type": "http", "name": "web", "url": "https://example.com/mcp", "headers": []},
        {"name": "files", "command": "/bin/cat", "args": ["--all"], "env": []},
        {"type": "http", "name": "own", "url": "http://a", "headers": []},
    ]
    with pytest.raises(PortError, match="cannot connect to the tool server 'web' over sse"):
        asyncio.run(agent(scripted()).arun(ASK, (), {"web": {"type": "sse", "url": "http://a", "headers": []}}))


# Permissions, files and commands

INSIDE = {"rawInput": {"file_path": "$cwd/notes.txt"}}
OUTSIDE = {"locations": [{"path": "/etc/passwd"}]}


@pytest.mark.parametrize(
    ("about", "task", "option"),
    [
        ({"kind": "edit", **INSIDE}, "generation", "yes"),
        ({"kind": "edit", **OUTSIDE}, "generation", "no"),
        ({"kind": "edit", "locations": [{"path": "$cwd/../else.txt"}]}, "generation", "no"),
        ({"kind": "edit", "content": [{"type": "diff", "path": "/tmp/x", "newText": ""}]}, "generation", "no"),
        ({"kind": "edit"}, "generation", "no"),
        ({"kind": "execute", "rawInput": {"command": "ls"}}, "generation", "yes"),
        ({"kind": "execute", "rawInput": {"command": "ls", "cwd": "/"}}, "generation", "no"),
        ({"kind": "fetch", "rawInput": {"url": "http://a"}}, "generation", "no"),
        ({}, "generation", "yes"),
        ({"kind": "read", **INSIDE}, "agentic_investigation", "yes"),
        ({"kind": "edit", **INSIDE}, "agentic_investigation", "no"),
        ({"kind": "execute", "rawInput": {"command": "ls"}}, "agentic_investigation", "no"),
        ({}, "agentic_investigation", "no"),
    ],
)
def test_permissions_are_given_inside_the_folder_only(
    scripted: Any, says: Any, agent: Any, tmp_path: Path, about: Any, task: str, option: str
) -> None:
    (tmp_path / "work").mkdir()
    program = scripted(says.permission("c1", **about), says.text("So."), says.stop())
    run(agent(program), AgentConfig(workspace_path=tmp_path / "work"), task=task)
    chosen = {"outcome": {"outcome": "selected", "optionId": option}}
    assert program.answers("session/request_permission") == [chosen]


def test_what_was_reported_of_a_call_counts_when_permission_is_asked(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(
        says.call("c1", "edit", locations=[{"path": "/etc/passwd"}]),
        says.permission("c1"),
        says.text("So."),
        says.stop(),
    )
    run(agent(program))
    assert program.answers("session/request_permission")[0]["outcome"]["optionId"] == "no"


def test_the_user_says_which_kinds_are_allowed(scripted: Any, says: Any, agent: Any) -> None:
    ask = says.permission("c1", kind="fetch", rawInput={"url": "http://a"})
    program = scripted(ask, says.text("So."), says.stop())
    port = agent(program, extra_kwargs={"allow": ["fetch"]})
    run(port)
    assert program.answers("session/request_permission")[0]["outcome"]["optionId"] == "yes"
    able = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    assert program.asked("initialize")[0]["clientCapabilities"] == able
    assert not port.capabilities.supports_file_tools
    assert not port.capabilities.supports_code_execution


def test_files_are_read_and_written_inside_the_folder_only(
    scripted: Any, says: Any, agent: Any, tmp_path: Path
) -> None:
    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "notes.txt").write_text("one\ntwo\nthree\n")
    (tmp_path / "secret.txt").write_text("secret")
    os.symlink(tmp_path / "secret.txt", folder / "link.txt")
    os.symlink(tmp_path, folder / "up")
    refused = [
        says.ask("fs/read_text_file", path=path)
        for path in (
            str(tmp_path / "secret.txt"),
            "$cwd/link.txt",
            "$cwd/up/secret.txt",
            "$cwd/../secret.txt",
            "notes.txt",
        )
    ]
    program = scripted(
        says.ask("fs/read_text_file", path="$cwd/notes.txt"),
        says.ask("fs/read_text_file", path="$cwd/notes.txt", line=2, limit=1),
        *refused,
        says.ask("fs/write_text_file", path="$cwd/new/report.txt", content="BCL2"),
        says.ask("fs/write_text_file", path=str(tmp_path / "else.txt"), content="x"),
        says.text("So."),
        says.stop(),
    )
    run(agent(program), AgentConfig(workspace_path=folder))
    whole, part, *others = program.answers("fs/read_text_file")
    assert (whole, part) == ({"content": "one\ntwo\nthree\n"}, {"content": "two\n"})
    assert all(answer["code"] == -32602 for answer in others), others
    assert "secret" not in str([answer["message"].replace("secret.txt", "") for answer in others])
    assert (folder / "new" / "report.txt").read_text() == "BCL2"
    assert not (tmp_path / "else.txt").exists()


def test_a_judge_writes_nothing_and_runs_nothing(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(
        says.ask("fs/write_text_file", path="$cwd/report.txt", content="BCL2"),
        says.ask("terminal/create", command="true"),
        says.text("So."),
        says.stop(),
    )
    run(agent(program), task="agentic_investigation")
    assert program.answers("fs/write_text_file")[0]["message"] == "Refused: files may not be written here"
    assert program.answers("terminal/create")[0]["code"] == -32601


def test_commands_run_in_the_folder_and_are_shown_in_the_trace(
    scripted: Any, says: Any, agent: Any, tmp_path: Path
) -> None:
    (tmp_path / "work").mkdir()
    terminal = {"terminalId": "$terminal"}
    program = scripted(
        says.ask("terminal/create", command="echo out; echo err >&2; pwd; exit 3"),
        says.call("c1", "execute", content=[{"type": "terminal", **terminal}]),
        says.ask("terminal/wait_for_exit", **terminal),
        says.ask("terminal/output", **terminal),
        says.ask("terminal/release", **terminal),
        says.ask("terminal/output", **terminal),
        says.done("c1", content=[{"type": "terminal", **terminal}]),
        says.ask("terminal/create", command="printf", args=["%s", "a;b" * 10], outputByteLimit=4),
        says.ask("terminal/wait_for_exit", **terminal),
        says.ask("terminal/output", **terminal),
        says.ask("terminal/create", command="true", cwd="/"),
        says.text("So."),
        says.stop(),
    )
    result = run(agent(program), AgentConfig(workspace_path=tmp_path / "work"))
    exit_status = {"exitCode": 3, "signal": None}
    assert program.answers("terminal/wait_for_exit")[0] == exit_status
    first, released, cut = program.answers("terminal/output")
    text = f"out\nerr\n{tmp_path / 'work'}\n"
    assert first == {"output": text, "truncated": False, "exitStatus": exit_status}
    assert "there is no terminal" in released["message"]
    assert (cut["output"], cut["truncated"]) == (";ba;b"[-4:], True)
    assert "outside the workspace" in program.answers("terminal/create")[2]["message"]
    assert result.trace_messages[1].content[0].content == text  # type: ignore[union-attr]  # the answer of a tool


def test_a_command_that_is_killed_or_left_behind_ends(scripted: Any, says: Any, agent: Any, tmp_path: Path) -> None:
    (tmp_path / "work").mkdir()
    sleeping = "echo $$ >> pids; trap '' TERM; sleep 60"
    program = scripted(
        says.ask("terminal/create", command=sleeping),
        says.ask("terminal/kill", terminalId="$terminal"),
        says.ask("terminal/wait_for_exit", terminalId="$terminal"),
        says.ask("terminal/create", command=sleeping),
        ("sleep", 0.3),
        says.text("So."),
        says.stop(),
    )
    run(agent(program), AgentConfig(workspace_path=tmp_path / "work"))
    assert program.answers("terminal/wait_for_exit") == [{"exitCode": None, "signal": "SIGKILL"}]
    left = (tmp_path / "work" / "pids").read_text().split()
    assert left
    assert not [
        pid for pid in left if Path(f"/proc/{pid}/cmdline").exists() and Path(f"/proc/{pid}/cmdline").read_text()
    ]


# Limits

CANCELLED = ("until_cancelled", {"stopReason": "cancelled", "usage": USAGE})


def test_the_time_limit_cancels_the_agent_and_keeps_what_was_done(scripted: Any, says: Any, agent: Any) -> None:
    result = run(agent(scripted(says.text("So far."), CANCELLED)), AgentConfig(timeout=1.5))
    assert (result.limit, shown(result)) == ("time", [("assistant", "So far.")])
    assert result.usage.total_tokens == 19


def test_an_agent_that_hangs_and_ignores_signals_is_killed_with_what_it_started(
    scripted: Any, says: Any, agent: Any, process_has_ended: Any
) -> None:
    program = scripted(says.text("So far."), ("ignore", "SIGTERM"), ("spawn", 60), ("sleep", 60))
    started = time.monotonic()
    result = run(agent(program), AgentConfig(timeout=1.5))
    assert time.monotonic() - started < 15
    assert (result.limit, shown(result)) == ("time", [("assistant", "So far.")])
    assert all(process_has_ended(pid) for pid in (*program.noted("pid"), *program.noted("spawned")))


@pytest.mark.parametrize(
    ("limits", "limit"),
    [
        ({"max_turns": 2}, "turns"),
        ({"max_tool_calls": 2}, "tool_calls"),
        ({"max_total_tokens": 1000}, "tokens"),
        ({"max_cost_usd": 0.2}, "cost"),
        ({"max_repeated_calls": 2}, "repeated_calls"),
    ],
)
def test_limits_that_karenina_keeps(scripted: Any, says: Any, agent: Any, limits: Any, limit: str) -> None:
    steps = []
    for number in range(4):
        steps += [
            says.text(f"Step {number}."),
            says.call(f"c{number}", rawInput={"path": "a"}),
            says.done(f"c{number}", "the same"),
            says.used(500 * number, 0.1 * number),
        ]
    program = scripted(*steps, CANCELLED)
    result = run(agent(program), AgentConfig(**limits))
    assert result.limit == limit
    assert program.asked("session/cancel") == [{"sessionId": "s-1"}]
    assert shown(result)[:2] == [("assistant", "Step 0."), ("tool", "the same")]
    assert result.turns <= 3


@pytest.mark.parametrize(
    ("reason", "limit", "flags"), [("max_turn_requests", "turns", ()), ("max_tokens", None, ("truncated",))]
)
def test_limits_of_the_agent_itself(
    scripted: Any, says: Any, agent: Any, reason: str, limit: str | None, flags: tuple[str, ...]
) -> None:
    result = run(agent(scripted(says.text("So"), says.stop(reason))))
    assert (result.limit, result.flags) == (limit, flags)


def test_a_question_that_is_asked_after_the_cancellation_is_answered_so(scripted: Any, says: Any, agent: Any) -> None:
    ask = says.permission("c9", kind="think")
    wait = ("sleep", 2.0)
    program = scripted(says.text("So far."), wait, ask, says.stop("cancelled"))
    assert run(agent(program), AgentConfig(timeout=1.5)).limit == "time"
    assert program.answers("session/request_permission") == [{"outcome": {"outcome": "cancelled"}}]


# Models, options, keys

SELECTOR = {
    "id": "model",
    "name": "Model",
    "category": "model",
    "type": "select",
    "currentValue": "small",
    "options": [
        {"group": "g", "name": "G", "options": [{"value": "large", "name": "Large"}]},
        {"value": "small", "name": "Small"},
    ],
}
OFFERED = {"session/new": {"sessionId": "s-1", "configOptions": [SELECTOR]}}


def test_the_model_is_chosen_where_the_agent_offers_a_choice(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(says.text("So."), says.stop(usage=USAGE), answers=OFFERED)
    result = run(agent(program, model_name="large", extra_kwargs={"session_options": {"thought": "high"}}))
    assert program.asked("session/set_config_option") == [
        {"sessionId": "s-1", "configId": "thought", "value": "high"},
        {"sessionId": "s-1", "configId": "model", "value": "large"},
    ]
    assert (result.actual_model, result.usage.model) == ("large", "large")
    assert run(agent(scripted(says.text("So."), says.stop(), answers=OFFERED))).actual_model == "small"
    with pytest.raises(PortError, match="no model 'huge'; available: large, small, or 'default'") as caught:
        run(agent(scripted(answers=OFFERED), model_name="huge"))
    assert caught.value.kind == "invalid_request"


def test_the_key_and_few_variables_are_passed_and_the_key_is_shown_nowhere(
    scripted: Any, says: Any, agent: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTHER_API_KEY", "sk-other-0123456789")
    monkeypatch.setenv("MY_PROXY", "http://proxy")
    monkeypatch.setenv("AGENT_API_KEY", KEY)
    halves = [says.text(f"The key is {KEY[:9]}"), says.text(KEY[9:])]
    calls = [says.call("c1", "execute", rawInput={"command": f"echo {KEY}"}), says.done("c1", KEY)]
    terminal = says.ask("terminal/create", command="env")
    waits = [says.ask(f"terminal/{what}", terminalId="$terminal") for what in ("wait_for_exit", "output")]
    program = scripted(*halves, *calls, terminal, *waits, says.text("So."), says.stop())
    result = run(agent(program, {"environment": ["MY_PROXY"]}, api_key_env="AGENT_API_KEY"))
    (given,) = program.noted("environment")
    assert (given["AGENT_API_KEY"], given["MY_PROXY"], "PATH" in given) == (KEY, "http://proxy", True)
    assert not {"OTHER_API_KEY", "PYTHONPATH"} & given.keys()
    assert KEY not in str(result)
    assert "secret_removed:AGENT_API_KEY" in result.flags
    assert KEY not in program.answers("terminal/output")[0]["output"], "commands see the key"


# Single calls


def test_a_model_is_an_agent_that_may_do_nothing(scripted: Any, says: Any, asked_model: Any) -> None:
    program = scripted(
        says.permission("c1", kind="read"), says.thought("Hm."), says.text("Paris"), says.stop(usage=USAGE)
    )
    reply = asyncio.run(asked_model(program).ainvoke(ASK))
    assert (reply.content, reply.thinking, reply.finish_reason) == ("Paris", "Hm.", "end_turn")
    assert reply.usage.total_tokens == 19
    assert program.answers("session/request_permission")[0]["outcome"]["optionId"] == "no"
    able = {"fs": {"readTextFile": False, "writeTextFile": False}, "terminal": False}
    assert program.asked("initialize")[0]["clientCapabilities"] == able
    assert program.noted("files") == [[]]


def test_a_single_call_that_takes_too_long_or_says_nothing_is_an_error(
    scripted: Any, says: Any, asked_model: Any
) -> None:
    with pytest.raises(PortError, match="request_timeout gives it longer") as caught:
        asyncio.run(asked_model(scripted(("sleep", 30)), request_timeout=1.0).ainvoke(ASK))
    assert caught.value.kind == "timeout"
    with pytest.raises(PortError, match="empty reply"):
        asyncio.run(asked_model(scripted(says.stop())).ainvoke(ASK))
