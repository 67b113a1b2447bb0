"""Models that a file describes keep their mark, and the mark changes nothing else."""

from __future__ import annotations

import copy
import pickle
from typing import Any

import pytest
from attrs import evolve, frozen
from hypothesis import given
from karenina_calls.models.untrusted_models import ForeignModelConfig, as_foreign, plain_model, replaced_models
from karenina_testing.strategies import model_configs

from karenina_core import AgenticRubricTrait, ModelConfig, Question, Rubric
from karenina_core.values.convert import structure, unstructure

MODEL = ModelConfig(model_name="m", interface="i", api_key_env="KEY", id="mine", endpoint_api_key="sk-secret")


@given(model_configs())
def test_a_marked_model_equals_the_same_one_without_a_mark(model: ModelConfig) -> None:
    marked = as_foreign(model)
    assert isinstance(marked, ForeignModelConfig)
    assert marked == model
    assert model == marked
    assert not marked != model  # noqa: SIM202  # the other operator
    assert marked == as_foreign(model)
    assert type(plain_model(marked)) is ModelConfig
    assert plain_model(marked) == model
    assert unstructure(marked) == unstructure(model)


def test_models_that_differ_are_not_equal() -> None:
    other = evolve(MODEL, api_key_env="OTHER")
    for one, two in ((as_foreign(MODEL), other), (other, as_foreign(MODEL)), (as_foreign(MODEL), as_foreign(other))):
        assert one != two
    assert as_foreign(MODEL) != "m"


@pytest.mark.parametrize(
    "kept",
    [
        copy.copy,
        copy.deepcopy,
        lambda model: pickle.loads(pickle.dumps(model)),
        lambda model: evolve(model, temperature=0.9, endpoint_base_url="http://elsewhere"),
        as_foreign,
    ],
    ids=["copy", "deepcopy", "pickle", "evolve", "marked again"],
)
def test_the_mark_stays(kept: Any) -> None:
    assert isinstance(kept(as_foreign(MODEL)), ForeignModelConfig)


def test_no_file_can_say_that_a_model_is_not_foreign() -> None:
    for name in ("foreign", "trusted", "__class__", "code_policy"):
        with pytest.raises(ValueError, match="unknown setting"):
            structure({"model_name": "m", name: False}, ModelConfig)


@frozen
class Holder:
    inner: Any
    calls: Any = 0

    def __attrs_post_init__(self) -> None:
        assert self.calls == 0


class Plain:
    """Not made of fields."""

    def __init__(self) -> None:
        self.model = MODEL


def test_models_are_found_wherever_values_are_kept() -> None:
    trait = AgenticRubricTrait(name="t", kind="boolean", description="d", model_override=MODEL)
    question = Question(id="q", question="?", question_rubric=Rubric.from_traits([trait]))
    deep = Holder({"a": [1, (MODEL, "x")], "b": Holder(None)})
    marked = as_foreign((question, deep))
    assert marked == (question, deep)
    (found,) = marked[0].question_rubric.agentic_traits
    assert isinstance(found.model_override, ForeignModelConfig)
    assert isinstance(marked[1].inner["a"][1][0], ForeignModelConfig)
    assert type(trait.model_override) is ModelConfig, "what was given stays as it is"


def test_what_holds_no_model_is_the_same_object() -> None:
    values = (Question(id="q", question="?", custom_metadata={"a": [1, {"b": (2,)}]}), Holder(Plain()), print, int, {})
    assert as_foreign(values) is values
    assert replaced_models(values, lambda model: model) is values
