"""The order in which answers are begun: every one once, fair between models, the same for every run of one name."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from karenina_runs.execution_settings import TaskOrdering
from karenina_runs.plan.items import Generation, Prepared, Schedule

from karenina_core import ModelConfig

Make = Callable[..., Any]
ORDERINGS: tuple[TaskOrdering, ...] = ("auto", "prefix_cache", "distribute_answerers", "generation_order", "random")
FIXTURE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)


@pytest.fixture
def plan(world: Make) -> Callable[..., Prepared]:
    def make(models: int, questions: int, replicates: int, **facts: Any) -> Prepared:
        here = world(questions=questions)
        answering = [ModelConfig(model_name=f"a{number}", interface="answering") for number in range(models)]
        prepared: Prepared = here.prepare(
            here.config(answering_models=answering, replicate_count=replicates), **{"run_name": "one", **facts}
        )
        return prepared

    return make


def told(generation: Generation) -> tuple[str, str, int]:
    item = generation.items[0]
    return item.answering.name, item.question.id, item.replicate


@FIXTURE
@given(st.integers(1, 3), st.integers(1, 4), st.integers(1, 3), st.sampled_from(ORDERINGS), st.data())
def test_every_answer_is_begun_once_in_every_order(
    plan: Callable[..., Prepared], models: int, questions: int, replicates: int, ordering: TaskOrdering, data: Any
) -> None:
    prepared = plan(models, questions, replicates)
    every = [told(generation) for generation in prepared.generations()]
    done = set(data.draw(st.lists(st.sampled_from(every), unique=True)))
    schedule, under_way, given_out = Schedule(prepared, ordering, lambda g: told(g) in done), [], []
    for generation in schedule:
        given_out.append(told(generation))
        under_way.append(generation)
        while under_way and data.draw(st.booleans()):
            schedule.over(under_way.pop(data.draw(st.integers(0, len(under_way) - 1))))
    assert Counter(given_out) == Counter(set(every) - done)


def test_positions_count_the_items_of_the_plan(plan: Callable[..., Prepared]) -> None:
    prepared = plan(2, 3, 2)
    positions = [item.position for generation in prepared.generations() for item in generation.items]
    assert positions == list(range(len(prepared)))


def test_a_model_that_is_slow_holds_up_no_other(plan: Callable[..., Prepared]) -> None:
    """Eight places; no call of the first model ever ends: the other's are all begun, and have half of the places."""
    schedule = Schedule(plan(2, 20, 1), "distribute_answerers")
    begun = [next(schedule) for _ in range(8)]
    assert Counter(told(generation)[0] for generation in begun) == {"a0": 4, "a1": 4}
    fast = [generation for generation in begun if told(generation)[0] == "a1"]
    others: list[str] = []
    while fast:
        schedule.over(fast.pop(0))
        following = next(schedule, None)
        if following is not None:
            others.append(told(following)[0])
            fast += [following] if others[-1] == "a1" else []
    assert Counter(others) == {"a1": 16, "a0": 4}
    assert others[:16] == ["a1"] * 16


def test_equal_prompts_stand_together_where_one_model_answers(plan: Callable[..., Prepared]) -> None:
    order = [told(generation) for generation in Schedule(plan(1, 3, 2))]
    assert order == [("a0", f"q{question}", replicate) for question in range(3) for replicate in (1, 2)]


def test_the_order_of_questions_is_another_than_the_order_of_prompts(plan: Callable[..., Prepared]) -> None:
    prepared, models, questions = plan(2, 3, 2), ("a0", "a1"), ("q0", "q1", "q2")
    orders = {name: [told(generation) for generation in Schedule(prepared, name)] for name in ORDERINGS}
    assert orders["generation_order"] == [(a, q, n) for q in questions for a in models for n in (1, 2)]
    assert orders["prefix_cache"] == [(a, q, n) for a in models for q in questions for n in (1, 2)]


def test_a_shuffled_order_is_the_same_for_every_run_of_one_name(plan: Callable[..., Prepared]) -> None:
    orders = [
        [told(generation) for generation in Schedule(plan(2, 10, 2, run_name=name), "random")]
        for name in ("one", "one", "two")
    ]
    assert orders[0] == orders[1] != orders[2]
    assert orders[0] != [told(generation) for generation in plan(2, 10, 2).generations()]


def test_nothing_more_is_begun_when_it_may_not_go_on(plan: Callable[..., Prepared]) -> None:
    schedule = Schedule(plan(1, 5, 1), may_continue=lambda: len(begun) < 2)
    begun: list[Generation] = []
    for generation in schedule:
        begun.append(generation)
    assert len(begun) == 2
