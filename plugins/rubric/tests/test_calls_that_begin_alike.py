"""Calls that begin with the same long answer: the first one ends before the others begin."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from karenina_calls.ports.client import Model, ModelClient
from karenina_vocabulary.evaluators import CACHED_FROM
from karenina_vocabulary.traces import EvaluationInput

from karenina_core import ModelConfig, Question, TraitCase, VerificationConfig, VerificationContext

LONG = "It is BCL2. " * CACHED_FROM


def case(text: str = LONG, *, batch: bool = False, places: int = 6) -> TraitCase:
    judge = Model(config=ModelConfig(model_name="judge", interface="scripted", batch=batch))
    context = VerificationContext(
        question=Question(id="q", question="Which protein?", raw_answer=""),
        config=VerificationConfig(),
        parsing=ModelClient(judge, []),
        app=None,
    )
    return TraitCase(context, EvaluationInput(text, True), asyncio.Semaphore(places))


async def begun_together(about: TraitCase, names: list[str]) -> list[list[str]]:
    """The calls that were under way at the same time, in waves; each takes until no other can begin."""
    waves: list[list[str]] = []
    under_way: list[str] = []
    over = asyncio.Event()

    async def work(name: str) -> str:
        under_way.append(name)
        await over.wait()
        return name

    tasks = [asyncio.create_task(about.in_turn(lambda name=name: work(name), name)) for name in names]  # type: ignore[misc]  # bound early
    while not all(task.done() for task in tasks):
        for _ in range(10):
            await asyncio.sleep(0)
        waves.append(sorted(under_way))
        under_way.clear()
        over.set()
        await asyncio.sleep(0)
        over.clear()
    assert [task.result() for task in tasks] == names
    return [wave for wave in waves if wave]


@pytest.mark.parametrize(
    ("about", "waves"),
    [
        (case(), [["a", "b"], ["a", "a", "b"]]),
        (case("It is BCL2."), [["a", "a", "a", "b", "b"]]),
        (case(batch=True), [["a", "a", "a", "b", "b"]]),
    ],
    ids=["long", "short", "batch"],
)
def test_the_first_of_them_ends_before_the_others_begin(about: TraitCase, waves: list[list[str]]) -> None:
    assert asyncio.run(begun_together(about, ["a", "a", "b", "a", "b"])) == waves


def test_what_begins_otherwise_does_not_wait() -> None:
    assert asyncio.run(begun_together(case(), ["", "", "a"])) == [["", "", "a"]]


def test_a_first_call_that_fails_holds_nobody_up() -> None:
    about = case(places=1)

    async def failing() -> Any:
        raise ValueError("refused")

    async def both() -> list[Any]:
        return await asyncio.gather(
            about.in_turn(failing, "a"), about.in_turn(lambda: asyncio.sleep(0, "fine"), "a"), return_exceptions=True
        )

    first, second = asyncio.run(both())
    assert (str(first), second) == ("refused", "fine")
