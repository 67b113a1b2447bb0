"""Models that are asked no more: what the others can do is done, and the rest is left until the run is resumed."""

from __future__ import annotations

import asyncio
import importlib.util
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import define, evolve, field
from karenina_runs.journal.reader import JournalReader

from karenina_core import (
    AdapterSpec,
    LLMRubricTrait,
    ModelConfig,
    Question,
    RegexRubricTrait,
    Rubric,
    VerificationConfig,
    VerificationResult,
)
from karenina_core.ports import AgentResult, PortCapabilities
from karenina_core.testing import Reply, ScriptedServer, ServedRequest
from karenina_core.values.message import Message, UsageMetadata

SPEC = importlib.util.spec_from_file_location("fault_world", Path(__file__).with_name("fault_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader


@define(eq=False)
class Closing:
    """A server that refuses some requests from the `after`th such on, until it is well again."""

    refuses: Callable[[ServedRequest], bool]
    refusal: Callable[[], Reply]
    after: int
    well: bool = False
    answered: Counter[tuple[str, str]] = field(factory=Counter)
    refused: int = 0
    _seen: int = 0

    def __call__(self, request: ServedRequest) -> Any:
        self._seen += self.refuses(request)
        if not self.well and self.refuses(request) and self._seen > self.after:
            self.refused += 1
            return self.refusal()
        self.answered[request.model, request.text] += 1
        return Reply(world.right(request), latency=0.01)


def _about(result: VerificationResult) -> Any:
    return result.metadata


def later() -> Reply:
    return Reply.error(429, "come back later", retry_after=600)


@pytest.mark.parametrize("attempts", [1, 3])
@pytest.mark.parametrize("to_judge", [False, True], ids=["answers", "judge"])
def test_a_provider_that_wants_to_be_left_alone_for_long_ends_the_run_and_costs_no_item(
    tmp_path: Path, to_judge: bool, attempts: int
) -> None:
    here = world.World(tmp_path / "run", questions=24)
    served = Closing(lambda request: world.judged(request) == to_judge, later, after=4)
    with ScriptedServer(served) as server:
        config = here.config(server.url, concurrency=6, retry_policy=world.tried(attempts))
        notes = here.run(config).notes
        assert here.outcomes() == {"passed": 4}
        assert here.manifest()["status"] == "interrupted"
        assert 1 <= served.refused <= 6, "only what was under way"
        if to_judge:
            assert served.answered.total() == 28, "answers are kept, and read when the run is gone on with"
        else:
            assert served.answered.total() <= 16, "nothing new is asked"
        begun, why = notes[-2:]
        assert begun.startswith("left until the run is resumed: ")
        assert "asks for a pause of 600 s (until " in why
        served.well = True
        here.resume(config)
        assert here.outcomes() == {"passed": 24}
        assert set(served.answered.values()) == {1}, "what was paid for is not paid for again"
        here.check(config, server)


def test_of_several_models_only_the_one_that_wants_to_be_left_alone_is_left(tmp_path: Path) -> None:
    here = world.World(tmp_path / "run", questions=8)
    served = Closing(lambda request: request.model == "b", later, after=2)
    with ScriptedServer(served) as server:
        usual: dict[str, Any] = {"interface": "openai_endpoint", "endpoint_base_url": server.url}
        models = [ModelConfig(model_name=name, **usual) for name in "ab"]
        judges = [ModelConfig(model_name=name, temperature=0.0, **usual) for name in "jb"]
        config = here.config(server.url, answering_models=models, parsing_models=judges, concurrency=4)
        made = [(about.answering.model_name, about.parsing.model_name) for about in map(_about, here.run(config))]
        assert made.count(("a", "j")) == 8, "all that can be made without it"
        assert set(here.outcomes()) == {"passed"}
        assert len(made) <= 12, "of 32"
        assert here.manifest()["status"] == "interrupted"
        served.well = True
        here.resume(config)
        assert set(served.answered.values()) == {1}
        here.check(config, server, shared=True)  # both give the same answers


def test_what_asks_nothing_of_a_model_that_is_left_alone_is_made(tmp_path: Path) -> None:
    """Items whose answers another run has, and items that no judge reads."""
    one, two = world.World(tmp_path / "one", questions=12), world.World(tmp_path / "two", questions=12)
    one.benchmark = evolve(one.benchmark, questions=one.benchmark.questions[4:])
    served = Closing(lambda request: request.model == "a", later, after=8)
    with ScriptedServer(served) as server:
        one.run(one.config(server.url))
        judge = ModelConfig(model_name="other", interface="openai_endpoint", endpoint_base_url=server.url)
        config = two.config(server.url, concurrency=2, parsing_models=[judge])
        two.run(config, reuse=[one.folder])
        assert two.outcomes() == {"passed": 8}
        assert served.refused <= 2
        served.well = True
        two.resume(config)
        assert two.outcomes() == {"passed": 12}
        assert set(served.answered.values()) == {1}

        here = world.World(
            tmp_path / "run", questions=0, installed=frozenset({"rubric-evaluation", "trait-llm", "trait-regex"})
        )
        ask = Rubric.from_traits([LLMRubricTrait(name="clear", description="Is it clear?", kind="boolean")])
        facts: list[dict[str, Any]] = [{"question_rubric": ask}, *({} for _ in range(7))]
        questions = [
            Question(id=f"q{n}", question=f"What is the target of drug {n}?", raw_answer="BCL2", **about)
            for n, about in enumerate(facts)
        ]
        regex = Rubric.from_traits([RegexRubricTrait(name="said", pattern="BCL2")])
        here.benchmark = evolve(here.benchmark, questions=questions, rubric=regex)
        served.refuses, served.well = (lambda request: request.model == "j"), False
        here.run(here.config(server.url, concurrency=1, evaluation_mode="rubric_only"))
        assert here.outcomes() == {"scored": 7}


@define(eq=False)
class Agent:
    """Answers anew each time that it is asked."""

    capabilities = PortCapabilities(needs_provider=True, supports_file_tools=True)
    asked: list[str] = field(factory=list)

    async def arun(self, messages: Any, *args: Any, call: Any = None, **facts: Any) -> AgentResult:
        self.asked.append(call.question_id)
        text = f"It is BCL2, attempt {len(self.asked)}."
        message = Message.assistant(text)
        return AgentResult(final_response=text, trace_messages=(message,), turns=1, usage=UsageMetadata(5, 1, 6, 1.0))

    async def aclose(self) -> None: ...


@pytest.mark.parametrize("first", ["j1", "j2"])
def test_what_an_agent_has_answered_is_not_asked_for_again_for_a_judge_that_is_left_alone(
    tmp_path: Path, first: str
) -> None:
    """And all judges of an answer read the same one."""
    (tmp_path / "root" / "shop").mkdir(parents=True)
    agent = Agent()
    adapter = AdapterSpec(interface="working", agent_factory=lambda model: agent)
    here = world.World(tmp_path / "run", questions=8, plugins=(adapter,))
    asked = [evolve(question, workspace_path="shop") for question in here.benchmark.questions]
    here.benchmark = evolve(here.benchmark, questions=asked, workspace_root=tmp_path / "root")
    served = Closing(lambda request: request.model == first, later, after=2)
    with ScriptedServer(served) as server:
        usual: dict[str, Any] = {"interface": "openai_endpoint", "endpoint_base_url": server.url}
        judges = [ModelConfig(model_name=name, **usual) for name in ("j1", "j2")]
        answering = [ModelConfig(model_name="a", interface="working")]
        config = here.config(server.url, answering_models=answering, parsing_models=judges, concurrency=2)
        here.run(config)
        made = len(agent.asked)
        assert made <= 2 + 2, "and nothing is begun whose judge is asked no more"
        served.well = True
        answers: dict[str, set[str]] = {}
        results = list(here.resume(config))
        for result in results:
            answers.setdefault(result.metadata.question_id, set()).add(result.generation.raw_llm_response)
        assert Counter(result.metadata.outcome for result in results) == {"passed": 16}
        assert Counter(agent.asked) == {question.id: 1 for question in asked}
        assert all(len(texts) == 1 for texts in answers.values())


def test_without_a_run_directory_no_answer_is_asked_for_that_nobody_would_judge(tmp_path: Path) -> None:
    here = world.World(tmp_path, questions=60)
    here.folder = None  # results are only returned
    served = Closing(world.judged, later, after=10)
    with ScriptedServer(served) as server:
        results = here.run(here.config(server.url, concurrency=6))
        assert 10 <= len(results) <= 16, "those under way have their errors"
        assert served.answered.total() <= 26
        assert any("asks for a pause of" in note for note in results.notes)


def test_many_items_that_are_refused_at_once_cost_little_and_hold_up_nobody(tmp_path: Path, long: bool) -> None:
    questions = 2500 if long else 1500
    here = world.World(tmp_path / "run", questions=questions)
    served = Closing(lambda request: not world.judged(request), later, after=10)
    gaps = [0.0]

    async def run(config: VerificationConfig) -> None:
        async def tick() -> None:
            before = time.thread_time()
            while True:
                await asyncio.sleep(0)
                gaps.append((now := time.thread_time()) - before)
                before = now

        ticking = asyncio.create_task(tick())
        await here.benchmark.arun_verification(config, run_dir=here.folder, app=app)
        ticking.cancel()

    with ScriptedServer(served) as server:
        app, begun = here.app(), time.process_time()
        try:
            app.run(run(here.config(server.url, concurrency=6)))
        finally:
            app.loop.close()
        took = time.process_time() - begun
        assert served.refused <= 6
    assert here.outcomes() == {"passed": 10}
    with JournalReader.open(here.folder) as reader:
        assert reader.ledger().total.failed <= 6, "what was not asked leaves no row"
    print(f"{took:.1f} s, at most {max(gaps):.2f} s without a turn for others")
    assert took <= questions / 100, "a hundredth of a second for each"
    assert max(gaps) <= took / 3, "others have their turn"


@pytest.mark.parametrize("refusal", [lambda: Reply.error(500), lambda: Reply.error(429)], ids=["failing", "refusing"])
def test_a_provider_that_takes_nothing_any_more_ends_the_run(tmp_path: Path, refusal: Callable[[], Reply]) -> None:
    here = world.World(tmp_path / "run", questions=20)
    served = Closing(lambda request: True, refusal, after=10)
    with ScriptedServer(served) as server:
        facts: dict[str, Any] = {"retry_policy": world.tried(20), "retry_max_elapsed_seconds": 2.0}
        config = here.config(server.url, concurrency=6, **facts)
        notes = here.run(config).notes
        assert set(here.outcomes()) == {"passed"}
        assert here.manifest()["status"] == "interrupted"
        assert "it gets no more calls" in notes[-1]
        served.well = True
        here.resume(config)
        assert here.outcomes() == {"passed": 20}
        assert set(served.answered.values()) == {1}
        here.check(config, server)
