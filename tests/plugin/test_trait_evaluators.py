"""What may be registered as an evaluator of traits."""

from __future__ import annotations

from typing import Any, ClassVar

import pytest
from attrs import frozen

from karenina_core import Karenina, RubricTrait, TraitEvaluator, hookimpl
from karenina_core.plugin.kinds import TraitRegistry


@frozen(kw_only=True)
class Tally(RubricTrait):
    type_name: ClassVar[str] = "tally"


@frozen(kw_only=True)
class Typeless(RubricTrait):
    """Its class forgot to say what type it is."""


class TallyEvaluator(TraitEvaluator[Tally]):
    name = "tally"
    trait_class = Tally


class Nameless(TraitEvaluator[Tally]):
    trait_class = Tally


class Classless(TraitEvaluator[Tally]):
    name = "tally"


class OfTypeless(TraitEvaluator[Typeless]):
    name = "tally"
    trait_class = Typeless


@frozen
class Bringing:
    thing: Any
    name: str | None = None

    @hookimpl
    def karenina_register_traits(self, registry: TraitRegistry) -> None:
        registry.add(self.thing, name=self.name)


def test_an_evaluator_is_known_by_its_name_and_made_once() -> None:
    app = Karenina({"tallies": Bringing(TallyEvaluator)})
    assert list(app.traits) == ["tally"]
    assert isinstance(app.trait_evaluator("tally"), TallyEvaluator)
    assert app.trait_evaluator("tally") is app.trait_evaluator("tally")
    assert app.plugin("tallies").kinds == ("trait evaluator",)


def test_an_evaluator_may_be_named_by_where_it_is() -> None:
    app = Karenina({"tallies": Bringing("karenina_vocabulary.evaluators:TraitEvaluator", "later")})
    assert list(app.traits) == ["later"]


@pytest.mark.parametrize(
    ("thing", "missing"),
    [
        (Nameless, "it has no name;"),
        (Classless, "it has no trait_class;"),
        (type("Odd", (), {"name": "odd"}), "it has no trait_class, evaluate, check_config;"),
        (Tally, "needs a name"),
        (lambda trait: True, "is not a valid trait evaluator"),
        (OfTypeless, "sets no type_name; derive it from karenina_core.RubricTrait and set it to 'tally'"),
    ],
)
def test_what_could_not_score_a_trait_fails_its_plugin_alone(thing: Any, missing: str) -> None:
    app = Karenina({"wrong": Bringing(thing), "tallies": Bringing(TallyEvaluator)})
    assert app.plugin("wrong").state == "failed"
    assert missing in app.plugin("wrong").reason
    assert list(app.traits) == ["tally"]
