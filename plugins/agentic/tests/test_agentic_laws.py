"""Laws of agentic traits that hold for any traits, any mix of failures and any text."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import define, field
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_agentic.agents import WITH_TRACE, WITH_WORKSPACE, Material
from karenina_agentic.evaluator import AgenticTraitEvaluator
from karenina_agentic.folders import trace_name
from karenina_agentic.parse_stage import _read
from karenina_agentic.prompts import EXTRACTION_MOST, bounded
from karenina_calls.ports.client import Model, ModelClient

from karenina_core import AgenticRubricTrait, ModelConfig
from karenina_core.errors import FillError
from karenina_core.ports import AgentConfig, AgentResult, PortCapabilities, Tool
from karenina_core.ports.values import CallContext
from karenina_core.testing import Reply, ScriptedLLM
from karenina_core.values.message import Message

TRACE = "SECRET-TRACE"
SCALES: list[dict[str, Any]] = [{"kind": "boolean"}, {"kind": "score", "min_score": 1, "max_score": 5}]
MODES: tuple[Any, ...] = ("workspace_only", "trace_and_workspace", "trace_only")


@define(eq=False)
class Listening:
    """An agent that keeps what it is given, and says that it is done."""

    capabilities = PortCapabilities()
    prompt: str = ""
    tools: Sequence[Tool] = ()
    config: AgentConfig = field(factory=AgentConfig)

    async def arun(
        self,
        messages: Sequence[Message],
        tools: Sequence[Tool] = (),
        mcp_servers: Mapping[str, Any] | None = None,
        config: AgentConfig | None = None,
        *,
        call: CallContext | None = None,
    ) -> AgentResult:
        self.prompt, self.tools = "\n".join(message.text for message in messages), tools
        self.config = config or self.config
        return AgentResult(final_response="Done.", raw_trace="Done.", turns=1)

    async def aclose(self) -> None: ...


@st.composite
def traits_of_any_kind(draw: st.DrawFn) -> list[AgenticRubricTrait]:
    count = draw(st.integers(1, 5))
    return [
        AgenticRubricTrait(
            name=f"t{number}",
            description=f"Whether it is as number {number} says.",
            context_mode=(mode := draw(st.sampled_from(MODES))),
            max_turns=draw(st.integers(1, 40)),
            timeout_seconds=draw(st.integers(1, 900)),
            materialize_trace=mode != "workspace_only" and draw(st.booleans()),
            **draw(st.sampled_from(SCALES)),
        )
        for number in range(count)
    ]


@settings(max_examples=40, deadline=None)
@given(traits=traits_of_any_kind(), has_workspace=st.booleans())
def test_one_agent_for_several_traits_has_the_largest_limits_and_sees_what_any_of_them_may(
    traits: list[AgenticRubricTrait], has_workspace: bool
) -> None:
    agent = Listening()
    model = Model(config=ModelConfig(model_name="m", interface="any"), agent=agent, llm=ScriptedLLM("unused"))
    with tempfile.TemporaryDirectory() as folder:
        trace_file = Path(folder, "trace_q.txt")
        trace_file.write_text(TRACE)
        material = Material(
            question="What is it?",
            response=TRACE,
            workspace=Path(folder) if has_workspace else None,
            trace_file=trace_file,
        )
        asyncio.run(AgenticTraitEvaluator(ModelClient(model, [])).investigate(traits, material))
    assert agent.config.max_turns == max(trait.max_turns for trait in traits)
    assert agent.config.timeout == max(trait.timeout_seconds for trait in traits)
    shows = any(trait.context_mode in WITH_TRACE for trait in traits)
    as_file = shows and any(trait.materialize_trace for trait in traits)
    assert ("trace is saved to: .karenina/traces/trace_q.txt" in agent.prompt) == as_file
    assert (TRACE in agent.prompt) == (shows and not as_file)
    looks = has_workspace and any(trait.context_mode in WITH_WORKSPACE for trait in traits)
    assert ("Workspace directory:" in agent.prompt) == looks
    assert bool(agent.tools) == (looks or as_file)
    assert "What is it?" in agent.prompt
    for trait in traits:
        assert (trait.description or "-") in agent.prompt
        assert (f"- {trait.name}: {trait.description}" in agent.prompt) == (len(traits) > 1)


FATES = ("fine", "no investigation", "no reply", "no score", "unable", "closed", "no workspace")


@settings(max_examples=30, deadline=None)
@given(
    fates=st.lists(st.sampled_from(FATES), min_size=1, max_size=5),
    strategy=st.sampled_from(["individual", "shared"]),
    parallel=st.booleans(),
)
def test_no_mix_of_failures_costs_another_trait_its_score(
    evaluated: Any, scripted: Any, fates: list[str], strategy: str, parallel: bool
) -> None:
    def named(text: str, fate: str) -> bool:
        return any(fates[number] == fate and f"number {number} " in text for number in range(len(fates)))

    def investigates(request: Any) -> Any:
        return Reply.error(400) if named(request.text, "no investigation") else "They are right."

    def scores(request: Any) -> Any:
        if named(request.text, "no reply"):
            return Reply.error(400)
        return "I cannot say." if named(request.text, "no score") else {"result": True}

    models = {
        "unable": ModelConfig(interface="manual", manual_traces={"q": "a"}),
        "closed": ModelConfig(model_name="x", interface="openai_endpoint", endpoint_base_url="no address"),
    }
    traits = [
        AgenticRubricTrait(
            name=f"t{number}",
            kind="boolean",
            description=f"Whether it is as number {number} says.",
            context_mode="workspace_only" if fate == "no workspace" else "trace_only",
            model_override=models.get(fate),
        )
        for number, fate in enumerate(fates)
    ]
    ran = evaluated(
        traits, scripted(investigates, scores), agentic_rubric_strategy=strategy, agentic_rubric_parallel=parallel
    )
    names = [trait.name for trait in traits]
    fine = dict(zip(names, (fate == "fine" for fate in fates), strict=True))
    assert ran.scores == {name: True if fine[name] else None for name in names}
    states = {"fine": "ok", "unable": "skipped"}
    assert ran.states == {name: states.get(fate, "error") for name, fate in zip(names, fates, strict=True)}
    kept = {name: fate in ("fine", "no reply", "no score") for name, fate in zip(names, fates, strict=True)}
    assert {name: trace is not None for name, trace in ran.traces.items()} == kept
    assert all(ran.reason(name) for name in names if not fine[name])
    assert ran.context.error is None


@given(text=st.text(max_size=300), most=st.integers(3, 120))
def test_a_text_that_is_cut_keeps_its_first_third_and_its_last_two_thirds(text: str, most: int) -> None:
    short = bounded(text, most)
    if len(text) <= most:
        assert short == text
        return
    head, tail = most // 3, most - most // 3
    assert short.startswith(text[:head])
    assert short.endswith(text[-tail:])
    assert f"[... {len(text) - most} characters left out ...]" in short
    assert len(short) <= most + 60


def test_what_is_read_of_an_investigation_ends_at_sixty_thousand_characters() -> None:
    assert EXTRACTION_MOST == 60_000
    assert bounded("x" * 60_000) == "x" * 60_000
    assert "1 characters left out" in bounded("x" * 60_001)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=9), inner, max_size=3),
    max_leaves=6,
)


@given(reasoning=JSON | st.text(), sufficient=JSON, answer=JSON, more=st.dictionaries(st.text(max_size=9), JSON))
def test_a_decision_is_read_as_it_is_or_not_at_all(reasoning: Any, sufficient: Any, answer: Any, more: Any) -> None:
    """Only true is true: nothing that looks like it keeps an agent from being sent."""
    data = {**more, "reasoning": reasoning, "sufficient": sufficient, "answer": answer}
    readable = isinstance(reasoning, str) and (sufficient is False or (sufficient is True and isinstance(answer, dict)))
    try:
        kept, record = asyncio.run(_read(data))
    except FillError:
        assert not readable
    else:
        assert readable
        assert reasoning.startswith(kept)
        assert record == (answer if sufficient else None)


@given(ids=st.lists(st.text(max_size=90), min_size=2, max_size=2, unique=True))
def test_two_questions_never_have_one_trace_file(ids: list[str]) -> None:
    first, second = map(trace_name, ids)
    assert first != second
    assert Path(f"{first}.txt").name == f"{first}.txt"
    assert json.dumps(first).isascii()
