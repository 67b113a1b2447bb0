"""Traits of types that other packages bring: read, written, and kept where the package is missing."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import karenina_jsonld
import pytest
from attrs import evolve, frozen
from karenina_vocabulary.traits import RegexRubricTrait

from karenina_core import Karenina, TraitEvaluator, hookimpl
from karenina_core.errors import BenchmarkError
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.question import Question
from karenina_core.values.rubric import DynamicRubric, Rubric, RubricTrait

TARGET = Path("types.jsonld")


@frozen(kw_only=True)
class Tally(RubricTrait):
    type_name: ClassVar[str] = "tally"
    word: str
    least: int = 1


class TallyEvaluator(TraitEvaluator[Tally]):
    name = "tally"
    trait_class = Tally
    file_type = "TallyTrait"


@frozen
class Bringing:
    """A plugin that registers what it is given."""

    things: tuple[Any, ...]
    names: tuple[str | None, ...] = ()

    @hookimpl
    def karenina_register_traits(self, registry: Any) -> None:
        for thing, name in zip(self.things, self.names or [None] * len(self.things), strict=True):
            registry.add(thing, name=name)


def application(**plugins: Any) -> Karenina:
    return Karenina({"jsonld": karenina_jsonld, **plugins})


WITHOUT = application()
WITH = application(tallies=Bringing((TallyEvaluator,)))


def load(root: Any, app: Karenina) -> BenchmarkData:
    data = root if isinstance(root, bytes) else json.dumps(root, indent=1).encode()
    benchmark = karenina_jsonld.karenina_load_benchmark(TARGET, data, app)
    assert benchmark is not None
    return benchmark


def save(benchmark: BenchmarkData, app: Karenina) -> bytes:
    data = karenina_jsonld.karenina_save_benchmark(benchmark, TARGET, app)
    assert data is not None
    return data


def undated(data: bytes) -> bytes:
    """Every byte but those of the date, the only thing that saving changes."""
    return data.replace(json.dumps(json.loads(data)["dateModified"]).encode(), b'""')


def prop(name: str, *value: Any) -> dict[str, Any]:
    return {"@type": "PropertyValue", "name": name, **({"value": value[0]} if value else {})}


def rating(*properties: dict[str, Any], kind: str = "GlobalTallyTrait", **fields: Any) -> dict[str, Any]:
    node = {"@type": "Rating", "name": "Hedges", "description": "Counts maybe", "additionalType": f"karenina:{kind}"}
    return {**node, "additionalProperty": list(properties or [prop("word", "maybe")]), **fields}


def feed(*ratings: dict[str, Any]) -> dict[str, Any]:
    return {
        "@context": "https://schema.org/",
        "@type": "DataFeed",
        "name": "Words",
        "dateModified": "2024",
        "rating": list(ratings),
        "dataFeedElement": [],
    }


HEDGES = Tally(name="Hedges", description="Counts maybe", word="maybe")
RUBRIC = Rubric.from_traits([HEDGES])
BENCHMARK = BenchmarkData(name="b", rubric=RUBRIC)


# With the package


def test_a_registered_type_is_read_everywhere() -> None:
    root = feed(
        rating(), rating(prop("dynamic_trait_type", "tally"), prop("word", "w"), kind="GlobalDynamicRubricTrait")
    )
    benchmark = load(root, WITH)
    assert (benchmark.rubric, benchmark.warnings) == (RUBRIC, ())
    assert benchmark.dynamic_rubric == DynamicRubric.from_traits([evolve(HEDGES, word="w")])


def test_all_four_places_are_written_and_read_again() -> None:
    dynamic = DynamicRubric.from_traits([evolve(HEDGES, name="Sometimes", summary="doubt", least=0)])
    question = Question(question="q?", question_rubric=RUBRIC, question_dynamic_rubric=dynamic)
    benchmark = BenchmarkData(name="b", rubric=RUBRIC, dynamic_rubric=dynamic, questions=[question])
    data = save(benchmark, WITH)
    again = load(data, WITH)
    (own,) = again.questions
    assert (again.rubric, again.dynamic_rubric) == (RUBRIC, dynamic)
    assert (own.question_rubric, own.question_dynamic_rubric) == (RUBRIC, dynamic)
    ratings = json.loads(data)["dataFeedElement"][0]["item"]["rating"]
    assert ratings[0] == {
        "@type": "Rating",
        "name": "Hedges",
        "description": "Counts maybe",
        "bestRating": 1.0,
        "worstRating": 0.0,
        "additionalType": "karenina:QuestionSpecificTallyTrait",
        "additionalProperty": [prop("word", "maybe"), prop("least", 1)],
    }
    assert ratings[1]["additionalType"] == "karenina:QuestionSpecificDynamicRubricTrait"
    assert ratings[1]["additionalProperty"][-1] == prop("dynamic_trait_type", "tally")


def test_the_ends_of_a_rating_are_those_that_the_evaluator_writes() -> None:
    class Scored(TallyEvaluator):
        def encode(self, trait: Tally) -> Mapping[str, Any]:
            return {**super().encode(trait), "min_score": 0, "max_score": 7}

        def decode(self, data: Mapping[str, Any]) -> Tally:
            return super().decode({k: v for k, v in data.items() if not k.endswith("_score")})

    written = json.loads(save(BENCHMARK, application(scored=Bringing((Scored,)))))["rating"][0]
    assert (written["worstRating"], written["bestRating"]) == (0.0, 7.0)


def test_unknown_properties_are_kept_and_reported() -> None:
    root = feed(rating(prop("word", "maybe"), prop("colour", "red"), reviewer="Ada"))
    benchmark = load(root, WITH)
    assert benchmark.rubric == RUBRIC
    assert "kept but not used: colour" in benchmark.warnings[0]
    changed = evolve(benchmark, rubric=Rubric.from_traits([evolve(HEDGES, word="perhaps")]))
    (node,) = json.loads(save(changed, WITH))["rating"]
    assert (node["reviewer"], node["additionalProperty"][:2]) == (
        "Ada",
        [prop("word", "perhaps"), prop("colour", "red")],
    )


def test_a_rating_that_the_evaluator_cannot_read_is_a_problem() -> None:
    with pytest.raises(BenchmarkError) as caught:
        load(feed(rating(prop("word", 7), prop("least", "many"))), WITH)
    for part in ("rating[0] (trait 'Hedges')", "word", "least", "expected a whole number"):
        assert part in str(caught.value)


def test_an_evaluator_that_crashes_is_named() -> None:
    class Crashing(TallyEvaluator):
        def decode(self, data: Mapping[str, Any]) -> Tally:
            return Tally(name=data["name"], word=data["the word"])

        def encode(self, trait: Tally) -> Mapping[str, Any]:
            raise AttributeError("no such thing")

    app = application(tallies=Bringing((Crashing,)))
    with pytest.raises(BenchmarkError, match=r"(?s)trait 'Hedges'.*plugin 'tallies' failed to read it: KeyError"):
        load(feed(rating()), app)
    with pytest.raises(BenchmarkError, match="plugin 'tallies' failed to write it: AttributeError"):
        save(BENCHMARK, app)


@pytest.mark.parametrize("made", [None, RegexRubricTrait(name="Other", pattern="x")])
def test_what_is_no_trait_of_the_name_is_refused(made: Any) -> None:
    class Careless(TallyEvaluator):
        def decode(self, data: Mapping[str, Any]) -> Tally:
            result: Tally = made
            return result

    with pytest.raises(BenchmarkError, match="plugin 'tallies' reads it as"):
        load(feed(rating()), application(tallies=Bringing((Careless,))))


def test_what_would_not_be_read_back_is_not_written() -> None:
    class Forgetful(TallyEvaluator):
        def encode(self, trait: Tally) -> Mapping[str, Any]:
            return {"word": trait.word}

    app = application(tallies=Bringing((Forgetful,)))
    assert load(save(BENCHMARK, app), app).rubric == RUBRIC
    with pytest.raises(BenchmarkError, match="plugin 'tallies' does not read back what it writes"):
        save(evolve(BENCHMARK, rubric=Rubric.from_traits([evolve(HEDGES, least=2)])), app)


# Without it


@pytest.mark.parametrize("kind", ["GlobalTallyTrait", "GlobalDynamicRubricTrait"])
def test_without_the_package_a_rating_is_kept_and_reported(kind: str) -> None:
    root = feed(rating(prop("word", "maybe"), prop("dynamic_trait_type", "tally"), kind=kind))
    data = json.dumps(root, indent=3).encode()
    benchmark = load(data, WITHOUT)
    assert (benchmark.rubric, benchmark.dynamic_rubric) == (None, None)
    (warning,) = benchmark.warnings
    for part in ("(trait 'Hedges')", "TallyTrait' is unknown" if "Tally" in kind else "'tally' is unknown", "install"):
        assert part in warning
    missing = [(trait.name, trait.question_id, trait.reason) for trait in benchmark.missing_traits]
    assert missing == ([("Hedges", None, warning)] if "Tally" in kind else []), "dynamic ones may be left out"
    assert undated(save(benchmark, WITHOUT)) == undated(data)


def test_saving_where_the_package_is_installed_does_not_lose_what_was_not_read() -> None:
    data = json.dumps(feed(rating())).encode()
    benchmark = load(data, WITHOUT)
    again = save(benchmark, WITH)
    assert undated(again) == undated(data)
    with_more = evolve(benchmark, rubric=Rubric.from_traits([RegexRubricTrait(name="r", pattern="x")]))
    assert [r["name"] for r in json.loads(save(with_more, WITH))["rating"]] == ["Hedges", "r"]


@pytest.mark.parametrize("benchmark", [BENCHMARK, load(feed(rating()), WITH)], ids=["new", "loaded"])
def test_writing_without_the_package_says_what_to_install(benchmark: BenchmarkData) -> None:
    with pytest.raises(BenchmarkError) as caught:
        save(benchmark, WITHOUT)
    for part in ("'Hedges'", "'tally'", "Tally", "install the package"):
        assert part in str(caught.value)
    question = Question(id="q1", question="q?", question_dynamic_rubric=DynamicRubric.from_traits([HEDGES]))
    with pytest.raises(BenchmarkError, match=r"'q1'.*'Hedges'"):
        save(BenchmarkData(name="b", questions=[question]), WITHOUT)


def test_an_evaluator_that_cannot_be_loaded_is_named_with_its_plugin() -> None:
    class Sick(TallyEvaluator):
        def __init__(self) -> None:
            raise OSError("no licence file")

    for app, why in (
        (application(tallies=Bringing(("no_such_tallies:Tally",), ("tally",))), "'no_such_tallies' is not installed"),
        (application(tallies=Bringing((Sick,))), "no licence file"),
        (application(tallies=Bringing(("json:JSONDecoder",), ("tally",))), "is not a valid trait evaluator"),
    ):
        (warning,) = load(feed(rating()), app).warnings
        for part in ("plugin 'tallies'", "'tally'", why):
            assert part in warning
        with pytest.raises(BenchmarkError, match="plugin 'tallies'"):
            save(BENCHMARK, app)


def test_a_plugin_that_is_blocked_is_named() -> None:
    class Failing:
        @hookimpl
        def karenina_register_traits(self, registry: Any) -> None:
            raise RuntimeError("broken")

    (warning,) = load(feed(rating()), application(tallies=Failing())).warnings
    assert "tallies (failed: " in warning


def test_evaluators_are_loaded_only_for_types_that_are_not_published() -> None:
    app = application(tallies=Bringing(("no_such_tallies:Tally",), ("tally",)))
    known = rating(prop("pattern", "x"), kind="GlobalRegexTrait")
    foreign = rating(kind="x") | {"additionalType": "lab:Odd"}
    warnings = load(feed(known, foreign), app).warnings
    assert len(warnings) == 1
    assert "no_such_tallies" not in warnings[0]


# Types that a file cannot hold


@pytest.mark.parametrize(
    ("suffix", "why"), [("", "it has no file_type"), ("RegexTrait", "is taken"), ("DynamicRubricTrait", "is taken")]
)
def test_a_type_without_a_free_name_is_not_written(suffix: str, why: str) -> None:
    class Nameless(TallyEvaluator):
        file_type = suffix

    app = application(tallies=Bringing((Nameless,)))
    with pytest.raises(BenchmarkError, match=why) as caught:
        save(BENCHMARK, app)
    assert "plugin 'tallies'" in str(caught.value)
    dynamic = BenchmarkData(name="b", dynamic_rubric=DynamicRubric.from_traits([HEDGES]))
    assert load(save(dynamic, app), app).dynamic_rubric == dynamic.dynamic_rubric


def test_two_plugins_that_claim_a_type_are_both_named() -> None:
    @frozen(kw_only=True)
    class Rival(RubricTrait):
        type_name: ClassVar[str] = "rival"

    class RivalEvaluator(TraitEvaluator[Rival]):
        name = "rival"
        trait_class = Rival
        file_type = "TallyTrait"

    app = application(tallies=Bringing((TallyEvaluator,)), rivals=Bringing((RivalEvaluator,)))
    benchmark = load(feed(rating()), app)
    assert benchmark.rubric is None
    assert "'rivals' and 'tallies' both read" in benchmark.warnings[0]
    assert [r["name"] for r in json.loads(save(benchmark, app))["rating"]] == ["Hedges"]
    with pytest.raises(BenchmarkError, match="both read"):
        save(BENCHMARK, app)


def test_a_subclass_of_a_published_type_needs_a_type_of_its_own() -> None:
    @frozen(kw_only=True)
    class Weighted(RegexRubricTrait):
        weight: float = 1.0

    benchmark = BenchmarkData(name="b", rubric=Rubric.from_traits([Weighted(name="w", pattern="x")]))
    with pytest.raises(BenchmarkError, match="another type_name"):
        save(benchmark, WITH)
