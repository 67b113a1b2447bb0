"""The plugin as karenina sees it, whole runs with it, and an agent that is made with the official library."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from karenina_acp.ports import AcpAgent
from karenina_acp.tool_server import SERVER

from karenina_core import Benchmark, ModelConfig, Question, VerificationConfig
from karenina_core.ports.values import AgentConfig
from karenina_core.testing import application
from karenina_core.values.message import Message

TARGET = {
    "class_name": "Answer",
    "fields": [
        {
            "name": "target",
            "type": "str",
            "description": "The target that the response names.",
            "ground_truth": "BCL2",
            "verify_with": {"type": "ExactMatch"},
        }
    ],
}
OFFICIAL = """
import asyncio, sys
import acp
from acp import schema, helpers


class Agent:
    def on_connect(self, client):
        self.client = client

    async def initialize(self, protocol_version, client_capabilities=None, client_info=None, **rest):
        return schema.InitializeResponse(protocol_version=acp.PROTOCOL_VERSION)

    async def new_session(self, cwd, mcp_servers=None, **rest):
        self.cwd = cwd
        return schema.NewSessionResponse(session_id="official")

    async def cancel(self, session_id, **rest):
        pass

    async def prompt(self, prompt, session_id, **rest):
        say = self.client.session_update
        await say(session_id=session_id, update=helpers.update_agent_message_text("Let me look."))
        call = helpers.start_tool_call("c1", "Edit", kind="edit", raw_input={"path": self.cwd + "/report.txt"})
        await say(session_id=session_id, update=call)
        allowed = await self.client.request_permission(
            session_id=session_id,
            tool_call=schema.ToolCallUpdate(tool_call_id="c1"),
            options=[schema.PermissionOption(option_id="yes", name="Allow", kind="allow_once")],
        )
        assert allowed.outcome.outcome == "selected", allowed
        await self.client.write_text_file(session_id=session_id, path=self.cwd + "/report.txt", content="BCL2")
        read = await self.client.read_text_file(session_id=session_id, path=self.cwd + "/report.txt")
        made = await self.client.create_terminal(session_id=session_id, command="cat", args=["report.txt"])
        about = dict(session_id=session_id, terminal_id=made.terminal_id)
        ended = await self.client.wait_for_terminal_exit(**about)
        printed = await self.client.terminal_output(**about)
        await self.client.release_terminal(**about)
        text = f"{read.content} {printed.output} {ended.exit_code}"
        content = [helpers.tool_content(helpers.text_block(text))]
        await say(session_id=session_id, update=helpers.update_tool_call("c1", status="completed", content=content))
        await say(session_id=session_id, update=helpers.update_agent_message_text("It is BCL2."))
        usage = schema.Usage(total_tokens=12, input_tokens=8, output_tokens=4)
        return schema.PromptResponse(stop_reason="end_turn", usage=usage)


asyncio.run(acp.run_agent(Agent()))
"""


def test_the_entry_module_imports_nothing_heavy() -> None:
    code = "import sys, karenina_acp; print(sorted({'asyncio', 'pydantic', 'acp'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"


def test_an_agent_of_the_official_library_works(tmp_path: Path) -> None:
    pytest.importorskip("acp")
    (tmp_path / "agent.py").write_text(OFFICIAL)
    (tmp_path / "work").mkdir()
    command = [sys.executable, str(tmp_path / "agent.py")]
    config = ModelConfig(model_name="default", interface="acp", extra_kwargs={"command": command})
    limits = AgentConfig(workspace_path=tmp_path / "work")
    result = asyncio.run(AcpAgent(config).arun([Message.user("Which target?")], (), None, limits))
    texts = [message.text or message.content[0].content for message in result.trace_messages]  # type: ignore[union-attr]  # the second one is the answer of a tool
    assert texts == ["Let me look.", "BCL2 BCL2 0", "It is BCL2."]
    assert (result.session_id, result.usage.total_tokens, result.usage_unavailable) == ("official", 12, False)
    assert (tmp_path / "work" / "report.txt").read_text() == "BCL2"


def test_a_run_with_the_agent_as_answerer_and_as_judge(scripted: Any, says: Any, tmp_path: Path) -> None:
    working = scripted(
        ("write", {"report.txt": "BCL2"}),
        says.call("c1", "edit", rawInput={"path": "report.txt"}),
        says.done("c1", "written"),
        says.text("The target is BCL2; see report.txt."),
        says.stop(),
    )
    judging = scripted(says.text(json.dumps({"target": "BCL2"})), says.stop())
    (tmp_path / "root" / "shop").mkdir(parents=True)
    (tmp_path / "root" / "shop" / "given.txt").write_text("venetoclax")
    question = Question(
        id="q1",
        question="What is the target of venetoclax?",
        raw_answer="BCL2",
        answer_template=json.dumps(TARGET),
        template_language="karenina-template",
        workspace_path="shop",
    )
    benchmark = Benchmark(name="b", questions=[question], workspace_root=tmp_path / "root")
    answering, judge = (
        ModelConfig(model_name="default", interface="acp", extra_kwargs={"command": [str(program.path)]})
        for program in (working, judging)
    )
    config = VerificationConfig(answering_models=[answering], parsing_models=[judge], workspace_output_mode="produced")
    (result,) = benchmark.run_verification(config, app=application(installed=True), run_dir=tmp_path / "run")
    assert str(result.outcome) == "passed", result.metadata.error
    answer = result.generation
    assert [row["role"] for row in answer.trace_messages] == ["assistant", "tool", "assistant"]
    assert answer.agent_metrics["tool_call_counts"] == {"edit": 1}
    (kept,) = (tmp_path / "run" / "workspaces").rglob("report.txt")
    assert kept.read_text() == "BCL2"
    assert not (tmp_path / "root" / "shop" / "report.txt").exists()
    assert working.noted("files") == [["given.txt"]]


def test_a_server_of_the_model_reaches_the_agent_through_karenina(scripted: Any, says: Any, tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(
        "from mcp.server.mcpserver import MCPServer\n"
        "server = MCPServer('drugs')\n"
        "@server.tool()\n"
        "def target(drug: str) -> str:\n"
        "    return {'venetoclax': 'BCL2'}[drug]\n"
        "server.run()\n"
    )
    call = {"name": "target", "arguments": {"drug": "venetoclax"}}
    program = scripted(("use", [call]), says.text("BCL2"), says.stop())
    judge = scripted(says.text(json.dumps({"target": "BCL2"})), says.stop())
    question = Question(
        id="q1",
        question="What is the target of venetoclax?",
        answer_template=json.dumps(TARGET),
        template_language="karenina-template",
    )
    models = [
        ModelConfig(
            model_name="default", interface="acp", extra_kwargs={"command": [str(each.path)]}, mcp_urls_dict=servers
        )
        for each, servers in ((program, {"drugs": f"{sys.executable} {server}"}), (judge, {}))
    ]
    config = VerificationConfig(answering_models=models[:1], parsing_models=models[1:])
    (result,) = Benchmark(name="b", questions=[question]).run_verification(config, app=application(installed=True))
    assert str(result.outcome) == "passed", result.metadata.error
    assert result.generation.answering_mcp_servers == ("drugs",)
    assert result.generation.agent_metrics["tool_call_counts"] == {"target": 1}
    (made,) = program.asked("session/new")
    assert [one["name"] for one in made["mcpServers"]] == [SERVER]
