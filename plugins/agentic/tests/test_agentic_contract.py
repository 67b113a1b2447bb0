"""What the stage and the evaluator promise, one statement at a time."""

from __future__ import annotations

import asyncio
import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from karenina_agentic import AgenticTraitEvaluator
from karenina_agentic.rubric_stage import AgenticRubricEvaluation
from karenina_calls.ports.client import Model, ModelClient
from karenina_vocabulary.traits import RegexRubricTrait
from pydantic import BaseModel, Field

from karenina_core import (
    AgenticRubricTrait,
    ArtifactKeys,
    ModelConfig,
    Question,
    Rubric,
    VerificationConfig,
    run_single_model_verification,
)
from karenina_core.errors import PortError
from karenina_core.pipeline.context import VerificationContext
from karenina_core.ports import AgentResult, PortCapabilities
from karenina_core.testing import Reply, ScriptedLLM, ScriptedServer, application
from karenina_core.values.message import ToolUseBlock

TRACE = "SECRET-TRACE: I wrote totals.csv."
STRATEGIES = ("individual", "shared")


class Facts(BaseModel):
    files: int = Field(description="How many files there are, links not counted")


def trait(name: str = "right", **facts: Any) -> AgenticRubricTrait:
    known: dict[str, Any] = {"kind": "boolean", "description": f"Whether it is {name}."}
    return AgenticRubricTrait(name=name, **{**known, **facts})


GRADES = {"Poor": "bad work", "Good": "fine work"}
KINDS: dict[str, tuple[dict[str, Any], Any, Any, Any]] = {
    "boolean": ({"kind": "boolean"}, {"result": False}, False, None),
    "score": ({"kind": "score", "min_score": 0, "max_score": 5}, {"score": 0}, 0, None),
    "literal": ({"kind": "literal", "classes": GRADES}, {"classification": "Good"}, 1, -1),
    "template": ({"kind": Facts}, {"files": 0}, {"files": 0}, None),
}
"""By kind: the trait, a reply, its score, and the score of a reply that is no score of the trait."""
WRONG = {
    "boolean": {"result": 7},
    "score": {"score": 6},
    "literal": {"classification": "?"},
    "template": {"files": "x"},
}


# The evaluator by itself


@define(eq=False)
class Agent:
    """Investigates as scripted: a report, or a failure."""

    says: str | BaseException = "I looked."
    capabilities: PortCapabilities = field(factory=PortCapabilities)
    prompts: list[str] = field(factory=list)

    async def arun(self, messages: Any, *given: Any, **named: Any) -> AgentResult:
        self.prompts.append("\n".join(message.text for message in messages))
        if isinstance(self.says, BaseException):
            raise self.says
        return AgentResult(final_response=self.says, raw_trace=f"trace: {self.says}", turns=1)

    async def aclose(self) -> None: ...


def evaluator(agent: Agent, *replies: Any) -> AgenticTraitEvaluator:
    config = ModelConfig(model_name="m", interface="any", max_retries=0)
    return AgenticTraitEvaluator(ModelClient(Model(config=config, agent=agent, llm=ScriptedLLM(*replies)), []))


@pytest.mark.parametrize("kind", KINDS)
def test_score_and_trace_are_returned_and_none_for_what_failed(kind: str) -> None:
    facts, reply, score, no_score = KINDS[kind]
    one = trait(**facts)

    def both(agent: Agent, *replies: Any) -> Any:
        return asyncio.run(evaluator(agent, *replies).evaluate_trait(one, "What?", TRACE))

    assert both(Agent(), reply) == (score, "trace: I looked.")
    assert both(Agent(), PortError("away", kind="auth")) == (None, "trace: I looked.")
    assert both(Agent(), WRONG[kind]) == (no_score, "trace: I looked.")
    for error in (PortError("away", kind="auth"), ValueError("a bug"), TimeoutError()):
        assert both(Agent(error)) == (None, None)


@pytest.mark.parametrize("kind", KINDS)
def test_an_extraction_alone_gives_the_score_and_says_why_there_is_none(kind: str) -> None:
    facts, reply, score, no_score = KINDS[kind]
    one = trait(**facts)

    def extracted(reply: Any) -> Any:
        return asyncio.run(evaluator(Agent(), reply).run_extraction(one, "A record."))

    assert extracted(reply) == score
    assert extracted(WRONG[kind]) == no_score
    for failure in (PortError("away", kind="auth"), "no object at all"):
        with pytest.raises(PortError):
            extracted(failure)


def test_the_prompt_of_the_agent_says_what_it_is_what_to_evaluate_and_what_its_report_has_to_allow() -> None:
    for kind, wanted in (
        ({"kind": "boolean"}, "true or false"),
        ({"kind": "score", "min_score": 1, "max_score": 5}, "from 1 (lowest) to 5 (highest)"),
        ({"kind": "literal", "classes": GRADES}, "Poor: bad work"),
        ({"kind": Facts}, "each of these fields: files"),
    ):
        agent = Agent()
        asyncio.run(evaluator(agent, "unused").investigate([trait(**kind)], _material()))
        assert "You are an evaluation agent" in agent.prompts[0]
        assert "Whether it is right." in agent.prompts[0]
        assert wanted in agent.prompts[0]


