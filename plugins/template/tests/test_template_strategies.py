"""Composition strategies: which fields must be right, what partial credit follows, and what is refused."""

from __future__ import annotations

import itertools
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_template.language.extraction import fill
from karenina_template.language.strategies import (
    MAX_DEPTH,
    condition_from_spec,
    condition_spec,
    evaluate,
    fields_of,
    strategy_name,
)
from karenina_template.language.verification import compare

from karenina_core.errors import TemplateError
from karenina_core.templates import AllOf, AnyOf, AtLeastN, BaseAnswer, ExactMatch, FieldCheck, VerifiedField

LAW = settings(database=None, deadline=None, derandomize=True)
NAMES = "abcd"
CHECKS = st.sampled_from(NAMES).map(FieldCheck)


def _above(children: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    listed = st.lists(children, max_size=4)
    return listed.flatmap(
        lambda found: (
            st.just(AllOf(found)) | st.just(AnyOf(found)) | st.integers(0, len(found)).map(lambda n: AtLeastN(n, found))
        )
    )


TREES = st.recursive(CHECKS, _above, max_leaves=12)
RESULTS = st.fixed_dictionaries({name: st.sampled_from([True, False, None]) for name in NAMES})
WEIGHTS = st.fixed_dictionaries({name: st.floats(0, 1.7e308, exclude_min=True) for name in NAMES})


def scores_of(results: dict[str, bool | None]) -> dict[str, float | None]:
    return {name: None if found is None else float(found) for name, found in results.items()}


def counted(tree: Any, results: dict[str, bool | None]) -> bool:
    """The verdict by counting, written down a second time."""
    if isinstance(tree, FieldCheck):
        return results[tree.field] is True
    passing = [counted(child, results) for child in tree.conditions].count(True)
    if isinstance(tree, AllOf):
        return passing == len(tree.conditions)
    return passing >= (tree.n if isinstance(tree, AtLeastN) else 1)


@LAW
@given(TREES, RESULTS)
def test_a_strategy_agrees_with_counting_what_passes(tree: Any, results: dict[str, bool | None]) -> None:
    weights = dict.fromkeys(NAMES, 1.0)
    assert evaluate(tree, results, scores_of(results), weights).passed is counted(tree, results)


@LAW
@given(TREES, RESULTS, WEIGHTS)
def test_what_passes_with_full_scores_has_full_credit(tree: Any, results: Any, weights: dict[str, float]) -> None:
    found = evaluate(tree, results, scores_of(results), weights)
    assert 0.0 <= found.score <= 1.0
    if found.passed:
        assert found.score == 1.0


@LAW
@given(TREES, st.fixed_dictionaries({name: st.none() | st.floats(0, 1) for name in NAMES}), WEIGHTS)
def test_partial_credit_stays_between_0_and_1(tree: Any, scores: Any, weights: dict[str, float]) -> None:
    results = {name: None if score is None else score == 1 for name, score in scores.items()}
    assert 0.0 <= evaluate(tree, results, scores, weights).score <= 1.0


@LAW
@given(st.lists(TREES, max_size=4), RESULTS, st.data())
def test_the_order_of_conditions_does_not_matter(children: list[Any], results: Any, data: st.DataObject) -> None:
    scores = {name: data.draw(st.sampled_from([0.0, 0.25, 0.5, 1.0])) for name in NAMES}
    weights = {name: data.draw(st.sampled_from([0.0, 1.0, 3.0])) for name in NAMES}
    n = data.draw(st.integers(0, len(children)))
    found = set()
    for order in itertools.islice(itertools.permutations(children), 12):
        for tree in (AllOf(order), AnyOf(order), AtLeastN(n, order)):
            evaluated = evaluate(tree, results, scores, weights)
            found.add((tree.type, evaluated.passed, round(evaluated.score, 9)))
    assert len(found) == 3


@LAW
@given(TREES)
def test_a_strategy_survives_being_written_as_data(tree: Any) -> None:
    assert condition_from_spec(json.loads(json.dumps(condition_spec(tree)))) == tree


def credit(tree: Any, weights: tuple[float, ...] = (1, 1, 1), scores: tuple[Any, ...] = (1.0, 0.0, None)) -> float:
    named = dict(zip("abc", scores, strict=True))
    results = {name: None if score is None else score == 1 for name, score in named.items()}
    return evaluate(tree, results, named, dict(zip("abc", weights, strict=True))).score


A, B, C = map(FieldCheck, "abc")
ANYTHING: list[Any] = [[A, B], 1.0, 3]


@pytest.mark.parametrize(
    ("tree", "score"),
    [
        (A, 1.0),
        (B, 0.0),
        (C, 0.0),
        (AllOf(A, B, C), 1 / 3),
        (AllOf(A, AllOf(B, C)), 1 / 3),
        (AllOf(A, AnyOf(B, C)), 1 / 3),
        (AnyOf(A, B, C), 1.0),
        (AnyOf(B, C), 0.0),
        (AnyOf(AllOf(A, B), C), 0.5),
        (AtLeastN(2, A, B, C), 0.5),
        (AtLeastN(1, A, B), 1.0),
        (AtLeastN(2, AllOf(A, B), A, C), 2 / 3),
        (AtLeastN(0, B), 1.0),
        (AtLeastN(0), 1.0),
        (AllOf(), 1.0),
        (AnyOf(), 0.0),
        (AllOf(AllOf(), AllOf()), 1.0),
    ],
)
def test_partial_credit_is_computed_along_the_tree(tree: Any, score: float) -> None:
    assert credit(tree) == pytest.approx(score)


def test_weights_count_along_the_tree() -> None:
    assert credit(AllOf(A, AllOf(B, C)), (3, 1, 0)) == 0.75
    assert credit(AtLeastN(2, A, B, C), (1, 3, 1), (0.5, 0.5, 0.5)) == 0.5
    assert credit(AtLeastN(1, A, AllOf(B, C)), (1, 1, 1), (0.5, 1.0, 1.0)) == 1.0
    assert credit(A, (0, 1, 1)) == 0.0
    assert credit(AllOf(A, A), (0, 1, 1)) == 0.0
    assert credit(AnyOf(A), (0, 1, 1)) == 0.0
    assert credit(AnyOf(A, B), (0, 1, 1)) == 1.0


@pytest.mark.parametrize(
    ("tree", "name"),
    [(None, None), (A, "field_check"), (AllOf(), "all_of"), (AnyOf(A), "any_of"), (AtLeastN(1, A), "at_least_n(1)")],
)
def test_strategies_have_the_names_of_the_results(tree: Any, name: str | None) -> None:
    assert strategy_name(tree) == name


def test_conditions_are_given_as_a_list_one_by_one_or_by_name() -> None:
    for tree in (AllOf(A, B), AllOf([A, B]), AllOf((A, B)), AllOf(conditions=[A, B]), AllOf(iter([A, B]))):
        assert tree.conditions == (A, B)
    assert AtLeastN(1, A, B) == AtLeastN(1, [A, B]) == AtLeastN(n=1, conditions=[A, B])
    assert AllOf(A) == AllOf([A])
    assert len({AllOf(A), AnyOf(A), AtLeastN(1, A)}) == 3
    assert {AllOf(A), AllOf([A])} == {AllOf(A)}
    assert fields_of(AllOf(A, AnyOf(B, AtLeastN(0, A)))) == {"a", "b"}


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: AllOf("a"), r"needs a list of conditions, such as \[FieldCheck\('drug'\)\], not 'a'"),
        (lambda: AllOf(["a"]), r"'a' in AllOf is not a condition; write FieldCheck\('a'\)"),
        (lambda: AnyOf(A, 3), r"3 in AnyOf is not a condition; use FieldCheck"),
        (lambda: AnyOf(3), r"AnyOf needs a list"),
        (lambda: AllOf([A], conditions=[A]), r"AllOf got its conditions twice"),
        (lambda: AtLeastN(ANYTHING[0]), r"AtLeastN needs a whole number first"),
        (lambda: AtLeastN(True, [A]), r"AtLeastN needs a whole number first"),
        (lambda: AtLeastN(ANYTHING[1], [A]), r"AtLeastN needs a whole number first"),
        (lambda: AtLeastN(3, [A, B]), r"AtLeastN\(3\) of 2 conditions: write a number from 0 to 2"),
        (lambda: AtLeastN(-1, [A, B]), r"AtLeastN\(-1\) of 2 conditions"),
        (lambda: FieldCheck(ANYTHING[2]), r"FieldCheck takes the name of a field, not 3"),
    ],
)
def test_a_condition_that_means_nothing_is_refused_where_it_is_written(make: Any, message: str) -> None:
    with pytest.raises((TypeError, ValueError), match=message):
        make()


