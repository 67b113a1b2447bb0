"""What goes wrong with an agent, as errors of karenina."""

from __future__ import annotations

import asyncio
import time
from pathlib import Path
from typing import Any

import pytest
from karenina_acp.ports import AcpAgent
from karenina_acp.settings import AcpSettings, problems

from karenina_core import ModelConfig
from karenina_core.errors import AdapterUnavailableError, AgentExecutionError, PortError
from karenina_core.ports.values import AgentConfig, AgentResult
from karenina_core.values.message import Message

ASK = (Message.user("What is the target of venetoclax?"),)
KEY = "sk-canary-0123456789-abcdef"


def failed(port: Any, config: AgentConfig | None = None) -> AgentExecutionError:
    with pytest.raises(AgentExecutionError) as caught:
        asyncio.run(port.arun(ASK, (), None, config))
    return caught.value


def done_before(error: PortError) -> AgentResult:
    done = error.evidence["agent_result"]
    assert isinstance(done, AgentResult)
    return done


def test_an_agent_that_dies_in_its_work_leaves_its_last_output_and_what_was_done(
    scripted: Any, says: Any, agent: Any
) -> None:
    error = failed(agent(scripted(says.text("Let me look."), ("stderr", "out of memory\n"), ("exit", 7))))
    assert (error.kind, error.stderr) == ("agent", "out of memory")
    assert str(error) == "the program ended with code 7 before its work was done: out of memory"
    done = done_before(error)
    assert [message.text for message in done.trace_messages] == ["Let me look."]
    assert (done.session_id, done.usage_unavailable) == ("s-1", True)


def test_an_agent_that_ends_before_it_says_anything_is_an_error_at_once(scripted: Any, agent: Any) -> None:
    started = time.monotonic()
    error = failed(agent(scripted(first=[("stderr", "unknown option --acp"), ("exit", 0)])))
    assert time.monotonic() - started < 20
    assert "ended with code 0" in str(error)
    assert "unknown option --acp" in str(error)


def test_what_is_printed_beside_the_messages_is_kept_as_last_output(scripted: Any, says: Any, agent: Any) -> None:
    error = failed(agent(scripted(first=[("raw", "Segmentation fault\nnot JSON\n"), ("exit", 1)])))
    assert "Segmentation fault not JSON" in str(error)
    noisy = scripted(("raw", "a warning\n\n"), says.text("So."), says.stop())
    assert asyncio.run(agent(noisy).arun(ASK)).final_response == "So."


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('{"jsonrpc": "2.0", "meth\n', "not JSON"),
        ('{"jsonrpc": "2.0"}\n', "not JSON-RPC"),
        ('{"jsonrpc": "2.0", "method": 7}\n', "not JSON-RPC"),
    ],
)
def test_garbage_is_a_bad_response(scripted: Any, says: Any, agent: Any, line: str, said: str) -> None:
    error = failed(agent(scripted(says.text("So"), ("raw", line), ("sleep", 20))))
    assert error.kind == "bad_response"
    assert said in str(error)
    assert [message.text for message in done_before(error).trace_messages] == ["So"]


@pytest.mark.parametrize(
    "update",
    [
        {"sessionUpdate": "agent_message_chunk"},
        {"sessionUpdate": "agent_message_chunk", "content": "So"},
        {"sessionUpdate": "tool_call", "title": "x"},
        {"sessionUpdate": "tool_call_update", "toolCallId": "c1", "status": "completed", "content": [{"type": "diff"}]},
        {"sessionUpdate": "usage_update", "used": 1, "size": 2, "cost": 7},
    ],
)
def test_a_report_without_what_belongs_to_it_is_a_bad_response(scripted: Any, agent: Any, update: Any) -> None:
    error = failed(agent(scripted(("update", update), ("sleep", 20))))
    assert error.kind == "bad_response"
    assert update["sessionUpdate"] in str(error)


def test_reports_of_other_kinds_are_no_concern(scripted: Any, says: Any, agent: Any) -> None:
    others = [
        ("update", {"sessionUpdate": "plan", "entries": []}),
        ("update", {"sessionUpdate": "of_tomorrow", "x": 1}),
        ("raw", '{"jsonrpc": "2.0", "method": "_own/notice", "params": {}}\n'),
        ("raw", '{"jsonrpc": "2.0", "id": 99, "result": {}}\n'),
        says.ask("_own/question"),
    ]
    program = scripted(*others, says.text("So."), says.stop())
    assert asyncio.run(agent(program).arun(ASK)).final_response == "So."
    assert program.answers("_own/question")[0]["code"] == -32601


@pytest.mark.parametrize("result", [{}, {"stopReason": 7}])
def test_a_prompt_that_ends_without_a_reason_is_a_bad_response(scripted: Any, agent: Any, result: Any) -> None:
    assert failed(agent(scripted(("stop", result)))).kind == "bad_response"


@pytest.mark.parametrize(("reason", "kind"), [("refusal", "content_filter"), ("cancelled", "agent")])
def test_other_reasons_to_stop_are_errors(scripted: Any, says: Any, agent: Any, reason: str, kind: str) -> None:
    error = failed(agent(scripted(says.text("No."), says.stop(reason))))
    assert error.kind == kind
    assert [message.text for message in done_before(error).trace_messages] == ["No."]


@pytest.mark.parametrize(
    ("method", "error", "kind", "said"),
    [
        ("session/new", {"code": -32000, "message": "Authentication required"}, "auth", "name its key in api_key_env"),
        ("initialize", {"code": -32602, "message": "Invalid params"}, "invalid_request", "Invalid params"),
        ("session/new", {"code": -32603, "message": "Internal", "data": {"details": "no disk"}}, "agent", "no disk"),
    ],
)
def test_what_the_agent_refuses_has_its_kind(
    scripted: Any, agent: Any, method: str, error: Any, kind: str, said: str
) -> None:
    found = failed(agent(scripted(refused={method: error})))
    assert found.kind == kind
    assert said in str(found)