def _material() -> Any:
    from karenina_agentic import Material

    return Material(question="What is it?", response=TRACE)


def test_the_form_of_a_template_kind_is_filled_in_by_the_descriptions_of_its_fields(
    evaluated: Any, scripted: Any
) -> None:
    ran = evaluated([trait(kind=Facts)], scripted(scores={"files": 3}))
    assert "How many files there are, links not counted" in json.dumps(ran.scripted.asked("extraction")[0].body)
    assert "Fill in every field" in ran.scripted.prompts("extraction")[0]
    assert ran.scores == {"right.files": 3}


# Every failure point, with each strategy

FAILURES: dict[str, tuple[Any, Any, bool, str]] = {
    "the investigation fails": (Reply.error(400), {"result": True}, False, "error"),
    "the agent says nothing": (lambda _: "", {"result": True}, False, "error"),
    "a limit ends it": (Reply(tool_calls=[ToolUseBlock("c", "list_files", {})]), {"result": True}, True, "error"),
    "the extraction fails": ("I looked.", Reply.error(400), True, "error"),
    "there is no object": ("I looked.", "I cannot say.", True, "error"),
    "there is no score": ("I looked.", {"result": "perhaps"}, True, "invalid"),
    "nothing fails": ("I looked.", {"result": True}, True, "ok"),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("failure", FAILURES)
def test_every_failure_has_its_score_its_trace_and_its_state(
    failure: str, strategy: str, evaluated: Any, scripted: Any, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    investigates, scores, keeps_trace, state = FAILURES[failure]
    with caplog.at_level(logging.WARNING, logger="karenina.agentic"):
        ran = evaluated(
            [trait(max_turns=2), trait("neat", max_turns=2)],
            scripted(investigates, scores),
            workspace=workspace,
            agentic_rubric_strategy=strategy,
        )
    fine = True if state == "ok" else None
    assert ran.scores == {"right": fine, "neat": fine}
    assert ran.states == {"right": state, "neat": state}
    assert [trace is not None for trace in ran.traces.values()] == [keeps_trace, keeps_trace]
    assert ran.context.error is None
    assert ran.context.verdict.verdict is None
    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert bool(warned) == (state != "ok")
    if failure.endswith(" fails") or failure == "the agent says nothing":
        assert all("Traceback" in record.getMessage() for record in warned)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_too_much_to_copy_for_an_investigation_says_what_to_raise_without_a_traceback(
    strategy: str, evaluated: Any, scripted: Any, workspace: Path, caplog: pytest.LogCaptureFixture
) -> None:
    for number in range(9):
        (workspace / f"{number}.txt").write_text("made")
    settings = {"workspace_max_files": 5, "agentic_rubric_strategy": strategy}
    with caplog.at_level(logging.WARNING, logger="karenina.agentic"):
        ran = evaluated([trait()], scripted("Seen.", {"result": True}), workspace=workspace, **settings)
    assert ran.states == {"right": "error"}
    logged = [record.getMessage() for record in caplog.records]
    assert any("raise workspace_max_files" in line for line in logged)
    assert not any("Traceback" in line or "take some out" in line for line in logged)


# Which model investigates


@pytest.mark.parametrize(("others", "count"), [({"temperature": 0.9}, 1), ({"model_name": "n"}, 2)])
def test_models_are_one_where_interface_provider_and_name_are(
    others: dict[str, Any], count: int, evaluated: Any, scripted: Any
) -> None:
    """Their other settings do not count: one agent is enough."""
    model_ = scripted("Fine.", {"result": True})
    with ScriptedServer(model_) as other:
        facts = {"model_name": "m", "interface": "openai_endpoint", "endpoint_base_url": other.url, **others}
        traits = [trait(), trait("neat", model_override=ModelConfig(**facts))]
        ran = evaluated(traits, model_, agentic_rubric_strategy="shared")
    assert len(model_.asked("investigation")) == count
    assert ran.scores == {"right": True, "neat": True}
    assert any("different models" in warning for warning in ran.context.warnings) == (count == 2)


# When it runs


@pytest.mark.parametrize("missing", ["nothing", "rubric", "agentic traits", "answer", "error"])
def test_it_runs_where_there_is_something_to_evaluate_and_no_error(missing: str) -> None:
    rubrics = {"rubric": None, "agentic traits": Rubric.from_traits([RegexRubricTrait(name="r", pattern="x")])}
    rubric = rubrics.get(missing, Rubric.from_traits([trait()]))
    context = VerificationContext(question=Question(question="?"), mode="rubric_only", rubric=rubric)
    if missing != "answer":
        context.set_artifact(ArtifactKeys.RAW_LLM_RESPONSE, TRACE)
    if missing == "error":
        context.mark_error("an earlier stage failed")
    assert bool(AgenticRubricEvaluation().should_run(context)) == (missing == "nothing")


# What is shown where there is nothing


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_without_workspace_and_answer_only_the_question_is_shown(strategy: str, evaluated: Any, scripted: Any) -> None:
    ran = evaluated([trait()], scripted(scores={"result": True}), response="", agentic_rubric_strategy=strategy)
    (request,) = ran.scripted.asked("investigation")
    assert "What do the sales add up to?" in request.text
    assert "Workspace directory" not in request.text
    assert "ANSWERING AGENT TRACE" not in request.text
    assert not request.body.get("tools")


def test_an_inline_trace_is_between_marks(evaluated: Any, scripted: Any) -> None:
    (prompt,) = evaluated([trait()], scripted(scores={"result": True}), response=TRACE).scripted.prompts()
    begin, end = prompt.index("--- ANSWERING AGENT TRACE ---"), prompt.index("--- END TRACE ---")
    assert begin < prompt.index(TRACE) < end


# The trace as a file


def test_a_trace_that_no_trait_is_shown_cannot_be_a_file() -> None:
    with pytest.raises(ValueError, match="materialize_trace needs a context_mode that includes the trace"):
        trait(context_mode="workspace_only", materialize_trace=True)


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("persists", [False, True])
def test_one_file_is_written_for_all_traits_and_any_of_them_keeps_it(
    persists: bool, strategy: str, evaluated: Any, scripted: Any, workspace: Path
) -> None:
    there: set[str] = set()

    def looks(request: Any) -> Any:
        there.update(path.name for path in (workspace / ".karenina" / "traces").iterdir())
        looked = request.messages[-1]["role"] == "tool"
        paths = ["totals.csv", *re.findall(r"saved to: (\S+)", request.text)]
        return (
            "Fine." if looked else Reply(tool_calls=[ToolUseBlock(path, "read_file", {"path": path}) for path in paths])
        )

    traits = [
        trait("filed", materialize_trace=True),
        trait("filed_too", materialize_trace=True),
        trait("inline"),
        trait("keeper", context_mode="workspace_only", persist_trace=persists),
    ]
    ran = evaluated(
        traits,
        scripted(looks, {"result": True}),
        workspace=workspace,
        response=TRACE,
        agentic_rubric_strategy=strategy,
    )
    assert set(ran.scores.values()) == {True}
    (own,) = there - {"trace_old.txt"}
    assert own.startswith("trace_q_1")
    assert own.endswith(".txt")
    kept = workspace / ".karenina" / "traces" / own
    assert kept.exists() == persists
    if persists:
        assert kept.read_text() == TRACE
        assert "trace_file" not in ran.details("keeper"), "it sees no trace"


def test_a_file_is_removed_also_where_the_evaluation_is_cancelled(workspace: Path) -> None:
    from karenina_agentic.folders import written_trace

    def work() -> None:
        with written_trace(TRACE, "q1", workspace, keep=False) as written:
            assert written.path is not None
            assert written.path.name == "trace_q1.txt"
            assert written.path.read_text() == TRACE
            raise asyncio.CancelledError

    with pytest.raises(asyncio.CancelledError):
        work()
    assert [path.name for path in (workspace / ".karenina" / "traces").iterdir()] == ["trace_old.txt"]


def test_a_file_that_cannot_be_removed_is_a_warning(
    workspace: Path, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    from karenina_agentic.folders import written_trace

    def refuses(self: Path, missing_ok: bool = False) -> None:
        raise PermissionError("no")

    with (
        caplog.at_level(logging.WARNING, logger="karenina.agentic"),
        written_trace(TRACE, "q1", workspace, keep=False) as written,
    ):
        assert written.path is not None
        monkeypatch.setattr(Path, "unlink", refuses)
    assert any("could not be removed" in record.getMessage() for record in caplog.records)


# The mode


def test_a_single_verification_with_an_agentic_trait_evaluates_rubrics_too() -> None:
    field_ = {"name": "fact", "type": "str", "description": "What it is", "ground_truth": "42"}
    template = json.dumps({"fields": [{**field_, "verify_with": {"type": "ExactMatch"}}]})

    def says(request: Any) -> Any:
        if "record of an investigation" in request.text:
            return {"result": True}
        return {"fact": "42"} if request.schema is not None else "It is 42."

    with ScriptedServer(lambda request: _as_text(says(request))) as server:
        model = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=server.url)
        result = run_single_model_verification(
            Question(question="What?", answer_template=template, template_language="karenina-template"),
            model,
            model,
            rubric=Rubric.from_traits([trait(context_mode="trace_only")]),
            evaluation_mode="template_only",
            config=VerificationConfig(),
            app=application(installed=True),
        )
    assert (result.metadata.evaluation_mode, str(result.outcome)) == ("template_and_rubric", "passed")
    assert result.rubric is not None
    assert dict(result.rubric.agentic_trait_scores) == {"right": True}


def _as_text(reply: Any) -> str:
    return reply if isinstance(reply, str) else json.dumps(reply)
