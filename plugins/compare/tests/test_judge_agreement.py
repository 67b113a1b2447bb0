"""How far judges agree: counts, kappa, intervals, and the public names."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_compare.agreement import cohens_kappa

import karenina_core
from karenina_core import ModelIdentity, VerificationResult, judge_agreement
from karenina_core.values.result import MetadataPart

WORDS: dict[Any, Any] = {1: "passed", 0: "failed", None: "error", "a": "abstained"}


def judged(judge: str, verdicts: list[Any], model: str = "m") -> Iterator[VerificationResult]:
    """Two replicates of each question."""
    for number, verdict in enumerate(verdicts):
        yield VerificationResult(
            metadata=MetadataPart(
                question_id=f"q{number // 2}",
                template_id="t",
                result_id=f"{judge}-{model}-{number}",
                question_text="?",
                answering=ModelIdentity("x", model),
                parsing=ModelIdentity("x", judge),
                replicate=1 + number % 2,
                outcome=WORDS[verdict],
            )
        )


def test_two_judges_are_compared_on_the_answers_that_both_have_a_verdict_of() -> None:
    first, second = [1, 1, 1, 0, 0, None, 1, 1], [1, 1, 0, 0, 1, 1, None, "a"]
    (row,) = judge_agreement([*judged("j", first), *judged("k", second)])
    assert (row.judge_a, row.judge_b, row.items) == ("x:j", "x:k", 6)
    assert (row.both_pass, row.only_a, row.only_b, row.both_fail) == (2, 2, 1, 1)
    assert row.agreement.value == 0.5
    assert row.kappa == pytest.approx(0.0)
    assert row.disagree_on == ("q1", "q2", "q3")
    plain = row.to_dict()
    assert (plain["agreement"], plain["agreement_low"] < 0.5 < plain["agreement_high"]) == (0.5, True)
    assert plain["kappa_low"] < 0 < plain["kappa_high"]


def test_kappa_is_that_of_the_textbook_and_none_where_nothing_varies() -> None:
    assert cohens_kappa([[20, 5], [10, 15]]) == pytest.approx(0.4)
    assert cohens_kappa([[7, 0], [0, 0]]) is None
    (row,) = judge_agreement([*judged("j", [1, 1]), *judged("k", [1, 1])])
    assert (row.agreement.value, row.kappa, row.kappa_interval) == (1.0, None, None)


def test_every_two_judges_and_every_model_has_a_row() -> None:
    results = [r for judge in "jkl" for model in ("m", "n") for r in judged(judge, [1, 0], model)]
    pairs = [("x:j", "x:k"), ("x:j", "x:l"), ("x:k", "x:l")]
    assert [(row.judge_a, row.judge_b) for row in judge_agreement(results)] == pairs
    assert [row.answering for row in judge_agreement(results, by_model=True)] == ["x:m", "x:n"] * 3
    assert judge_agreement(judged("j", [1])) == []


@settings(max_examples=settings().max_examples // 2, deadline=None)
@given(st.lists(st.tuples(st.booleans(), st.booleans()), min_size=1, max_size=12))
def test_who_is_called_first_changes_no_number(pairs: list[tuple[bool, bool]]) -> None:
    one, other = ([int(pair[side]) for pair in pairs] for side in (0, 1))
    (row,) = judge_agreement([*judged("j", one), *judged("k", other)])
    (turned,) = judge_agreement([*judged("j", other), *judged("k", one)])
    assert (row.kappa, row.kappa_interval, row.agreement) == (turned.kappa, turned.kappa_interval, turned.agreement)
    assert row.kappa is None or -1 <= row.kappa <= 1
    assert (row.kappa == 1) == (row.kappa is not None and not row.disagree_on)


def test_comparisons_are_public_names() -> None:
    for name in ("compare_models", "compare_runs", "headline_numbers", "judge_agreement"):
        assert callable(getattr(karenina_core, name))
    assert len(karenina_core.compare_runs(judged("j", [1, 0]), judged("j", [1, 1])).rows) == 1
