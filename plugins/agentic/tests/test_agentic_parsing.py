"""Templates that are filled in from an agent's investigation."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from karenina_agentic import parse_stage
from karenina_agentic.parse_stage import AgenticParseTemplate
from karenina_calls.models.models import open_models
from karenina_calls.ports.client import ModelClient
from karenina_testing.adapters.replies import ServedRequest
from karenina_vocabulary.traits import LLMRubricTrait

from karenina_core import ArtifactKeys, ModelConfig, Question, Rubric, StageOrchestrator, VerificationConfig
from karenina_core.errors import AgentExecutionError, AgentResponseError, PortError
from karenina_core.pipeline.context import VerificationContext
from karenina_core.ports.model_client import CallRecord
from karenina_core.testing import FakeHandle, Reply, ScriptedServer, application, check_stage
from karenina_core.values.message import ToolUseBlock

TRACE = "SECRET-TRACE: it is 42."
REPORT = 'The file says 42.\n{"fact": "42", "_unanswered_fields": []}'


@define(eq=False)
class Judge:
    report: Any = REPORT
    fills: Any = field(factory=lambda: {"fact": "42"})
    investigations: list[ServedRequest] = field(factory=list)
    extractions: list[ServedRequest] = field(factory=list)

    def __call__(self, request: ServedRequest) -> Any:
        extracting = "take values over from the report" in request.text
        if (
            not extracting
            and not callable(self.report)
            and request.body.get("tools")
            and request.messages[-1]["role"] != "tool"
        ):
            trace = re.search(r"saved to: (\S+)", request.text)
            return Reply(tool_calls=[ToolUseBlock("look", "read_file", {"path": trace[1] if trace else "totals.csv"})])
        (self.extractions if extracting else self.investigations).append(request)
        reply = self.fills if extracting else self.report
        reply = reply(request) if callable(reply) else reply
        return json.dumps(reply) if isinstance(reply, Mapping) else reply


def parsed(
    judge: Judge,
    *,
    workspace: Path | None = None,
    handle: FakeHandle | None = None,
    response: str = TRACE,
    calls: list[CallRecord] | None = None,
    model: Mapping[str, Any] | None = None,
    plugins: Sequence[Any] = (),
    **config: Any,
) -> VerificationContext:
    """The context after the stage; its error is raised as it is, with the context as `evidence`."""
    calls = [] if calls is None else calls

    async def run(url: str) -> VerificationContext:
        app = application(parse_stage, *plugins, installed={"openai_endpoint"})
        config_ = VerificationConfig(features=["agentic_parsing"], **config)
        facts = {"model_name": "m", "interface": "openai_endpoint", "endpoint_base_url": url, "max_retries": 0}
        judge = ModelConfig(**{**facts, **(model or {})})
        async with open_models(app, config_, [judge]) as opened:
            context = VerificationContext(
                question=Question(id="q1", question="What is it?"),
                config=config_,
                parsing=ModelClient(opened[judge.identity], calls, "q1", "What is it?"),
                app=app,
                workspace=workspace,
                calls=calls,
            )
            context.set_artifact(ArtifactKeys.RAW_LLM_RESPONSE, response)
            for key in (ArtifactKeys.RAW_ANSWER, ArtifactKeys.ANSWER):
                context.set_artifact(key, handle or FakeHandle())
            stage = AgenticParseTemplate()
            with context.acting(stage):
                try:
                    await stage.execute(context)
                except PortError as error:
                    error.evidence = {"context": context}
                    raise
            return context

    with ScriptedServer(judge) as server:
        return asyncio.run(run(server.url))


def test_the_report_fills_the_template_in(workspace: Path) -> None:
    says = iter([Reply(tool_calls=[ToolUseBlock("c", "read_file", {"path": "totals.csv"})]), REPORT])
    judge = Judge(lambda _: next(says))
    calls: list[CallRecord] = []
    context = parsed(judge, workspace=workspace, calls=calls)
    assert context.get_artifact(ArtifactKeys.PARSED_ANSWER).values() == {"fact": "42"}
    assert context.get_result_field("agentic_parsing_performed") is True
    assert "total" in context.get_result_field("investigation_trace")
    assert context.get_artifact(ArtifactKeys.DEEP_JUDGMENT_PERFORMED) is False
    assert context.get_artifact(ArtifactKeys.TEMPLATE_EVALUATOR) is None
    assert [call.task for call in calls] == ["agentic_parsing_investigation", "agentic_parsing_extraction"]
    assert "The file says 42." in judge.extractions[0].text
    assert '"fact"' in judge.investigations[0].text


@pytest.mark.parametrize(
    ("mode", "has_trace", "has_workspace"),
    [("workspace_only", False, True), ("trace_and_workspace", True, True), ("trace_only", True, False)],
)
def test_the_agent_is_shown_what_the_context_mode_says(
    mode: str, has_trace: bool, has_workspace: bool, workspace: Path
) -> None:
    judge = Judge()
    parsed(judge, workspace=workspace, agentic_judge_context=mode)
    (request,) = judge.investigations
    assert "What is it?" in request.text
    assert ("SECRET-TRACE" in request.text) == has_trace
    assert ("Workspace directory:" in request.text) == has_workspace
    assert bool(request.body.get("tools")) == has_workspace


def test_a_trace_that_is_to_be_a_file_is_named_in_the_prompt_and_removed(workspace: Path) -> None:
    says = iter([Reply(tool_calls=[ToolUseBlock("c", "read_file", {"path": ".karenina/traces/trace_q1.txt"})]), REPORT])
    judge = Judge(lambda _: next(says))
    context = parsed(
        judge, workspace=workspace, agentic_judge_context="trace_only", agentic_parsing_materialize_trace=True
    )
    assert "SECRET-TRACE" not in judge.investigations[0].text
    assert ".karenina/traces/trace_q1.txt" in judge.investigations[0].text
    assert "SECRET-TRACE" in context.get_result_field("investigation_trace")
    assert not (workspace / ".karenina" / "traces" / "trace_q1.txt").exists()


def test_an_investigation_without_a_report_is_an_error_and_fills_nothing_in(workspace: Path) -> None:
    judge = Judge(Reply(tool_calls=[ToolUseBlock("c", "list_files", {})]))
    with pytest.raises(AgentExecutionError, match="turns") as raised:
        parsed(judge, workspace=workspace, agentic_parsing_max_turns=2)
    assert raised.value.limit_reached
    context: Any = raised.value.evidence["context"]
    assert "totals.csv" in context.get_result_field("investigation_trace")
    assert judge.extractions == []


def test_a_report_that_the_judge_cannot_read_is_read_by_its_own_object(workspace: Path) -> None:
    judge = Judge(fills="I cannot.")
    context = parsed(judge, workspace=workspace)
    assert context.get_result_field("agentic_extraction_recovery") == "local_json"
    assert context.get_result_field("agentic_extraction_error")
    assert context.get_artifact(ArtifactKeys.PARSED_ANSWER).values() == {"fact": "42"}
    judge = Judge('{"fact": "0", "_unanswered_fields": ["fact"]}', "I cannot.")
    assert parsed(judge, workspace=workspace).get_artifact(ArtifactKeys.PARSED_ANSWER).values() == {"fact": None}


QUOTED = 'The log quotes {"fact": "7"} and {"rows": [{"fact": "8"}]}.'


@pytest.mark.parametrize(
    ("report", "fact"),
    [
        (f'{QUOTED}\n{{"fact": "42"}}', "42"),
        (f'{QUOTED}\n```json\n{{"fact": "42", "_unanswered_fields": []}}\n```\nThat is all.', "42"),
        (f'{QUOTED}\n{{"fact": "0", "_unanswered_fields": ["fact"]}}', None),
        ('{"fact": "42"}\nIt has {"rows": 3} too, {see} above.', "42"),
        (f'{"{x} " * 2000}{QUOTED}\n{{"fact": "42"}}', "42"),
    ],
    ids=["last", "fenced", "unanswered", "the last that fits", "many braces"],
)
def test_of_several_objects_in_a_report_the_last_that_fits_is_its_own(
    report: str, fact: str | None, workspace: Path
) -> None:
    context = parsed(Judge(report, "I cannot."), workspace=workspace)
    assert context.get_artifact(ArtifactKeys.PARSED_ANSWER).values() == {"fact": fact}


def test_the_file_of_a_trace_has_the_same_name_in_prompts_when_it_is_kept_twice(workspace: Path) -> None:
    judge = Judge()
    filed = {"agentic_parsing_materialize_trace": True, "agentic_parsing_persist_trace": True}
    for _ in range(2):
        parsed(judge, workspace=workspace, agentic_judge_context="trace_and_workspace", **filed)
    assert len(list((workspace / ".karenina" / "traces").iterdir())) == 3
    first, second = judge.investigations
    assert ".karenina/traces/trace_q1.txt" in first.text
    assert first.text == second.text


@pytest.mark.parametrize("report", ["No object at all.", '{"fact": 42}', 'It says {"fact": "42", "more'])
def test_a_report_that_no_judge_can_read_is_an_error(report: str, workspace: Path) -> None:
    with pytest.raises(PortError):
        parsed(Judge(report, "I cannot."), workspace=workspace)


@pytest.mark.parametrize("trigger", ["always", "dynamic"])
@pytest.mark.parametrize("marks", [{}, {"said": "42"}])
def test_a_template_without_fields_for_a_judge_starts_no_agent(marks: dict[str, str], trigger: str) -> None:
    judge = Judge()
    context = parsed(judge, handle=FakeHandle(expected={}, marks=marks), agentic_parsing_trigger=trigger)
    assert judge.investigations == []
    assert not context.get_result_field("dynamic_parsing_performed", False)
    assert context.get_result_field("agentic_parsing_performed") is False
    assert context.get_artifact(ArtifactKeys.PARSED_ANSWER).values() == {}


def test_an_agent_without_a_workspace_is_not_asked_to_look_into_one() -> None:
    judge = Judge()
    with pytest.raises(AgentResponseError, match="no workspace"):
        parsed(judge)
    assert judge.investigations == []


def test_a_file_of_a_trace_that_is_not_shown_is_refused() -> None:
    config = VerificationConfig(agentic_parsing=True, agentic_parsing_materialize_trace=True)
    problems = list(AgenticParseTemplate().check_config(config, application()))
    assert [problem.path for problem in problems] == ["agentic_parsing_materialize_trace"]
    fitting = VerificationConfig(agentic_parsing_materialize_trace=True, agentic_judge_context="trace_only")
    (note,) = AgenticParseTemplate().check_config(fitting, application())
    assert (note.path, note.fatal) == ("agentic_judge_context", False)


@pytest.mark.parametrize("mode", ["full", "reasoning_only"])
def test_deep_judgment_of_the_same_template_is_refused_with_what_to_switch_off(mode: Any) -> None:
    config = VerificationConfig(agentic_parsing=True, deep_judgment_mode=mode)
    (problem,) = AgenticParseTemplate().check_config(config, application())
    assert problem.path == "deep_judgment_enabled"
    assert "--without deep_judgment" in problem.message
    assert "--without agentic_parsing" in problem.message
    traits = VerificationConfig(agentic_parsing=True, deep_judgment_rubric_mode="enable_all")
    assert list(AgenticParseTemplate().check_config(traits, application())) == []


OWN_LIMITS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "turns": ({"agentic_parsing_max_turns": 2}, {}, "agentic_parsing_max_turns"),
    "time": ({"agentic_parsing_timeout": 1.5}, {}, "agentic_parsing_timeout"),
    "tool_calls": ({}, {"agent_max_tool_calls": 1}, "agent_max_tool_calls"),
    "tokens": ({}, {"agent_max_total_tokens": 12}, "agent_max_total_tokens"),
    "cost": ({}, {"agent_max_cost_usd": 0.5}, "agent_max_cost_usd"),
    "repeated_calls": ({}, {"agent_max_repeated_calls": 1}, "agent_max_repeated_calls"),
}


@pytest.mark.parametrize("limit", OWN_LIMITS)
def test_whatever_ends_an_investigation_is_named_with_the_setting_to_raise(
    limit: str, workspace: Path, pricing: Any
) -> None:
    config, judge_facts, setting = OWN_LIMITS[limit]

    def looks(request: ServedRequest) -> Any:
        if limit == "time" and request.messages[-1]["role"] == "tool":
            return Reply("Late.", latency=30.0)
        return Reply(tool_calls=[ToolUseBlock(f"c{request.number}", "list_files", {})], usage=(10, 3))

    judge = Judge(looks)
    with pytest.raises(AgentExecutionError, match=rf"\({limit}\).* raise {setting}") as raised:
        parsed(judge, workspace=workspace, model=judge_facts, plugins=[pricing()], **config)
    context: Any = raised.value.evidence["context"]
    assert "totals.csv" in context.get_result_field("investigation_trace")
    assert judge.extractions == []
    if judge_facts:
        assert "of the model" in str(raised.value)


def test_a_judge_that_cannot_use_tools_is_refused() -> None:
    app = application(installed={"manual"})
    recorded = ModelConfig(interface="manual", manual_traces={"q": "It is 42."})
    config = VerificationConfig(agentic_parsing=True, parsing_models=[recorded])
    (problem,) = AgenticParseTemplate().check_config(config, app)
    assert problem.path == "parsing_models[0]"
    assert "agentic_parsing" in problem.message


def test_the_agent_takes_the_place_of_the_judge_in_every_plan_with_deep_judgment_too() -> None:
    app = application(parse_stage, installed=True)
    rubric = Rubric.from_traits([LLMRubricTrait(name="clear", kind="boolean")])
    for others in ((), ("deep_judgment",), ("deep_judgment", "abstention", "sufficiency", "embedding_check")):
        made = StageOrchestrator.from_config(
            "template_and_rubric", rubric, features=("agentic_parsing", *others), app=app
        )
        names = [stage.name for stage in made.stages]
        assert made.validate_dependencies() == []
        assert ("AgenticParseTemplate" in names, "ParseTemplate" in names) == (True, False)
    made = StageOrchestrator.from_config("template_only", None, app=app)
    assert "AgenticParseTemplate" not in [stage.name for stage in made.stages]


def test_the_stage_keeps_the_promises_of_stages() -> None:
    check_stage(AgenticParseTemplate, config=VerificationConfig(features=["agentic_parsing"]), max_examples=5)


def test_the_judge_is_shown_the_report_and_not_the_way_to_it(workspace: Path) -> None:
    def says(request: ServedRequest) -> Any:
        if request.messages[-1]["role"] == "tool":
            return REPORT
        return Reply("First I look around.", tool_calls=[ToolUseBlock("c", "read_file", {"path": "totals.csv"})])

    judge = Judge(says)
    parsed(judge, workspace=workspace)
    (shown,) = judge.extractions
    assert "The file says 42." in shown.text
    assert "First I look around." not in shown.text
    assert "total\n42" not in shown.text


# What was not examined is not judged


@pytest.mark.parametrize(
    "config",
    [
        {"agentic_judge_context": "trace_only", "agentic_parsing_materialize_trace": True},
        {"agentic_judge_context": "trace_and_workspace", "agentic_parsing_materialize_trace": True},
        {"agentic_judge_context": "workspace_only"},
    ],
    ids=str,
)
def test_a_report_of_an_agent_that_has_read_nothing_fills_in_no_template(
    config: dict[str, Any], tmp_path: Path
) -> None:
    judge = Judge(report=lambda _: "The full agent trace is saved to: .karenina/traces/trace_q1.txt")
    with pytest.raises(AgentResponseError, match="no tool has shown it any of their contents") as failed:
        parsed(judge, workspace=tmp_path, **config)
    assert failed.value.kind == "agent"
    assert judge.extractions == []


def test_a_report_that_was_cut_off_fills_in_no_template() -> None:
    judge = Judge(report=Reply('{"fact": "4', finish_reason="length"))
    with pytest.raises(AgentResponseError, match="cut off") as failed:
        parsed(judge, agentic_judge_context="trace_only")
    assert failed.value.kind == "agent"
    assert judge.extractions == []


@pytest.mark.parametrize(
    ("model", "config", "kind"),
    [
        ({}, {"agentic_parsing_timeout": 0.2}, "timeout"),
        ({"agent_max_total_tokens": 1}, {}, "budget"),
        ({}, {"agentic_parsing_max_turns": 1}, "agent"),
    ],
)
def test_a_limit_that_ends_the_investigation_is_an_error_of_its_kind(
    model: Any, config: Any, kind: str, tmp_path: Path
) -> None:
    slow = kind == "timeout"
    judge = Judge(report=lambda _: Reply(tool_calls=[ToolUseBlock("c", "list_files", {})], latency=2.0 if slow else 0))
    with pytest.raises(AgentExecutionError) as failed:
        parsed(judge, workspace=tmp_path, model=model, **config)
    assert failed.value.kind == kind
