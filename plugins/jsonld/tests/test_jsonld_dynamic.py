"""Dynamic rubrics in benchmark files: traits that count where an answer speaks of what they are about."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import karenina_jsonld
import pytest
from attrs import evolve
from karenina_vocabulary.traits import (
    AgenticRubricTrait,
    CallableRubricTrait,
    LLMRubricTrait,
    MetricRubricTrait,
    RegexRubricTrait,
)

from karenina_core import Karenina
from karenina_core.errors import BenchmarkError
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.question import Question
from karenina_core.values.rubric import DynamicRubric, Rubric, RubricTrait

DATA = Path(__file__).parent / "data"
APP = Karenina({"jsonld": karenina_jsonld})
TARGET = Path("dynamic.jsonld")
SUMMARY = "side effects"
TRAITS: dict[str, RubricTrait] = {
    "llm": LLMRubricTrait(name="Balanced", kind="score", min_score=0, max_score=1, summary=SUMMARY),
    "regex": RegexRubricTrait(name="Cites", pattern=r"\[\d+\]", description="citations"),
    "callable": CallableRubricTrait(name="Short", kind="boolean", callable_code=b"x", summary=SUMMARY),
    "metric": MetricRubricTrait(name="Facts", metrics=["f1"], tp_instructions=["nausea"], summary=SUMMARY),
    "agentic": AgenticRubricTrait(
        name="Files", kind="literal", classes={"poor": None, "fair": "ok", "good": None}, description="files"
    ),
}


def load(root: Any) -> BenchmarkData:
    data = root if isinstance(root, bytes) else json.dumps(root).encode()
    benchmark = karenina_jsonld.karenina_load_benchmark(TARGET, data, APP)
    assert benchmark is not None
    return benchmark


def save(benchmark: BenchmarkData) -> bytes:
    data = karenina_jsonld.karenina_save_benchmark(benchmark, TARGET, APP)
    assert data is not None
    return data


def prop(name: str, value: Any) -> dict[str, Any]:
    return {"@type": "PropertyValue", "name": name, "value": value}


def rating(*properties: dict[str, Any], scope: str = "Global", **fields: Any) -> dict[str, Any]:
    return {
        "@type": "Rating",
        "name": "Balanced",
        "bestRating": 1,
        "worstRating": 0,
        "additionalType": f"karenina:{scope}DynamicRubricTrait",
        "additionalProperty": list(properties),
        **fields,
    }


def feed(*ratings: dict[str, Any], own: list[dict[str, Any]] | None = None) -> dict[str, Any]:
    item = {
        "@type": "Question",
        "text": "What does it do?",
        "acceptedAnswer": {"@type": "Answer", "text": "Nothing"},
        "hasPart": {"@type": "SoftwareSourceCode", "text": "class Answer: ..."},
        "rating": own or [],
    }
    items = [{"@type": "DataFeedItem", "@id": "q1", "item": item}]
    return {"@type": "DataFeed", "name": "Drugs", "rating": list(ratings), "dataFeedElement": items}


# Reading


def test_dynamic_traits_are_read_for_all_questions_and_for_one() -> None:
    benchmark = load((DATA / "traits.jsonld").read_bytes())
    own = benchmark.questions[0].question_dynamic_rubric
    assert benchmark.dynamic_rubric is not None
    assert own is not None
    (everywhere,), (here,) = benchmark.dynamic_rubric.llm_traits, own.llm_traits
    assert (everywhere.name, everywhere.summary, everywhere.deep_judgment_enabled) == (
        "Global sometimes",
        "when it applies",
        True,
    )
    assert (here.name, here.summary, here.kind) == ("QuestionSpecific sometimes", "x", "boolean")
    assert "Global sometimes" not in (benchmark.rubric or Rubric()).names()


@pytest.mark.parametrize("kind", TRAITS)
def test_every_type_is_written_and_read_in_both_places(kind: str) -> None:
    rubric = DynamicRubric.from_traits([TRAITS[kind]])
    question = Question(question="q?", question_dynamic_rubric=rubric)
    data = save(BenchmarkData(name="b", dynamic_rubric=rubric, questions=[question]))
    again = load(data)
    assert (again.dynamic_rubric, again.rubric) == (rubric, None)
    assert (again.questions[0].question_dynamic_rubric, again.questions[0].question_rubric) == (rubric, None)
    assert not again.warnings
    root = json.loads(data)
    own = root["dataFeedElement"][0]["item"]["rating"]
    assert [r["additionalType"] for r in (*root["rating"], *own)] == [
        "karenina:GlobalDynamicRubricTrait",
        "karenina:QuestionSpecificDynamicRubricTrait",
    ]
    assert prop("dynamic_trait_type", kind) in own[0]["additionalProperty"]


def test_a_score_from_0_to_1_does_not_turn_into_true_or_false() -> None:
    trait = TRAITS["llm"]
    again = load(save(BenchmarkData(name="b", rubric=Rubric.from_traits([trait]))))
    assert again.rubric == Rubric.from_traits([trait])
    found = load(feed(rating(prop("kind", "score"), prop("summary", "s")))).dynamic_rubric
    assert found is not None
    assert [(t.kind, t.min_score, t.max_score) for t in found.llm_traits] == [("score", 0, 1)]


def test_without_a_type_a_judge_assesses_it() -> None:
    found = load(feed(rating(description="Is it balanced?"))).dynamic_rubric
    assert found is not None
    assert [(t.type_name, t.name, t.description) for t in found] == [("llm", "Balanced", "Is it balanced?")]


def test_an_unknown_type_is_kept_and_reported() -> None:
    root = feed(rating(prop("dynamic_trait_type", "quantum"), prop("summary", "s"), prop("spin", [0.5])))
    benchmark = load(root)
    assert benchmark.dynamic_rubric is None
    (warning,) = benchmark.warnings
    for part in ("(trait 'Balanced')", "dynamic_trait_type 'quantum' is unknown", "kept", "llm, regex", "install"):
        assert part in warning
    assert json.loads(save(benchmark))["rating"] == root["rating"]
    changed = evolve(benchmark, rubric=Rubric.from_traits([TRAITS["regex"]]), dynamic_rubric=None)
    assert json.loads(save(changed))["rating"][:-1] == root["rating"]


@pytest.mark.parametrize("properties", [(), (prop("summary", "  "),)])
def test_a_dynamic_trait_that_does_not_say_what_it_is_about_is_a_problem(properties: Any) -> None:
    with pytest.raises(BenchmarkError) as caught:
        load(feed(rating(*properties), own=[rating(*properties, scope="QuestionSpecific", description="")]))
    text = str(caught.value)
    for part in ("2 problems", "the benchmark.rating[0] (trait 'Balanced')", "(q1)", "add a property summary"):
        assert part in text


@pytest.mark.parametrize("value", [7, ["llm"], {"type": "llm"}])
def test_a_type_that_is_no_text_is_a_problem(value: Any) -> None:
    with pytest.raises(BenchmarkError, match="dynamic_trait_type must be a text"):
        load(feed(rating(prop("dynamic_trait_type", value), prop("summary", "s"))))


def test_a_trait_of_the_other_scope_is_reported() -> None:
    summary = prop("summary", "s")
    benchmark = load(feed(own=[rating(summary)]))
    assert benchmark.questions[0].question_dynamic_rubric is None
    assert "write QuestionSpecificDynamicRubricTrait to use it" in benchmark.warnings[0]
    with pytest.raises(BenchmarkError, match="write GlobalDynamicRubricTrait"):
        load(feed(rating(summary, scope="QuestionSpecific")))


def test_a_name_that_occurs_twice_among_dynamic_traits_is_a_problem() -> None:
    with pytest.raises(BenchmarkError, match="more than once: Balanced"):
        load(feed(rating(prop("summary", "a")), rating(prop("summary", "b"))))


# Writing


def test_a_summary_is_written_once() -> None:
    data = save(BenchmarkData(name="b", dynamic_rubric=DynamicRubric.from_traits(TRAITS.values())))
    for written in json.loads(data)["rating"]:
        names = [entry["name"] for entry in written["additionalProperty"]]
        assert len(set(names)) == len(names)
        assert names[-1] == "dynamic_trait_type"


def test_another_rubric_leaves_the_dynamic_one_alone() -> None:
    """And the other way round: the two share one list of ratings."""
    before = (DATA / "traits.jsonld").read_bytes()
    old = {r["name"]: r for r in json.loads(before)["rating"]}
    benchmark = load(before)
    static = Rubric.from_traits([TRAITS["regex"]])
    left = json.loads(save(evolve(benchmark, rubric=static)))["rating"]
    assert [r["name"] for r in left] == ["Global sometimes", "Global unheard", "Cites"]
    assert left[0] == old["Global sometimes"]
    left = json.loads(save(evolve(benchmark, dynamic_rubric=None)))["rating"]
    assert left == [r for name, r in old.items() if name != "Global sometimes"]


def test_a_changed_trait_keeps_what_karenina_does_not_know() -> None:
    old = rating(prop("colour", "red"), prop("summary", "old"), reviewer="Ada")
    benchmark = load(feed(old, rating(prop("summary", "x"), name="Other")))
    rubric = benchmark.dynamic_rubric
    assert rubric is not None
    first, other = rubric.llm_traits
    changed = evolve(rubric, llm_traits=[evolve(first, summary="new"), other])
    data = save(evolve(benchmark, dynamic_rubric=changed))
    assert load(data).dynamic_rubric == changed
    new, same = json.loads(data)["rating"]
    assert (new["reviewer"], new["additionalType"]) == ("Ada", old["additionalType"])
    assert new["additionalProperty"][:2] == [prop("colour", "red"), prop("summary", "new")]
    assert prop("dynamic_trait_type", "llm") in new["additionalProperty"]
    assert same == rating(prop("summary", "x"), name="Other")


def test_the_order_of_dynamic_traits_is_the_rubrics() -> None:
    benchmark = load(feed(*(rating(prop("summary", "s"), name=name) for name in "abc")))
    rubric = benchmark.dynamic_rubric
    assert rubric is not None
    turned = DynamicRubric.from_traits([*reversed(rubric.llm_traits), TRAITS["llm"], TRAITS["regex"]])
    assert load(save(evolve(benchmark, dynamic_rubric=turned))).dynamic_rubric == turned


def test_one_name_in_both_rubrics_is_two_traits() -> None:
    """A run refuses it and says which; a file may hold it until then."""
    static, dynamic = Rubric.from_traits([TRAITS["llm"]]), DynamicRubric.from_traits([TRAITS["llm"]])
    benchmark = load(save(BenchmarkData(name="b", rubric=static, dynamic_rubric=dynamic)))
    assert (benchmark.rubric, benchmark.dynamic_rubric) == (static, dynamic)
    less = load(save(evolve(benchmark, rubric=None)))
    assert (less.rubric, less.dynamic_rubric) == (None, dynamic)
    assert len(json.loads(save(less))["rating"]) == 1
