"""Trait scores of every type and kind come out of a DataFrame as they went in, in all three packages."""

from __future__ import annotations

import json
from typing import Any

import karenina_results.aggregators
import karenina_results.views
import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from karenina_testing import strategies
from karenina_vocabulary.rubric_part import COUNTS, RubricPart, typed_scores

from karenina_core import ModelIdentity, VerificationResult, VerificationResultSet
from karenina_core.testing import application
from karenina_core.values.result import MetadataPart

LAW = settings(
    max_examples=settings().max_examples // 2,
    deadline=None,
    derandomize=True,
    phases=(Phase.explicit, Phase.generate),
    suppress_health_check=list(HealthCheck),
)
PARTS = st.lists(strategies.rubric_parts(), min_size=1, max_size=3)
APP = application(karenina_results.views, karenina_results.aggregators)
ME = ModelIdentity("x", "m")


def of(parts: list[RubricPart]) -> VerificationResultSet:
    return VerificationResultSet(
        VerificationResult(
            metadata=MetadataPart(
                question_id="q",
                template_id="t",
                result_id=f"r{number}",
                question_text="?",
                answering=ME,
                parsing=ME,
                replicate=number + 1,
            ),
            rubric=part,
        )
        for number, part in enumerate(parts)
    )


def went_in(parts: list[RubricPart]) -> list[tuple[int, str, str | None, str, str]]:
    """`(item, trait, metric, type, score)` read off the tables of the parts; scores as Python writes them."""
    found = []
    for number, part in enumerate(parts):
        failed = {name for name, about in part.trait_states.items() if about["state"] != "ok"}
        for type_name, scores in typed_scores(part):
            for name, score in scores.items():
                if name in failed:
                    continue
                metrics = (
                    {key: value for key, value in score.items() if key not in COUNTS} if type_name == "metric" else {}
                )
                for metric, value in metrics.items() or [(None, score)]:
                    found.append((number, name, metric, type_name, repr(value)))
    return sorted(found, key=repr)


def came_out(rows: list[dict[str, Any]], *, as_text: bool) -> list[tuple[int, str, str | None, str, str]]:
    def score(row: dict[str, Any]) -> Any:
        held = row["trait_score"]
        return json.loads(held) if as_text and held is not None else held

    return sorted(
        (
            (
                row["result_index"],
                row["trait_name"],
                row["metric_name"],
                str(row["trait_type"]).partition("_")[0],
                repr(score(row)),
            )
            for row in rows
            if row["state"] == "ok"
        ),
        key=repr,
    )


def records(found: Any, backend: str = "pyarrow") -> list[dict[str, Any]]:
    """The rows of a frame; those of a table of pyarrow are made and read in a third of the time of the others."""
    if backend == "pandas":
        import pandas

        rows = found.to_dict("records")
        return [{key: None if value is pandas.NA else value for key, value in row.items()} for row in rows]
    rows = found.to_dicts() if backend == "polars" else found.to_pylist()
    return list(rows)


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow"])
def test_scores_come_out_as_they_went_in(backend: str) -> None:
    @LAW
    @given(PARTS)
    def law(parts: list[RubricPart]) -> None:
        frame = of(parts).view("rubric", app=APP).to_dataframe(backend=backend)
        assert came_out(records(frame, backend), as_text=backend != "pandas") == went_in(parts)

    law()


@LAW
@given(PARTS)
def test_a_trait_without_a_score_is_a_row_with_its_state_and_no_score(parts: list[RubricPart]) -> None:
    rows = records(of(parts).view("rubric", app=APP).to_dataframe(backend="pyarrow"))
    states = {(n, name, about["state"]) for n, part in enumerate(parts) for name, about in part.trait_states.items()}
    failed = {(n, name, state) for n, name, state in states if state != "ok"}
    found = [(row["result_index"], row["trait_name"], row["state"]) for row in rows if row["state"] != "ok"]
    assert sorted(found) == sorted(failed)
    assert all(row["trait_score"] is None and row["trait_number"] is None for row in rows if row["state"] != "ok")


