"""The engine always ends with one result, whatever stages do; only real cancellation leaves without one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from karenina_core import (
    ArtifactKeys,
    Category,
    Key,
    Question,
    Skip,
    Stage,
    StageOrchestrator,
    VerificationContext,
    hookimpl,
)
from karenina_core.errors import (
    AgentTimeoutError,
    ContractError,
    FillError,
    KareninaError,
    ParseError,
    PortError,
    TemplateError,
)
from karenina_core.pipeline.assemble import bare_result
from karenina_core.pipeline.engine import Engine
from karenina_core.testing import application
from karenina_core.values.result import VerificationResult

Make = Callable[..., VerificationContext]


def fresh(**facts: Any) -> VerificationContext:
    return VerificationContext(question=Question(question="Why?"), **facts)


def run(stages: list[Any], context: VerificationContext | None = None, app: Any = None) -> VerificationResult:
    return asyncio.run(StageOrchestrator(stages, app=app).arun(context or fresh()))


class Odd(BaseException):
    """Like the panics of extension modules: not an Exception, yet no reason to end the run."""


ERRORS: list[tuple[BaseException, str]] = [
    (ValueError("no"), "stage"),
    (KeyError("k"), "stage"),
    (AssertionError(), "stage"),
    (StopIteration(3), "stage"),
    (RecursionError("deep"), "stage"),
    (MemoryError(), "stage"),
    (SystemExit(2), "stage"),
    (Odd("panic"), "stage"),
    (ExceptionGroup("several", [ValueError("a"), OSError("b")]), "stage"),
    (KareninaError("plain"), "stage"),
    (ContractError("undeclared"), "stage"),
    (TemplateError("bad template"), "template"),
    (FillError("bad data"), "template"),
    (PortError("slow", kind="rate_limited"), "rate_limited"),
    (ParseError("no JSON"), "judge"),
    (AgentTimeoutError("late"), "agent"),
    (asyncio.CancelledError("stray"), "cancelled"),
]
HOWS = ["async", "plain", "blocking", "should_run"]


def failing(name: str, error: BaseException, how: str, **declarations: Any) -> type[Stage]:
    async def asynchronous(self: Any, context: Any) -> None:
        await asyncio.sleep(0)
        raise error

    def plain(self: Any, context: Any) -> None:
        raise error

    body: dict[str, Any] = {**declarations, "blocking": how == "blocking"}
    if how == "should_run":
        body["should_run"] = plain
    else:
        body["execute"] = asynchronous if how == "async" else plain
    return type(name, (Stage,), {"execute": lambda self, context: None, **body})


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize(("error", "kind"), ERRORS, ids=[type(error).__name__ for error, _ in ERRORS])
def test_whatever_a_stage_raises_there_is_a_result(
    built_in: dict[str, Any], error: BaseException, kind: str, how: str
) -> None:
    """A stage that fails between others: it is named, later ones skip, the final one assembles the result."""
    before = type("Before", (Stage,), {"category": Category.SETUP, "execute": lambda self, context: None})
    after = type("Zfter", (Stage,), {"category": Category.RUBRIC, "execute": lambda self, context: None})
    app = application(before, failing("Failing", error, how), after, built_in["finalize-result"])
    orchestrator = StageOrchestrator.from_config(app=app)
    result = asyncio.run(asyncio.wait_for(StageOrchestrator(orchestrator.stages, app=app).arun(fresh(app=app)), 5))
    assert [(entry.stage, entry.status) for entry in result.trail] == [
        ("Before", "ran"),
        ("Failing", "failed"),
        ("Zfter", "skipped"),
        ("FinalizeResult", "ran"),
    ]
    assert str(result.outcome) == f"error({kind})"
    assert not result.metadata.completed_without_errors
    assert result.metadata.error is not None
    assert result.metadata.error.startswith("Failing: ")
    assert result.trail[2].reason == "an error was set by Failing"


@pytest.mark.parametrize("how", HOWS)
@pytest.mark.parametrize("error", [error for error, _ in ERRORS], ids=[type(error).__name__ for error, _ in ERRORS])
def test_a_final_stage_that_fails_leaves_a_bare_result(error: BaseException, how: str) -> None:
    attempts: list[str] = []
    final = failing("Final", error, how, final=True, produces=(ArtifactKeys.FINAL_RESULT,))
    name = "should_run" if how == "should_run" else "execute"
    inner = getattr(final, name)

    def counted(self: Any, context: Any) -> Any:
        attempts.append(name)
        return inner(self, context)

    setattr(final, name, counted)
    about = fresh()
    about.set_artifact(ArtifactKeys.RAW_LLM_RESPONSE, "BCL2")
    about.record(verdict=True)
    result = run([final()], about)
    assert attempts == [name]
    assert result.metadata.outcome == "error"
    assert result.generation.raw_llm_response == "BCL2"
    assert [(entry.stage, entry.status) for entry in result.trail] == [("Final", "failed")]
    assert [row.effect["verdict"] for row in result.ledger] == [True]


def test_an_error_after_the_result_was_assembled_is_in_the_result(built_in: dict[str, Any]) -> None:
    wrapping = ModuleType("wrapping")

    async def fails_late(context: Any, proceed: Any) -> None:
        await proceed()
        raise ValueError("too late")

    wrapping.karenina_wrap_stage = hookimpl(lambda stage: fails_late if stage.final else None)  # type: ignore[attr-defined]
    app = application(wrapping, built_in["finalize-result"])
    result = run([*StageOrchestrator.from_config(app=app).stages], fresh(app=app), app)
    assert result.trail[-1].status == "failed"
    assert str(result.outcome) == "error(stage)"
    assert result.metadata.error is not None
    assert result.metadata.error.startswith("FinalizeResult: ValueError: too late (")
    assert result.metadata.error.endswith("in fails_late)")
    assert not result.metadata.completed_without_errors


def test_without_any_final_stage_there_is_a_result_that_says_so() -> None:
    result = run([type("Only", (Stage,), {"execute": lambda self, context: None})()])
    assert str(result.outcome) == "error(stage)"
    assert result.metadata.error == "no stage made a result"


def test_later_errors_are_warnings(built_in: dict[str, Any]) -> None:
    class Stubborn(Stage):
        category = Category.RUBRIC

        def should_run(self, context: VerificationContext) -> bool:
            return True

        def execute(self, context: VerificationContext) -> None:
            context.mark_error("second", kind="judge")
            raise ValueError("third")

    app = application(
        failing("First", PortError("first", kind="timeout"), "async"), Stubborn, built_in["finalize-result"]
    )
    result = run([*StageOrchestrator.from_config(app=app).stages], fresh(app=app))
    assert result.metadata.error == "First: first"
    assert result.metadata.outcome_detail == "timeout"
    first, second = result.metadata.warnings
    assert first == "second"
    assert second.startswith("Stubborn: ValueError: third (")


def test_an_error_that_is_set_rather_than_raised_fails_the_stage_too() -> None:
    class Setting(Stage):
        def execute(self, context: VerificationContext) -> None:
            context.mark_error("cannot be used", kind="template")

    result = run([Setting()])
    assert [(entry.status, entry.reason) for entry in result.trail] == [("failed", "cannot be used")]
    assert str(result.outcome) == "error(template)"


def test_cancellation_propagates_and_runs_nothing_more() -> None:
    seen: list[str] = []

    class Waiting(Stage):
        async def execute(self, context: VerificationContext) -> None:
            await asyncio.sleep(60)

    class Last(Stage):
        final = True

        def execute(self, context: VerificationContext) -> None:
            seen.append("ran")

    async def cancelled() -> None:
        task = asyncio.create_task(StageOrchestrator([Waiting(), Last()]).arun(fresh()))
        await asyncio.sleep(0.01)
        task.cancel()
        await task

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(cancelled())
    assert seen == []


@pytest.mark.parametrize("error", [KeyboardInterrupt(), GeneratorExit()])
def test_an_interrupt_is_not_a_stage_failure(error: BaseException) -> None:
    with pytest.raises(type(error)):
        run([failing("Interrupted", error, "plain")()])


# Law: any stage of the real pipeline may fail, anywhere, any number of times.

PLAN = st.lists(
    st.tuples(st.sampled_from(["ok", "skip", *HOWS]), st.sampled_from(ERRORS), st.sampled_from(list(Category))),
    min_size=1,
    max_size=6,
)


@given(PLAN, st.booleans())
@settings(deadline=None)
def test_one_result_with_a_complete_trail(plan: list[Any], finalize_fails: bool) -> None:
    attempts: list[str] = []
    stages: list[Stage] = []
    first: tuple[int, str, str] | None = None
    for number, (how, (error, kind), category) in enumerate(plan):
        name = f"S{number}"
        if how == "ok":
            cls = type(name, (Stage,), {"category": category, "execute": lambda self, context: None})
        elif how == "skip":
            cls = type(
                name,
                (Stage,),
                {
                    "category": category,
                    "should_run": lambda self, context: Skip("no"),
                    "execute": lambda self, context: None,
                },
            )
        else:
            cls = failing(name, error, how, category=category)
            rank = (int(category), name, kind)
            first = rank if first is None or rank < first else first
        stages.append(cls())

    class Final(Stage):
        final = True
        produces = (ArtifactKeys.FINAL_RESULT,)

        def should_run(self, context: VerificationContext) -> bool:
            return True

        def execute(self, context: VerificationContext) -> None:
            attempts.append("final")
            if finalize_fails:
                raise ValueError("cannot assemble")
            context.set_artifact(ArtifactKeys.FINAL_RESULT, bare_result(context))

    result = run([*stages, Final()])
    assert attempts == ["final"]
    assert isinstance(result, VerificationResult)
    names = [stage.name for stage in StageOrchestrator([*stages, Final()]).stages]
    assert [entry.stage for entry in result.trail] == names
    if first is not None:
        assert (result.metadata.error or "").startswith(f"{first[1]}: ")
        assert result.metadata.outcome_detail == first[2]
    else:
        assert result.metadata.completed_without_errors is not finalize_fails


def test_a_stage_that_ran_can_say_so_in_the_trail() -> None:
    class Noting(Stage):
        produces = (Key("noting.done", bool),)

        def execute(self, context: VerificationContext) -> None:
            context.note("first")
            context.note("nothing to do")
            context.set_artifact("noting.done", True)

    class Silent(Stage):
        requires = ("noting.done",)

        def execute(self, context: VerificationContext) -> None: ...

    context = VerificationContext(question=Question(question="Why?"))
    result = asyncio.run(Engine([Noting(), Silent()]).run(context))
    assert [(entry.stage, entry.status, entry.reason) for entry in result.trail] == [
        ("Noting", "ran", "nothing to do"),
        ("Silent", "ran", ""),
    ]
