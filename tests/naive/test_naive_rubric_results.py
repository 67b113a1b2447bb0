"""Reading rubric results: no class is no rank, and a trait that failed is not one that was never there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import pytest
from hypothesis import Phase, assume, example, given, settings
from hypothesis import strategies as st
from karenina_runs.summaries.trait_summary import trait_lines
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.values.result import MetadataPart

LAW = settings(
    database=None, deadline=None, derandomize=True, report_multiple_bugs=False, phases=(Phase.explicit, Phase.generate)
)
CLASSES = ["concise", "wordy", "endless"]
SCALE = {"type": "llm", "kind": "literal", "classes": CLASSES, "higher_is_better": False}
NO_CLASS = -1


def stored(rank: int) -> RubricPart:
    """A literal trait as results hold it."""
    state = {"state": "ok", "reason": ""} if rank >= 0 else {"state": "invalid", "reason": "'grumpy' is no class"}
    return RubricPart(
        llm_trait_scores={"Tone": rank},
        llm_trait_labels={"Tone": CLASSES[rank] if rank >= 0 else "grumpy"},
        trait_scales={"Tone": SCALE},
        trait_states={"Tone": state},
    )


def result(part: RubricPart) -> VerificationResult:
    me = ModelIdentity("x", "m")
    metadata = MetadataPart(
        question_id="q", template_id="t", result_id="r", question_text="?", answering=me, parsing=me
    )
    return VerificationResult(metadata=metadata, rubric=part)


# What no class was found for is in no mean and no ranking

Mean = Callable[[Sequence[RubricPart]], float | None]
"""From results to the mean rank of their trait `Tone`."""
RANKS = st.lists(st.integers(0, len(CLASSES) - 1), min_size=1, max_size=6)


def mean_of_ours(parts: Sequence[RubricPart]) -> float | None:
    (line,) = trait_lines(map(result, parts))
    total = sum(line["classes"].values())
    return sum(CLASSES.index(name) * count for name, count in line["classes"].items()) / total if total else None


def mean_of_our_rows(parts: Sequence[RubricPart]) -> float | None:
    scores = [row["trait_score"] for part in parts for row in part.rows() if row["trait_score"] is not None]
    return sum(scores) / len(scores) if scores else None


def mean_of_stored_numbers(parts: Sequence[RubricPart]) -> float | None:
    """Takes the stored number for a rank."""
    scores = [part.llm_trait_scores["Tone"] for part in parts]
    return sum(scores) / len(scores) if scores else None


def an_error_is_no_rank(mean: Mean) -> None:
    @LAW
    @given(RANKS, st.integers(1, 3))
    @example([0], 1)
    def law(ranks: list[int], errors: int) -> None:
        scored = [stored(rank) for rank in ranks]
        assert mean([*scored, *(stored(NO_CLASS) for _ in range(errors))]) == mean(scored)

    law()


@pytest.mark.parametrize("mean", [mean_of_ours, mean_of_our_rows])
def test_what_no_class_was_found_for_is_in_no_mean(mean: Mean) -> None:
    an_error_is_no_rank(mean)


def test_taking_the_stored_number_for_a_rank_breaks_that() -> None:
    with pytest.raises(AssertionError):
        an_error_is_no_rank(mean_of_stored_numbers)


# A trait that failed is told from one that is absent

Known = Callable[[RubricPart], Mapping[str, str]]
"""From a result to its traits and what became of each."""
STATES = st.dictionaries(
    st.sampled_from("abcd"), st.sampled_from(["ok", "invalid", "missing", "error"]), min_size=1, max_size=4
)


def known_to_ours(part: RubricPart) -> Mapping[str, str]:
    return {row["trait_name"]: "scored" if row["state"] == "ok" else "failed" for row in part.rows()}


def known_by_scores(part: RubricPart) -> Mapping[str, str]:
    """Leaves out what has no score."""
    return {name: "scored" for name, score in part.get_all_trait_scores().items() if score is not None}


def failed_is_told_from_absent(known: Known) -> None:
    @LAW
    @given(STATES, st.sampled_from("abcd"))
    @example({"a": "error", "b": "ok"}, "a")
    def law(states: dict[str, Any], left_out: str) -> None:
        assume(left_out in states and states[left_out] != "ok")

        def part(names: Mapping[str, str]) -> RubricPart:
            return RubricPart(
                llm_trait_scores={name: True if state == "ok" else None for name, state in names.items()},
                trait_states={name: {"state": state, "reason": "why"} for name, state in names.items()},
            )

        absent = {name: state for name, state in states.items() if name != left_out}
        assert known(part(states)) != known(part(absent))
        assert known(part(states)).get(left_out) == "failed"

    law()


def test_a_failed_trait_is_told_from_an_absent_one() -> None:
    failed_is_told_from_absent(known_to_ours)


def test_leaving_out_what_has_no_score_breaks_that() -> None:
    with pytest.raises(AssertionError):
        failed_is_told_from_absent(known_by_scores)
