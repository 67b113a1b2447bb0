"""What a stage declares is checked when its class is made, and conditions say why they are false."""

from __future__ import annotations

from typing import Any

import pytest

from karenina_core import (
    ArtifactKeys,
    BaseVerificationStage,
    Category,
    Key,
    LLMRubricTrait,
    Rubric,
    Skip,
    Stage,
    StageOrchestrator,
    VerificationStage,
    feature,
)
from karenina_core.errors import ContractError, PlanError
from karenina_core.pipeline.stage import Condition, PlanRequest, always, in_mode, with_traits
from karenina_core.testing import application


def made(**declarations: Any) -> type[Stage]:
    return type("Sample", (Stage,), {"execute": lambda self, context: None, **declarations})


def test_defaults() -> None:
    cls = made()
    assert cls.name == "Sample"
    assert cls.category is Category.ENHANCEMENT
    assert cls.included_when(PlanRequest())
    assert [str(getattr(cls, name)) for name in ("requires", "reads", "produces", "result_fields")] == ["[]"] * 4
    assert BaseVerificationStage is Stage
    assert isinstance(cls(), VerificationStage)


def test_a_subclass_has_a_name_of_its_own() -> None:
    first = type("First", (Stage,), {"name": "Published", "execute": lambda self, context: None})
    assert type("Second", (first,), {}).name == "Second"
    assert type("Third", (first,), {"name": "Published"}).name == "Published"


@pytest.mark.parametrize(
    "attribute", ["requires", "reads", "produces", "result_fields", "revises", "extends", "after", "before", "features"]
)
def test_declarations_are_kept_as_unchangeable_lists(attribute: str) -> None:
    for given in (["judge_channel", "judge_repairs"], ("judge_channel", "judge_repairs")):
        kept = getattr(made(**{attribute: given}), attribute)
        assert kept == ("judge_channel", "judge_repairs")
        assert repr(kept) == "['judge_channel', 'judge_repairs']"
    with pytest.raises(ContractError, match=rf"Sample\.{attribute} is a text; write \('judge_channel',\)"):
        made(**{attribute: "judge_channel"})


def test_what_is_produced_cannot_be_read() -> None:
    key = Key("sample.key", int)
    for attribute in ("requires", "reads"):
        with pytest.raises(ContractError, match=r"Sample both reads and produces 'sample\.key'"):
            made(produces=(key,), **{attribute: (key,)})


def test_the_verdict_can_be_read_by_a_stage_that_says_it_produces_it() -> None:
    made(produces=(ArtifactKeys.VERIFY_RESULT,), reads=(ArtifactKeys.VERIFY_RESULT,))


def test_result_fields_are_karenina_s_or_carry_the_plugin_s_name() -> None:
    made(result_fields=("judge_channel", "evaluation_input", "few_shot_example_count", "sample.anything"))
    with pytest.raises(ContractError, match=r"results have no field 'anything'; call it 'yourplugin.anything'"):
        made(result_fields=("anything",))


def test_a_should_run_that_would_never_be_awaited_is_refused() -> None:
    async def should_run(self: Any, context: Any) -> bool:
        return False

    with pytest.raises(ContractError, match=r"Sample\.should_run.*plain"):
        made(should_run=should_run)


def test_a_stage_without_work_says_so() -> None:
    with pytest.raises(NotImplementedError, match="Sample needs an execute method"):
        type("Sample", (Stage,), dict[str, Any]())().execute(None)  # type: ignore[attr-defined]


def test_a_skip_is_false_and_carries_its_reason() -> None:
    assert not Skip("because")
    assert Skip("because").reason == "because"


# Conditions

RUBRIC = Rubric(llm_traits=[LLMRubricTrait(name="t", kind="boolean")])
TEMPLATE = PlanRequest(mode="template_only", features=["abstention"])
RUBRICS = PlanRequest(mode="rubric_only", rubric=RUBRIC)


