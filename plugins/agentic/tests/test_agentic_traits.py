"""Agentic traits: what investigators are shown, what becomes of their reports, and what failures cost."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from karenina_agentic import AgenticTraitEvaluator, Material
from karenina_agentic.agents import NO_LINE, _has_read
from pydantic import BaseModel, Field

from karenina_core import AgenticRubricTrait, ModelConfig, Rubric, hookimpl
from karenina_core.errors import ContractError
from karenina_core.ports.middleware import Call, CallTarget, Proceed
from karenina_core.testing import Reply, ScriptedServer, application
from karenina_core.values.message import Message, ToolResultBlock, ToolUseBlock

TRACE = "SECRET-TRACE: I looked at the sales and wrote totals.csv."
STRATEGIES = ("individual", "shared")


class Facts(BaseModel):
    files: int = Field(description="How many files there are")
    names: list[str] = Field(description="Their names")


def trait(name: str = "right", **facts: Any) -> AgenticRubricTrait:
    known: dict[str, Any] = {"kind": "boolean", "description": f"Whether it is {name}."}
    return AgenticRubricTrait(name=name, **{**known, **facts})


BY_KIND = {
    "boolean": (trait(), {"result": True}, {"right": True}),
    "score": (trait(kind="score", min_score=1, max_score=5), {"score": 4}, {"right": 4}),
    "literal": (
        trait(kind="literal", classes={"Poor": "bad work", "Good": "fine work"}),
        {"classification": "good"},
        {"right": 1},
    ),
    "template": (
        trait(kind=Facts),
        {"files": 1, "names": ["totals.csv"]},
        {"right.files": 1, "right.names": ["totals.csv"]},
    ),
}


# Scores


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("kind", BY_KIND)
def test_every_kind_has_a_score_and_the_trace_of_its_investigation(
    kind: str, strategy: str, evaluated: Any, scripted: Any
) -> None:
    one, says, expected = BY_KIND[kind]
    ran = evaluated([one], scripted("They match.", says), agentic_rubric_strategy=strategy)
    assert ran.scores == expected
    assert ran.states == {"right": "ok"}
    assert "They match." in (ran.traces["right"] or "")
    assert ran.context.get_result_field("agentic_rubric_evaluation_performed") is True
    assert ran.context.get_artifact("agentic_trait_scores") == ran.scores
    assert ran.context.get_artifact("agentic_trait_investigation_traces") == ran.traces


def test_the_extraction_is_shown_the_scale_and_the_classes(evaluated: Any, scripted: Any) -> None:
    score = evaluated([BY_KIND["score"][0]], scripted(scores={"score": 2})).scripted.prompts("extraction")[0]
    assert "from 1 (lowest) to 5 (highest)" in score
    literal = evaluated([BY_KIND["literal"][0]], scripted(scores={"classification": "Poor"})).scripted.prompts(
        "extraction"
    )[0]
    assert "Poor: bad work" in literal
    assert "Good: fine work" in literal


def test_a_class_keeps_its_name_and_an_unknown_one_its_text(evaluated: Any, scripted: Any) -> None:
    one = BY_KIND["literal"][0]
    ran = evaluated([one], scripted(scores={"classification": "GOOD "}))
    assert (ran.scores, ran.details("right")["label"]) == ({"right": 1}, "Good")
    ran = evaluated([one], scripted(scores={"classification": "splendid"}))
    assert (ran.scores, ran.states, ran.details("right")["label"]) == ({"right": -1}, {"right": "invalid"}, "splendid")


@pytest.mark.parametrize("value", [0, 6, 7.5, "many", True])
def test_a_number_beyond_the_scale_is_no_score(value: Any, evaluated: Any, scripted: Any) -> None:
    ran = evaluated([BY_KIND["score"][0]], scripted(scores={"score": value}))
    assert (ran.scores, ran.states) == ({"right": None}, {"right": "invalid"})
    assert ran.traces["right"] is not None


def test_a_reply_that_is_no_score_is_repaired(evaluated: Any, scripted: Any) -> None:
    replies = iter([{"score": 9}, {"score": 3}])
    ran = evaluated([BY_KIND["score"][0]], scripted(scores=lambda _: next(replies)), judge={"max_retries": 1})
    assert ran.scores == {"right": 3}


def test_a_template_kind_that_failed_has_its_bare_name_and_no_fields(evaluated: Any, scripted: Any) -> None:
    ran = evaluated([BY_KIND["template"][0]], scripted(scores={"files": "none"}))
    assert (ran.scores, ran.states) == ({"right": None}, {"right": "invalid"})


def test_of_a_long_investigation_the_begin_and_the_end_are_read(evaluated: Any, scripted: Any) -> None:
    report = "BEGIN" + "x" * 100_000 + "END"
    ran = evaluated([trait()], scripted(report, {"result": True}))
    asked = ran.scripted.prompts("extraction")[0]
    assert 60_000 < len(asked) < 65_000
    assert "BEGIN" in asked
    assert "END" in asked
    assert "characters left out" in asked
    assert report in (ran.traces["right"] or "")


# Failures: what they return, for every failure point and strategy


def broken(_: Any) -> Reply:
    return Reply.error(400, "no")


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_failed_investigation_leaves_neither_score_nor_trace(strategy: str, evaluated: Any, scripted: Any) -> None:
    ran = evaluated([trait(), trait("neat")], scripted(broken, {"result": True}), agentic_rubric_strategy=strategy)
    assert ran.scores == {"right": None, "neat": None}
    assert ran.traces == {"right": None, "neat": None}
    assert ran.states == {"right": "error", "neat": "error"}
    assert "the investigation failed" in ran.reason("right")
    assert ran.context.error is None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_exception_of_a_package_has_its_place_in_the_reason(strategy: str, evaluated: Any, scripted: Any) -> None:
    class Faulty:
        @hookimpl
        def karenina_wrap_call(self, target: CallTarget) -> Any:
            return self._faulty if target.kind == "work" else None

        async def _faulty(self, call: Call[Any], proceed: Proceed) -> Any:
            raise KeyError("turns")

    says = scripted("They match.", {"result": True})
    ran = evaluated([trait(), trait("neat")], says, agentic_rubric_strategy=strategy, plugins=[Faulty()])
    line = Faulty._faulty.__code__.co_firstlineno + 1
    assert ran.states == {"right": "error", "neat": "error"}
    assert re.search(rf"KeyError: .turns. \(.*test_agentic_traits.py:{line} in _faulty\)$", ran.reason("right"))


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("scores", [broken, "I cannot say."])
def test_a_failed_extraction_leaves_the_trace(scores: Any, strategy: str, evaluated: Any, scripted: Any) -> None:
    ran = evaluated([trait()], scripted("They match.", scores), agentic_rubric_strategy=strategy)
    assert ran.scores == {"right": None}
    assert "They match." in (ran.traces["right"] or "")
    assert (ran.states, ran.context.error) == ({"right": "error"}, None)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_trait_that_fails_costs_no_other_its_score(strategy: str, evaluated: Any, scripted: Any) -> None:
    def scores(request: Any) -> Any:
        return broken(request) if "(neat)" in request.text else {"result": True}

    ran = evaluated([trait(), trait("neat")], scripted("Fine.", scores), agentic_rubric_strategy=strategy)
    assert ran.scores == {"right": True, "neat": None}
    assert ran.traces["neat"] is not None


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_a_trait_whose_model_cannot_investigate_is_passed_over(strategy: str, evaluated: Any, scripted: Any) -> None:
    unable = trait("neat", model_override=ModelConfig(interface="manual", manual_traces={"q": "a"}))
    ran = evaluated([trait(), unable], scripted("Fine.", {"result": True}), agentic_rubric_strategy=strategy)
    assert ran.scores == {"right": True, "neat": None}
    assert (ran.traces["neat"], ran.states["neat"]) == (None, "skipped")
    assert "manual" in ran.reason("neat")
    assert any("neat: the interface 'manual' cannot investigate" in warning for warning in ran.context.warnings)


@pytest.mark.parametrize("strategy", STRATEGIES)
def test_an_investigation_that_ran_out_of_turns_is_never_scored(
    strategy: str, evaluated: Any, scripted: Any, workspace: Path
) -> None:
    looks = Reply(tool_calls=[ToolUseBlock("c1", "list_files", {})])
    model_ = scripted(looks, {"result": True})
    ran = evaluated([trait(max_turns=2)], model_, workspace=workspace, agentic_rubric_strategy=strategy)
    assert ran.scores == {"right": None}
    assert (ran.states, ran.details("right")["limit"]) == ({"right": "error"}, "turns")
    assert "limit" in ran.reason("right")
    assert "totals.csv" in (ran.traces["right"] or "")
    assert model_.asked("extraction") == []


def test_an_investigation_that_ran_out_of_time_is_never_scored(evaluated: Any, scripted: Any) -> None:
    ran = evaluated([trait(timeout_seconds=1)], scripted(Reply("Late.", latency=3.0), {"result": True}))
    assert (ran.scores, ran.details("right")["limit"]) == ({"right": None}, "time")
    assert ran.scripted.asked("extraction") == []


LIMITS: dict[str, tuple[dict[str, Any], dict[str, Any], str]] = {
    "turns": ({"max_turns": 2}, {}, "max_turns of the trait"),
    "time": ({"timeout_seconds": 1}, {}, "timeout_seconds of the trait"),
    "tool_calls": ({}, {"agent_max_tool_calls": 1}, "agent_max_tool_calls of the model"),
    "tokens": ({}, {"agent_max_total_tokens": 12}, "agent_max_total_tokens of the model"),
    "cost": ({}, {"agent_max_cost_usd": 0.5}, "agent_max_cost_usd of the model"),
    "repeated_calls": ({}, {"agent_max_repeated_calls": 1}, "agent_max_repeated_calls of the model"),
}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("limit", LIMITS)
def test_whatever_limit_ends_an_investigation_its_state_names_the_setting_to_raise(
    limit: str, strategy: str, evaluated: Any, scripted: Any, workspace: Path, pricing: Any
) -> None:
    facts, judge, setting = LIMITS[limit]

    def looks(request: Any) -> Reply:
        late = 2.0 if limit == "time" and request.messages[-1]["role"] == "tool" else 0.0
        blocks = [ToolUseBlock(f"c{request.number}", "list_files", {})]
        return Reply(tool_calls=blocks, usage=(10, 3), latency=late)

    ran = evaluated(
        [trait(**facts)],
        scripted(looks, {"result": True}),
        workspace=workspace,
        judge=judge,
        plugins=[pricing()],
        agentic_rubric_strategy=strategy,
    )
    assert (ran.scores, ran.states) == ({"right": None}, {"right": "error"})
    assert ran.details("right")["limit"] == limit
    kinds = {"time": "timeout", "tokens": "budget", "cost": "budget"}
    assert ran.context.get_result_field("trait_states")["right"]["kind"] == kinds.get(limit, "agent")
    shared = "the traits that share it" if strategy == "shared" else "the trait"
    assert f"raise {setting.replace('the trait', shared)}" in ran.reason("right")
    assert "totals.csv" in (ran.traces["right"] or "")
    assert ran.scripted.asked("extraction") == []


def test_an_agent_that_says_nothing_has_found_nothing(evaluated: Any, scripted: Any) -> None:
    ran = evaluated([trait()], scripted("", {"result": True}))
    assert (ran.scores, ran.traces) == ({"right": None}, {"right": None})
    assert ran.scripted.asked("extraction") == []


def test_a_trait_without_the_workspace_that_it_is_about_has_no_score(evaluated: Any, scripted: Any) -> None:
    ran = evaluated([trait(context_mode="workspace_only")], scripted(scores={"result": True}))
    assert (ran.states, ran.scripted.requests) == ({"right": "error"}, [])
    assert "no workspace" in ran.reason("right")


# The shared strategy


def test_shared_traits_have_one_investigation_and_a_score_each(evaluated: Any, scripted: Any) -> None:
    ran = evaluated(
        [trait(max_turns=3), trait("neat", max_turns=9)],
        scripted("Both.", {"result": True}),
        agentic_rubric_strategy="shared",
    )
    assert len(ran.scripted.asked("investigation")) == 1
    assert len(ran.scripted.asked("extraction")) == 2
    prompt = ran.scripted.prompts()[0]
    assert "- right: Whether it is right." in prompt
    assert "- neat: Whether it is neat." in prompt
    assert ran.traces["right"] == ran.traces["neat"]


def test_a_shared_investigation_has_the_largest_limits(evaluated: Any, scripted: Any, workspace: Path) -> None:
    looks = Reply(tool_calls=[ToolUseBlock("c1", "list_files", {})])
    replies = iter([looks, looks, "Done."])
    ran = evaluated(
        [trait(max_turns=1), trait("neat", max_turns=3)],
        scripted(lambda _: next(replies), {"result": True}),
        workspace=workspace,
        agentic_rubric_strategy="shared",
    )
    assert ran.scores == {"right": True, "neat": True}


def test_a_failed_shared_investigation_is_made_up_for_one_by_one(evaluated: Any, scripted: Any) -> None:
    def investigates(request: Any) -> Any:
        return Reply.error(400) if "- right:" in request.text else "Fine."

    ran = evaluated(
        [trait(), trait("neat")], scripted(investigates, {"result": True}), agentic_rubric_strategy="shared"
    )
    assert ran.scores == {"right": True, "neat": True}
    assert len(ran.scripted.asked("investigation")) == 3


def test_traits_of_different_models_are_not_investigated_together(evaluated: Any, scripted: Any) -> None:
    seen: list[str] = []

    def investigates(request: Any) -> str:
        seen.append(request.model)
        return "Fine."

    model_ = scripted(investigates, {"result": True})
    from karenina_core.testing import ScriptedServer

    with ScriptedServer(model_) as other:
        override = ModelConfig(model_name="big", interface="openai_endpoint", endpoint_base_url=other.url)
        ran = evaluated([trait(), trait("neat", model_override=override)], model_, agentic_rubric_strategy="shared")
    assert sorted(seen) == ["big", "m"]
    assert ran.scores == {"right": True, "neat": True}
    assert any("/big" in call.model or "big" in call.model for call in ran.calls)


def test_traits_of_one_context_mode_can_have_investigations_of_their_own(
    evaluated: Any, scripted: Any, workspace: Path
) -> None:
    blind, seeing = trait("blind", context_mode="workspace_only"), trait("seeing")
    together = {"workspace": workspace, "response": TRACE, "agentic_rubric_strategy": "shared"}
    ran = evaluated([blind, seeing], scripted(scores={"result": True}), **together, agentic_rubric_by_context=True)
    for prompt in ran.scripted.prompts():
        assert ("blind" in prompt) != ("SECRET-TRACE" in prompt)
    assert len(ran.scripted.prompts()) == 2
    ran = evaluated([blind, seeing], scripted(scores={"result": True}), **together)
    assert len(ran.scripted.prompts()) == 1
    assert "SECRET-TRACE" in ran.scripted.prompts()[0]
    assert any("agentic_rubric_by_context" in warning for warning in ran.context.warnings)


@pytest.mark.parametrize("hidden", ["trace", "workspace"])
@pytest.mark.parametrize("by_context", [False, True])
def test_a_shared_agent_that_is_shown_more_than_a_trait_asks_for_is_a_warning_either_way(
    by_context: bool, hidden: str, evaluated: Any, scripted: Any, workspace: Path
) -> None:
    modes = {"trace": "workspace_only", "workspace": "trace_only"}
    ran = evaluated(
        [trait("blind", context_mode=modes[hidden]), trait("seeing")],
        scripted(scores={"result": True}),
        workspace=workspace,
        response=TRACE,
        agentic_rubric_strategy="shared",
        agentic_rubric_by_context=by_context,
    )
    expected = f"blind: the agent of the shared investigation was shown the {hidden} for other traits"
    warned = [warning for warning in ran.context.warnings if "was shown" in warning]
    assert [warning.startswith(expected) for warning in warned] == ([] if by_context else [True])


def test_what_is_not_there_was_not_shown(evaluated: Any, scripted: Any) -> None:
    traits = [trait("blind", context_mode="trace_only"), trait("seeing")]
    ran = evaluated(traits, scripted(scores={"result": True}), response=TRACE, agentic_rubric_strategy="shared")
    assert ran.context.warnings == []


@pytest.mark.parametrize("parallel", [False, True])
@pytest.mark.parametrize("strategy", STRATEGIES)
def test_traits_are_evaluated_at_the_same_time_only_where_that_is_asked_for(
    strategy: str, parallel: bool, evaluated: Any, scripted: Any
) -> None:
    def slow(reply: Any) -> Callable[[Any], Reply]:
        return lambda _: Reply(reply, latency=0.1)

    traits = [trait(), trait("neat"), trait("quick"), trait("short")]
    ran = evaluated(
        traits,
        scripted(slow("Fine."), slow({"result": True})),
        agentic_rubric_strategy=strategy,
        agentic_rubric_parallel=parallel,
        rubric_concurrency=3,
    )
    assert ran.peak == (3 if parallel else 1)
    assert set(ran.scores.values()) == {True}


# What investigators are shown


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("mode", "has_trace", "has_workspace"),
    [("workspace_only", False, True), ("trace_and_workspace", True, True), ("trace_only", True, False)],
)
def test_each_context_mode_shows_what_it_says_and_nothing_else(
    mode: str, has_trace: bool, has_workspace: bool, strategy: str, evaluated: Any, scripted: Any, workspace: Path
) -> None:
    ran = evaluated(
        [trait(context_mode=mode)],
        scripted(scores={"result": True}),
        workspace=workspace,
        response=TRACE,
        agentic_rubric_strategy=strategy,
    )
    (request,) = ran.scripted.asked("investigation")
    assert "What do the sales add up to?" in request.text
    assert ("SECRET-TRACE" in request.text) == has_trace
    assert ("Workspace directory:" in request.text) == has_workspace
    names = [tool["function"]["name"] for tool in request.body.get("tools", [])]
    assert names == (["list_files", "read_file", "search_files"] if has_workspace else [])


def calls(name: str, **given: Any) -> Reply:
    return Reply(tool_calls=[ToolUseBlock("c1", name, given)])


def in_turn(*replies: Any) -> Callable[[Any], Any]:
    rest = iter(replies)
    return lambda _: next(rest)


def test_an_investigator_reads_the_files_of_the_workspace(evaluated: Any, scripted: Any, workspace: Path) -> None:
    says = in_turn(calls("read_file", path="totals.csv"), "It says 42.")
    ran = evaluated([trait(context_mode="workspace_only")], scripted(says, {"result": True}), workspace=workspace)
    assert "42" in json.dumps(ran.scripted.asked("investigation")[1].messages[-1])
    assert "It says 42." in ran.scripted.prompts("extraction")[0]


def test_no_investigator_finds_traces_that_it_was_not_given(evaluated: Any, scripted: Any, workspace: Path) -> None:
    says = in_turn(
        calls("read_file", path=".karenina/traces/trace_old.txt"), calls("search_files", query="old trace"), "Nothing."
    )
    one = trait(context_mode="workspace_only")
    ran = evaluated([one], scripted(says, {"result": True}), workspace=workspace, response=TRACE)
    assert "an old trace" not in (ran.traces["right"] or "")


def test_an_investigation_works_on_a_copy(evaluated: Any, scripted: Any, workspace: Path) -> None:
    offered: list[str] = []

    def looks(request: Any) -> Any:
        offered.extend(tool["function"]["name"] for tool in request.body.get("tools", []))
        (workspace / "late.txt").write_text("written meanwhile")
        return calls("list_files") if request.messages[-1]["role"] == "user" else "Seen."

    ran = evaluated([trait()], scripted(looks, {"result": True}), workspace=workspace)
    assert "totals.csv" in (ran.traces["right"] or "")
    assert "late.txt" not in (ran.traces["right"] or "")
    assert "write_file" not in offered


# The trace as a file


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize("mode", ["trace_and_workspace", "trace_only"])
def test_a_trace_that_is_to_be_a_file_is_one_that_the_prompt_names_and_the_tools_can_read(
    mode: str, strategy: str, evaluated: Any, scripted: Any, workspace: Path
) -> None:
    def says(request: Any) -> Any:
        if request.messages[-1]["role"] == "tool":
            return "Read it."
        path = next(word for word in request.text.split() if word.startswith(".karenina/"))
        return calls("read_file", path=path)

    ran = evaluated(
        [trait(context_mode=mode, materialize_trace=True)],
        scripted(says, {"result": True}),
        workspace=workspace,
        response=TRACE,
        agentic_rubric_strategy=strategy,
    )
    first = ran.scripted.asked("investigation")[0]
    assert "SECRET-TRACE" not in first.text
    assert "trace is saved to: .karenina/traces/trace_q_1_" in first.text
    assert "SECRET-TRACE" in (ran.traces["right"] or "")
    assert ran.scores == {"right": True}


def test_only_traits_that_ask_for_it_have_the_trace_as_a_file(evaluated: Any, scripted: Any, workspace: Path) -> None:
    ran = evaluated(
        [trait("filed", materialize_trace=True), trait("inline")],
        scripted(scores={"result": True}),
        workspace=workspace,
        response=TRACE,
    )
    for request in ran.scripted.asked("investigation"):
        prompt = json.dumps(request.messages[:2])  # what a tool has read follows
        assert ("Whether it is inline." in prompt) == ("SECRET-TRACE" in prompt)


def test_a_trace_that_is_only_a_file_does_not_open_the_workspace(
    evaluated: Any, scripted: Any, workspace: Path
) -> None:
    one = trait(context_mode="trace_only", materialize_trace=True)
    says = in_turn(calls("list_files", recursive=True), calls("read_file", path="totals.csv"), "Done.")
    ran = evaluated([one], scripted(says, {"result": True}), workspace=workspace, response=TRACE)
    assert "totals.csv (" not in (ran.traces["right"] or "")
    assert "42" not in (ran.traces["right"] or "")


@pytest.mark.parametrize("keep", [False, True])
@pytest.mark.parametrize("fails", [False, True])
def test_the_file_of_a_trace_is_removed_unless_a_trait_keeps_it(
    fails: bool, keep: bool, evaluated: Any, scripted: Any, workspace: Path
) -> None:
    there: list[list[str]] = []

    def looks(_: Any) -> Any:
        there.append(sorted(path.name for path in (workspace / ".karenina" / "traces").iterdir()))
        return Reply.error(400) if fails else "Fine."

    one = trait(materialize_trace=True, persist_trace=keep)
    ran = evaluated([one], scripted(looks, {"result": True}), workspace=workspace, response=TRACE)
    left = sorted(path.name for path in (workspace / ".karenina" / "traces").iterdir())
    assert len(there[0]) == 2
    assert len(left) == (2 if keep else 1)
    if keep:
        assert (workspace / ran.details("right")["trace_file"]).read_text() == TRACE


def test_without_a_workspace_the_file_of_a_trace_is_a_temporary_one(
    evaluated: Any, scripted: Any, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr("tempfile.tempdir", None)
    ran = evaluated([trait(materialize_trace=True)], scripted(scores={"result": True}), response=TRACE)
    assert "trace is saved to: .karenina/traces/" in ran.scripted.prompts()[0]
    assert list(tmp_path.iterdir()) == []


def test_a_trace_is_not_written_where_a_link_leads_out_of_the_workspace(
    evaluated: Any, scripted: Any, tmp_path: Path
) -> None:
    outside, folder = tmp_path / "outside", tmp_path / "work"
    outside.mkdir()
    folder.mkdir()
    (folder / ".karenina").symlink_to(outside)
    ran = evaluated(
        [trait(materialize_trace=True)], scripted(scores={"result": True}), workspace=folder, response=TRACE
    )
    assert list(outside.iterdir()) == []
    assert "SECRET-TRACE" in ran.scripted.prompts()[0]
    assert any("could not be written" in warning for warning in ran.context.warnings)


# What is kept


def test_calls_are_accounted_for_by_task(evaluated: Any, scripted: Any) -> None:
    ran = evaluated([trait()], scripted(Reply("Fine.", usage=(7, 3)), {"result": True}))
    assert [call.task for call in ran.calls] == [
        "rubric_agentic_trait_investigation",
        "rubric_agentic_trait_extraction",
    ]
    assert ran.calls[0].usage.total_tokens == 10


def test_states_and_scales_stand_beside_those_of_other_traits(evaluated: Any, scripted: Any) -> None:
    fields = {
        "trait_states": {"cites": {"state": "ok", "reason": ""}},
        "trait_scales": {"cites": {"type": "regex", "higher_is_better": True}},
        "trait_provenance": {"cites": "global"},
    }
    ran = evaluated([trait()], scripted(scores={"result": True}), fields=fields)
    assert ran.states == {"cites": "ok", "right": "ok"}
    assert ran.context.get_result_field("trait_scales")["right"]["type"] == "agentic"
    assert ran.context.get_result_field("trait_provenance") == {"cites": "global", "right": "global"}


def dynamic(*traits: AgenticRubricTrait) -> Rubric:
    return Rubric.from_traits(traits).labelled("dynamic")


def test_a_dynamic_trait_is_investigated_where_its_concept_was_found_present(evaluated: Any, scripted: Any) -> None:
    fields = {
        "rubric_evaluation_performed": True,
        "dynamic_rubric_promoted_traits": ["right"],
        "dynamic_rubric_skipped_traits": {"neat": "concept not present in response"},
    }
    rubric = dynamic(trait(), trait("neat"), trait("open"))
    ran = evaluated([], scripted(scores={"result": True}), rubric=rubric, fields=fields)
    assert ran.states == {"right": "ok", "neat": "skipped", "open": "error"}
    assert ran.scores == {"right": True, "open": None}


def test_dynamic_traits_are_asked_about_where_no_stage_has(evaluated: Any, scripted: Any) -> None:
    def says(request: Any) -> Any:
        return {"trait_1": True, "trait_2": False} if "trait_1" in request.text else "Fine."

    ran = evaluated([], scripted(says, {"result": True}), rubric=dynamic(trait(), trait("neat")))
    assert ran.states == {"right": "ok", "neat": "skipped"}
    assert ran.scores == {"right": True}
    assert list(ran.context.get_result_field("dynamic_rubric_promoted_traits")) == ["right"]
    assert set(ran.context.get_result_field("dynamic_rubric_skipped_traits")) == {"neat"}


def test_dynamic_traits_that_no_judge_could_decide_on_are_errors(evaluated: Any, scripted: Any) -> None:
    ran = evaluated([], scripted(broken, {"result": True}), rubric=dynamic(trait()))
    assert (ran.states, ran.scores) == ({"right": "error"}, {"right": None})


@pytest.mark.parametrize("strategy", ["individual", "shared"])
def test_a_trait_about_the_trace_of_an_empty_answer_is_skipped(strategy: str, evaluated: Any, scripted: Any) -> None:
    only = trait(context_mode="trace_only")
    ran = evaluated([only], scripted(scores={"result": True}), response=" \n", agentic_rubric_strategy=strategy)
    assert (ran.states, ran.scores, ran.scripted.requests) == ({"right": "skipped"}, {"right": None}, [])
    assert ran.reason("right") == "the answer is empty"


# What was not examined is not judged


def idle(_: Any) -> str:
    return "The full agent trace is saved to: .karenina/traces/trace_q_1.txt"


def reaching_out(request: Any) -> Any:
    """Asks for a file that is not there, and reports all the same."""
    if request.messages[-1]["role"] == "tool":
        return "All is well."
    return Reply(tool_calls=[ToolUseBlock("c", "read_file", {"path": "no/such.txt"})])


def calling(*tools: tuple[str, dict[str, Any]]) -> Callable[[Any], Any]:
    """An investigator that makes these calls at once, and reports all the same."""

    def investigates(request: Any) -> Any:
        if request.messages[-1]["role"] == "tool":
            return "All is well."
        return Reply(tool_calls=[ToolUseBlock(f"c{number}", *call) for number, call in enumerate(tools)])

    return investigates


LIST, LIST_ALL = ("list_files", {}), ("list_files", {"path": ".karenina", "recursive": True})
READ, READ_NONE = ("read_file", {"path": "totals.csv"}), ("read_file", {"path": "report.md"})
FIND, FIND_NONE = ("search_files", {"text": "4"}), ("search_files", {"text": "forty-two"})


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    "investigates", [idle, reaching_out, calling(LIST), calling(LIST, LIST_ALL), calling(READ_NONE), calling(FIND_NONE)]
)
@pytest.mark.parametrize(
    "facts", [{"context_mode": "trace_only", "materialize_trace": True}, {"context_mode": "workspace_only"}], ids=str
)
def test_a_report_of_an_agent_that_has_read_nothing_is_no_score(
    facts: dict[str, Any], investigates: Any, strategy: str, evaluated: Any, scripted: Any, workspace: Path
) -> None:
    only = trait(**facts)
    model_ = scripted(investigates, {"result": True})
    ran = evaluated([only], model_, workspace=workspace, response=TRACE, agentic_rubric_strategy=strategy)
    assert (ran.scores, ran.states) == ({"right": None}, {"right": "error"})
    assert "no tool has shown it any of their contents" in ran.reason("right")
    assert ran.traces["right"]
    assert model_.asked("extraction") == []


@pytest.mark.parametrize("tools", [(READ,), (FIND,), (LIST, READ_NONE), (FIND_NONE, LIST), (READ_NONE, READ)])
def test_contents_have_been_read_or_are_known_to_be_absent(
    tools: Any, evaluated: Any, scripted: Any, workspace: Path
) -> None:
    ran = evaluated(
        [trait(context_mode="workspace_only")], scripted(calling(*tools), {"result": True}), workspace=workspace
    )
    assert ran.scores == {"right": True}


def test_a_list_is_all_that_an_empty_workspace_can_show(evaluated: Any, scripted: Any, workspace: Path) -> None:
    (workspace / "totals.csv").unlink()
    only = trait(context_mode="workspace_only")
    ran = evaluated([only], scripted(calling(LIST), {"result": False}), workspace=workspace)
    assert ran.scores == {"right": False}


def test_that_the_file_of_a_trace_is_there_is_nothing_about_what_it_says(evaluated: Any, scripted: Any) -> None:
    only = trait(context_mode="trace_only", materialize_trace=True)
    for tools in ((LIST_ALL, READ_NONE), (LIST_ALL, FIND_NONE)):
        ran = evaluated([only], scripted(calling(*tools), {"result": True}), response=TRACE)
        assert ran.states == {"right": "error"}


def test_an_answer_of_an_unknown_tool_counts_as_something_read() -> None:
    def looked(name: str, *, failed: bool = False) -> bool:
        blocks = [ToolUseBlock("c", name, {}), ToolResultBlock("c", NO_LINE, failed)]
        return _has_read([Message("assistant", tuple(blocks))], absence_counts=False, has_files=True)

    assert [looked(name) for name in ("fetch", "mcp__files__list", "list_files", "Glob", "search_files")] == [
        *(True, True, False, False, False),
    ]
    assert not looked("fetch", failed=True)


def test_an_agent_that_is_shown_the_trace_itself_has_examined_it(
    evaluated: Any, scripted: Any, workspace: Path
) -> None:
    ran = evaluated([trait()], scripted(idle, {"result": True}), workspace=workspace, response=TRACE)
    assert ran.scores == {"right": True}


@pytest.mark.parametrize("strategy", STRATEGIES)
@pytest.mark.parametrize(
    ("most", "limit"), [(200, "max_tokens of the model, 200"), (None, "the server's own limit, no max_tokens is set")]
)
def test_a_report_that_was_cut_off_is_no_score(
    strategy: str, most: int | None, limit: str, evaluated: Any, scripted: Any
) -> None:
    model_ = scripted(Reply("The totals are", finish_reason="length"), {"result": True})
    ran = evaluated([trait()], model_, judge={"max_tokens": most}, agentic_rubric_strategy=strategy)
    assert (ran.scores, ran.states) == ({"right": None}, {"right": "error"})
    assert f"the report was cut off ({limit})" in ran.reason("right")
    assert "The totals are" in (ran.traces["right"] or "")


# Evaluators on their own


def test_an_evaluator_takes_the_configuration_of_a_model(scripted: Any) -> None:
    model_ = scripted("They match.", {"result": True})
    with ScriptedServer(model_) as server:
        config = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=server.url)
        evaluator = AgenticTraitEvaluator(config, application(installed={"openai_endpoint"}))
        score, trace = asyncio.run(evaluator.evaluate_trait(trait(), "What is it?", TRACE))
        assert score is True
        assert "They match." in trace
        assert asyncio.run(evaluator.run_extraction(trait(), trace)) is True
        assert "What is it?" in model_.prompts()[0]
        with pytest.raises(ContractError, match="evaluate_trait"):
            asyncio.run(evaluator.investigate([trait()], Material(question="?")))


def test_an_evaluator_whose_model_cannot_act_as_an_agent_has_neither_score_nor_trace() -> None:
    config = ModelConfig(interface="manual", manual_traces={"What is it?": "42"})
    with application(installed={"manual"}):
        evaluator = AgenticTraitEvaluator(config)
        assert asyncio.run(evaluator.evaluate_trait(trait(), "What is it?", TRACE)) == (None, None)
