"""Middleware around items: it sees every item and its result, and whatever it does, there is that result, made once."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from karenina_core import (
    Karenina,
    Question,
    Stage,
    StageOrchestrator,
    VerificationContext,
    VerificationResult,
    hookimpl,
)
from karenina_core.errors import PluginError

Seen = list[str]


def plugin(function: Callable[..., Any]) -> ModuleType:
    made = ModuleType("made")
    made.karenina_wrap_item = hookimpl(function)  # type: ignore[attr-defined]  # hooks are found by name
    return made


def run(seen: Seen, *, seconds: float = 0.0, **around: Any) -> VerificationResult:
    """One item with one stage, inside these wrappers."""

    class Work(Stage):
        async def execute(self, context: VerificationContext) -> None:
            seen.append("work")
            await asyncio.sleep(seconds)

    app = Karenina({name: plugin(lambda wrapper=wrapper: wrapper) for name, wrapper in around.items()})
    orchestrator = StageOrchestrator([Work()], app=app)
    return asyncio.run(orchestrator.arun(VerificationContext(question=Question(id="q", question="Why?"))))


def test_it_sees_the_item_and_its_result_and_nests_by_plugin_name() -> None:
    seen: Seen = []

    def named(name: str) -> Any:
        async def around(task: Any, proceed: Any) -> None:
            seen.append(f"{name} before {task.question_id}")
            result = await proceed()
            seen.append(f"{name} after {result.metadata.question_id} {result.trail[0].status}")

        return around

    run(seen, b=named("b"), a=named("a"))
    assert seen == ["a before q", "b before q", "work", "b after q ran", "a after q ran"]


def test_it_is_asked_once_per_plan() -> None:
    asked: list[int] = []
    app = Karenina({"one": plugin(lambda: asked.append(1))})
    orchestrator = StageOrchestrator([type("S", (Stage,), {"execute": lambda self, context: None})()], app=app)
    for _ in range(3):
        asyncio.run(orchestrator.arun(VerificationContext(question=Question(question="Why?"))))
    assert asked == [1]


async def raises_before(task: Any, proceed: Any) -> None:
    raise ValueError("broken")


async def raises_after(task: Any, proceed: Any) -> None:
    await proceed()
    raise SystemExit(3)


async def never_proceeds(task: Any, proceed: Any) -> None: ...


async def proceeds_twice(task: Any, proceed: Any) -> None:
    assert await proceed() is await proceed()


def no_coroutine(task: Any, proceed: Any) -> None: ...


@pytest.mark.parametrize("around", [raises_before, raises_after, never_proceeds, proceeds_twice, no_coroutine])
def test_whatever_it_does_the_item_runs_once_and_has_its_result(around: Any) -> None:
    seen: Seen = []
    result = run(seen, odd=around)
    assert seen == ["work"]
    assert [(entry.stage, entry.status) for entry in result.trail] == [("Work", "ran")]
    assert result.metadata.error == "no stage made a result"  # the plan's own; nothing of the middleware


def test_an_item_that_it_ends_halfway_has_an_error_and_is_not_begun_again() -> None:
    async def impatient(task: Any, proceed: Any) -> None:
        async with asyncio.timeout(0.01):
            await proceed()

    seen: Seen = []
    result = run(seen, seconds=5, impatient=impatient)
    assert seen == ["work"]
    assert str(result.outcome) == "error(plugin)"
    assert "the middleware of plugin 'impatient' ended the item" in str(result.metadata.error)


async def lets_it_through(task: Any, proceed: Any) -> None:
    await proceed()


async def keeps_it(task: Any, proceed: Any) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await proceed()


async def keeps_it_before(task: Any, proceed: Any) -> None:
    with contextlib.suppress(asyncio.CancelledError):
        await asyncio.sleep(5)


@pytest.mark.parametrize("around", [lets_it_through, keeps_it, keeps_it_before])
def test_the_items_own_cancellation_goes_through(around: Any) -> None:
    class Work(Stage):
        async def execute(self, context: VerificationContext) -> None:
            await asyncio.sleep(5)

    async def cancelled() -> bool:
        orchestrator = StageOrchestrator([Work()], app=Karenina({"one": plugin(lambda: around)}))
        task = asyncio.create_task(orchestrator.arun(VerificationContext(question=Question(question="Why?"))))
        await asyncio.sleep(0.01)
        task.cancel()
        await asyncio.wait([task])
        return task.cancelled()

    assert asyncio.run(cancelled())


def test_a_user_who_wants_out_gets_out() -> None:
    async def interrupted(task: Any, proceed: Any) -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run([], interrupted=interrupted)


@pytest.mark.parametrize("returned", ["not callable", 3])
def test_it_must_be_callable(returned: Any) -> None:
    with pytest.raises(PluginError, match="karenina_wrap_item of plugin 'odd' must return a coroutine function"):
        run([], odd=returned)


def test_a_hook_that_raises_ends_the_plan_before_any_item() -> None:
    app = Karenina({"odd": plugin(lambda: 1 / 0)})
    with pytest.raises(PluginError, match="karenina_wrap_item of plugin 'odd' failed: ZeroDivisionError"):
        StageOrchestrator([type("S", (Stage,), {"execute": lambda self, context: None})()], app=app).ready()