def test_conditions_and_their_words() -> None:
    assert feature("abstention")(TEMPLATE)
    assert not feature("abstention")(RUBRICS)
    assert feature("abstention").explain(RUBRICS) == "feature abstention is off (--with abstention)"
    assert in_mode("rubric_only")(RUBRICS)
    assert in_mode("template_only", "template_and_rubric").explain(RUBRICS) == (
        "only in template_only and template_and_rubric"
    )
    assert with_traits("llm")(RUBRICS)
    assert not with_traits("agentic")(RUBRICS)
    assert not with_traits("llm")(PlanRequest(mode="template_only", rubric=RUBRIC))
    assert "agentic" in with_traits("agentic").explain(RUBRICS)


def test_combined_conditions_explain_the_part_that_fails() -> None:
    both = in_mode("template_only") & feature("sufficiency")
    assert not both(TEMPLATE)
    assert both.explain(TEMPLATE) == "feature sufficiency is off (--with sufficiency)"
    assert both.explain(RUBRICS) == "only in template_only"
    assert both.features == {"sufficiency"}
    three = both & with_traits("llm")
    assert three.explain(PlanRequest(mode="template_only", features=["sufficiency"])).startswith("the mode evaluates")


def test_either_and_neither() -> None:
    either = feature("a") | feature("b")
    assert either(PlanRequest(features=["b"]))
    assert not either(PlanRequest())
    assert either.features == {"a", "b"}
    without = ~feature("a")
    assert without(PlanRequest())
    assert without.explain(PlanRequest(features=["a"])) == "feature a is on"
    assert without.features == frozenset(), "to be left out by a feature is not to serve it"


def test_features_of_conditions_are_served() -> None:
    cls = made(included_when=in_mode("template_only") & feature("sample"), features=("more",))
    assert cls.features == ("more", "sample")
    orchestrator = StageOrchestrator.from_config(features=["sample", "more"], app=application(cls))
    assert [stage.name for stage in orchestrator.stages] == ["Sample"]


def test_a_plain_function_is_a_condition_too() -> None:
    for test in (lambda request: request.mode == "rubric_only", staticmethod(lambda request: "x" in request.features)):
        cls = made(included_when=test)
        assert isinstance(cls.included_when, Condition)
        assert not cls.included_when(PlanRequest())
        inherited = type("Child", (cls,), {})
        assert not inherited.included_when(PlanRequest())
    assert always(PlanRequest())


def test_a_condition_that_raises_stops_the_plan_with_the_stage_s_name() -> None:
    cls = made(included_when=lambda request: request.weather)
    with pytest.raises(PlanError, match="included_when of stage Sample failed: AttributeError"):
        StageOrchestrator.from_config(app=application(cls))


def test_an_unknown_mode_is_refused() -> None:
    with pytest.raises(ValueError, match="must be one of template_only, template_and_rubric, rubric_only, not 'all'"):
        StageOrchestrator.from_config("all", app=application())  # type: ignore[arg-type]


def test_explain_names_every_stage_with_its_plugin_and_reason() -> None:
    inside = type("Inside", (Stage,), {"included_when": feature("sample"), "execute": lambda self, context: None})
    outside = type(
        "Outside", (Stage,), {"included_when": in_mode("rubric_only"), "execute": lambda self, context: None}
    )
    plain = type("Plain", (Stage,), {"execute": lambda self, context: None})
    orchestrator = StageOrchestrator.from_config(features=["sample"], app=application(inside, outside, plain))
    assert [str(row) for row in orchestrator.explain()] == [
        "in  Inside (Inside): feature sample is on",
        "in  Plain (Plain): always, in this mode",
        "out Outside (Outside): only in rubric_only",
    ]
    described = orchestrator.describe()
    assert described["mode"] == "template_only"
    assert described["features"] == ["sample"]
    assert described["left_out"] == [{"name": "Outside", "reason": "only in rubric_only"}]
    assert [row["plugin"] for row in described["stages"]] == ["Inside", "Plain"]


def test_a_feature_that_no_stage_serves_is_refused_with_a_suggestion() -> None:
    cls = made(included_when=feature("abstention"))
    with pytest.raises(PlanError, match=r"'abstension' \(did you mean 'abstention'\?\); available: abstention"):
        StageOrchestrator.from_config(features=["abstension"], app=application(cls))