def test_a_prompt_that_fails_keeps_what_was_done(scripted: Any, says: Any, agent: Any) -> None:
    broken = ("fail", {"code": -32603, "message": f"the key {KEY} is refused"})
    port = agent(scripted(says.text("So far."), broken), endpoint_api_key=KEY, api_key_env="AGENT_API_KEY")
    error = failed(port)
    assert (error.kind, KEY in str(error)) == ("agent", False)
    assert [message.text for message in done_before(error).trace_messages] == ["So far."]


def test_an_agent_of_another_version_is_refused(scripted: Any, agent: Any) -> None:
    error = failed(agent(scripted(answers={"initialize": {"protocolVersion": 2}})))
    assert "speaks version 2 of the protocol, not 1" in str(error)


@pytest.mark.parametrize(
    "answers", [{"session/new": {}}, {"initialize": {"protocolVersion": 1, "agentCapabilities": 7}}]
)
def test_a_beginning_that_is_not_the_protocols_is_a_bad_response(scripted: Any, agent: Any, answers: Any) -> None:
    servers = {"web": "http://a"}
    with pytest.raises(AgentExecutionError) as caught:
        asyncio.run(agent(scripted(answers=answers)).arun(ASK, (), servers))
    assert caught.value.kind == "bad_response"


def test_an_agent_that_is_never_ready_is_a_timeout(
    scripted: Any, agent: Any, monkeypatch: pytest.MonkeyPatch, process_has_ended: Any
) -> None:
    monkeypatch.setattr("karenina_acp.session.START_SECONDS", 1.0)
    program = scripted(first=[("sleep", 60)])
    error = failed(agent(program))
    assert (error.kind, "was not ready within 1 s" in str(error)) == ("timeout", True)
    assert all(map(process_has_ended, program.noted("pid")))


@pytest.mark.parametrize("text", ['{"jsonrpc": "' + "x" * 60_000, "y" * 60_000, '{"jsonrpc":"2.0","method":"_x"}\n'])
def test_an_agent_that_floods_stdout_is_ended(scripted: Any, agent: Any, text: str) -> None:
    program = scripted(("flood", {"to": 1, "text": text, "times": 100_000}))
    error = failed(agent(program, extra_kwargs={"max_response_bytes": 500_000}))
    assert (error.kind, "max_response_bytes" in str(error)) == ("too_large", True)


def test_a_run_that_is_cancelled_leaves_no_process(
    scripted: Any, says: Any, agent: Any, process_has_ended: Any
) -> None:
    program = scripted(says.text("So"), ("spawn", 60), ("sleep", 60))

    async def cancelled() -> None:
        task = asyncio.create_task(agent(program).arun(ASK))
        while not program.noted("spawned"):
            await asyncio.sleep(0.05)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    assert all(process_has_ended(pid) for pid in (*program.noted("pid"), *program.noted("spawned")))


def test_a_missing_program_is_reported(tmp_path: Path) -> None:
    config = ModelConfig(model_name="m", interface="acp")
    with pytest.raises(AdapterUnavailableError, match="no command starts the agent"):
        asyncio.run(AcpAgent(config).aopen())
    with pytest.raises(AdapterUnavailableError, match="'nowhere' is not a program"):
        asyncio.run(AcpAgent(config, AcpSettings(command="nowhere --acp")).aopen())


def test_a_program_that_cannot_be_started_is_reported(scripted: Any, agent: Any) -> None:
    program = scripted()
    program.path.write_text("#!/nowhere/python\n")
    error = failed(agent(program))
    assert (error.kind, "cannot be started" in str(error)) == ("plugin", True)


def test_a_missing_workspace_is_reported(scripted: Any, agent: Any, tmp_path: Path) -> None:
    assert "nowhere" in str(failed(agent(scripted()), AgentConfig(workspace_path=tmp_path / "nowhere")))


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"extra_kwargs": {"command": ""}}, "extra_kwargs.command: must be a command line"),
        ({"extra_kwargs": {"command": ["a", 7]}}, "extra_kwargs.command: must be"),
        ({"extra_kwargs": {"command": "a 'b"}}, "extra_kwargs.command: must be"),
        ({"extra_kwargs": {"command": "a", "allow": ["all"]}}, "extra_kwargs.allow: must be a list of read, edit"),
        ({"extra_kwargs": {"command": "a", "tools": []}}, "extra_kwargs.tools: cannot be passed on"),
        ({"extra_kwargs": {"command": "a", "auth_method": 7}}, "extra_kwargs.auth_method: must be"),
        ({"extra_kwargs": {"command": "a", "session_options": []}}, "extra_kwargs.session_options: must be"),
        ({"extra_kwargs": {"command": "a", "max_response_bytes": 0}}, "extra_kwargs.max_response_bytes: must be"),
        ({"extra_kwargs": {"command": "a"}, "temperature": 0.7}, "temperature: cannot be passed on"),
        ({"extra_kwargs": {"command": "a"}, "max_tokens": 7}, "max_tokens: cannot be passed on"),
        ({"extra_kwargs": {"command": "a"}, "endpoint_api_key": KEY}, "endpoint_api_key: say in api_key_env"),
        ({}, "extra_kwargs.command: no command starts the agent"),
    ],
)
def test_configurations_that_cannot_work_are_refused(fields: Any, problem: str) -> None:
    config = ModelConfig(**{"model_name": "m", "interface": "acp", **fields})
    (found,) = problems(config, AcpSettings())
    assert found.startswith(problem), found