@pytest.mark.parametrize(
    ("spec", "message"),
    [
        (None, "a condition is written"),
        ({"type": 3}, "a condition is written"),
        ({"type": "any_off", "conditions": []}, r"unknown condition 'any_off' \(did you mean 'any_of'\?\)"),
        ({"type": "any_of"}, "any_of: parameter 'conditions' is missing"),
        ({"type": "any_of", "conditions": "ab"}, "any_of: conditions must be a list, not 'ab'"),
        ({"type": "any_of", "conditions": ["a"]}, "a condition is written"),
        ({"type": "any_of", "conditions": [], "n": 2}, "any_of: unknown parameter 'n'"),
        ({"type": "field_check", "fild": "a"}, r"unknown parameter 'fild' \(did you mean 'field'\?\)"),
        ({"type": "field_check", "field": 3}, "field_check: FieldCheck takes the name of a field"),
        ({"type": "at_least_n", "conditions": []}, "parameter 'n' is missing"),
        ({"type": "at_least_n", "n": 2, "conditions": []}, r"at_least_n: AtLeastN\(2\) of 0 conditions"),
        ({"type": "all_of", "conditions": [{"type": "x"}]}, "unknown condition 'x'"),
    ],
)
def test_data_that_is_no_strategy_is_refused_with_the_reason(spec: Any, message: str) -> None:
    with pytest.raises(TemplateError, match=message):
        condition_from_spec(spec)


