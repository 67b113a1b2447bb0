"""A stage that makes no progress and calls nobody is ended; one that works, or waits for a call, is left alone."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from karenina_calls.limits.limiter import Gateway
from karenina_calls.metering import Metering
from karenina_calls.models.model_ports import search_port
from karenina_calls.ports.call_port import CallPort
from karenina_calls.ports.client import Model, ModelClient
from karenina_calls.ports.item_calls import ItemCalls, current_item
from karenina_calls.ports.stored_calls import Metered
from karenina_calls.tools.search import SearchResult
from karenina_runs.execute.item_verifier import arun_single_model_verification
from karenina_runs.execute.runner import Destination
from karenina_runs.execute.watchdogs import LOOKS, watched_stages

from karenina_core import Karenina, ModelConfig, Question, Stage, StageOrchestrator, VerificationConfig, hookimpl
from karenina_core import VerificationContext as Context
from karenina_core import VerificationResult as Result
from karenina_core.errors import ConfigError, PortError
from karenina_core.plugin.discovery import PluginInfo
from karenina_core.ports.middleware import CallTarget
from karenina_core.testing import ScriptedLLM, run_in_virtual_time
from karenina_core.values.config import AttemptPolicy, RetryPolicy

LIMIT = VerificationConfig().stage_idle_timeout or 0.0
LATE = LIMIT * (1 + 1.01 / LOOKS)
AGAIN = RetryPolicy(server=AttemptPolicy(2, min_wait=5 * LATE, max_wait=5 * LATE))
MODEL = ModelConfig(model_name="m", interface="scripted", retry_policy=AGAIN)
Work = Callable[[Any], Any]


class Quick(Stage):
    """Runs after the others, also after a failure."""

    after = ("Working",)

    def should_run(self, context: Context) -> bool:
        return True

    async def execute(self, context: Context) -> None: ...


def working(work: Work, **facts: Any) -> Stage:
    made: Stage = type("Working", (Stage,), {"execute": lambda self, context: work(context), **facts})()
    return made


async def verified(
    *stages: Stage,
    app: Karenina | None = None,
    limit: float | None = LIMIT,
    llm: Any = None,
    owners: dict[str, str] | None = None,
) -> Result:
    """One item with these stages, watched as in a run; its model has one place."""
    app, item, config = app or Karenina({}), ItemCalls("q", "r"), VerificationConfig(max_concurrent_requests=1)
    plan, lanes = StageOrchestrator(stages, owners=owners, app=app), Gateway(config)
    item.meter = Metering(lanes)
    current_item.set(item)
    metered = Metered(MODEL, lanes.lane(MODEL))
    port: Any = CallPort(CallTarget.of_model("llm", MODEL), llm).behind(metered) if llm else None
    client = ModelClient(Model(config=MODEL, llm=port, max_elapsed=1e6), [], item=item)
    context = Context(question=Question(id="q", question="Why?"), parsing=client)
    async with watched_stages(VerificationConfig(stage_idle_timeout=limit), app) as watch:
        return await watch.run(item, context, plan)


def watched(work: Work, *, blocking: bool = False, **facts: Any) -> tuple[Result, float]:
    """What becomes of a stage with this work, and the seconds that the item took, of virtual time."""

    async def timed() -> tuple[Result, float]:
        result = await verified(working(work, blocking=blocking), Quick(), **facts)
        return result, asyncio.get_running_loop().time()

    return run_in_virtual_time(timed())


async def waits(context: Context) -> None:
    await asyncio.get_running_loop().create_future()


async def sleeps(context: Context) -> None:
    await asyncio.sleep(1e9)


async def waits_in_tasks(context: Context) -> None:
    async with asyncio.TaskGroup() as group:
        for _ in range(3):
            group.create_task(sleeps(context))


async def keeps_it_to_itself(context: Context) -> None:
    try:
        await sleeps(context)
    except asyncio.CancelledError:
        return


async def turns_it_into_another_error(context: Context) -> None:
    try:
        await sleeps(context)
    except asyncio.CancelledError:
        raise ValueError("no more") from None


async def goes_on_for_a_while(context: Context) -> None:
    for _ in range(3):
        try:
            await sleeps(context)
        except asyncio.CancelledError:
            continue


@pytest.mark.parametrize(
    "work",
    [waits, sleeps, waits_in_tasks, keeps_it_to_itself, turns_it_into_another_error],
    ids=lambda work: work.__name__,
)
def test_a_stage_that_hangs_is_ended_and_the_item_goes_on(work: Work) -> None:
    result, took = watched(work)
    assert LIMIT < took <= LATE
    assert str(result.outcome) == "error(stage)"
    told = str(result.metadata.error)
    assert told.startswith("Working: ended after 600 s without progress and without a call under way")
    assert told.endswith("to give it more time, raise stage_idle_timeout")
    assert [(entry.stage, entry.status) for entry in result.trail] == [("Working", "failed"), ("Quick", "ran")]


def test_a_stage_that_does_not_end_when_it_is_cancelled_is_cancelled_once_more() -> None:
    result, took = watched(goes_on_for_a_while)
    assert str(result.outcome) == "error(stage)"
    assert LIMIT < took <= LATE + 3 * LIMIT / LOOKS


def test_a_stage_in_a_thread_is_left_behind() -> None:
    done = threading.Event()
    try:
        result, _ = watched(lambda context: done.wait(300) and None, blocking=True)
    finally:
        done.set()
    assert str(result.outcome) == "error(stage)"


def test_the_message_names_the_distribution() -> None:
    """That of the plugin which brings the stage, whatever the others are called."""
    infos = [PluginInfo(name=name, distribution=f"{name}-checks", version="1") for name in ("other", "slow")]
    app = Karenina({info.name: ModuleType(info.name) for info in infos}, infos=infos)
    result = run_in_virtual_time(verified(working(waits), app=app, owners={"Working": "slow"}))
    told = "it is a stage of slow-checks (plugin slow); to give it more time, raise stage_idle_timeout"
    assert told in str(result.metadata.error)


def test_the_next_stage_has_all_the_time_and_its_own_cancelled_tasks_are_its_own_errors() -> None:
    class Next(Quick):
        async def execute(self, context: Context) -> None:
            await asyncio.sleep(0.9 * LIMIT)
            raise asyncio.CancelledError("of its own")

    result = run_in_virtual_time(verified(working(keeps_it_to_itself), Next()))
    assert [entry.status for entry in result.trail] == ["failed", "failed"]
    assert "of its own" in result.trail[1].reason


@pytest.mark.parametrize("limit", [None, 0, 0.0])
def test_without_a_limit_a_stage_has_all_the_time(limit: float | None) -> None:
    result, took = watched(lambda context: asyncio.sleep(1e7), limit=limit)
    assert result.trail[0].status == "ran"
    assert took >= 1e7


def test_a_limit_cannot_be_negative() -> None:
    with pytest.raises(ConfigError, match="stage_idle_timeout"):
        VerificationConfig(stage_idle_timeout=-1)


@pytest.mark.parametrize("sign", ["note", "warn"])
def test_a_stage_that_gives_signs_of_progress_is_left_alone(sign: str) -> None:
    async def works(context: Context) -> None:
        for step in range(10):
            getattr(context, sign)(f"step {step}")
            await asyncio.sleep(0.8 * LIMIT)

    assert watched(works)[0].trail[0].status == "ran"


class Slow:
    """Answers late, and fails first."""

    capabilities = ScriptedLLM("x").capabilities

    def __init__(self, failures: int = 0) -> None:
        self.failures = failures

    async def ainvoke(self, *args: Any, **facts: Any) -> Any:
        await asyncio.sleep(3 * LATE)
        if self.failures:
            self.failures -= 1
            raise PortError("busy", kind="server")
        return await ScriptedLLM("late").ainvoke(*args, **facts)

    async def aclose(self) -> None: ...


@pytest.mark.parametrize("calls", [1, 3], ids=["one call", "calls that wait for their places"])
@pytest.mark.parametrize("failures", [0, 1], ids=["answered", "tried again after a wait"])
def test_a_call_that_is_under_way_is_waited_for(calls: int, failures: int) -> None:
    async def asks(context: Context) -> None:
        async with asyncio.TaskGroup() as group:
            for _ in range(calls):
                group.create_task(context.parsing.invoke("parsing", context.parsing.prompt("parsing", "", "Why?")))

    result, took = watched(asks, llm=Slow(failures))
    assert result.trail[0].status == "ran"
    assert took >= 3 * LATE * (calls + failures)


def test_calls_one_after_the_other_are_progress() -> None:
    async def asks(context: Context) -> None:
        for _ in range(5):
            await asyncio.sleep(0.8 * LIMIT)
            await context.parsing.invoke("parsing", context.parsing.prompt("parsing", "", "Why?"))

    assert watched(asks, llm=ScriptedLLM(lambda call: "at once"))[0].trail[0].status == "ran"


def test_a_stage_that_hangs_after_its_calls_is_ended() -> None:
    async def asks(context: Context) -> None:
        await context.parsing.invoke("parsing", context.parsing.prompt("parsing", "", "Why?"))
        await sleeps(context)

    result, took = watched(asks, llm=Slow())
    assert str(result.outcome) == "error(stage)"
    assert 3 * LATE + LIMIT < took <= 4 * LATE


def test_a_search_that_is_under_way_is_waited_for() -> None:
    class Searching:
        def problem(self) -> None: ...

        async def asearch(self, query: str) -> list[SearchResult]:
            await asyncio.sleep(3 * LATE)
            return [SearchResult(content="found")]

    async def searches(context: Context) -> None:
        port: Any = search_port(CallTarget("search", "papers"), Searching(), (), kept=True)
        assert await port.asearch("why")

    assert watched(searches)[0].trail[0].status == "ran"


def plugin(function: Callable[..., Any], hook: str) -> ModuleType:
    made = ModuleType("made")
    setattr(made, hook, hookimpl(function))
    return made


@pytest.mark.parametrize("when", ["before", "after"])
def test_middleware_around_an_item_that_hangs_is_ended(when: str, caplog: pytest.LogCaptureFixture) -> None:
    async def around(task: Any, proceed: Any) -> None:
        if when == "after":
            await proceed()
        await asyncio.sleep(1e9)

    app = Karenina({"made": plugin(lambda: around, "karenina_wrap_item")})
    result, took = watched(lambda context: None, app=app)
    assert [entry.status for entry in result.trail] == ["ran", "ran"]
    assert "ended after" not in str(result.metadata.error)
    assert took <= LATE
    assert "stage_idle_timeout" in caplog.text


def test_middleware_around_a_stage_that_hangs_is_ended_as_the_stage() -> None:
    async def around(context: Context, proceed: Any) -> None:
        await proceed()
        if not context.trail:
            await asyncio.sleep(1e9)

    app = Karenina({"made": plugin(lambda stage: around, "karenina_wrap_stage")})
    result, took = watched(lambda context: None, app=app)
    assert str(result.metadata.error).startswith("Working: ended after 600 s")
    assert took <= LATE


def test_a_whole_item_that_is_cancelled_ends_without_a_result() -> None:
    """Also where its stage is being ended at the same time."""

    async def cancelled() -> None:
        async def stubborn(context: Context) -> None:
            try:
                await sleeps(context)
            finally:
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.sleep(30)  # meanwhile everything is cancelled

        item = asyncio.ensure_future(verified(working(stubborn)))
        await asyncio.sleep(LATE + 0.5)
        item.cancel()
        with pytest.raises(asyncio.CancelledError):
            await item

    run_in_virtual_time(cancelled())


class Hanging(Stage):
    """Hangs where the question says so."""

    async def execute(self, context: Context) -> None:
        if context.question.id == "q1":
            await asyncio.sleep(1e6)

    @staticmethod
    @hookimpl
    def karenina_register_stages(registry: Any) -> None:
        registry.add(Hanging)


SOON = 5.0
"""Seconds: far more than any stage of the others needs, also on a machine that is busy."""


def test_the_items_of_a_run_are_watched(world: Any, tmp_path: Path) -> None:
    here = world(Hanging, questions=3)
    results = here.run(here.config(stage_idle_timeout=SOON), Destination(run_dir=tmp_path / "run"))
    assert {r.metadata.question_id: str(r.outcome) for r in results} == {
        "q0": "passed",
        "q1": "error(stage)",
        "q2": "passed",
    }


def test_a_single_verification_is_watched(world: Any) -> None:
    here = world(Hanging, questions=2)
    config = here.config(stage_idle_timeout=SOON)
    models = config.answering_models[0], config.parsing_models[0]
    single = arun_single_model_verification(here.benchmark.questions[1], *models, config=config, app=here.app)
    assert str(asyncio.run(single).outcome) == "error(stage)"
