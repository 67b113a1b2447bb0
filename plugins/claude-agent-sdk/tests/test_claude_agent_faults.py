"""What goes wrong with the program, as errors of karenina."""

from __future__ import annotations

import asyncio
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from karenina_claude_agent_sdk.ports import ClaudeAgent
from karenina_claude_agent_sdk.settings import ClaudeAgentSdkSettings

from karenina_core import ModelConfig
from karenina_core.errors import AdapterUnavailableError, AgentExecutionError, PortError
from karenina_core.ports.values import AgentConfig, AgentResult
from karenina_core.values.message import Message

ASK = (Message.user("What is the target of venetoclax?"),)
KEY = "sk-ant-canary-0123456789"


def failed(port: Any, config: AgentConfig | None = None) -> AgentExecutionError:
    with pytest.raises(AgentExecutionError) as caught:
        asyncio.run(port.arun(ASK, (), None, config))
    return caught.value


def done_before(error: PortError) -> AgentResult:
    done = error.evidence["agent_result"]
    assert isinstance(done, AgentResult)
    return done


def test_a_program_that_dies_in_its_work_leaves_its_last_output_and_what_was_done(
    scripted: Any, says: Any, agent: Any
) -> None:
    program = scripted(says.init(), says.reply(says.text("Let me look.")), ("stderr", "out of memory\n"), ("exit", 7))
    error = failed(agent(program))
    assert error.kind == "agent"
    assert str(error) == "the program ended with code 7 before its work was done: out of memory"
    assert error.stderr == "out of memory"
    done = done_before(error)
    assert [message.text for message in done.trace_messages] == ["Let me look."]
    assert (done.session_id, done.usage.total_tokens, done.usage_unavailable) == ("s-1", 19, True)


def test_a_program_that_ends_before_it_says_anything_is_an_error_at_once(scripted: Any, agent: Any) -> None:
    started = time.monotonic()
    error = failed(agent(scripted(first=[("stderr", "error: unknown option '--effort'"), ("exit", 0)])))
    assert time.monotonic() - started < 20, "the SDK alone would wait for a minute"
    assert "ended with code 0" in str(error)
    assert "unknown option" in str(error)
    assert done_before(error).trace_messages == ()


def test_what_is_printed_beside_the_messages_is_kept_as_last_output(scripted: Any, agent: Any) -> None:
    error = failed(agent(scripted(first=[("raw", "Segmentation fault\nnot JSON\n"), ("exit", 1)])))
    assert "Segmentation fault not JSON" in str(error)


def test_a_message_that_is_no_json_is_a_bad_response(scripted: Any, says: Any, agent: Any) -> None:
    error = failed(agent(scripted(says.reply(says.text("So")), ("raw", '{"type": "assist\n'), ("sleep", 20))))
    assert error.kind == "bad_response"
    assert error.raw == '{"type": "assist'
    assert done_before(error).trace_messages


def test_a_message_without_what_belongs_to_it_is_a_bad_response(scripted: Any, agent: Any) -> None:
    error = failed(agent(scripted(("say", {"type": "assistant", "message": {}}), ("sleep", 20))))
    assert error.kind == "bad_response"


def test_a_program_that_floods_stderr_is_not_halted_and_only_the_end_is_kept(
    scripted: Any, says: Any, agent: Any
) -> None:
    flood = {"to": 2, "text": "noise " * 10_000, "times": 100}
    program = scripted(says.reply(says.text("So")), ("flood", flood), ("stderr", "the end"), ("exit", 1))
    error = failed(agent(program))
    assert error.stderr.endswith("the end")
    assert len(error.stderr) <= 2000
    assert len(str(error)) < 600


@pytest.mark.parametrize("text", ['{"type": "' + "x" * 60_000, "y" * 60_000, '{"type": "system", "subtype": "x"}\n'])
def test_a_program_that_floods_stdout_is_ended(scripted: Any, agent: Any, text: str) -> None:
    program = scripted(("flood", {"to": 1, "text": text, "times": 100_000}))
    error = failed(agent(program, extra_kwargs={"max_response_bytes": 500_000}))
    assert error.kind == "too_large"
    assert "max_response_bytes" in str(error)


@pytest.mark.parametrize(
    ("refusal", "facts", "kind", "status"),
    [
        (("authentication_failed", "Invalid API key"), {}, "auth", None),
        (("rate_limit", "slow down"), {"api_error_status": 429}, "rate_limited", 429),
        (("server_error", "API Error: 529 overloaded"), {"api_error_status": 529}, "server", 529),
        (("unknown", "API Error: 404 no such model"), {"api_error_status": 404}, "invalid_request", 404),
        (("invalid_request", "too long"), {}, "invalid_request", None),
        (("billing_error", "no credit"), {}, "auth", None),
        (("unknown", "API Error: Connection error."), {}, "connection", None),
        (("unknown", "API Error: Request timed out."), {}, "timeout", None),
        (("unknown", "API Error: odd"), {}, "agent", None),
        (None, {"subtype": "error_during_execution", "errors": ["it broke"]}, "agent", None),
    ],
)
def test_what_the_program_reports_has_its_kind(
    scripted: Any, says: Any, agent: Any, refusal: Any, facts: Any, kind: str, status: int | None
) -> None:
    steps = [says.refusal(*refusal)] if refusal else []
    text = refusal[1] if refusal else None
    error = failed(agent(scripted(*steps, says.result(text, is_error=True, **facts), ("exit", 1))))
    assert (error.kind, error.status) == (kind, status)
    assert (text or "it broke") in str(error)
    assert done_before(error).trace_messages == (), "the program's own words are no reply of the model"
    assert done_before(error).usage.cost_usd == 0.25


