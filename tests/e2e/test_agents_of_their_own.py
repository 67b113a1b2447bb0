"""Models with an agent of their own: they answer, judge and are recorded; and middleware decides who has tools."""

from __future__ import annotations

import asyncio
import json
import tempfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve
from karenina_calls.ports.port_calls import LLMCall
from karenina_calls.tools import agent_loop as own_agent
from karenina_runs.execute.item_verifier import run_single_model_verification

from karenina_core import AgenticRubricTrait, Benchmark, ModelConfig, Question, Rubric, VerificationConfig, hookimpl
from karenina_core.errors import ConfigError
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.plugin.adapters import AdapterSpec
from karenina_core.ports.middleware import CallTarget, Proceed
from karenina_core.ports.values import AgentConfig, AgentResult, CallContext, LLMResponse, PortCapabilities
from karenina_core.testing import ScriptedServer, application
from karenina_core.values.message import Message, ToolUseBlock, UsageMetadata

FIELD = {
    "name": "total",
    "type": "str",
    "description": "The sum that is reported",
    "ground_truth": "42 EUR",
    "verify_with": {"type": "ExactMatch"},
}
TEMPLATE = json.dumps({"class_name": "Answer", "fields": [FIELD]})
TRAIT = AgenticRubricTrait(name="tidy", kind="score", description="How tidy the folder is.", timeout_seconds=1)
MODEL = ModelConfig(model_name="m", interface="own", max_retries=0, agent_timeout=0.05)
INVESTIGATING = ("rubric_agentic_trait_investigation", "agentic_parsing_investigation")
Work = Callable[[str, Sequence[Any], AgentConfig], Any]


@define(eq=False)
class Reader:
    """The direct calls: it scores 3 and reads 42 EUR."""

    config: ModelConfig
    capabilities = PortCapabilities(needs_provider=False)

    async def ainvoke(self, messages: Any, *, call: CallContext | None = None, **asked: Any) -> LLMResponse:
        assert call is not None
        said = {"score": 3} if call.task == "rubric_agentic_trait_extraction" else {"total": "42 EUR"}
        return LLMResponse(content=json.dumps(said), usage=UsageMetadata(1, 1, 2, 0.5))

    async def aclose(self) -> None: ...


class Doer(Reader):
    work: Work

    async def arun(
        self,
        messages: Sequence[Message],
        tools: Any = (),
        mcp_servers: Any = None,
        config: AgentConfig | None = None,
        *,
        call: CallContext | None = None,
    ) -> Any:
        assert config is not None
        assert call is not None
        done = self.work(call.task, messages, config)
        return await done if asyncio.iscoroutine(done) else done


def adapter(work: Work, *, tools_of_its_own: bool = True) -> AdapterSpec:
    able = PortCapabilities(needs_provider=False, supports_file_tools=tools_of_its_own)
    agent = type("Agent", (Doer,), {"work": staticmethod(work), "capabilities": able})
    return AdapterSpec(interface="own", llm_factory=Reader, agent_factory=agent)


def done(text: str = "The total is 42 EUR.") -> AgentResult:
    return AgentResult(
        final_response=text, trace_messages=(Message.assistant(text),), usage=UsageMetadata(5, 1, 6, 1.0)
    )


def looked() -> AgentResult:
    """The same of an agent that has read a file before it reports."""
    calling = Message.assistant("", tool_calls=[ToolUseBlock("c", "read", {"path": "sales.csv"})])
    report = done()
    trace = (calling, Message.tool_result("c", "Lyon,30"), *report.trace_messages)
    return evolve(report, trace_messages=trace, turns=2)


def benchmark(root: Path, *traits: AgenticRubricTrait, path: str | None = "shop") -> Benchmark:
    (root / "shop").mkdir(parents=True, exist_ok=True)
    (root / "shop" / "sales.csv").write_text("store,amount\nLyon,30\n")
    question = Question(
        id="q",
        question="What do the sales add up to?",
        raw_answer="42 EUR",
        answer_template=TEMPLATE,
        template_language="karenina-template",
        workspace_path=path,
    )
    return Benchmark(name="b", questions=[question], rubric=Rubric.from_traits(traits), workspace_root=root)


