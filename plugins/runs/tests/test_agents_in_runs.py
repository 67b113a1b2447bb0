"""Agents in runs that are resumed, forked and reused: each time what the run by itself would have given."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field
from karenina_calls.tools import agent_loop as own_agent
from karenina_runs.execute.runner import Destination
from karenina_runs.folder.fingerprint import Changed
from karenina_runs.folder.status import read_status
from karenina_runs.journal.journal import Journal
from karenina_runs.resume import resume_run

from karenina_core import (
    AgenticRubricTrait,
    Benchmark,
    Karenina,
    ModelConfig,
    Rubric,
    VerificationConfig,
    VerificationResult,
    hookimpl,
)
from karenina_core.plugin.adapters import AdapterSpec
from karenina_core.ports.values import AgentConfig, AgentResult, LLMResponse, PortCapabilities, Tool, ToolOutcome
from karenina_core.testing import application
from karenina_core.values.message import Message, ToolUseBlock, UsageMetadata

Make = Callable[..., Any]
STEPS = 5
"""What the work of every agent here takes: turns, tool calls, repeated calls, seconds, tens of tokens, cents."""
SETTINGS: Mapping[str, tuple[str, Any, Any]] = {
    # the setting of a model: the limit that it is, what is too little, what is enough
    "agent_max_turns": ("turns", 3, 20),
    "agent_max_tool_calls": ("tool_calls", 3, 20),
    "agent_max_repeated_calls": ("repeated_calls", 3, 20),
    "agent_max_total_tokens": ("tokens", 30, 2000),
    "agent_max_cost_usd": ("cost", 0.03, 2.0),
    "agent_timeout": ("time", 3.0, 20.0),
}


def one_way(settings: Iterable[str]) -> list[tuple[str, bool]]:
    """Each setting once, and whether it is raised: every other one is lowered. What is reused is found by what the
    settings are, which does not know the way."""
    return [(setting, number % 2 == 0) for number, setting in enumerate(settings)]


KINDS = {"time": "timeout", "tokens": "budget", "cost": "budget"}
AGENTIC = {"agentic-rubric-evaluation", "agentic-parse-template"}
ABLE = PortCapabilities(needs_provider=False, reports_cost=True)


def limited(config: AgentConfig) -> Any:
    """The limit that ends work of so many steps, which have the same time each."""
    most = {
        "turns": config.max_turns,
        "tool_calls": config.max_tool_calls,
        "repeated_calls": config.max_repeated_calls,
        "tokens": config.max_total_tokens and config.max_total_tokens / 10,
        "cost": config.max_cost_usd and config.max_cost_usd * 100,
        "time": config.timeout,
    }
    return next((limit for limit, value in most.items() if value is not None and value < STEPS), None)


def working(text: str, config: AgentConfig) -> AgentResult:
    limit = limited(config)
    said = "I am still at it." if limit else text
    return AgentResult(
        final_response="" if limit else said,
        trace_messages=(Message.assistant(said),),
        usage=UsageMetadata(30, 20, 50, 0.05),
        limit=limit,
    )


@define(eq=False)
class Office:
    """An agent of its own that answers, investigates, and reads reports; `asked` are the tasks of its work."""

    work: Callable[[AgentConfig], Any] = lambda config: working("It is BCL2.", config)
    asked: list[str] = field(factory=list)

    def adapter(self, interface: str = "own") -> AdapterSpec:
        office = self

        @define(eq=False)
        class Agent:
            config: ModelConfig
            capabilities = ABLE

            async def arun(
                self, messages: Any, tools: Any = (), servers: Any = None, config: Any = None, *, call: Any
            ) -> AgentResult:
                office.asked.append(call.task)
                done = office.work(config)
                return await done if asyncio.iscoroutine(done) else done

            async def ainvoke(self, messages: Any, *, call: Any, **given: Any) -> LLMResponse:
                scored = "trait" in call.task
                said = {"result": True} if scored else {"target": "BCL2"}
                return LLMResponse(content=json.dumps(said), usage=UsageMetadata(cost_usd=0.0))

            async def aclose(self) -> None: ...

        return AdapterSpec(interface=interface, llm_factory=Agent, agent_factory=Agent)


def own(**facts: Any) -> ModelConfig:
    return ModelConfig(**{"model_name": "m", "interface": "own", "max_retries": 0, **facts})


def seen(results: Sequence[VerificationResult]) -> list[Any]:
    """What a result says about the answer and its scores, without times and names."""
    return [
        (
            str(result.outcome),
            result.metadata.error,
            result.generation.raw_llm_response,
            list(result.generation.trace_messages),
            result.generation.agent_metrics,
            [effect.reason for effect in result.ledger],
            result.rubric and (dict(result.rubric.agentic_trait_scores), dict(result.rubric.trait_states)),
            result.template and result.template.parsed_llm_response,
        )
        for result in results
    ]


def as_alone(
    folder: Path, benchmark: Callable[[str], Benchmark], config: Callable[[str], VerificationConfig], app: Karenina
) -> list[Any]:
    """What a run gives that reuses the replies of one with other settings, or that is its fork: that of a run alone.

    `config("before")` and `config("after")` are the settings, and so are the benchmarks."""
    first = benchmark("before").run_verification(config("before"), run_dir=folder / "a", app=app)
    alone = benchmark("after").run_verification(config("after"), run_dir=folder / "b", app=app)
    reused = benchmark("after").run_verification(
        config("after"), run_dir=folder / "reused", reuse=[folder / "a"], app=app
    )
    forked = resume_run(
        folder / "a", benchmark=benchmark("after"), config=config("after"), app=app, fork=folder / "forked"
    )
    assert seen(reused) == seen(forked) == seen(alone)
    with pytest.raises(Changed):
        resume_run(folder / "a", benchmark=benchmark("after"), config=config("after"), app=app)
    return [seen(first), seen(alone)]


@pytest.fixture
def benchmark(make_question: Make) -> Callable[..., Benchmark]:
    def make(*traits: AgenticRubricTrait) -> Benchmark:
        return Benchmark(name="b", questions=[make_question(0)], rubric=Rubric.from_traits(traits) if traits else None)

    return make


@pytest.mark.parametrize(("setting", "raised"), one_way(SETTINGS))
def test_an_agent_of_its_own_is_asked_again_under_other_limits(
    setting: str, raised: bool, benchmark: Make, tmp_path: Path
) -> None:
    limit, *values = SETTINGS[setting]
    before, after = values if raised else reversed(values)
    office = Office()
    first, alone = as_alone(
        tmp_path,
        lambda _: benchmark(),
        lambda when: VerificationConfig(
            answering_models=[own(**{setting: before if when == "before" else after})], parsing_models=[own()]
        ),
        application(office.adapter(), installed=True),
    )
    cut_off = f"error({KINDS[limit]})" if limit in KINDS else "auto_failed(RecursionLimitAutoFail)"
    assert [first[0][0], alone[0][0]] == ([cut_off, "passed"] if raised else ["passed", cut_off])
    assert len(office.asked) == 4


def test_under_the_same_limits_an_agent_of_its_own_is_not_asked_again(benchmark: Make, tmp_path: Path) -> None:
    office = Office()
    app = application(office.adapter(), installed=True)
    config = VerificationConfig(answering_models=[own(agent_max_turns=3)], parsing_models=[own()])
    first = benchmark().run_verification(config, run_dir=tmp_path / "a", app=app)
    again = benchmark().run_verification(config, run_dir=tmp_path / "b", reuse=[tmp_path / "a"], app=app)
    assert seen(again) == seen(first)
    assert office.asked == ["generation"]


@pytest.mark.parametrize(("setting", "raised"), one_way(["max_turns", "timeout_seconds"]))
def test_an_agentic_trait_is_investigated_again_under_other_limits(
    setting: str, raised: bool, benchmark: Make, tmp_path: Path
) -> None:
    before, after = (3, 20) if raised else (20, 3)
    office = Office()

    def asking(when: str) -> Benchmark:
        facts = {"max_turns": 20, "timeout_seconds": 20, setting: before if when == "before" else after}
        about = {
            "name": "sound",
            "kind": "boolean",
            "description": "Whether it is sound.",
            "context_mode": "trace_only",
        }
        made: Benchmark = benchmark(AgenticRubricTrait(**about, **facts))
        return made

    config = VerificationConfig(answering_models=[own()], parsing_models=[own()], evaluation_mode="rubric_only")
    first, alone = as_alone(tmp_path, asking, lambda _: config, application(office.adapter(), installed=True))
    assert [told[0][6][0] for told in (first, alone)] == [
        {"sound": True if it > STEPS else None} for it in (before, after)
    ]


@pytest.mark.parametrize(("setting", "raised"), one_way(["agentic_parsing_max_turns", "agentic_parsing_timeout"]))
def test_a_template_is_filled_in_again_under_other_limits(
    setting: str, raised: bool, benchmark: Make, tmp_path: Path
) -> None:
    before, after = (3, 20) if raised else (20, 3)

    def config(when: str) -> VerificationConfig:
        facts = {"agentic_parsing": True, "agentic_judge_context": "trace_only"}
        limits = {setting: before if when == "before" else after}
        return VerificationConfig(answering_models=[own()], parsing_models=[own()], **facts, **limits)

    app = application(Office().adapter(), installed=True)
    first, alone = as_alone(tmp_path, lambda _: benchmark(), config, app)
    cut_off = "error(timeout)" if "timeout" in setting else "error(agent)"
    assert [first[0][0], alone[0][0]] == ([cut_off, "passed"] if raised else ["passed", cut_off])


# What a later call of resume makes of work that ended at a limit


@pytest.mark.parametrize(("setting", "again"), [("agent_max_total_tokens", 0), ("agent_max_cost_usd", 0), (None, 1)])
def test_a_trait_whose_agent_ended_at_a_limit_is_investigated_again_where_it_was_out_of_time(
    setting: str | None, again: int, benchmark: Make, tmp_path: Path
) -> None:
    office = Office()
    facts = {} if setting else {"timeout_seconds": 3}
    about = {"name": "sound", "kind": "boolean", "description": "Is it sound?", "context_mode": "trace_only"}
    bench = benchmark(AgenticRubricTrait(**about, **facts))
    judge = own(**{setting: SETTINGS[setting][1]}) if setting else own()
    config = VerificationConfig(answering_models=[own()], parsing_models=[judge], evaluation_mode="rubric_only")
    app = application(office.adapter(), installed=True)
    (first,) = bench.run_verification(config, run_dir=tmp_path, app=app)
    assert str(first.outcome) == ("error(budget)" if setting else "error(timeout)")
    assert (read_status(tmp_path).waiting, read_status(tmp_path).errors) == (again, {str(first.outcome)[6:-1]: 1})
    office.work = lambda config: working("It is sound.", AgentConfig())
    (second,) = resume_run(tmp_path, benchmark=bench, config=config, app=app)
    assert str(second.outcome) == ("error(budget)" if setting else "scored")
    assert [task == "generation" for task in office.asked] == [True, False, *[False] * again]


@pytest.mark.parametrize("setting", ["agent_max_total_tokens", "agent_max_cost_usd"])
@pytest.mark.parametrize("retry_failed", [False, True])
def test_work_in_a_folder_that_used_up_its_budget_is_done_again_where_that_is_wanted(
    setting: str, retry_failed: bool, make_question: Make, tmp_path: Path
) -> None:
    office = Office()
    (tmp_path / "root" / "river").mkdir(parents=True)
    bench = Benchmark(name="b", questions=[make_question(0, workspace_path="river")], workspace_root=tmp_path / "root")
    config = VerificationConfig(answering_models=[own(**{setting: SETTINGS[setting][1]})], parsing_models=[own()])
    app, folder = application(office.adapter(), installed=True), tmp_path / "run"
    (first,) = bench.run_verification(config, run_dir=folder, app=app)
    resume_run(folder, benchmark=bench, config=config, app=app, retry_failed=retry_failed)
    assert str(first.outcome) == "error(budget)"
    assert office.asked == ["generation"] * (1 + retry_failed)


def test_an_item_that_was_kept_out_by_the_budget_of_the_run_is_made_when_there_is_more(
    world: Callable[..., Any], tmp_path: Path
) -> None:
    here = world(questions=3)
    little = here.config(budget_tokens=31, concurrency=1)
    first = here.run(little, Destination(run_dir=tmp_path))
    assert (first.get_summary()["outcomes"], read_status(tmp_path).waiting) == ({"passed": 1, "error": 1}, 1)
    more = here.config(budget_tokens=10_000, concurrency=1)
    second = resume_run(tmp_path, benchmark=here.benchmark, config=more, app=here.app)
    assert second.get_summary()["outcomes"] == {"passed": 3}


# Work in turns


class Library:
    """A server of one tool, which says what its address says."""

    offers = "look"

    def __init__(self, name: str, address: str) -> None:
        self.address = address

    async def aopen(self) -> None: ...

    async def alist(self) -> list[Tool]:
        async def look(given: Mapping[str, Any]) -> ToolOutcome:
            return ToolOutcome(self.address)

        return [Tool(name=self.offers, description="Looks.", run=look)]

    async def aclose(self) -> None: ...


class WithLibrary:
    @staticmethod
    @hookimpl
    def karenina_register_tool_servers(registry: Any) -> None:
        registry.add(Library, name="mcp")


@define(eq=False)
class InTurns:
    """A model that calls the tool in all turns but the last, and then says what it said."""

    config: ModelConfig
    capabilities = evolve(ABLE, supports_tools=True)

    async def ainvoke(self, messages: Sequence[Message], **given: Any) -> LLMResponse:
        turns = sum(message.role == "assistant" for message in messages)
        usage = UsageMetadata(6, 4, 10, 0.01)
        if turns < STEPS - 1:
            return LLMResponse(content="", tool_calls=(ToolUseBlock(f"c{turns}", "look", {}),), usage=usage)
        return LLMResponse(content=f"It is {messages[-1].content[0].content}.", usage=usage)

    async def aclose(self) -> None: ...


def looking(interface: str = "turns", **facts: Any) -> ModelConfig:
    servers = {"library": "BCL2"}
    return ModelConfig(**{"model_name": "m", "interface": interface, "mcp_urls_dict": servers, **facts})


@pytest.fixture
def app_of(plugin_names: set[str]) -> Callable[[Office], Karenina]:
    def make(office: Office) -> Karenina:
        turns = AdapterSpec(interface="turns", llm_factory=InTurns)
        return application(turns, office.adapter(), WithLibrary(), installed=plugin_names | AGENTIC)

    return make


@pytest.mark.parametrize("raised", [True, False])
@pytest.mark.parametrize("setting", sorted(SETTINGS.keys() - {"agent_timeout"}))
def test_work_in_turns_goes_as_far_as_the_limits_of_the_new_run(
    setting: str, raised: bool, benchmark: Make, app_of: Make, tmp_path: Path
) -> None:
    """Time is no part of this: turns that are served take none."""
    _, *values = SETTINGS[setting]
    before, after = values if raised else reversed(values)

    def config(when: str) -> VerificationConfig:
        model = looking(**{setting: before if when == "before" else after})
        return VerificationConfig(answering_models=[model], parsing_models=[own()])

    first, alone = as_alone(tmp_path, lambda _: benchmark(), config, app_of(Office()))
    assert (first[0][0] == "passed", alone[0][0] == "passed") == (not raised, raised)


@pytest.mark.parametrize("interface", ["turns", "own"])
def test_another_address_of_a_tool_server_is_another_answer(
    interface: str, benchmark: Make, app_of: Make, tmp_path: Path
) -> None:
    def config(when: str) -> VerificationConfig:
        servers = {"library": f"BCL2 of {when}"}
        model = looking(interface, mcp_urls_dict=servers, agent_max_repeated_calls=None)
        return VerificationConfig(answering_models=[model], parsing_models=[own()])

    office = Office(lambda config: working(f"I was asked as number {len(office.asked)}.", config))
    app = app_of(office)
    if interface == "turns":
        as_alone(tmp_path, lambda _: benchmark(), config, app)
        return
    for name, when, reuse in (("a", "before", []), ("b", "after", ["a"]), ("c", "before", ["a"])):
        benchmark().run_verification(
            config(when), run_dir=tmp_path / name, reuse=[tmp_path / other for other in reuse], app=app
        )
    assert len(office.asked) == 2


def test_a_run_does_not_go_on_with_other_tools(
    benchmark: Make, app_of: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    office = Office(without_an_answer)
    app, bench = app_of(office), benchmark()
    config = VerificationConfig(answering_models=[looking("own")], parsing_models=[own()])
    bench.run_verification(config, run_dir=tmp_path, app=app)
    office.work = lambda config: working("It is BCL2.", config)
    with monkeypatch.context() as patch:
        patch.setattr(Library, "offers", "relook")
        with pytest.raises(Changed, match=r"'library' .* offers other tools \(\+relook, -look\)"):
            resume_run(tmp_path, benchmark=bench, config=config, app=app)
    assert office.asked == ["generation"]
    (result,) = resume_run(tmp_path, benchmark=bench, config=config, app=app)
    assert str(result.outcome) == "passed"


# Time


def without_an_answer(config: AgentConfig) -> AgentResult:
    return AgentResult(final_response="", limit="time", usage=UsageMetadata(5, 1, 6, 0.25))


def with_a_part(config: AgentConfig) -> AgentResult:
    return evolve(without_an_answer(config), trace_messages=(Message.assistant("Let me see."),))


@pytest.mark.parametrize("retry_failed", [False, True])
@pytest.mark.parametrize("late", [without_an_answer, with_a_part])
def test_an_agent_that_was_out_of_time_is_asked_again(
    late: Any, retry_failed: bool, benchmark: Make, tmp_path: Path
) -> None:
    office = Office(late)
    app = application(office.adapter(), installed=True)
    bench, config = benchmark(), VerificationConfig(answering_models=[own()], parsing_models=[own()])
    results = bench.run_verification(config, run_dir=tmp_path, app=app)
    (first,) = results
    assert str(first.outcome) == "error(timeout)"
    assert [row["content"] for row in first.generation.trace_messages] == (
        ["Let me see."] if late is with_a_part else []
    )
    assert first.generation.usage_metadata["generation"]["cost_usd"] == 0.25
    office.work = lambda config: working("It is BCL2.", config)
    results = resume_run(tmp_path, benchmark=bench, config=config, app=app, retry_failed=retry_failed)
    (second,) = results
    assert (str(second.outcome), len(office.asked)) == ("passed", 2)
    with closing(Journal.open(tmp_path)) as journal:
        total = journal.ledger.total
    assert (total.calls, total.failed, total.cost_usd) == (2, 1, pytest.approx(0.3))


def test_what_an_agent_says_when_it_is_cancelled_is_no_reply_to_keep(
    benchmark: Make, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(own_agent, "GRACE", 0.05)

    async def late() -> AgentResult:
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            return working("It is MCL1.", AgentConfig())
        raise AssertionError

    office = Office(lambda config: late())
    app = application(office.adapter(), installed=True)
    bench, config = benchmark(), VerificationConfig(answering_models=[own(agent_timeout=0.05)], parsing_models=[own()])
    (first,) = bench.run_verification(config, run_dir=tmp_path, app=app)
    assert str(first.outcome) == "error(timeout)"
    office.work = lambda config: working("It is BCL2.", evolve(config, timeout=None))
    (second,) = resume_run(tmp_path, benchmark=bench, config=config, app=app)
    assert (str(second.outcome), second.generation.raw_llm_response) == ("passed", "It is BCL2.")
