"""Embedders that ask a provider: their calls are kept, wait for places and are counted like those of models."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest
from attrs import define, evolve
from karenina_calls.services.embedding import Embeddings
from karenina_runs.folder.recording import write_recording
from karenina_runs.journal.reader import JournalReader

from karenina_core import VerificationConfig, hookimpl
from karenina_core.errors import ConfigError, PortError
from karenina_core.testing import Reply, ScriptedServer, ServedRequest
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.message import UsageMetadata

SPEC = importlib.util.spec_from_file_location("fault_world", Path(__file__).with_name("fault_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader
runs, served = world.load("run_world"), world.load("embedding_server")

PRICES = {"input_cost_per_token": 0.001, "output_cost_per_token": 0.002}
WANTED: dict[str, Any] = {
    "embedding_check_enabled": True,
    "embedding_check_embedder": "mine",
    "embedding_check_model": "m",
}
Server = Any
"""An `EmbeddingServer`; its module is loaded by path."""


@define(eq=False)
class Asks:
    """An embedder of that server, one request for each call, and the plugin that brings it as `mine`."""

    server: Server
    price: float | None = None
    reports_cost: bool = True

    @hookimpl
    def karenina_register_embedders(self, registry: Any) -> None:
        registry.add(self, name="mine")

    def problem(self) -> str | None:
        return None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        said = await asyncio.to_thread(self._asked, list(texts))
        tokens = said.get("usage", {}).get("prompt_tokens")
        cost = None if tokens is None or self.price is None else tokens * self.price
        return Embeddings(
            vectors=tuple(tuple(row["embedding"]) for row in said["data"]),
            model=said["model"],
            usage=UsageMetadata(tokens or 0, 0, tokens or 0, cost_usd=cost),
            usage_unavailable=tokens is None,
        )

    def _asked(self, texts: list[str]) -> Any:
        body = json.dumps({"model": "m", "input": texts}).encode()
        try:
            with urlopen(Request(f"{self.server.url}/embeddings", body), timeout=60) as reply:
                return json.load(reply)
        except HTTPError as error:
            with error:
                raise PortError(
                    "refused", kind="rate_limited", retry_after=float(error.headers["Retry-After"])
                ) from None


def asks_about_equivalence(request: ServedRequest) -> bool:
    return "equivalent" in json.dumps(request.schema)


def spelled(request: ServedRequest) -> Any:
    """Every answer is right, in a spelling of its own that only the check takes for right."""
    if asks_about_equivalence(request):
        return {world.NAME: {"reasoning": "a spelling", "equivalent": True}}
    return {world.NAME: f"BCL-2 {world.number_of(request)}"} if world.judged(request) else world.right(request)


def alike(request: ServedRequest) -> Any:
    """The same in one spelling."""
    is_parsed = world.judged(request) and not asks_about_equivalence(request)
    return {world.NAME: "BCL-2"} if is_parsed else spelled(request)


def a_world(folder: Path, questions: int, *plugins: Any, installed: Sequence[str] = ()) -> Any:
    return world.World(folder, questions, plugins, frozenset({"embedding-check", *installed}))


def embedded(folder: Path) -> dict[str, Any]:
    """The row of the ledger."""
    with JournalReader.open(folder) as reader:
        ledger = world.invariants.assert_sums(reader)
    assert ledger["by_stage"].get("EmbeddingCheck", {}).get("calls", 0) >= ledger["by_task"]["embedding"]["calls"]
    found: dict[str, Any] = ledger["by_task"]["embedding"]
    return found


def test_vectors_are_paid_for_once_by_the_run_its_repetition_and_its_replay(tmp_path: Path) -> None:
    with ScriptedServer(spelled) as server, served.EmbeddingServer() as embedder:
        here = a_world(tmp_path / "run", 4, Asks(embedder, 0.01))
        config = here.config(server.url, model=PRICES, **WANTED)
        here.run(config)
        assert here.outcomes() == {"passed": 4}
        assert embedder.count == 4
        row = embedded(here.folder)
        assert (row["calls"], row["input_tokens"], row["output_tokens"], row["unknown_usage"]) == (4, 20, 0, 0)
        assert row["cost_usd"] == pytest.approx(0.2)
        assert here.manifest()["ledger"]["by_model"]["mine:m"]["calls"] == 4
        here.check(config, server)  # a run that takes everything from this journal: equal results, and no call
        again = a_world(tmp_path / "reused", 4, Asks(embedder))
        again.run(config, reuse=[here.folder])
        assert (again.outcomes(), embedded(again.folder)["reused"]) == ({"passed": 4}, 4)
        with JournalReader.open(here.folder) as reader:
            write_recording(reader, tmp_path / "calls.jsonl")
        asked = server.count
        assert embedder.count == 4
        replay = a_world(tmp_path / "replayed", 4, Asks(embedder), installed=["replay"])
        app = world.application(
            *replay.plugins,
            installed=world.PLUGINS | replay.installed,
            settings={"replay": {"replay": str(tmp_path / "calls.jsonl")}},
        )
        replay.benchmark.run_verification(config, run_dir=replay.folder, app=app)
        app.loop.close()
        assert replay.outcomes() == {"passed": 4}
        assert (server.count, embedder.count) == (asked, 4)
        assert "embedding" not in replay.manifest()["ledger"]["by_task"], "nobody was asked for them"


def test_a_killed_run_has_its_vectors_when_it_is_gone_on_with(tmp_path: Path, forking: Any) -> None:
    questions, held = 3, [True]

    async def script(request: Any) -> Any:
        if not asks_about_equivalence(request):
            return {"capital": f"Pariss {runs.number_of(request)}"} if request.schema else runs.said(request)
        while held[0]:  # so the run is killed between the vectors and what is made of them
            await asyncio.sleep(0.01)
        return {"capital": {"reasoning": "a spelling", "equivalent": True}}

    check = 'embedding_check_enabled = true\nembedding_check_embedder = "litellm"\nembedding_check_model = "m"\n'
    folder, told = tmp_path / "run", tmp_path / "told"
    with ScriptedServer(script) as server, served.EmbeddingServer() as embedder:
        benchmark = runs.write_benchmark(tmp_path / "b.jsonld", questions)
        config = runs.write_config(tmp_path / "c.toml", server.url, questions, more=check)
        config.write_text(f'{config.read_text()}\n[plugins.embedder-litellm]\napi_base = "{embedder.url}"\n')
        prelude = runs.NAMED + runs.TELLING.format(path=str(told))
        words = ("verify", benchmark, "--config", config, "--out", folder, "--quiet")
        started = forking.start(*words, prelude=prelude)

        def stands() -> bool:
            assert started.poll() is None, started.stderr
            return server.count == 3 * questions

        runs.wait_until(stands)
        assert embedder.count == questions
        started.kill()
        kept, _ = runs.told(told)
        world.invariants.assert_journal(folder, kept)
        assert embedded(folder)["calls"] == questions
        held[0] = False
        resumed = forking.start("resume", folder, "--quiet", prelude=prelude)
        assert resumed.wait() == 0, resumed.stderr
        assert embedder.count == questions, "what was paid for is not paid for again"
        world.invariants.assert_run(folder)
        assert runs.manifest(folder)["summary"]["outcomes"] == {"passed": questions}
        assert embedded(folder)["calls"] == questions


def test_items_that_have_the_same_texts_ask_once(tmp_path: Path) -> None:
    with ScriptedServer(alike) as server, served.EmbeddingServer() as embedder:
        here = a_world(tmp_path / "run", 6, Asks(embedder))
        config = here.config(server.url, **WANTED)
        here.run(config)
        assert here.outcomes() == {"passed": 6}
        assert Counter(embedder.requests) == {("BCL2", "BCL-2"): 1}
        assert embedded(here.folder)["calls"] == 1
        here.check(config, server, shared=True)


@pytest.mark.parametrize("unit", ["tokens", "usd"])
def test_what_vectors_cost_is_within_the_budget_of_the_run(tmp_path: Path, unit: str) -> None:
    spent: dict[str, Any] = {"budget_tokens": 12_000} if unit == "tokens" else {"budget_usd": 12.0}
    with (
        ScriptedServer(lambda request: Reply(spelled(request), usage=(10, 10))) as server,
        served.EmbeddingServer(tokens=10_000) as embedder,
    ):
        here = a_world(tmp_path / "run", 6, Asks(embedder, 0.001))
        free = dict.fromkeys(PRICES, 0.0)
        config = here.config(server.url, model=free, concurrency=1, **WANTED, **spent)
        notes = here.run(config).notes
        assert any(f"--budget-{unit}" in note for note in notes)
        assert here.manifest()["status"] == "interrupted"
        assert embedder.count == 2, "no call begins when it is used up"
        assert set(here.outcomes()) <= {"passed", "error(budget)"}, "none has gone without the check"
        assert embedded(here.folder)["input_tokens"] == 20_000
        more = evolve(config, **{name: value * 10 for name, value in spent.items()})
        here.resume(more)
        assert here.outcomes() == {"passed": 6}
        assert Counter(embedder.requests) == {("BCL2", f"BCL-2 {number}"): 1 for number in range(6)}
        here.check(more, server)


def test_a_budget_in_dollars_ends_with_the_first_call_of_which_nobody_says_what_it_cost(tmp_path: Path) -> None:
    with ScriptedServer(spelled) as server, served.EmbeddingServer(tokens=None) as embedder:
        here = a_world(tmp_path / "run", 3, Asks(embedder))
        config = here.config(server.url, model=PRICES, concurrency=1, budget_usd=100.0, **WANTED)
        notes = here.run(config).notes
        assert any("the cost of calls of embedder mine:m" in note and "input_cost_per_token" in note for note in notes)
        assert embedder.count == 1
        row = embedded(here.folder)
        assert (row["calls"], row["unknown_usage"], row["cost_usd"]) == (1, 1, None)


def test_a_call_is_not_made_again_before_the_time_that_its_refusal_names(tmp_path: Path) -> None:
    refused: list[float] = []
    wait = 1.5

    def script(texts: list[str]) -> Any:
        if embedder.count > 1:
            return embedder.vectors(texts)
        refused.append(time.monotonic())
        return 429, {"error": {"message": "slow down"}}, {"Retry-After": str(wait)}

    with ScriptedServer(spelled) as server, served.EmbeddingServer(script) as embedder:
        here = a_world(tmp_path / "run", 4, Asks(embedder))
        policy = RetryPolicy(rate_limited=AttemptPolicy(5, 0.0, 0.01))
        config = here.config(server.url, max_concurrent_requests=1, retry_policy=policy, **WANTED)
        here.run(config)
        assert here.outcomes() == {"passed": 4}
        assert embedder.count == 5
        assert embedder.peak == 1
        later = zip(embedder.requests[1:], embedder.times[1:], strict=True)
        assert min(at for texts, at in later if texts == embedder.requests[0]) >= refused[0] + wait
        row = embedded(here.folder)
        assert (row["calls"], row["failed"]) == (4, 1)
        assert here.failures() == [("rate_limited", None)]
        here.check(config, server)


@define(eq=False)
class Local:
    """An embedder that computes on this machine, and its plugin."""

    calls: int = 0
    needs_provider = False

    @hookimpl
    def karenina_register_embedders(self, registry: Any) -> None:
        registry.add(self, name="mine")

    def problem(self) -> str | None:
        return None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        self.calls += 1
        return Embeddings(vectors=((1.0,),) * len(texts), model="m", usage=UsageMetadata(3, 0, 3, cost_usd=0.0))


def test_what_is_computed_on_this_machine_is_neither_kept_nor_counted_as_paid(tmp_path: Path) -> None:
    local = Local()
    with ScriptedServer(spelled) as server:
        here = a_world(tmp_path / "run", 3, local)
        config: VerificationConfig = here.config(server.url, **WANTED)
        here.run(config)
        assert (here.outcomes(), local.calls) == ({"passed": 3}, 3)
        assert "embedding" not in here.manifest()["ledger"]["by_task"]
        here.check(config, server)
        assert local.calls == 6


@define(eq=False)
class Scripted:
    """An embedder of a provider that does as it is told, and its plugin."""

    vector: tuple[float, ...] = (1.0, 0.1)
    fails: bool = False
    status: int | None = 503
    """Of failures: by default those of a gateway whose server may be there again."""
    reports_cost: bool = False
    calls: int = 0
    under_way: int = 0
    peak: int = 0

    @hookimpl
    def karenina_register_embedders(self, registry: Any) -> None:
        registry.add(self, name="mine")

    def problem(self) -> str | None:
        return None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        self.calls += 1
        self.under_way += 1
        self.peak = max(self.peak, self.under_way)
        await asyncio.sleep(0.05)
        self.under_way -= 1
        if self.fails:
            raise PortError("late", kind="timeout", status=self.status)
        return Embeddings(vectors=(self.vector, (1.0, 0.1) * (len(texts) // 2))[: len(texts)], model="m")


@pytest.mark.parametrize("vector", [(0.0, 0.0), (float("nan"), 1.0), (1.0,)], ids=["zero", "nan", "short"])
def test_vectors_of_no_use_are_not_kept_and_mended_by_asking_again(
    tmp_path: Path, vector: tuple[float, ...], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(world, "TEMPLATE", world.TEMPLATE.replace("ExactMatch", "SemanticMatch"))
    embedder = Scripted(vector)
    with ScriptedServer(alike) as server:
        here = a_world(tmp_path / "run", 2, embedder)
        config = here.config(server.url, embedding_check_embedder="mine", embedding_check_model="m")
        here.run(config)
        assert here.outcomes() == {"error(bad_response)": 2}
        row = embedded(here.folder)
        assert (row["calls"], row["failed"]) == (0, 2)
        embedder.vector, embedder.calls = (1.0, 0.1), 0
        here.resume(config, retry_failed=True)
        assert (here.outcomes(), embedder.calls) == ({"passed": 2}, 1)


def test_items_that_have_the_same_texts_do_not_fail_one_after_the_other(tmp_path: Path) -> None:
    embedder = Scripted(fails=True)
    with ScriptedServer(alike) as server:
        here = a_world(tmp_path / "run", 12, embedder)
        policy = RetryPolicy(timeout=AttemptPolicy(2, 0.0, 0.01))
        here.run(here.config(server.url, retry_policy=policy, concurrency=12, **WANTED))
        assert (here.outcomes(), embedder.calls) == ({"failed": 12}, 24), "every item has its own attempts"
        assert embedder.peak >= 3


def test_an_embedder_that_has_answered_nothing_in_time_is_asked_no_more(tmp_path: Path) -> None:
    embedder = Scripted(fails=True, status=None)
    with ScriptedServer(spelled) as server:
        here = a_world(tmp_path / "run", 12, embedder)
        policy = RetryPolicy(timeout=AttemptPolicy(2, 0.0, 0.01))  # that of the run, not a wait of half a minute
        here.run(here.config(server.url, retry_policy=policy, concurrency=4, **WANTED))
    assert here.manifest()["status"] == "interrupted"
    assert embedder.calls < 12


@pytest.mark.parametrize("limit", ["budget_usd", "budget_tokens"])
def test_a_budget_in_dollars_is_refused_where_an_embedder_does_not_tell_what_it_costs(
    tmp_path: Path, limit: str
) -> None:
    embedder = Scripted()
    with ScriptedServer(spelled) as server:
        here = a_world(tmp_path / "run", 2, embedder)
        config = here.config(server.url, model=PRICES, **{limit: 100_000}, **WANTED)
        if limit == "budget_usd":
            with pytest.raises(ConfigError, match=r"embedder mine:m: .*reports_cost = True"):
                here.run(config)
            assert (server.count, embedder.calls) == (0, 0)
            unused = {**WANTED, "embedding_check_enabled": False}
            here.run(here.config(server.url, model=PRICES, **{limit: 100_000}, **unused))
        else:
            here.run(config)
        assert server.count > 0


STEPS = {
    "You collect evidence": lambda number: {
        world.NAME: [{"text": f"It is BCL2 (answer {number})", "explanation": None, "confidence": "high"}]
    },
    "You assess whether": lambda number: {"excerpt_1": {"justification": "as found", "hallucination_risk": "none"}},
    "You reason from evidence": lambda number: {world.NAME: "It says so."},
    "You fill in fields": lambda number: {world.NAME: "BCL2"},
}


def with_evidence(request: ServedRequest) -> Any:
    step = next((step for words, step in STEPS.items() if words in request.text), None)
    return Reply(world.right(request) if step is None else step(world.number_of(request)), usage=(100, 100))


@define(eq=False)
class Archive:
    """A search tool that finds something else every time, and its plugin."""

    queries: list[str]

    @hookimpl
    def karenina_register_search_tools(self, registry: Any) -> None:
        registry.add(self, name="archive")

    async def asearch(self, query: str) -> list[str]:
        self.queries.append(query)
        return [f"result number {len(self.queries)}"]


def test_what_a_search_has_found_is_found_again_by_whoever_goes_on(tmp_path: Path) -> None:
    wanted = {
        "deep_judgment_enabled": True,
        "deep_judgment_search_enabled": True,
        "deep_judgment_search_tool": "archive",
    }
    queries: list[str] = []
    plugins = ("deep-judgment", "deep-judgment-auto-fail")
    with ScriptedServer(with_evidence) as server:
        here = a_world(tmp_path / "run", 3, Archive(queries), installed=plugins)
        config = here.config(server.url, model=PRICES, concurrency=1, budget_tokens=350, **wanted)
        here.run(config)
        assert len(queries) == 1, "the budget ends between what was found and what the judge says about it"
        assert sum(words in request.text for request in server.requests for words in list(STEPS)[1:]) == 0
        config = evolve(config, budget_tokens=100_000)
        here.resume(config)
        assert here.outcomes() == {"passed": 3}
        assert Counter(queries) == {f"It is BCL2 (answer {number})": 1 for number in range(3)}
        ledger = here.manifest()["ledger"]
        row = ledger["by_task"]["search"]
        assert (row["calls"], row["total_tokens"], row["unknown_costs"]) == (3, 0, 0)
        assert ledger["by_model"]["archive"]["calls"] == 3
        assert ledger["total"]["cost_usd"] == pytest.approx(server.count * (100 * 0.001 + 100 * 0.002))
        here.check(config, server)  # equal results, though the archive would find something else now
        assert len(queries) == 3


def test_asking_judges_again_makes_no_search_again(tmp_path: Path) -> None:
    wanted = {
        "deep_judgment_enabled": True,
        "deep_judgment_search_enabled": True,
        "deep_judgment_search_tool": "archive",
    }
    queries: list[str] = []
    dumb = [True]

    def script(request: ServedRequest) -> Any:
        return "no JSON" if dumb[0] and "You fill in fields" in request.text else with_evidence(request)

    with ScriptedServer(script) as server:
        here = a_world(tmp_path / "run", 2, Archive(queries), installed=("deep-judgment", "deep-judgment-auto-fail"))
        config = here.config(server.url, **wanted)
        here.run(config)
        assert here.outcomes() == {"error(judge)": 2}
        dumb[0] = False
        here.resume(config, retry_failed=True)
        assert here.outcomes() == {"passed": 2}
        assert Counter(queries) == {f"It is BCL2 (answer {number})": 1 for number in range(2)}
