"""What is wrong with a class of a plugin is said when it is registered: one sentence with file, line and mend."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from karenina_vocabulary.evaluators import TraitEvaluator
from karenina_vocabulary.traits import RegexRubricTrait

from karenina_core import Karenina, Stage

HERE = "test_faults_at_registration.py:"


def nothing(self: Any, context: Any) -> None:
    """A stage that does nothing."""


def stage(**body: Any) -> type[Stage]:
    return type("Reading", (Stage,), body)


class WithoutWork(Stage):
    pass


class TooFew(Stage):
    def execute(self) -> None:  # type: ignore[override]  # that is the fault
        pass


class Questions(Stage):
    execute = nothing

    def should_run(self) -> bool:  # type: ignore[override]  # or that
        return True


@pytest.mark.parametrize(
    ("cls", "said"),
    [
        (WithoutWork, "WithoutWork needs a method execute; write `def execute(self, context)`"),
        (TooFew, "TooFew.execute cannot be called with (context); write `def execute(self, context)`"),
        (Questions, "Questions.should_run cannot be called with (context)"),
        (stage(execute=3), "Reading needs a method execute"),
        (stage(exectue=nothing), "Reading.exectue has no effect (did you mean 'execute'?); rename it"),
        (stage(execute=nothing, require=("a",)), "Reading.require has no effect (did you mean 'requires'?); rename it"),
        (stage(execute=nothing, produce=("a",)), "Reading.produce has no effect (did you mean 'produces'?)"),
        (stage(execute=nothing, result_field=("a.b",)), "has no effect (did you mean 'result_fields'?)"),
        (stage(execute=nothing, catgory=30), "has no effect (did you mean 'category'?)"),
        (stage(execute=nothing, include_when=lambda request: True), "has no effect (did you mean 'included_when'?)"),
        (stage(execute=nothing, shouldrun=lambda self, context: True), "has no effect (did you mean 'should_run'?)"),
    ],
)
def test_a_stage_with_a_fault_is_refused(cls: type[Stage], said: str, module: Callable[..., Any]) -> None:
    app = Karenina({"faulty": module(karenina_register_stages=lambda registry: registry.add(cls))})
    info = app.plugin("faulty")
    assert info.state == "failed"
    assert said in info.reason
    if cls in (WithoutWork, TooFew, Questions):
        assert info.reason.startswith(HERE) or f"/{HERE}" in info.reason
    assert list(app.stages) == []


@pytest.mark.parametrize(
    "body",
    [
        {"helper": 3, "read": nothing, "produce": nothing, "_require": ()},
        {"requires": ("x",), "require": "the name of something else"},
        {"execute": staticmethod(lambda context: None)},
        {"execute": classmethod(lambda cls, context, more=1: None)},
        {"execute": lambda self, *given, **named: None},
    ],
)
def test_a_stage_with_names_of_its_own_is_none_of_these(body: dict[str, Any], module: Callable[..., Any]) -> None:
    cls = stage(**{"execute": nothing, **body})
    app = Karenina({"fine": module(karenina_register_stages=lambda registry: registry.add(cls))})
    assert app.plugin("fine").reason == ""


class Faulty(TraitEvaluator[RegexRubricTrait]):
    name = "regex"
    trait_class = RegexRubricTrait

    def check_config(self) -> Any:  # type: ignore[override]  # that is the fault
        return ()


def test_a_trait_evaluator_with_a_fault_is_refused(module: Callable[..., Any]) -> None:
    app = Karenina({"faulty": module(karenina_register_traits=lambda registry: registry.add(Faulty))})
    said = app.plugin("faulty").reason
    assert "Faulty.check_config cannot be called with (traits, config, app)" in said
    assert HERE in said
