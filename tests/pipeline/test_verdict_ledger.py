"""The verdict is a fold of recorded effects; the outcome names what decided it. Checked against a plain retelling."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karenina_core import ArtifactKeys, Category, Outcome, Stage, VerificationContext
from karenina_core.errors import ContractError, ErrorKind
from karenina_core.values.outcome import Effect, OutcomeName, Verdict, fold, nothing_scored, outcome_of

Make = Callable[..., VerificationContext]
MAYBE = st.sampled_from([None, True, False])
FAILURES = ("failed", "auto_failed", "abstained", "insufficient")
EFFECTS = st.lists(
    st.builds(Effect, st.sampled_from("ABCDE"), MAYBE, MAYBE, st.just(""), st.sampled_from(FAILURES)), max_size=8
)


def retold(effects: list[Effect]) -> tuple[bool | None, bool | None, int | None]:
    """Field, verdict, and the index of the effect that last changed the verdict, one sentence at a time."""
    # Each part is what the last effect that speaks of it says; None where no effect does.
    fields = [effect.field for effect in effects if effect.field is not None]
    verdicts = [effect.verdict for effect in effects if effect.verdict is not None]
    # An effect changes the verdict when it differs from the last one that had a verdict.
    changes = [
        index
        for index, effect in enumerate(effects)
        if effect.verdict is not None
        and [e.verdict for e in effects[:index] if e.verdict is not None][-1:] != [effect.verdict]
    ]
    return (
        fields[-1] if fields else None,
        verdicts[-1] if verdicts else None,
        changes[-1] if changes else None,
    )


@given(EFFECTS)
def test_the_fold_says_what_the_rules_say(effects: list[Effect]) -> None:
    field, verdict, decided = retold(effects)
    found = fold(effects)
    assert (found.field, found.verdict) == (field, verdict)
    assert found.decided_by is (None if decided is None else effects[decided])


@given(EFFECTS, EFFECTS)
def test_effects_that_say_nothing_change_nothing(before: list[Effect], after: list[Effect]) -> None:
    assert fold([*before, Effect("silent"), *after]) == fold([*before, *after])


STEPS: list[tuple[str, list[Effect], tuple[bool | None, bool | None], Outcome]] = [
    ("right answer", [Effect("VerifyTemplate", True, True)], (True, True), Outcome("passed")),
    ("wrong answer", [Effect("VerifyTemplate", False, False)], (False, False), Outcome("failed")),
    (
        "the embedding check accepts, patterns hold",
        [Effect("VerifyTemplate", False, False), Effect("EmbeddingCheck", True, True)],
        (True, True),
        Outcome("passed"),
    ),
    (
        "the embedding check accepts, a pattern fails",
        [Effect("VerifyTemplate", False, False), Effect("EmbeddingCheck", True, False, "", "auto_failed")],
        (True, False),
        Outcome("failed"),
    ),
    (
        "stage 10 takes back what the embedding check accepted",
        [
            Effect("VerifyTemplate", False, False),
            Effect("EmbeddingCheck", True, True),
            Effect("DeepJudgmentAutoFail", False, False, "", "auto_failed"),
        ],
        (False, False),
        Outcome("auto_failed", "DeepJudgmentAutoFail"),
    ),
    (
        "stage 12 turns a right answer",
        [
            Effect("VerifyTemplate", True, True),
            Effect("DeepJudgmentRubricAutoFail", None, False, "", "auto_failed"),
        ],
        (True, False),
        Outcome("auto_failed", "DeepJudgmentRubricAutoFail"),
    ),
    (
        "stage 12 after a wrong answer changes nothing",
        [
            Effect("VerifyTemplate", False, False),
            Effect("DeepJudgmentRubricAutoFail", None, False, "", "auto_failed"),
        ],
        (False, False),
        Outcome("failed"),
    ),
    (
        "a guard",
        [Effect("RecursionLimitAutoFail", False, False, "", "auto_failed")],
        (False, False),
        Outcome("auto_failed", "RecursionLimitAutoFail"),
    ),
    ("a refusal", [Effect("AbstentionCheck", None, False, "", "abstained")], (None, False), Outcome("abstained")),
    (
        "too little said",
        [Effect("SufficiencyCheck", None, False, "", "insufficient")],
        (None, False),
        Outcome("insufficient"),
    ),
    ("nothing", [], (None, None), Outcome("skipped", "no stage gave a verdict")),
]


@pytest.mark.parametrize(("effects", "verdict", "outcome"), [s[1:] for s in STEPS], ids=[s[0] for s in STEPS])
def test_the_published_rules(effects: list[Effect], verdict: tuple[Any, Any], outcome: Outcome) -> None:
    found = fold(effects)
    assert (found.field, found.verdict) == verdict
    assert outcome_of(found, error_kind=None, evaluates_template=True) == outcome


@pytest.mark.parametrize("kind", [None, *get_args(ErrorKind)])
def test_every_outcome(kind: str | None) -> None:
    for case in itertools.product([None, True, False], FAILURES, [True, False]):
        verdict, name, template = case
        effect = Effect("Guard", None, verdict, "", name)
        found = outcome_of(fold([effect]), error_kind=kind, evaluates_template=template)
        if kind is not None:
            expected = ("error", kind)
        elif verdict is None:
            expected = ("skipped", "no stage gave a verdict") if template else ("scored", None)
        elif verdict:
            expected = ("passed", None)
        else:
            expected = (name, "Guard" if name == "auto_failed" else None)
        assert (found.name, found.detail) == expected, case
        assert str(found) == (f"{expected[0]}({expected[1]})" if expected[1] else expected[0]), case


def test_effects_can_only_be_called_by_the_names_of_failures() -> None:
    for name in set(get_args(OutcomeName)) - set(FAILURES):
        with pytest.raises(ValueError, match="cannot be called"):
            Effect("X", None, False, "", name)
    with pytest.raises(ValueError, match="unknown outcome"):
        Outcome("great")  # type: ignore[arg-type]


# Through the context


def stage(name: str, category: Category) -> Stage:
    made: Stage = type(name, (Stage,), {"category": category, "execute": lambda self, context: None})()
    return made


@pytest.mark.parametrize("category", list(Category))
def test_a_false_verdict_is_called_by_the_kind_of_its_stage(context: Make, category: Category) -> None:
    about = context()
    with about.acting(stage("S", category)):
        about.record(verdict=False, reason="because")
    expected = Outcome("failed") if category is Category.TEMPLATE else Outcome("auto_failed", "S")
    assert about.outcome == expected
    assert about.effects == (Effect("S", None, False, "because", about.effects[0].outcome),)


def test_checks_name_their_outcome(context: Make) -> None:
    about = context()
    with about.acting(stage("AbstentionCheck", Category.PRE_PARSE_CHECK)):
        about.record(verdict=False, outcome="abstained")
    assert about.outcome == Outcome("abstained")


def test_the_views_are_read_everywhere_and_written_nowhere(context: Make) -> None:
    views = (ArtifactKeys.VERIFY_RESULT, ArtifactKeys.FIELD_VERIFICATION_RESULT)
    declaring = type(
        "Declaring", (Stage,), {"produces": views, "result_fields": views, "execute": lambda self, context: None}
    )()
    undeclared = stage("Undeclared", Category.ENHANCEMENT)
    about = context()
    for acting in (declaring, undeclared):
        with about.acting(acting):
            assert [about.has_artifact(view) for view in views] == [False, False]
            assert [about.get_artifact(view, None) for view in views] == [None, None]
    about.record(field=False, verdict=True)
    with about.acting(undeclared):
        assert [about.get_artifact(view) for view in views] == [True, False]
        assert [about.has_artifact(str(view)) for view in views] == [True, True]
    for acting in (declaring, undeclared):
        with about.acting(acting):
            for view in views:
                for write in (about.set_artifact, about.set_artifact_and_result, about.set_result_field):
                    with pytest.raises(ContractError, match=r"context\.record"):
                        write(view, True)
    for view in views:
        with pytest.raises(ContractError, match=r"context\.record"):
            about.set_artifact(view, True)


@pytest.mark.parametrize("value", [1, 0, "no", [], 1.0])
def test_only_true_and_false_are_recorded(context: Make, value: Any) -> None:
    about = context()
    for part in ("field", "verdict"):
        with pytest.raises(ContractError, match="must be True or False"):
            about.record(**{part: value})
    assert about.verdict == Verdict()


@given(st.lists(st.tuples(MAYBE, MAYBE), max_size=6))
def test_the_context_folds_as_it_goes(effects: list[tuple[bool | None, bool | None]]) -> None:
    from karenina_core import Question

    about = VerificationContext(question=Question(question="Why?"))
    for field, verdict in effects:
        about.record(field=field, verdict=verdict)
        assert about.verdict == fold(about.effects)


# Outcomes as texts


def test_an_outcome_equals_its_name() -> None:
    passed, judge, timeout = Outcome("passed"), Outcome("error", "judge"), Outcome("error", "timeout")
    assert passed == "passed"
    assert passed != "failed"
    assert judge == "error" == timeout
    assert judge != timeout
    assert judge == Outcome("error", "judge")
    assert judge != "error(judge)"  # which is its text: equal things have equal hashes
    assert (passed == 1) is False


def test_an_outcome_is_found_by_its_name() -> None:
    assert Outcome("error", "judge") in {"failed", "error"}
    assert "error" in {Outcome("error", "judge")}
    assert Outcome("passed") not in {"failed", "error"}
    assert {"passed": 1}[Outcome("passed")] == 1  # type: ignore[index]  # it is found like its name
    assert len({Outcome("error", "judge"), Outcome("error", "timeout"), Outcome("error", "judge")}) == 2


def rows(**states: str) -> dict[str, dict[str, Any]]:
    """`name="state"`, or `"error kind"`: the states of traits."""
    parts = {name: text.partition(" ") for name, text in states.items()}
    return {
        name: {"state": state, "reason": f"why {name}", **({"kind": kind} if kind else {})}
        for name, (state, _, kind) in parts.items()
    }


@pytest.mark.parametrize(
    ("states", "found"),
    [
        ({}, None),
        ({"a": "skipped"}, None),
        ({"a": "error", "b": "ok"}, None),
        ({"a": "error"}, ("stage", "no trait has a score (a: why a)")),
        ({"a": "skipped", "b": "error judge", "c": "error"}, ("judge", "no trait has a score (b: why b; c: why c)")),
        ({"a": "error", "b": "error judge"}, ("stage", "no trait has a score (a: why a; b: why b)")),
    ],
)
def test_one_score_is_enough_and_else_the_first_error_is_that_of_the_item(
    states: dict[str, str], found: tuple[str, str] | None
) -> None:
    assert nothing_scored(rows(**states)) == found
