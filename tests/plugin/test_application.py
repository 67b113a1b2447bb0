"""Which application answers, observers, middleware, and the environment's lists of plugins."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import threading
from collections.abc import Callable
from typing import Any

import pytest

from karenina_core import Karenina, Stage, StageOrchestrator, VerificationContext, hookimpl
from karenina_core.errors import PluginError
from karenina_core.plugin.application import current
from karenina_core.testing import application
from karenina_core.values.question import Question

Make = Callable[..., Any]


# Which application


def test_the_innermost_block_counts_and_the_default_is_made_once() -> None:
    a, b = Karenina({}), Karenina({})
    assert current() is Karenina.default()
    assert Karenina.default() is Karenina.default()
    with a:
        assert current() is a
        assert current(b) is b
        with b, a:
            assert current() is a
        assert current() is a
    assert current() is Karenina.default()


def test_a_block_is_left_also_when_it_fails() -> None:
    with pytest.raises(ValueError, match="inside"), Karenina({}):
        raise ValueError("inside")
    assert current() is Karenina.default()


def test_one_application_in_two_threads_at_once() -> None:
    """Entered here, entered there, left here, left there."""
    app, steps, errors = Karenina({}), [threading.Event() for _ in range(3)], []

    def first() -> None:
        with app:
            steps[0].set()
            steps[1].wait(5)
        steps[2].set()

    def second() -> None:
        steps[0].wait(5)
        with app:
            steps[1].set()
            steps[2].wait(5)
            if current() is not app:
                errors.append("the other thread's exit was felt here")

    def guarded(work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=guarded, args=(work,)) for work in (first, second)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(5)
    assert errors == []


def test_tasks_have_their_own_block() -> None:
    a, b = Karenina({}), Karenina({})

    async def inside(app: Karenina) -> bool:
        with app:
            await asyncio.sleep(0)
            return current() is app

    async def both() -> list[bool]:
        return list(await asyncio.gather(inside(a), inside(b)))

    assert asyncio.run(both()) == [True, True]


def test_public_entry_points_use_the_block() -> None:
    class Only(Stage):
        def execute(self, context: object) -> None:
            """Does nothing."""

    def names() -> list[str]:
        with application(Only):
            return [stage.name for stage in StageOrchestrator.from_config().stages]

    assert contextvars.Context().run(names) == ["Only"]


# Observers


def test_observers_that_raise_are_harmless_and_all_are_called(module: Make) -> None:
    seen: list[str] = []

    def raising(error: BaseException) -> Callable[..., None]:
        def observer(run: Any) -> None:
            seen.append(type(error).__name__)
            raise error

        return observer

    app = Karenina(
        {
            "a": module(karenina_run_started=raising(ValueError("no"))),
            "b": module(karenina_run_started=raising(SystemExit(1))),
            "c": module(karenina_run_started=raising(RecursionError())),
            "d": module(karenina_run_started=lambda run, app: seen.append(app.plugin("d").name)),
        }
    )
    app.observe("karenina_run_started", run={})
    assert seen == ["ValueError", "SystemExit", "RecursionError", "d"]


def test_what_surrounds_an_item_sees_every_stage_and_cannot_stop_one(module: Make) -> None:
    seen: list[tuple[str, str]] = []

    class Good(Stage):
        def execute(self, context: VerificationContext) -> None: ...

    class Bad(Stage):
        def execute(self, context: VerificationContext) -> None:
            raise ValueError("no")

    async def around(task: Any, proceed: Any) -> None:
        seen.extend((entry.stage, entry.status) for entry in (await proceed()).trail)
        raise RuntimeError("an observer that fails")

    app = application(Good, Bad, module(karenina_wrap_item=lambda: around))
    orchestrator = StageOrchestrator([Good(), Bad()], app=app)
    result = asyncio.run(orchestrator.arun(VerificationContext(question=Question(question="Why?"))))
    assert seen == [("Bad", "failed"), ("Good", "skipped")]
    assert [(entry.stage, entry.status) for entry in result.trail] == seen


# Stage middleware


def around(label: str, seen: list[str]) -> Callable[..., Any]:
    def wrap(stage: Any) -> Any:
        seen.append(f"{label} asked about {stage.name}")
        if stage.name != "Wrapped":
            return None

        async def run(context: Any, proceed: Any) -> None:
            seen.append(f"{label} before")
            await proceed()
            seen.append(f"{label} after")

        return run

    return wrap


def test_middleware_is_asked_once_per_plan_and_nests_by_plugin_name(module: Make) -> None:
    seen: list[str] = []

    class Wrapped(Stage):
        def execute(self, context: VerificationContext) -> None:
            seen.append("work")

    plugins = {name: module(karenina_wrap_stage=around(name, seen)) for name in ("b", "a")}
    orchestrator = StageOrchestrator([Wrapped()], app=Karenina(plugins))
    for _ in range(2):
        asyncio.run(orchestrator.arun(VerificationContext(question=Question(question="Why?"))))
    once = ["a before", "b before", "work", "b after", "a after"]
    assert sorted(seen[:2]) == ["a asked about Wrapped", "b asked about Wrapped"]
    assert seen[2:] == once * 2


def test_middleware_may_keep_a_stage_from_running(module: Make) -> None:
    seen: list[str] = []

    class Costly(Stage):
        def execute(self, context: VerificationContext) -> None:
            seen.append("work")

    async def instead(context: Any, proceed: Any) -> None:
        seen.append("instead")

    app = Karenina({"cache": module(karenina_wrap_stage=lambda stage: instead)})
    result = asyncio.run(
        StageOrchestrator([Costly()], app=app).arun(VerificationContext(question=Question(question="Why?")))
    )
    assert seen == ["instead"]
    assert result.trail[0].status == "ran"


@pytest.mark.parametrize("returned", ["not callable", 3, object()])
def test_middleware_must_be_callable(module: Make, returned: Any) -> None:
    app = Karenina({"odd": module(karenina_wrap_stage=lambda stage: returned)})
    orchestrator = StageOrchestrator([type("S", (Stage,), {"execute": lambda self, context: None})()], app=app)
    with pytest.raises(PluginError, match="'odd' must return a coroutine function"):
        asyncio.run(orchestrator.arun(VerificationContext(question=Question(question="Why?"))))


# The environment


@pytest.mark.parametrize("how", ["environment", "argument"])
def test_blocked_plugins_are_listed_and_bring_nothing(monkeypatch: pytest.MonkeyPatch, how: str) -> None:
    monkeypatch.setenv("KARENINA_DISABLE", " verify-template ,jsonl" if how == "environment" else "")
    app = Karenina.installed(disable=["verify-template", "jsonl"] if how == "argument" else [])
    assert {p.name for p in app.plugins if p.state == "blocked"} == {"verify-template", "jsonl"}
    assert "VerifyTemplate" not in app.stages
    assert "jsonl" not in app.sinks
    assert "KARENINA_DISABLE" in app.plugin("jsonl").reason
    problems = StageOrchestrator.from_config(app=app).validate_dependencies()
    assert any("verify-template (blocked:" in problem for problem in problems)


def test_the_list_of_allowed_plugins_blocks_all_others(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARENINA_PLUGINS", "generate-answer,finalize-result")
    app = Karenina.installed()
    assert [p.name for p in app.plugins if p.state == "active"] == ["finalize-result", "generate-answer"]
    assert list(app.stages) == ["FinalizeResult", "GenerateAnswer"]
    assert app.warnings == ()


def test_blocking_wins_over_allowing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARENINA_PLUGINS", "jsonl")
    monkeypatch.setenv("KARENINA_DISABLE", "jsonl")
    assert Karenina.installed().plugin("jsonl").state == "blocked"


def test_names_that_nobody_has_are_warned_about(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARENINA_DISABLE", "verify-templat")
    app = Karenina.installed()
    assert app.warnings == ("no plugin is called 'verify-templat' (did you mean 'verify-template'?)",)
    assert all(p.state == "active" for p in app.plugins if p.distribution == "karenina-template")


# The background loop


def test_tasks_that_are_left_are_cancelled_when_the_loop_is_closed() -> None:
    app, kept, ended = Karenina({}), [], threading.Event()

    async def leaves_a_task() -> None:
        async def waits() -> None:
            try:
                await asyncio.Event().wait()
            finally:
                ended.set()

        kept.append(asyncio.create_task(waits()))
        await asyncio.sleep(0)

    app.loop.run(leaves_a_task())
    assert not ended.is_set()
    app.loop.close()
    assert ended.is_set()


def test_synchronous_callers_are_served_inside_a_running_loop() -> None:
    app = Karenina({})

    async def answer() -> int:
        await asyncio.sleep(0)
        return 42

    async def notebook() -> int:
        return app.run(answer())

    assert asyncio.run(notebook()) == 42
    assert app.run(answer()) == 42
    app.loop.close()
    assert app.run(answer()) == 42
    app.loop.close()


def test_an_application_that_is_no_longer_used_takes_its_thread_and_its_files_along() -> None:
    async def answer() -> None:
        return

    before = {thread for thread in threading.enumerate() if thread.name == "karenina"}
    for _ in range(3):
        Karenina({}).run(answer())
    gc.collect()
    left = [t for t in threading.enumerate() if t.name == "karenina" and t not in before]
    for thread in left:  # asked to end, and may not have come to it yet
        thread.join(timeout=30)
    assert not any(thread.is_alive() for thread in left)


def test_calling_it_from_its_own_loop_is_an_error_not_a_deadlock() -> None:
    app = Karenina({})

    async def inner() -> None: ...

    async def outer() -> None:
        app.run(inner())

    with pytest.raises(RuntimeError, match="'a' in front"):
        app.run(outer())
    app.loop.close()


# What is wrong with a hook, in words of ours


@pytest.mark.parametrize(
    ("hook", "function", "said"),
    [
        (
            "karenina_load_benchmark",
            lambda path, date: None,
            "gets no 'date' (did you mean 'data'?), only path, data",
        ),
        ("karenina_run_started", lambda run, application: None, "gets no 'application', only run, app"),
        ("karenina_register_stages", lambda registri: None, "does not get registri, only the registry"),
        ("karenina_wrapp_item", lambda item: None, "there is no hook 'karenina_wrapp_item' (did you mean"),
    ],
)
def test_a_hook_that_does_not_fit_is_named_with_what_it_is_given(
    hook: str, function: Any, said: str, module: Make
) -> None:
    info = Karenina({"planted": module(**{hook: function})}).plugin("planted")
    assert info.state == "failed"
    assert said in info.reason


def test_a_wrapper_that_does_not_yield_is_named() -> None:
    class Planted:
        @hookimpl(wrapper=True)
        def karenina_resolve_model(self, model: str) -> None:
            """Nothing is wrapped here."""

    info = Karenina({"planted": Planted()}).plugin("planted")
    assert info.reason == "hook 'karenina_resolve_model' is marked as a wrapper and has no `yield`; remove the mark"