@LAW
@given(PARTS)
def test_the_types_of_traits_split_the_frame(parts: list[RubricPart]) -> None:
    view = of(parts).view("rubric", app=APP)
    rows = records(view.to_dataframe(backend="pyarrow"))
    assert None not in {row["trait_type"] for row in rows}
    split = []
    for name in {str(row["trait_type"]) for row in rows}:
        of_type = records(view.to_dataframe(name, backend="pyarrow"))
        assert {row["trait_type"] for row in of_type} == {name}
        split += of_type
    assert sorted(map(_key, split)) == sorted(map(_key, rows))
    of_llm = [row for row in rows if str(row["trait_type"]).startswith("llm")]
    if of_llm:
        assert sorted(map(_key, records(view.to_dataframe("llm", backend="pyarrow")))) == sorted(map(_key, of_llm))


def _key(row: dict[str, Any]) -> str:
    return repr({name: row[name] for name in ("result_index", "trait_name", "metric_name", "trait_score", "state")})


@LAW
@given(PARTS)
def test_numbers_are_those_of_the_scores(parts: list[RubricPart]) -> None:
    for row in records(of(parts).view("rubric", app=APP).to_dataframe(), "pandas"):
        score, number = row["trait_score"], row["trait_number"]
        if isinstance(score, bool | int | float) and abs(score) < 2**1000:
            assert number == float(score)
        else:
            assert number is None


# Aggregates: only scores go in


def spoiled(part: RubricPart) -> RubricPart:
    """The same traits, all of them failed, with their scores left in place as bait."""
    from attrs import evolve

    states = {name: {"state": "error", "reason": "down"} for name in part.trait_states}
    return evolve(part, trait_states=states, dynamic_rubric_skipped_traits={})


@LAW
@given(PARTS, st.sampled_from(["mean", "median", "mode", "majority_vote", "count"]))
def test_what_failed_changes_counts_and_no_value(parts: list[RubricPart], strategy: str) -> None:
    clean = of(parts).view("rubric", app=APP)
    mixed = of([*parts, *map(spoiled, parts)]).view("rubric", app=APP)
    aggregates = [
        lambda view: view.aggregate_traits(strategy, by="question_id"),
        lambda view: view.aggregate_metric_traits("recall", strategy, by="question_id"),
        lambda view: view.aggregate_metric_traits("tp", strategy, by="question_id"),
    ]
    for aggregate in aggregates:
        before, after = aggregate(clean).get("q", {}), aggregate(mixed).get("q", {})
        for name, found in before.items():
            assert (after[name].value, after[name].n) == (found.value, found.n)
            assert after[name].errors > found.errors
        assert {name for name, found in after.items() if found.n} <= set(before)


@LAW
@given(PARTS)
def test_every_trait_of_every_item_is_counted_once(parts: list[RubricPart]) -> None:
    """As a score, as an error, as skipped, or as a field without a value."""
    found = of(parts).view("rubric", app=APP).aggregate_traits("count", by="replicate")
    for number, part in enumerate(parts):
        counts = found.get(number + 1, {})
        scored = sum(about.n + about.empty for about in counts.values())
        rows = [row for row in went_in([part]) if row[3] != "metric"]
        assert scored == len(rows)
        metric = {name for name, scale in part.trait_scales.items() if scale["type"] == "metric"}
        for state, name in (("skipped", "skipped"), ("error", "errors")):
            due = {t for t, about in part.trait_states.items() if _counts_as(about["state"]) == state}
            counted = {t for t, about in counts.items() if getattr(about, name)}
            assert due - metric <= {trait.split(".")[0] for trait in counted}
            assert {trait.split(".")[0] for trait in counted} <= due


def _counts_as(state: str) -> str:
    return state if state in ("ok", "skipped") else "error"
