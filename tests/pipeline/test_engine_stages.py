"""How the engine runs one stage: in a thread or not, skipped with a reason, stopped where it breaks its declaration."""

from __future__ import annotations

import asyncio
import threading
from typing import Any

import pytest

from karenina_core import ArtifactKeys, Key, Question, Skip, Stage, StageOrchestrator, VerificationContext
from karenina_core.errors import PlanError
from karenina_core.values.result import VerificationResult


def fresh() -> VerificationContext:
    return VerificationContext(question=Question(question="Why?"))


def run(stages: list[Any]) -> VerificationResult:
    return asyncio.run(StageOrchestrator(stages).arun(fresh()))


def test_blocking_stages_run_in_a_thread_and_others_do_not() -> None:
    threads: dict[str, int] = {}

    def note(self: Any, context: Any) -> None:
        threads[self.name] = threading.get_ident()

    async def noted(self: Any, context: Any) -> None:
        note(self, context)

    kinds = {"Blocking": {"execute": note, "blocking": True}, "Plain": {"execute": note}, "Async": {"execute": noted}}
    result = run(
        [type(name, (Stage,), {"execute": lambda self, context: None, **body})() for name, body in kinds.items()]
    )
    assert [entry.status for entry in result.trail] == ["ran"] * 3
    assert threads["Plain"] == threads["Async"] == threading.get_ident()
    assert threads["Blocking"] != threading.get_ident()


def test_a_blocking_stage_does_not_stop_the_loop() -> None:
    released = threading.Event()

    class Blocking(Stage):
        blocking = True

        def execute(self, context: VerificationContext) -> None:
            assert released.wait(5)

    async def both() -> VerificationResult:
        task = asyncio.create_task(StageOrchestrator([Blocking()]).arun(fresh()))
        await asyncio.sleep(0.01)
        released.set()
        return await task

    assert asyncio.run(both()).trail[0].status == "ran"


def test_a_stage_that_does_not_want_to_run_leaves_its_reason() -> None:
    class Because(Stage):
        def should_run(self, context: VerificationContext) -> bool | Skip:
            return Skip("not for this item")

        def execute(self, context: object) -> None:
            """Does nothing."""

    class No(Stage):
        def should_run(self, context: VerificationContext) -> bool:
            return False

        def execute(self, context: object) -> None:
            """Does nothing."""

    result = run([Because(), No()])
    assert [(entry.status, entry.reason) for entry in result.trail] == [
        ("skipped", "not for this item"),
        ("skipped", "its should_run returned False"),
    ]


def test_undeclared_access_is_the_stage_s_failure_with_the_line_to_add() -> None:
    class Greedy(Stage):
        def execute(self, context: VerificationContext) -> None:
            context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)

    result = run([Greedy()])
    assert "add it to Greedy.reads" in (result.metadata.error or "")
    assert str(result.outcome) == "error(stage)"


def test_an_invalid_plan_is_refused_before_any_work() -> None:
    seen: list[str] = []

    class Needs(Stage):
        requires = (Key("sample.nobody", int),)

        def execute(self, context: VerificationContext) -> None:
            seen.append("ran")

    with pytest.raises(PlanError, match=r"Needs requires 'sample\.nobody', which no earlier stage produces"):
        run([Needs()])
    assert seen == []
