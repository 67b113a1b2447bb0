"""The order of stages: data, then `after` and `before`, then category, then name; the same for every way to say it."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from karenina_core import ArtifactKeys, Category, Key, Stage, StageOrchestrator, feature, hookimpl
from karenina_core.errors import PlanError
from karenina_core.pipeline.stage import PlanRequest
from karenina_core.testing import application


def made(name: str, **declarations: Any) -> Stage:
    stage: Stage = type(name, (Stage,), {"execute": lambda self, context: None, **declarations})()
    return stage


def order(*stages: Stage) -> list[str]:
    return [stage.name for stage in StageOrchestrator(stages).stages]


A, B, C = (Key(f"sample.{name}", int) for name in "abc")


def test_category_then_name() -> None:
    late, early = {"category": Category.RUBRIC}, {"category": Category.SETUP}
    assert order(made("X", **late), made("Z", **early), made("Y", **early)) == ["Y", "Z", "X"]


def test_data_wins_over_category() -> None:
    maker = made("Maker", category=Category.RUBRIC, produces=(A,))
    assert order(made("Reader", category=Category.SETUP, reads=(A,)), maker) == ["Maker", "Reader"]
    assert order(made("Needs", category=Category.SETUP, requires=(A,)), maker) == ["Maker", "Needs"]


def test_what_a_stage_requires_must_be_produced_before_it() -> None:
    missing = StageOrchestrator([made("Needs", requires=(A,)), made("Maker", produces=(B,))])
    assert missing.validate_dependencies()[0] == "Needs requires 'sample.a', which no earlier stage produces"
    for fine in ([made("Needs", requires=(A,)), made("Maker", produces=(A,))], [made("Reads", reads=(A,))]):
        assert not [p for p in StageOrchestrator(fine).validate_dependencies() if "requires" in p]


def test_after_and_before_win_over_names() -> None:
    assert order(made("A", after=("B",)), made("B")) == ["B", "A"]
    assert order(made("A"), made("B", before=("A",))) == ["B", "A"]


def test_names_that_are_not_in_the_plan_are_ignored() -> None:
    assert order(made("A", after=("Nobody",), before=("Neither",)), made("B")) == ["A", "B"]


def test_final_stages_come_last_and_the_result_after_all_of_them() -> None:
    result = made("AResult", final=True, produces=(ArtifactKeys.FINAL_RESULT,))
    assert order(result, made("Report", final=True), made("Zed", category=Category.FINALIZATION)) == [
        "Zed",
        "Report",
        "AResult",
    ]


def test_data_decides_among_final_stages_too() -> None:
    assert order(made("AReader", final=True, requires=(A,)), made("ZMaker", final=True, produces=(A,))) == [
        "ZMaker",
        "AReader",
    ]


def test_a_stage_that_changes_the_verdict_comes_after_the_one_that_makes_it() -> None:
    verdict = (ArtifactKeys.VERIFY_RESULT,)
    changing = made("Changing", category=Category.TEMPLATE, requires=verdict, produces=verdict)
    assert order(changing, made("Verify", category=Category.TEMPLATE, produces=verdict)) == ["Verify", "Changing"]


@pytest.mark.parametrize(
    "stages",
    [
        [made("A", after=("B",)), made("B", after=("A",))],
        [made("A", requires=(B,), produces=(A,)), made("B", requires=(A,), produces=(B,))],
        [made("A", reads=(B,), produces=(A,)), made("B", before=("A",), after=("A",), produces=(B,))],
    ],
)
def test_circles_are_named(stages: list[Stage]) -> None:
    waiting = [made("Innocent"), made("Waiting", after=("A",)), made("Last", final=True)]
    with pytest.raises(PlanError, match=r"wait for each other: A, B; check their requires, reads, after and before"):
        StageOrchestrator([*stages, *waiting])


def test_two_stages_that_produce_one_artifact_are_named_with_their_plugins() -> None:
    class Stages:
        @hookimpl
        def karenina_register_stages(self, registry: Any) -> None:
            registry.add(type("First", (Stage,), {"produces": (A,), "execute": lambda self, context: None}))

    other = type("Second", (Stage,), {"produces": (A,), "execute": lambda self, context: None})
    with pytest.raises(
        PlanError, match=r"First \(plugin Stages\) and Second \(plugin Second\) both produce 'sample\.a'"
    ):
        StageOrchestrator.from_config(app=application(Stages(), other))


def test_alternatives_may_produce_the_same_artifact_when_only_one_is_in_the_plan() -> None:
    usual = type(
        "Usual", (Stage,), {"produces": (A,), "included_when": ~feature("other"), "execute": lambda self, context: None}
    )
    other = type(
        "Other", (Stage,), {"produces": (A,), "included_when": feature("other"), "execute": lambda self, context: None}
    )
    app = application(usual, other)
    for features, expected in (([], "Usual"), (["other"], "Other")):
        assert [s.name for s in StageOrchestrator.from_config(features=features, app=app).stages] == [expected]


def test_one_name_twice_is_refused() -> None:
    with pytest.raises(PlanError, match="two stages are called A"):
        StageOrchestrator([made("A"), made("A")])


def test_a_replacement_takes_over_the_place_of_what_it_replaces() -> None:
    class Replacing:
        @hookimpl
        def karenina_register_stages(self, registry: Any) -> None:
            registry.add(type("ZNew", (Stage,), {"execute": lambda self, context: None}), replaces="Old")

    old = type("Old", (Stage,), {"execute": lambda self, context: None})
    app = application(
        old, Replacing(), type("AfterOld", (Stage,), {"after": ("Old",), "execute": lambda self, context: None})
    )
    assert [s.name for s in StageOrchestrator.from_config(app=app).stages] == ["ZNew", "AfterOld"]


# Laws

NAMES = [f"S{i}" for i in range(7)]


@st.composite
def declared(draw: Any) -> list[Stage]:
    """Stages whose keys have one maker each. They may well wait for each other."""
    count = draw(st.integers(1, len(NAMES)))
    owner = {key: draw(st.sampled_from(NAMES[:count])) for key in (A, B, C)}
    few = st.lists(st.sampled_from(NAMES), max_size=2, unique=True)
    stages = []
    for name in NAMES[:count]:
        wanted = draw(st.lists(st.sampled_from([A, B, C]), max_size=2, unique=True))
        stages.append(
            made(
                name,
                category=draw(st.sampled_from(list(Category))),
                produces=tuple(key for key, maker in owner.items() if maker == name),
                reads=tuple(key for key in wanted if owner[key] != name),
                after=tuple(draw(few)) if draw(st.booleans()) else (),
                before=tuple(draw(few)) if draw(st.integers(0, 3)) == 0 else (),
                final=draw(st.integers(0, 5)) == 0,
            )
        )
    return stages


def edges(stages: list[Stage]) -> set[tuple[str, str]]:
    """`(first, second)` for everything that the declarations ask for, read off one by one."""
    maker = {key: stage.name for stage in stages for key in stage.produces}
    there = {stage.name for stage in stages}
    found = set()
    for stage in stages:
        found |= {(maker[key], stage.name) for key in (*stage.requires, *stage.reads) if key in maker}
        found |= {(name, stage.name) for name in stage.after if name in there}
        found |= {(stage.name, name) for name in stage.before if name in there}
        if stage.final:
            found |= {(other.name, stage.name) for other in stages if not other.final}
    return {(first, second) for first, second in found if first != second}


def has_circle(names: set[str], found: set[tuple[str, str]]) -> bool:
    """Take away stages that wait for no other until none is left."""
    while names:
        free = {name for name in names if not any(second == name and first in names for first, second in found)}
        if not free:
            return True
        names = names - free
    return False


@given(declared(), st.randoms(use_true_random=False))
@settings(deadline=None)
def test_the_order_keeps_every_constraint_and_is_always_the_same(stages: list[Stage], random: Any) -> None:
    wanted = edges(stages)
    shuffled = random.sample(stages, len(stages))
    if has_circle({stage.name for stage in stages}, wanted):
        for given_ in (stages, shuffled):
            with pytest.raises(PlanError, match="wait for each other"):
                StageOrchestrator(given_)
        return
    found = order(*stages)
    assert sorted(found) == sorted(stage.name for stage in stages)
    assert [pair for pair in wanted if found.index(pair[0]) > found.index(pair[1])] == []
    assert order(*shuffled) == found


@given(declared())
@settings(deadline=None)
def test_where_nothing_contradicts_them_categories_are_in_order(stages: list[Stage]) -> None:
    rank = {stage.name: (stage.final, stage.category) for stage in stages}
    assume(all(rank[first] <= rank[second] for first, second in edges(stages)))
    assume(not has_circle(set(rank), edges(stages)))
    found = [rank[name] for name in order(*stages)]
    assert found == sorted(found)


@given(st.permutations(NAMES))
@settings(deadline=None)
def test_without_any_constraint_names_are_in_order(names: list[str]) -> None:
    assert order(*(made(name) for name in names)) == sorted(names)


def test_a_plan_for_nothing_is_empty() -> None:
    assert StageOrchestrator([]).stages == ()
    assert StageOrchestrator.for_request(PlanRequest(), app=application()).stages == ()