def test_a_tree_without_end_is_refused_before_it_is_evaluated() -> None:
    tree: Any = A
    spec: Any = {"type": "field_check", "field": "a"}
    for _ in range(5000):
        tree, spec = AllOf((tree,)), {"type": "all_of", "conditions": [spec]}
    with pytest.raises(TemplateError, match=f"nested deeper than {MAX_DEPTH} levels"):
        condition_from_spec(spec)
    with pytest.raises(ValueError, match=f"nested deeper than {MAX_DEPTH} levels"):
        declared(tree)


# In a class


class Study(BaseAnswer):
    drug: str = VerifiedField("The drug", "a", ExactMatch())
    brand: str = VerifiedField("The brand", "b", ExactMatch(), weight=3)
    site: str = VerifiedField("The site", "c", ExactMatch())

    class VerificationStrategy:
        verify_strategy = AnyOf([FieldCheck("drug"), FieldCheck("brand")])


def declared(tree: Any) -> type[BaseAnswer]:
    class One(BaseAnswer):
        a: str = VerifiedField("A", "a", ExactMatch())

        class VerificationStrategy:
            verify_strategy = tree

    return One


@pytest.mark.parametrize(
    ("extracted", "verdict", "granular"),
    [
        ({"drug": "a", "brand": "x", "site": "x"}, True, 1.0),
        ({"drug": None, "brand": "b", "site": None}, True, 1.0),
        ({"drug": "x", "brand": None, "site": "c"}, False, 0.0),
    ],
)
def test_fields_outside_the_strategy_count_in_nothing_but_their_results(
    extracted: dict[str, Any], verdict: bool, granular: float
) -> None:
    answer = fill(Study, extracted)
    assert (answer.verify(), answer.verify_granular()) == (verdict, granular)
    results = compare(Study.__verified__, answer.__dict__, Study.__tree__).results
    assert results == {name: None if v is None else v == "abc"[i] for i, (name, v) in enumerate(extracted.items())}


def test_null_is_not_satisfied_and_stays_apart_from_wrong_in_every_strategy() -> None:
    results: dict[str, bool | None] = {"a": None, "b": False, "c": True, "d": True}
    for tree, passed in (
        (AllOf(A), False),
        (AnyOf(A, B), False),
        (AtLeastN(1, A, C), True),
        (AtLeastN(2, A, C), False),
    ):
        assert evaluate(tree, results, scores_of(results), dict.fromkeys(NAMES, 1.0)).passed is passed
    comparison = compare(Study.__verified__, {"drug": None, "brand": "x", "site": "c"}, Study.__tree__)
    assert (comparison.results, comparison.scores) == (
        {"drug": None, "brand": False, "site": True},
        {"drug": None, "brand": 0.0, "site": 1.0},
    )


