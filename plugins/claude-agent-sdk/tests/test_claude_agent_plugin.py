"""The plugin as karenina sees it, and whole runs with it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import karenina_claude_agent_sdk
import pytest
from karenina_claude_agent_sdk.ports import ClaudeAgent
from karenina_claude_agent_sdk.settings import problems

from karenina_core import (
    AgenticRubricTrait,
    Benchmark,
    Karenina,
    ModelConfig,
    Question,
    Rubric,
    VerificationConfig,
    run_single_model_verification,
)
from karenina_core.errors import ConfigError
from karenina_core.testing import adapter_checks, application, check_adapter
from karenina_core.values.config import AttemptPolicy, RetryPolicy

INTERFACE = "claude_agent_sdk"
ONCE = RetryPolicy(**dict.fromkeys(("rate_limited", "timeout", "connection", "server"), AttemptPolicy(1)))
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


def model(**fields: Any) -> ModelConfig:
    return ModelConfig(**{"model_name": "claude-x", "interface": INTERFACE, "retry_policy": ONCE, **fields})


# Registration


def test_the_entry_module_imports_nothing_heavy() -> None:
    code = (
        "import sys, karenina_claude_agent_sdk; "
        "print(sorted({'claude_agent_sdk', 'mcp', 'anyio', 'pydantic', 'asyncio', 'jsonschema'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"


def test_it_takes_the_name_over_from_the_plugin_that_serves_it_with_plain_calls() -> None:
    app = application(installed={"litellm", INTERFACE})
    assert app.adapters[INTERFACE].plugin == INTERFACE
    assert app.adapters.get_spec(INTERFACE).agent_tier == "deep_agent"
    assert app.adapters.get_spec("claude_tool").routes_to == "litellm", "the other plugin has lost its names"
    alone = application(installed={"litellm"})
    assert alone.adapters.get_spec(INTERFACE).routes_to == "litellm"


def test_the_adapter_passes_the_checks_of_the_kit(scripted: Any, says: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    program = scripted(says.reply(says.text("Paris")), says.result("Paris"), structured=[says.result("{}")])
    monkeypatch.setenv("PATH", str(program.folder))
    spec = Karenina({INTERFACE: karenina_claude_agent_sdk}).adapters.get_spec(INTERFACE)
    names = [check.name for check in adapter_checks(spec, config=model())]
    assert names == ["spec", "light_import", "light_construction", "ports", "reply"]
    check_adapter(spec, config=model())
    assert program.noted("started"), "no call was made"


def test_capabilities_are_those_of_the_tools_that_are_offered() -> None:
    able = ClaudeAgent(model()).capabilities
    assert (able.supports_file_tools, able.supports_code_execution, able.uses_sandboxed_execution) == (
        True,
        True,
        False,
    )
    reader = ClaudeAgent(model(extra_kwargs={"tools": ["Read"]})).capabilities
    assert (reader.supports_file_tools, reader.supports_code_execution) == (True, False)
    bare = ClaudeAgent(model(extra_kwargs={"tools": []})).capabilities
    assert (bare.supports_file_tools, bare.supports_code_execution) == (False, False)


def test_the_program_is_looked_for_where_the_settings_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    here = {INTERFACE: {"program": sys.executable}}
    assert application(karenina_claude_agent_sdk).adapters.check_availability("claude_agent_sdk").state == "broken"
    app = application(installed={INTERFACE}, settings=here)
    assert app.adapters.check_availability(INTERFACE).available
    wrong = application(installed={INTERFACE}, settings={INTERFACE: {"program": "nowhere"}})
    assert "'nowhere', which is not a program" in wrong.adapters.check_availability(INTERFACE).reason


@pytest.mark.parametrize(
    ("fields", "complaint"),
    [
        ({"model_provider": "openai"}, "model_provider: the agent always asks anthropic"),
        ({"temperature": 0.7}, "temperature: the program has no option for it"),
        ({"endpoint_base_url": "localhost:8000"}, "endpoint_base_url: must begin with http"),
        ({"endpoint_base_url": "http://h:port"}, "endpoint_base_url: is not a URL"),
        ({"endpoint_base_url": "http://u:p@h"}, "endpoint_base_url: must hold no user name"),
        ({"endpoint_api_key": "a\nb"}, "endpoint_api_key: the key has a control character"),
        ({"api_key_env": "NOT_SET_ANYWHERE"}, "api_key_env: set the environment variable"),
        ({"extra_kwargs": {"top_p": 1}}, "extra_kwargs.top_p: cannot be passed on"),
        ({"extra_kwargs": {"tools": "Bash"}}, "extra_kwargs.tools: must be a list of names"),
        ({"extra_kwargs": {"tools": ["Bash(rm *)"]}}, "extra_kwargs.tools: must be a list of names"),
        ({"extra_kwargs": {"tools": ["--debug"]}}, "extra_kwargs.tools: must be a list of names"),
        ({"extra_kwargs": {"effort": "huge"}}, "extra_kwargs.effort: must be one of low"),
        ({"extra_kwargs": {"claude_code_prompt": 1}}, "extra_kwargs.claude_code_prompt: must be true or false"),
        ({"extra_kwargs": {"max_response_bytes": 0}}, "extra_kwargs.max_response_bytes: must be a positive number"),
    ],
)
def test_what_cannot_work_is_reported_before_a_run(fields: dict[str, Any], complaint: str) -> None:
    (problem,) = problems(model(**fields))
    assert problem.startswith(complaint)


@pytest.mark.parametrize("fields", [{}, {"temperature": None}, {"model_provider": "anthropic"}])
def test_what_can_work_is_accepted(fields: dict[str, Any]) -> None:
    assert list(problems(model(**fields))) == []


# Runs


def app_of(program: Any) -> Karenina:
    return application(installed=True, settings={INTERFACE: {"program": str(program.path)}})


@pytest.fixture
def worker(scripted: Any, says: Any) -> Any:
    """A program that writes a file and answers; as a judge it reads BCL2, and finds every trait to hold."""
    return scripted(
        says.init(),
        ("write", {"report.txt": "BCL2"}),
        says.reply(says.use("c1", "Write", file_path="report.txt", content="BCL2")),
        says.answer("c1", "File created"),
        says.reply(says.text("The target is BCL2; see report.txt."), id="m2"),
        says.result("The target is BCL2; see report.txt."),
        structured=[says.init(), says.result("", structured_output={"target": "BCL2"})],
    )


def question(**fields: Any) -> Question:
    return Question(
        id="q1",
        question="What is the target of venetoclax?",
        raw_answer="BCL2",
        answer_template=json.dumps(TARGET),
        template_language="karenina-template",
        **fields,
    )


def test_a_run_with_the_agent_as_answerer_and_as_judge(worker: Any, tmp_path: Path) -> None:
    (tmp_path / "root" / "shop").mkdir(parents=True)
    (tmp_path / "root" / "shop" / "given.txt").write_text("venetoclax")
    benchmark = Benchmark(name="b", questions=[question(workspace_path="shop")], workspace_root=tmp_path / "root")
    config = VerificationConfig(answering_models=[model()], parsing_models=[model()], workspace_output_mode="produced")
    (result,) = benchmark.run_verification(config, app=app_of(worker), run_dir=tmp_path / "run")
    assert str(result.outcome) == "passed", result.metadata.error
    answer = result.generation
    assert [row["role"] for row in answer.trace_messages] == ["assistant", "tool", "assistant"]
    assert answer.agent_metrics["tool_call_counts"] == {"Write": 1}
    assert answer.usage_metadata["generation"]["cost_usd"] == 0.25
    assert answer.recursion_limit_reached is False
    (kept,) = (tmp_path / "run" / "workspaces").rglob("report.txt")
    assert kept.read_text() == "BCL2"
    assert not (tmp_path / "root" / "shop" / "report.txt").exists()
    assert worker.noted("files")[0] == ["given.txt"]
    assert len(worker.noted("started")) == 2


def test_an_investigation_of_what_the_agent_left(scripted: Any, says: Any, tmp_path: Path) -> None:
    (tmp_path / "shop").mkdir()
    program = scripted(
        ("write", {"report.txt": "BCL2"}),
        says.reply(says.use("c1", "Read", file_path="report.txt")),
        says.answer("c1", "BCL2"),
        says.reply(says.text("The report names BCL2."), id="m2"),
        says.result("The report names BCL2."),
        structured=[says.result("", structured_output={"result": True})],
    )
    trait = AgenticRubricTrait(
        name="reported", kind="boolean", description="Whether it is reported.", context_mode="workspace_only"
    )
    result = run_single_model_verification(
        question(workspace_path="shop"),
        model(),
        model(),
        rubric=Rubric.from_traits([trait]),
        evaluation_mode="rubric_only",
        workspace_root=tmp_path,
        app=app_of(program),
    )
    part = result.rubric
    assert part is not None
    assert dict(part.agentic_trait_scores) == {"reported": True}, part.trait_states
    assert "The report names BCL2." in part.agentic_trait_investigation_traces["reported"]
    answering, investigating, scoring = program.noted("started")
    assert answering[answering.index("--tools") + 1] == "Bash,Edit,Glob,Grep,Read,Write"
    assert investigating[investigating.index("--tools") + 1] == "Glob,Grep,Read"
    assert scoring[scoring.index("--tools") + 1] == ""
    worked_in, looked_in, _ = program.noted("folder")
    assert looked_in != worked_in, "it worked on the workspace itself"
    assert program.noted("files")[:2] == [[], ["report.txt"]]
    assert looked_in in program.asked[1], "the prompt does not name the workspace"


def test_a_run_is_refused_where_the_program_is_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    config = VerificationConfig(answering_models=[model()], parsing_models=[model()])
    with pytest.raises(ConfigError, match="npm install -g @anthropic-ai/claude-code"):
        Benchmark(name="b", questions=[question()]).run_verification(config, app=application(installed=True))


def test_what_was_done_before_a_failure_is_in_the_result(scripted: Any, says: Any) -> None:
    program = scripted(says.reply(says.text("Let me see.")), ("stderr", "out of memory"), ("exit", 9))
    config = VerificationConfig(answering_models=[model()], parsing_models=[model()])
    (result,) = Benchmark(name="b", questions=[question()]).run_verification(config, app=app_of(program))
    assert str(result.outcome) == "error(agent)"
    assert "out of memory" in str(result.metadata.error)
    assert [row["content"] for row in result.generation.trace_messages] == ["Let me see."]
