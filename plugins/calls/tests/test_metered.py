"""The outermost port: what was paid for is not asked again, and a wait for a place is no work."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from attrs import define, field
from karenina_calls.ports.call_port import CallPort
from karenina_calls.ports.client import Model, ModelClient
from karenina_calls.ports.item_calls import ItemCalls, current_item
from karenina_calls.ports.retry import this_call
from karenina_calls.ports.stored_calls import CallFacts, Metered, StoredCall, StoredReply
from karenina_calls.records.refusals import Refusals
from karenina_calls.services.embedding import Embeddings
from karenina_calls.tools.search import SearchResult

from karenina_core import ModelConfig
from karenina_core.errors import ParseError, PortError
from karenina_core.ports.call_origin import current_stage
from karenina_core.ports.middleware import CallTarget
from karenina_core.ports.values import AgentConfig, AgentResult, LLMResponse, PortCapabilities
from karenina_core.testing import ScriptedLLM
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.message import Message, UsageMetadata

MODEL = ModelConfig(model_name="m", interface="scripted")
ASKED = [Message.user("What is it?")]
AGAIN = RetryPolicy(server=AttemptPolicy(3))
Name = tuple[str, int]


def metered(port: Any, model: ModelConfig = MODEL, lane: Any = None, store: Any = None) -> CallPort:
    return CallPort(CallTarget.of_model("llm", model), port).behind(Metered(model, lane, store))


@define
class Store:
    """A call store in memory, without single flight."""

    kept: dict[Name, StoredReply] = field(factory=dict)
    failures: list[tuple[StoredCall, CallFacts]] = field(factory=list)
    taken: list[StoredCall] = field(factory=list)
    refusals: Refusals = field(factory=Refusals)

    async def take(self, call: StoredCall) -> StoredReply | None:
        self.taken.append(call)
        return self.kept.get((call.key, call.nth))

    async def put(self, call: StoredCall, outcome: Mapping[str, Any], facts: CallFacts) -> None:
        await asyncio.sleep(0)
        self.kept[call.key, call.nth] = StoredReply(outcome, facts)

    def failed(self, call: StoredCall, error: BaseException, facts: CallFacts) -> None:
        self.failures.append((call, facts))


@define
class Lane:
    """Lets in after a while, and counts."""

    seconds: float = 0.0
    entered: int = 0
    left: list[tuple[CallFacts | None, BaseException | None]] = field(factory=list)

    async def enter(self, call: StoredCall) -> Lane:
        await asyncio.sleep(self.seconds)
        self.entered += 1
        return self

    def leave(self, facts: CallFacts | None, error: BaseException | None) -> CallFacts | None:
        self.left.append((facts, error))
        return facts or CallFacts(estimated_tokens=7, estimated_usd=0.5)


@define
class Broken:
    """An agent that fails after some work."""

    error: PortError
    capabilities: PortCapabilities = PortCapabilities()

    async def arun(self, *args: Any, **facts: Any) -> AgentResult:
        raise self.error


@pytest.mark.parametrize("cost", [5.0, None])
def test_what_an_agent_took_before_it_failed_is_known(cost: float | None) -> None:
    error = PortError("broken", kind="agent")
    error.evidence = {"agent_result": AgentResult(final_response="", usage=UsageMetadata(10, 20, 30, cost))}
    store, lane = Store(), Lane()
    priced = ModelConfig(model_name="m", interface="scripted", input_cost_per_token=0.1, output_cost_per_token=0.2)
    with pytest.raises(PortError, match="broken"):
        in_item(lambda: metered(Broken(error), priced, lane, store).arun(ASKED))
    ((left_with, found),) = lane.left
    assert found is error
    assert left_with is not None
    ((_, kept),) = store.failures
    assert kept.usage == left_with.usage == UsageMetadata(10, 20, 30, cost or 10 * 0.1 + 20 * 0.2)


@pytest.mark.parametrize("evidence", [{}, {"agent_result": AgentResult(final_response="", usage_unavailable=True)}])
def test_what_an_attempt_of_unknown_usage_counts_as_is_kept(evidence: Mapping[str, Any]) -> None:
    error = PortError("late", kind="timeout")
    error.evidence = evidence
    store, lane = Store(), Lane()
    with pytest.raises(PortError, match="late"):
        in_item(lambda: metered(Broken(error), MODEL, lane, store).arun(ASKED))
    assert lane.left == [(None, error)]
    ((_, kept),) = store.failures
    assert (kept.usage, kept.estimated_tokens, kept.estimated_usd) == (UsageMetadata(), 7, 0.5)


def clients(port: CallPort, number: int = 1, **facts: Any) -> list[ModelClient]:
    config = ModelConfig(model_name="m", interface="scripted", retry_policy=AGAIN)
    return [ModelClient(Model(config=config, llm=port, **facts), []) for _ in range(number)]


def in_item(work: Callable[[], Awaitable[Any]], item: ItemCalls | None = None, version: str = "1") -> Any:
    async def run() -> Any:
        current_item.set(item or ItemCalls(question_id="q1"))
        current_stage.set(("GenerateAnswer", version))
        return await work()

    return asyncio.run(run())


def test_a_reply_that_is_there_is_served_without_a_place_and_without_asking() -> None:
    store, lane, llm = Store(), Lane(), ScriptedLLM("once")
    first, second = (clients(metered(llm, MODEL, lane, store))[0] for _ in range(2))
    replies = [in_item(lambda c=c: c.invoke("generation", ASKED)) for c in (first, second)]
    assert [reply.content for reply in replies] == ["once", "once"]
    assert (len(llm.calls), lane.entered) == (1, 1)
    assert first.calls[0].usage == second.calls[0].usage == UsageMetadata(10, 5, 15)
    assert second.calls[0].seconds == pytest.approx(store.kept[next(iter(store.kept))].facts.seconds, abs=0.05)


def test_equal_calls_of_one_item_are_numbered_and_those_of_another_begin_again() -> None:
    store, llm = Store(), ScriptedLLM("first", "second")

    async def twice() -> list[str]:
        (client,) = clients(metered(llm, MODEL, None, store))
        return [(await client.invoke("generation", ASKED)).content for _ in range(2)]

    assert in_item(twice) == ["first", "second"]
    assert in_item(twice) == ["first", "second"]
    assert len(llm.calls) == 2


def test_another_question_is_asked_for_itself_though_the_words_are_the_same() -> None:
    store, llm = Store(), ScriptedLLM("first", "second")
    port = metered(llm, MODEL, None, store)
    contents = [
        in_item(lambda: clients(port)[0].invoke("generation", ASKED), ItemCalls(question_id=question)).content
        for question in ("q1", "q2", "q1")
    ]
    assert contents == ["first", "second", "first"]


def test_a_call_that_is_tried_again_keeps_its_number_and_what_it_took_is_served_too() -> None:
    store, llm = Store(), ScriptedLLM(PortError("down", kind="server"), "there")
    port = metered(llm, MODEL, None, store)
    first, second = clients(port, 2)
    assert in_item(lambda: first.invoke("generation", ASKED)).content == "there"
    assert in_item(lambda: second.invoke("generation", ASKED)).content == "there"
    assert [call.nth for call in store.taken] == [0, 0, 0]
    assert [(c.attempts, dict(c.retries)) for c in (first.calls[0], second.calls[0])] == [(2, {"server": 1})] * 2
    assert [facts.made for _, facts in store.failures] == [True]


def test_a_failure_is_kept_for_the_ledger_and_never_served() -> None:
    store, llm = Store(), ScriptedLLM(PortError("no", kind="auth"), "now it works")
    port = metered(llm, MODEL, None, store)
    with pytest.raises(PortError):
        in_item(lambda: clients(port)[0].invoke("generation", ASKED))
    assert (len(store.failures), store.kept) == (1, {})
    assert in_item(lambda: clients(port)[0].invoke("generation", ASKED)).content == "now it works"


@define
class Judge:
    """A parser whose reply is no JSON."""

    capabilities: PortCapabilities = PortCapabilities()
    asked: int = 0

    async def aparse(self, messages: Any, schema: Any, *, call: Any = None) -> Any:
        self.asked += 1
        error = ParseError("no JSON", raw_response="hm")
        error.usage = UsageMetadata(7, 3, 10)
        raise error

    async def aclose(self) -> None: ...


def test_a_reply_that_cannot_be_read_was_paid_for_and_comes_again_as_it_was() -> None:
    store, judge = Store(), Judge()
    port = metered(judge, MODEL, None, store)
    for _ in range(2):
        with pytest.raises(ParseError) as caught:
            in_item(lambda: port.aparse(ASKED, {"type": "object"}))
        assert (caught.value.raw_response, caught.value.usage) == ("hm", UsageMetadata(7, 3, 10))
    assert (judge.asked, store.failures) == (1, [])


@define
class Agent:
    capabilities: PortCapabilities = PortCapabilities()
    runs: int = 0

    async def arun(
        self, messages: Any, tools: Any = (), mcp_servers: Any = None, config: Any = None, *, call: Any = None
    ) -> AgentResult:
        self.runs += 1
        return AgentResult(final_response=f"run {self.runs}")

    async def aclose(self) -> None: ...


@pytest.mark.parametrize(("folder", "runs"), [(False, 1), (True, 2)])
def test_work_in_a_folder_is_done_again_because_the_folder_is_gone(tmp_path: Any, folder: bool, runs: int) -> None:
    store, agent = Store(), Agent()
    port = metered(agent, MODEL, None, store)
    config = AgentConfig(workspace_path=tmp_path if folder else None)
    finals = [in_item(lambda: port.arun(ASKED, (), None, config)).final_response for _ in range(2)]
    assert (agent.runs, finals[-1]) == (runs, f"run {runs}")
    assert store.kept, "it is kept all the same: it was paid for"


def test_waiting_for_a_place_counts_neither_against_the_limit_nor_as_time_of_the_call() -> None:
    lane, llm = Lane(seconds=0.3), ScriptedLLM("late but whole", seconds=0.01)
    (client,) = clients(metered(llm, MODEL, lane, Store()), max_elapsed=0.15)
    assert in_item(lambda: client.invoke("generation", ASKED)).content == "late but whole"
    assert client.calls[0].seconds < 0.2


def test_a_place_is_left_with_what_the_call_took_or_with_what_it_ended_in() -> None:
    lane, failure = Lane(), PortError("no", kind="auth")
    port = metered(ScriptedLLM("yes", failure), MODEL, lane, None)
    in_item(lambda: clients(port)[0].invoke("generation", ASKED))
    with pytest.raises(PortError):
        in_item(lambda: clients(port)[0].invoke("generation", ASKED))
    (facts, nothing), (none, error) = lane.left
    assert facts is not None
    assert (facts.usage, nothing, none, error) == (UsageMetadata(10, 5, 15), None, None, failure)


def test_a_stage_of_another_version_asks_again() -> None:
    store, llm = Store(), ScriptedLLM("old", "new")
    port = metered(llm, MODEL, None, store)
    contents = [
        in_item(lambda: clients(port)[0].invoke("generation", ASKED), version=version).content
        for version in ("1", "2", "1")
    ]
    assert contents == ["old", "new", "old"]


class Odd:
    """An embedder of which something comes back that is no number."""

    name, model = "odd", "m"

    async def aembed(self, texts: Any) -> Embeddings:
        return Embeddings(vectors=(("one",),), model="m", usage=UsageMetadata(3, 0, 3))  # type: ignore[arg-type] # odd


def test_vectors_that_are_none_are_a_failure_and_not_kept() -> None:
    store, lane = Store(), Lane()
    with pytest.raises(PortError, match="not a number"):
        in_item(lambda: metered(Odd(), MODEL, lane, store).aembed(["a"]))
    assert (store.kept, [call.request.task for call, _ in store.failures]) == ({}, ["embedding"])
    ((_, error),) = lane.left
    assert isinstance(error, PortError)


def test_equal_texts_are_known_by_themselves_whatever_the_question() -> None:
    class Right(Odd):
        asked = 0

        async def aembed(self, texts: Any) -> Embeddings:
            self.asked += 1
            return Embeddings(vectors=((0.1, 1 / 3),), model="m", usage_unavailable=True)

    store, embedder = Store(), Right()
    port = metered(embedder, MODEL, None, store)
    found = [in_item(lambda: port.aembed(["a"]), ItemCalls(question_id=question)) for question in ("q1", "q2")]
    assert (embedder.asked, found[0]) == (1, found[1])
    assert found[1].usage_unavailable, "its tokens are unknown"


@define
class Found:
    """A search tool."""

    name: str = "archive"

    async def asearch(self, query: str) -> list[SearchResult]:
        return [SearchResult(content=query)]


@pytest.mark.parametrize("what", ["search", "embedder"])
def test_what_an_agent_asks_from_within_has_attempts_of_its_own(what: str) -> None:
    class Right(Odd):
        async def aembed(self, texts: Any) -> Embeddings:
            return Embeddings(vectors=((1.0,),), model="m")

    store = Store()
    searching, embedding = metered(Found(), MODEL, None, store), metered(Right(), MODEL, None, store)

    @define(eq=False)
    class Agent:
        asked: int = 0
        capabilities = PortCapabilities(supports_tools=True)

        async def ainvoke(self, messages: Any, **facts: Any) -> LLMResponse:
            self.asked += 1
            if self.asked == 1:
                raise PortError("down", kind="server")
            for _ in range(2):
                await (searching.asearch("a") if what == "search" else embedding.aembed(["a"]))
            return LLMResponse(content="there", usage=UsageMetadata(1, 1, 2))

    (client,) = clients(metered(Agent(), MODEL, None, store))
    in_item(lambda: client.invoke("generation", ASKED), ItemCalls(question_id="q1"))
    kept = {call.request.kind: call.inside for call in store.taken}
    assert kept == {"llm": False, what: True}
    facts = [(reply.facts.attempts, dict(reply.facts.retries)) for reply in store.kept.values()]
    assert facts == [(1, {}), (1, {}), (2, {"server": 1})]
    assert (client.calls[0].attempts, dict(client.calls[0].retries)) == (2, {"server": 1})


def test_a_search_leaves_the_attempts_of_the_call_before_it_alone() -> None:
    store, llm = Store(), ScriptedLLM(PortError("down", kind="server"), "there")
    port = metered(Found(), MODEL, None, store)
    (client,) = clients(metered(llm, MODEL, None, None))

    async def work() -> Any:
        await client.invoke("generation", ASKED)
        before = this_call.get()
        found = [await port.asearch("a") for _ in range(2)]
        assert before is not None
        assert this_call.get() is before
        return found

    item = ItemCalls(question_id="q1")
    assert [list(found) for found in in_item(work, item)] == [[SearchResult(content="a")]] * 2
    ((_, kept), _) = store.kept.items()
    assert (kept.facts.attempts, dict(kept.facts.retries)) == (1, {})
    assert (client.calls[0].attempts, dict(client.calls[0].retries)) == (2, {"server": 1})