def test_a_subclass_keeps_the_strategy_and_may_replace_it() -> None:
    class More(Study):
        extra: str = VerifiedField("More", "d", ExactMatch())

    class Stricter(More):
        class VerificationStrategy:
            verify_strategy = AllOf(FieldCheck("drug"), FieldCheck("extra"))

    extracted = {"drug": "a", "brand": "x", "site": "x", "extra": "x"}
    assert fill(More, extracted).verify() is True
    assert fill(Stricter, extracted).verify() is False
    assert fill(Stricter, extracted).verify_granular() == 0.5


def test_without_a_strategy_every_verified_field_must_be_right() -> None:
    class Plain(BaseAnswer):
        a: str = VerifiedField("A", "a", ExactMatch())
        b: str = VerifiedField("B", "b", ExactMatch(), weight=3)

    assert Plain.__strategy__ is None
    assert fill(Plain, {"a": "a", "b": "b"}).verify() is True
    assert (fill(Plain, {"a": "a"}).verify(), fill(Plain, {"a": "a"}).verify_granular()) == (False, 0.25)


def test_a_misspelt_field_of_a_strategy_is_refused_when_the_class_is_defined() -> None:
    with pytest.raises(ValueError, match=r"FieldCheck\('brnd'\) names no verified field \(did you mean 'brand'\?\)"):

        class Misspelt(Study):
            class VerificationStrategy:
                verify_strategy = AllOf(FieldCheck("drug"), AnyOf(FieldCheck("brnd")))


def test_a_strategy_without_its_attribute_is_refused() -> None:
    with pytest.raises(TypeError, match=r"has no verify_strategy \(did you mean 'verify_stratgy'\?\)"):

        class Misspelt(Study):
            class VerificationStrategy:
                verify_stratgy = AllOf()


def test_a_strategy_under_another_name_is_refused() -> None:
    with pytest.raises(TypeError, match="must be named VerificationStrategy"):

        class Misnamed(BaseAnswer):
            a: str = VerifiedField("A", "a", ExactMatch())

            class Strategy:
                verify_strategy = AllOf()


@pytest.mark.parametrize("tree", ["all_of", {"type": "all_of"}, AllOf, [A]])
def test_a_strategy_of_another_type_is_refused(tree: Any) -> None:
    with pytest.raises(ValueError, match="verify_strategy must be FieldCheck, AllOf, AnyOf or AtLeastN"):
        declared(tree)


def test_a_strategy_that_could_have_no_effect_is_refused() -> None:
    with pytest.raises(ValueError, match="nothing to decide on: no field is a VerifiedField"):

        class Classic(BaseAnswer):
            a: str

            class VerificationStrategy:
                verify_strategy = AllOf()

            def verify(self) -> bool:
                return True


@pytest.mark.parametrize("tree", [AllOf(), AtLeastN(0, [FieldCheck("drug")]), AnyOf(FieldCheck("drug"), AllOf())])
def test_a_strategy_that_no_answer_can_fail_is_refused(tree: Any) -> None:
    with pytest.raises(ValueError, match="no answer can fail: it passes even with every field wrong"):

        class Odd(BaseAnswer):
            drug: str = VerifiedField("d", "a", ExactMatch())

            class VerificationStrategy:
                verify_strategy = tree


@pytest.mark.parametrize("tree", [AnyOf(), AllOf(FieldCheck("drug"), AnyOf())])
def test_a_strategy_that_no_answer_can_pass_is_refused(tree: Any) -> None:
    with pytest.raises(ValueError, match="no answer can pass: it fails even with every field right"):

        class Odd(BaseAnswer):
            drug: str = VerifiedField("d", "a", ExactMatch())

            class VerificationStrategy:
                verify_strategy = tree


def test_an_own_verify_beside_a_strategy_decides_alone_and_the_strategy_gives_the_credit() -> None:
    class Both(BaseAnswer):
        drug: str = VerifiedField("d", "a", ExactMatch())
        brand: str = VerifiedField("b", "b", ExactMatch())

        class VerificationStrategy:
            verify_strategy = AnyOf(FieldCheck("drug"), FieldCheck("brand"))

        def verify(self) -> bool:
            return self.brand == "b"

    answer = Both(drug="a", brand="x")
    assert not answer.verify()
    assert answer.verify_granular() == 1.0


@pytest.mark.filterwarnings("ignore:Field name")  # pydantic's own, milder opinion comes first
def test_a_field_may_not_take_the_strategys_name() -> None:
    with pytest.raises(TypeError, match="field 'VerificationStrategy' of Odd: the name is reserved"):

        class Odd(BaseAnswer):
            VerificationStrategy: str = VerifiedField("x", "a", ExactMatch())
