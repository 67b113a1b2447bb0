"""Ways to write rubrics into files that look right and lose something: each law holds for the real format and rejects
the variant."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from karenina_testing.strategies import dynamic_rubrics, llm_traits, rubrics
from karenina_vocabulary.record_traits import TemplateKind
from karenina_vocabulary.traits import LLMRubricTrait

from karenina_core.testing import application
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.rubric import DynamicRubric, Rubric

APP = application(installed=["jsonld"])
PATH = Path("naive.jsonld")
Document = dict[str, Any]
Write = Callable[[BenchmarkData], Document]
exhaustive = settings(
    database=None,
    deadline=None,
    derandomize=True,
    max_examples=40,
    phases=[Phase.generate],
    suppress_health_check=list(HealthCheck),
)


def written(benchmark: BenchmarkData) -> Document:
    """What the format writes."""
    document: Document = json.loads(APP.hooks.karenina_save_benchmark(benchmark=benchmark, path=PATH, app=APP))
    return document


def read(document: Document) -> BenchmarkData:
    data = json.dumps(document).encode()
    benchmark: BenchmarkData = APP.hooks.karenina_load_benchmark(path=PATH, data=data, app=APP, options={})
    return benchmark


def of(*traits: LLMRubricTrait) -> BenchmarkData:
    return BenchmarkData(name="b", rubric=Rubric.from_traits(traits))


def every_property(document: Document, change: Callable[[Document, Document], Document | None]) -> Document:
    """The document with each property of each rating replaced, or left out for None."""
    for rating in document.get("rating", []):
        changed = [change(rating, entry) for entry in rating["additionalProperty"]]
        rating["additionalProperty"] = [entry for entry in changed if entry is not None]
    return document


def law_a_trait_comes_back_as_it_was(write: Write, traits: st.SearchStrategy[LLMRubricTrait]) -> None:
    @given(traits)
    @exhaustive
    def law(trait: LLMRubricTrait) -> None:
        assert read(write(of(trait))).rubric == Rubric.from_traits([trait])

    law()


def test_a_trait_comes_back_as_it_was() -> None:
    law_a_trait_comes_back_as_it_was(written, llm_traits())


# The ends of the rating say what kind of score it is: from 0 to 1 is true or false.


def kind_by_the_ends(benchmark: BenchmarkData) -> Document:
    return every_property(written(benchmark), lambda _, entry: None if entry.get("value") == "score" else entry)


SCORES = st.builds(
    lambda low, steps: LLMRubricTrait(name="t", kind="score", min_score=low, max_score=low + steps),
    st.integers(-2, 2),
    st.integers(1, 3),
)


def test_a_score_from_0_to_1_stays_a_score() -> None:
    law_a_trait_comes_back_as_it_was(written, SCORES)


def test_the_law_rejects_a_kind_that_is_inferred() -> None:
    with pytest.raises(AssertionError):
        law_a_trait_comes_back_as_it_was(kind_by_the_ends, SCORES)


# A bound of 0 is falsy, so it looks as if none were set.


def bounds_where_they_are_set(benchmark: BenchmarkData) -> Document:
    document = every_property(
        written(benchmark), lambda _, e: e if e["name"] not in ("min_score", "max_score") or e["value"] else None
    )
    for rating in document["rating"]:
        rating["worstRating"] = rating["worstRating"] or 1.0
    return document


FROM_ZERO = st.integers(2, 9).map(lambda high: LLMRubricTrait(name="t", kind="score", min_score=0, max_score=high))


def test_a_lower_bound_of_0_is_a_bound() -> None:
    law_a_trait_comes_back_as_it_was(written, FROM_ZERO)


def test_the_law_rejects_bounds_that_are_tested_for_truth() -> None:
    with pytest.raises(AssertionError):
        law_a_trait_comes_back_as_it_was(bounds_where_they_are_set, FROM_ZERO)


# Keys that are sorted look tidy, and give every class another score.


def classes_in_alphabetical_order(benchmark: BenchmarkData) -> Document:
    document: Document = json.loads(json.dumps(written(benchmark), sort_keys=True))
    return document


def law_classes_keep_their_order(write: Write) -> None:
    @given(st.permutations(["poor", "fair", "good"]))
    @exhaustive
    def law(names: list[str]) -> None:
        trait = LLMRubricTrait(name="t", kind="literal", classes=dict.fromkeys(names))
        (again,) = (read(write(of(trait))).rubric or Rubric()).llm_traits
        assert [again.get_class_index(name) for name in names] == [0, 1, 2]

    law()


def test_classes_keep_their_order_and_so_their_scores() -> None:
    law_classes_keep_their_order(written)


def test_the_law_rejects_sorted_classes() -> None:
    with pytest.raises(AssertionError):
        law_classes_keep_their_order(classes_in_alphabetical_order)


# A record is rebuilt from the names and types of its fields; what else its schema demands is gone.

BOUNDED = TemplateKind(
    {
        "type": "object",
        "title": "Dose",
        "properties": {"mg": {"type": "integer", "minimum": 0, "maximum": 400}, "unit": {"enum": ["mg", "g"]}},
        "required": ["mg", "unit"],
    }
)


def fields_by_name_and_type(benchmark: BenchmarkData) -> Document:
    def rebuilt(_: Document, entry: Document) -> Document:
        if entry["name"] != "kind" or not isinstance(entry["value"], dict):
            return entry
        schema = entry["value"]["schema"]
        plain = {name: {"type": part.get("type", "string")} for name, part in schema["properties"].items()}
        return {**entry, "value": {"type": "template", "schema": {**schema, "properties": plain}}}

    return every_property(written(benchmark), rebuilt)


def law_a_record_keeps_its_constraints(write: Write) -> None:
    (again,) = (read(write(of(LLMRubricTrait(name="t", kind=BOUNDED)))).rubric or Rubric()).llm_traits
    assert again.kind == BOUNDED


def test_a_record_keeps_what_its_schema_demands() -> None:
    law_a_record_keeps_its_constraints(written)


def test_the_law_rejects_a_schema_that_is_rebuilt() -> None:
    with pytest.raises(AssertionError):
        law_a_record_keeps_its_constraints(fields_by_name_and_type)


# Settings of a run do not belong into a benchmark, so saving leaves those of deep judgment out.


def without_deep_judgment(benchmark: BenchmarkData) -> Document:
    return every_property(
        written(benchmark), lambda _, entry: None if entry["name"].startswith("deep_judgment_") else entry
    )


DEEP = st.builds(
    lambda enabled, most, threshold: LLMRubricTrait(
        name="t",
        kind="boolean",
        deep_judgment_enabled=enabled,
        deep_judgment_max_excerpts=most,
        deep_judgment_fuzzy_match_threshold=threshold,
    ),
    st.booleans(),
    st.none() | st.integers(1, 9),
    st.none() | st.floats(0, 1),
)


def test_saving_keeps_what_a_trait_says_about_deep_judgment() -> None:
    law_a_trait_comes_back_as_it_was(written, DEEP)


def test_the_law_rejects_a_save_that_strips_deep_judgment() -> None:
    with pytest.raises(AssertionError):
        law_a_trait_comes_back_as_it_was(without_deep_judgment, DEEP)


# A new rubric is written by writing the list of ratings anew.

Replace = Callable[[Document, Rubric | None], Document]


def replaced(document: Document, rubric: Rubric | None) -> Document:
    return written(evolve(read(document), rubric=rubric))


def list_written_anew(document: Document, rubric: Rubric | None) -> Document:
    return {**document, "rating": written(BenchmarkData(name="b", rubric=rubric)).get("rating", [])}


def law_another_rubric_leaves_the_dynamic_one(replace: Replace) -> None:
    @given(rubrics(), dynamic_rubrics().filter(len), rubrics())
    @exhaustive
    def law(old: Rubric, dynamic: DynamicRubric, new: Rubric) -> None:
        document = written(BenchmarkData(name="b", rubric=old, dynamic_rubric=dynamic))
        again = read(replace(document, new))
        assert again.dynamic_rubric == dynamic
        assert again.rubric == (new if len(new) else None)

    law()


def test_another_rubric_leaves_the_dynamic_one_alone() -> None:
    law_another_rubric_leaves_the_dynamic_one(replaced)


def test_the_law_rejects_a_list_that_is_written_anew() -> None:
    with pytest.raises(AssertionError):
        law_another_rubric_leaves_the_dynamic_one(list_written_anew)
