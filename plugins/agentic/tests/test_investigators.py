"""Agents that bring tools of their own, and what is logged when something fails."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from karenina_agentic import AgenticTraitEvaluator
from karenina_agentic.agents import cut_short
from karenina_agentic.folders import own_folder, trace_name
from karenina_calls.models.models import open_models
from karenina_calls.ports.client import Model, ModelClient

from karenina_core import AgenticRubricTrait, ModelConfig, VerificationConfig
from karenina_core.errors import PortError
from karenina_core.plugin.adapters import AdapterSpec
from karenina_core.ports import AgentConfig, AgentResult, PortCapabilities, Tool
from karenina_core.ports.values import CallContext
from karenina_core.testing import Reply, ScriptedLLM, application
from karenina_core.values.message import Message, ToolUseBlock

RIGHT = AgenticRubricTrait(name="right", kind="boolean", description="Whether it is right.", max_turns=4)


@define(eq=False)
class DeepAgent:
    """An agent with file tools of its own, which looks into the folder that it is given."""

    capabilities = PortCapabilities(supports_file_tools=True)
    seen: list[tuple[str, Sequence[Tool], AgentConfig]] = field(factory=list)
    found: list[str] = field(factory=list)

    async def arun(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        mcp_servers: Mapping[str, Any] | None = None,
        config: AgentConfig | None = None,
        *,
        call: CallContext | None = None,
    ) -> AgentResult:
        assert config is not None
        self.seen.append(("\n".join(message.text for message in messages), tools, config))
        if config.workspace_path is not None:
            self.found = sorted(path.name for path in config.workspace_path.iterdir())
            (config.workspace_path / "mine.txt").write_text("left behind")
        return AgentResult(final_response="Done.", raw_trace="I looked.", turns=1)

    async def aclose(self) -> None: ...


def deeply(agent: DeepAgent, trait: AgenticRubricTrait, workspace: Path) -> tuple[Any, str | None]:
    llm = ScriptedLLM(lambda call: {"result": True})
    spec = AdapterSpec(interface="deep", llm_factory=lambda model: llm, agent_factory=lambda model: agent)

    async def run() -> tuple[Any, str | None]:
        model = ModelConfig(model_name="m", interface="deep")
        async with open_models(application(spec), VerificationConfig(), [model]) as opened:
            evaluator = AgenticTraitEvaluator(ModelClient(opened[model.identity], []))
            return await evaluator.evaluate_trait(trait, "What?", "TRACE", workspace)

    return asyncio.run(run())


def test_an_agent_with_tools_of_its_own_is_given_a_folder_and_no_tools(workspace: Path) -> None:
    agent = DeepAgent()
    assert deeply(agent, RIGHT, workspace) == (True, "I looked.")
    ((prompt, tools, config),) = agent.seen
    assert tools == ()
    assert f"Workspace directory: {config.workspace_path}" in prompt
    assert (config.max_turns, config.timeout) == (4, 120)
    assert "totals.csv" in agent.found
    assert not (workspace / "mine.txt").exists()
    assert config.workspace_path is not None
    assert not config.workspace_path.exists()


def test_a_trait_about_the_trace_gives_its_agent_no_folder(workspace: Path) -> None:
    agent = DeepAgent()
    trait = AgenticRubricTrait(name="right", kind="boolean", description="Right.", context_mode="trace_only")
    deeply(agent, trait, workspace)
    assert agent.seen[0][2].workspace_path is None


def test_failures_are_warnings_with_the_exception(
    evaluated: Any, scripted: Any, caplog: pytest.LogCaptureFixture
) -> None:
    with caplog.at_level(logging.WARNING, logger="karenina.agentic"):
        evaluated([RIGHT], scripted("Fine.", "no score"))
    (record,) = [record for record in caplog.records if "extraction" in record.getMessage()]
    assert record.levelno == logging.WARNING
    assert "Traceback" in record.getMessage()
    assert "right" in record.getMessage()


@pytest.mark.parametrize("strategy", ["individual", "shared"])
@pytest.mark.parametrize("what", ["investigation", "no score", "limit"])
def test_the_log_of_an_investigation_names_the_question(
    what: str, strategy: str, evaluated: Any, scripted: Any, caplog: pytest.LogCaptureFixture
) -> None:
    looks = Reply(tool_calls=[ToolUseBlock("c", "list_files", {})])
    investigates = {"investigation": Reply.error(400), "no score": "Fine.", "limit": looks}[what]
    limits = {"agent_max_tool_calls": 1} if what == "limit" else {}
    with caplog.at_level(logging.WARNING, logger="karenina.agentic"):
        evaluated([RIGHT], scripted(investigates, {"result": None}), judge=limits, agentic_rubric_strategy=strategy)
    assert caplog.records
    for record in caplog.records:
        assert "question='q/1'" in record.getMessage()
        assert "trait='right'" in record.getMessage()


def test_pipes_are_no_part_of_a_copy_and_links_stay_links(tmp_path: Path) -> None:
    import os

    folder = tmp_path / "work"
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    (folder / "link").symlink_to("a.txt")
    os.mkfifo(folder / "pipe")

    async def names() -> tuple[list[str], bool]:
        async with own_folder(folder, None) as own:
            assert own is not None
            assert own != folder
            return sorted(path.name for path in own.iterdir()), (own / "link").is_symlink()

    assert asyncio.run(names()) == (["a.txt", "link"], True)


def test_a_workspace_that_cannot_be_copied_costs_the_trait_its_score(
    evaluated: Any, scripted: Any, tmp_path: Path
) -> None:
    ran = evaluated([RIGHT], scripted("Fine.", {"result": True}), workspace=tmp_path / "missing")
    assert (ran.scores, ran.traces, ran.scripted.requests) == ({"right": None}, {"right": None}, [])


@pytest.mark.parametrize("odd", ["a/b", "../../x", "urn:uuid:1", "ä", "x" * 300, ""])
def test_names_of_traces_are_file_names_that_differ(odd: str) -> None:
    name = trace_name(odd)
    assert "/" not in name
    assert len(name) < 120
    assert name != trace_name(odd + "_")
    assert trace_name("q_1") == "trace_q_1"


def test_a_failed_evaluation_raises_nothing(workspace: Path) -> None:
    class Broken(DeepAgent):
        async def arun(self, *given: Any, **named: Any) -> AgentResult:
            raise PortError("refused", kind="invalid_request")

    assert deeply(Broken(), RIGHT, workspace) == (None, None)


@pytest.mark.parametrize("granted", [None, 2])
@pytest.mark.parametrize(
    ("limit", "setting"),
    [
        ("tokens", "agent_max_total_tokens"),
        ("cost", "agent_max_cost_usd"),
        ("tool_calls", "agent_max_tool_calls"),
        ("repeated_calls", "agent_max_repeated_calls"),
    ],
)
def test_only_a_limit_that_is_set_is_to_be_raised(limit: Any, setting: str, granted: int | None) -> None:
    """An agent of an adapter's own may have others."""
    model = Model(config=ModelConfig(model_name="m", interface="own", **{setting: granted}))
    error = cut_short(limit, ModelClient(model, []), turns="max_turns", time="timeout_seconds")
    advice = f"; raise {setting} of the model own:m" if granted else ""
    assert str(error) == f"the investigation was ended by a limit ({limit}) before it had a report{advice}"
    assert (error.kind == "budget") is (limit in ("tokens", "cost"))