def test_a_refused_key_comes_with_a_remedy(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(says.refusal("authentication_failed", "Invalid API key"), says.result("x", is_error=True))
    assert "check the key (api_key_env" in str(failed(agent(program)))


def test_an_error_that_the_program_got_over_is_none(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(says.refusal("rate_limit", "slow"), says.reply(says.text("So.")), says.result("So."))
    result = asyncio.run(agent(program).arun(ASK))
    assert [message.text for message in result.trace_messages] == ["So."]


def test_the_time_until_which_requests_are_turned_away_is_passed_on(scripted: Any, says: Any, agent: Any) -> None:
    info = {"status": "rejected", "resetsAt": int(time.time()) + 100}
    event = ("say", {"type": "rate_limit_event", "rate_limit_info": info, "uuid": "u", "session_id": "s"})
    refusal = says.refusal("rate_limit", "limit reached")
    error = failed(agent(scripted(event, refusal, says.result("limit reached", is_error=True))))
    assert error.kind == "rate_limited"
    assert error.retry_after is not None
    assert 60 < error.retry_after <= 100


def test_a_program_that_cannot_reach_the_tools_does_not_work_without_them(scripted: Any, says: Any, agent: Any) -> None:
    kind, init = says.init()
    program = scripted((kind, {**init, "mcp_servers": [{"name": "karenina", "status": "failed"}]}), ("sleep", 20))
    error = failed(agent(program))
    assert error.kind == "plugin"
    assert "could not reach the tools" in str(error)


def test_a_key_that_the_agent_prints_is_in_no_message_and_no_error(scripted: Any, says: Any, agent: Any) -> None:
    program = scripted(
        ("echo_environment", "ANTHROPIC_API_KEY"),
        says.reply(says.use("c1", "Bash", command=f"echo {KEY}")),
        says.answer("c1", f"ANTHROPIC_API_KEY={KEY}"),
        ("stderr", f"{KEY} is refused"),
        ("exit", 1),
    )
    error = failed(agent(program))
    assert "[redacted]" in str(done_before(error).trace_messages)
    assert "[redacted] is refused" in str(error)
    assert "secret_removed:ANTHROPIC_API_KEY" in done_before(error).flags
    assert KEY not in str(error) + str(error.raw) + str(done_before(error)) + repr(agent(program))


def test_a_missing_program_is_reported_with_what_to_install(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    config = ModelConfig(model_name="m", interface="claude_agent_sdk")
    with pytest.raises(AdapterUnavailableError, match="npm install -g @anthropic-ai/claude-code"):
        asyncio.run(ClaudeAgent(config).aopen())
    with pytest.raises(AdapterUnavailableError, match="'nowhere', which is not a program"):
        asyncio.run(ClaudeAgent(config, ClaudeAgentSdkSettings(program="nowhere")).aopen())


def test_a_program_that_cannot_be_started_is_reported(scripted: Any, agent: Any) -> None:
    program = scripted()
    program.path.write_text("#!/nowhere/python\n")
    error = failed(agent(program))
    assert error.kind == "plugin"
    assert "cannot be started" in str(error)


def test_a_missing_workspace_is_reported(scripted: Any, agent: Any, tmp_path: Path) -> None:
    error = failed(agent(scripted()), AgentConfig(workspace_path=tmp_path / "nowhere"))
    assert "nowhere" in str(error)


def test_without_the_sdk_it_says_how_to_install_it() -> None:
    code = """
import asyncio, sys
sys.modules["claude_agent_sdk"] = None
from karenina_claude_agent_sdk.ports import ClaudeAgent
from karenina_claude_agent_sdk.settings import ClaudeAgentSdkSettings
from karenina_core import Karenina, ModelConfig
app = Karenina.installed(settings={"claude_agent_sdk": {"program": sys.executable}})
try:
    app.adapters.resolve_interface("claude_agent_sdk")
except Exception as error:
    print(type(error).__name__, error)
config = ModelConfig(model_name="m", interface="claude_agent_sdk")
try:
    asyncio.run(ClaudeAgent(config, ClaudeAgentSdkSettings(program=sys.executable)).aopen())
except Exception as error:
    print(type(error).__name__, error)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    first, second = ran.stdout.splitlines()
    assert first.startswith("AdapterUnavailableError interface 'claude_agent_sdk' cannot be used here")
    assert second.startswith("AdapterUnavailableError the Claude Agent SDK cannot be imported")
    assert all('pip install "karenina-claude-agent-sdk[sdk]"' in line for line in (first, second))
