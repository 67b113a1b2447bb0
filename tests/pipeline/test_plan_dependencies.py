"""What is wrong with a plan is reported before anything runs, with the plugins that are not there."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest

from karenina_core import (
    AgenticRubricTrait,
    ArtifactKeys,
    Category,
    Karenina,
    Key,
    LLMRubricTrait,
    Rubric,
    Stage,
    StageOrchestrator,
    feature,
    hookimpl,
)
from karenina_core.errors import PlanError
from karenina_core.plugin.discovery import PluginInfo

Make = Callable[..., Any]
KEY = Key("sample.key", int)
RUBRIC = Rubric(llm_traits=[LLMRubricTrait(name="t", kind="boolean")])
AGENTIC = Rubric(agentic_traits=[AgenticRubricTrait(name="a", description="d", kind="boolean")])


def problems(app: Karenina, *arguments: Any, **more: Any) -> list[str]:
    return StageOrchestrator.from_config(*arguments, **more, app=app).validate_dependencies()


def without(built_in: dict[str, Any], name: str, **info: Any) -> Karenina:
    """The built-in application less one plugin, which is listed as not active."""
    rest = {other: plugin for other, plugin in built_in.items() if other != name}
    assert len(rest) == len(built_in) - 1
    return Karenina(rest, infos=[PluginInfo(name=name, **info)])


def test_the_built_in_stages_are_complete(built_in_app: Karenina) -> None:
    assert problems(built_in_app) == []


@pytest.mark.parametrize(
    ("missing", "expected"),
    [
        (
            "validate-template",
            "ParseTemplate (plugin parse-template) requires 'RawAnswer', which no earlier stage produces",
        ),
        ("generate-answer", "no stage produces 'raw_llm_response': there would be no answer"),
        (
            "parse-template",
            "VerifyTemplate (plugin verify-template) requires 'parsed_answer', which no earlier stage produces",
        ),
        ("verify-template", "no stage produces 'verify_result': the mode template_only verifies templates"),
        ("finalize-result", "no stage produces 'final_result': there would be no result"),
    ],
)
def test_a_missing_piece_is_named_with_the_plugin_that_is_not_there(
    built_in: dict[str, Any], missing: str, expected: str
) -> None:
    app = without(built_in, missing, state="failed", reason="cannot be imported: SyntaxError")
    found = problems(app)
    assert expected in "\n".join(found)
    assert found[-1].endswith(f". Plugins that are not active: {missing} (failed: cannot be imported: SyntaxError).")


@pytest.mark.parametrize("guard", ["recursion-limit-auto-fail", "trace-validation-auto-fail"])
def test_no_stage_needs_a_guard(built_in: dict[str, Any], guard: str) -> None:
    assert problems(without(built_in, guard, state="blocked", reason="by configuration")) == []


def test_a_rubric_needs_stages_that_score_it(built_in: dict[str, Any]) -> None:
    app = without(built_in, "rubric-evaluation", state="blocked", reason="by configuration")
    assert "no stage scores traits of the type" in problems(app, "template_and_rubric", RUBRIC)[0]
    without_agents = without(built_in, "agentic-rubric-evaluation", state="blocked", reason="by configuration")
    assert "no stage scores traits of the type agentic" in problems(without_agents, "template_and_rubric", AGENTIC)[0]
    assert problems(app, "template_and_rubric", AGENTIC) == []
    assert "--mode template_only" in problems(app, "rubric_only", RUBRIC)[0]
    assert problems(app, "template_only", RUBRIC) == []


def test_agentic_traits_alone_need_no_classical_evaluation(built_in_app: Karenina) -> None:
    assert problems(built_in_app, "rubric_only", AGENTIC) == []


def test_only_rubrics_need_a_rubric(built_in_app: Karenina) -> None:
    for rubric in (None, Rubric()):
        assert "needs a rubric with traits" in problems(built_in_app, "rubric_only", rubric)[0]


def test_all_problems_at_once() -> None:
    needs = type(
        "Needs", (Stage,), {"requires": (KEY, ArtifactKeys.PARSED_ANSWER), "execute": lambda self, context: None}
    )
    found = StageOrchestrator([needs()]).validate_dependencies()
    assert found == [
        "Needs requires 'sample.key', which no earlier stage produces",
        "Needs requires 'parsed_answer', which no earlier stage produces",
    ]


def test_what_is_made_later_does_not_count() -> None:
    """`before` can force an order that data forbids; then there is a circle, never a wrong order."""
    needs = type("Needs", (Stage,), {"requires": (KEY,), "before": ("Maker",), "execute": lambda self, context: None})
    maker = type("Maker", (Stage,), {"produces": (KEY,), "execute": lambda self, context: None})
    with pytest.raises(PlanError, match="wait for each other"):
        StageOrchestrator([needs(), maker()])


def test_a_maker_that_is_left_out_of_this_plan_is_missed(built_in: dict[str, Any]) -> None:
    maker = type(
        "Maker",
        (Stage,),
        {"produces": (KEY,), "included_when": feature("sample"), "execute": lambda self, context: None},
    )
    needs = type(
        "Needs", (Stage,), {"requires": (KEY,), "category": Category.RUBRIC, "execute": lambda self, context: None}
    )
    plugin = ModuleType("both")

    def register(registry: Any) -> None:
        registry.add(maker)
        registry.add(needs)

    plugin.karenina_register_stages = hookimpl(register)  # type: ignore[attr-defined]
    app = Karenina({**built_in, "both": plugin})
    assert problems(app) == ["Needs (plugin both) requires 'sample.key', which no earlier stage produces"]
    assert problems(app, features=["sample"]) == []


def test_a_feature_of_a_failed_plugin_says_which_one() -> None:
    app = Karenina({}, infos=[PluginInfo(name="abstention-check", state="failed", reason="needs the package 'x'")])
    with pytest.raises(PlanError, match=r"abstention-check \(failed: needs the package 'x'\)"):
        StageOrchestrator.from_config(abstention_enabled=True, app=app)