def config_of(*features: str, model: ModelConfig = MODEL, **more: Any) -> VerificationConfig:
    return VerificationConfig(answering_models=[model], parsing_models=[model], features=frozenset(features), **more)


def run(bench: Benchmark, config: VerificationConfig, *plugins: Any, **replay: str) -> Any:
    app = application(*plugins, installed=True, settings={"replay": replay} if replay else {})
    (result,) = bench.run_verification(config, run_name="same", app=app)
    return result


async def hanging() -> AgentResult:
    await asyncio.Event().wait()
    raise AssertionError


@pytest.fixture
def no_grace(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(own_agent, "GRACE", 0.05)


@pytest.mark.usefixtures("no_grace")
@pytest.mark.parametrize("where", ["generation", *INVESTIGATING])
def test_an_agent_that_hangs_costs_its_own_part_and_the_run_ends(where: str, tmp_path: Path) -> None:
    spec = adapter(lambda task, messages, config: hanging() if task == where else done())
    features = ["agentic_parsing"] if where == "agentic_parsing_investigation" else []
    traits = [] if features else [TRAIT]
    config = config_of(*features, agentic_parsing_timeout=0.05)
    result = run(benchmark(tmp_path, *traits), config, spec)
    row = result.generation.usage_metadata[where]
    assert (row["usage_unavailable"], row["cost_usd"]) == (True, None)
    assert result.generation.usage_metadata["total"]["usage_unavailable"]
    if where == "generation":
        assert (result.outcome.name, "raise agent_timeout" in result.metadata.error) == ("error", True)
    elif features:
        assert "(time)" in result.metadata.error
    else:
        assert "(time)" in result.rubric.trait_states["tidy"]["reason"]


class Shim:
    """Middleware that gives models tools, or takes them away."""

    def __init__(self, tools: bool) -> None:
        self.tools = tools

    @hookimpl
    def karenina_wrap_call(self, target: CallTarget) -> Any:
        return self if target.kind == "llm" else None

    def capabilities(self, behind: PortCapabilities) -> PortCapabilities:
        return evolve(behind, supports_tools=self.tools)

    async def __call__(self, call: LLMCall, proceed: Proceed) -> LLMResponse:
        return await proceed(evolve(call, tools=()))


class Able(Reader):
    capabilities = PortCapabilities(supports_tools=True, needs_provider=False)


@pytest.mark.parametrize("traits", [(TRAIT,), ()])
def test_who_can_investigate_is_judged_behind_the_middleware(traits: Any, tmp_path: Path) -> None:
    features = [] if traits else ["agentic_parsing"]
    bench, config = benchmark(tmp_path, *traits), config_of(*features, agentic_judge_context="trace_only")
    able, unable = (AdapterSpec(interface="own", llm_factory=factory) for factory in (Able, Reader))
    for spec, middleware, is_able in ((unable, (), False), (unable, (Shim(True),), True)):
        _check(bench, config, [spec, *middleware], is_able=is_able)
    for spec, middleware, is_able in ((able, (), True), (able, (Shim(False),), False)):
        _check(bench, config, [spec, *middleware], is_able=is_able)


def _check(bench: Benchmark, config: VerificationConfig, plugins: Sequence[Any], *, is_able: bool) -> None:
    if is_able or bench.rubric:
        result = run(bench, config, *plugins)
        assert result.metadata.error is None
        assert not bench.rubric or (result.rubric.trait_states["tidy"]["state"] == "ok") == is_able
        return
    with pytest.raises(ConfigError, match="cannot use tools, so it cannot investigate"):
        run(bench, config, *plugins)


def test_a_single_verification_gives_an_agent_of_its_own_the_workspace_that_a_run_gives(tmp_path: Path) -> None:
    seen: list[bool] = []

    def work(task: str, messages: Any, config: AgentConfig) -> AgentResult:
        seen.append(config.workspace_path is not None)
        return done()

    bench = benchmark(tmp_path, path=None)
    config = config_of("agentic_parsing", agentic_judge_context="trace_only")
    run(bench, config, adapter(work))
    (question,) = bench.questions
    app = application(adapter(work), installed=True)
    run_single_model_verification(question, MODEL, MODEL, config=config, workspace_root=tmp_path, app=app)
    assert seen == [True, False, True, False]


@pytest.mark.parametrize("has_root", [True, False])
def test_investigations_of_a_lent_folder_leave_its_surroundings_alone(has_root: bool, tmp_path: Path) -> None:
    mine, root = tmp_path / "mine", tmp_path / "root"
    (mine / "project").mkdir(parents=True)
    root.mkdir()
    seen: list[Path] = []

    def work(task: str, messages: Any, config: AgentConfig) -> AgentResult:
        assert config.workspace_path is not None
        seen.append(config.workspace_path)
        assert [path.name for path in mine.iterdir()] == ["project"]
        return done()

    (question,) = benchmark(tmp_path).questions
    run_single_model_verification(
        question,
        MODEL,
        MODEL,
        rubric=Rubric.from_traits([TRAIT]),
        evaluation_mode="rubric_only",
        cached_answer_data=CachedAnswer(raw_llm_response="42 EUR", workspace=mine / "project"),
        workspace_root=root if has_root else None,
        app=application(adapter(work), installed=True),
    )
    assert [path.parent for path in seen] == [root if has_root else Path(tempfile.gettempdir()).resolve()]
    assert not seen[0].exists()
    assert list(root.iterdir()) == []


@pytest.mark.parametrize("features", [(), ("agentic_parsing",)])
def test_an_agent_of_its_own_is_recorded_and_replayed_without_it(features: Sequence[str], tmp_path: Path) -> None:
    asked: list[str] = []

    def work(task: str, messages: Any, config: AgentConfig) -> AgentResult:
        asked.append(task)
        assert str(config.workspace_path) in "".join(message.text for message in messages) or task == "generation"
        if task == "generation":
            return evolve(done(), turns=3, limit=None if features else "turns")
        return looked()

    bench = benchmark(tmp_path / "root", *([] if features else [TRAIT]))
    config, file = config_of(*features), str(tmp_path / "calls.jsonl")
    first = run(bench, config, adapter(work), record=file)
    assert asked

    def never(task: str, messages: Any, config: AgentConfig) -> AgentResult:
        raise AssertionError(task)

    again = run(bench, config, adapter(never), replay=file)
    assert again.metadata.error == first.metadata.error is None
    assert again.outcome == first.outcome
    assert again.generation.raw_llm_response == first.generation.raw_llm_response
    assert again.generation.agent_metrics == first.generation.agent_metrics
    assert again.template == first.template
    assert _scores(again) == _scores(first)
    assert _tokens(again.generation.usage_metadata) == _tokens(first.generation.usage_metadata)
    text = Path(file).read_text("utf-8")
    assert {json.loads(line)["kind"] for line in text.splitlines()} == {"agent", "llm"} or not features


def _scores(result: Any) -> Any:
    return result.rubric and (dict(result.rubric.agentic_trait_scores), result.rubric.trait_states)


def _tokens(usage: Mapping[str, Any]) -> dict[str, Any]:
    return {task: {key: value for key, value in row.items() if key != "seconds"} for task, row in usage.items()}


def test_a_judge_that_tells_no_tokens_makes_the_cost_unknown(tmp_path: Path) -> None:
    def says(request: Any) -> str:
        return '{"total": "42 EUR"}' if request.channel != "text" else "42 EUR"

    (question,) = benchmark(tmp_path, path=None).questions
    for usage, untold in ((None, True), ((7, 3), False)):
        with ScriptedServer(lambda request, usage=usage: _reply(says(request), usage)) as server:
            model = ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=server.url)
            result = run_single_model_verification(question, model, model, app=application(installed=True))
        rows = result.generation.usage_metadata
        assert result.outcome.name == "passed"
        assert {row["usage_unavailable"] for row in rows.values()} == {untold}


def _reply(text: str, usage: tuple[int, int] | None) -> Any:
    from karenina_core.testing import Reply

    return Reply(text, usage=usage)
