"""Numbers: who passes, and how much credit the others get."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from karenina_core.templates import (
    NumericExact,
    NumericGraded,
    NumericMaximum,
    NumericMinimum,
    NumericRange,
    NumericRangeGraded,
    NumericThresholdGraded,
    NumericTolerance,
    VerificationPrimitive,
)

INF = float("inf")
NUMERIC: list[VerificationPrimitive] = [
    NumericExact(),
    NumericTolerance(1),
    NumericMinimum(),
    NumericMaximum(),
    NumericGraded(1),
    NumericThresholdGraded("min", 1),
]
WITHOUT_TRUTH: list[VerificationPrimitive] = [NumericRange(0, 9), NumericRangeGraded(0, 9, 1)]


@pytest.mark.parametrize(("a", "b"), [(4, 4.0), ("4", 4), (Decimal("0.1"), 0.1), (Fraction(1, 4), "0.25"), (" 7 ", 7)])
def test_numbers_are_equal_across_their_types(a: Any, b: Any) -> None:
    for primitive in (NumericExact(), NumericTolerance(0), NumericMinimum(), NumericMaximum(), NumericGraded(1e-9)):
        assert primitive.check(a, b)
        assert primitive.score(a, b) == 1


@pytest.mark.parametrize("value", [True, None, "four", "", [4], float("nan"), "nan", b"4"])
def test_what_is_no_number_is_refused_and_not_wrong(value: Any) -> None:
    for primitive in NUMERIC + WITHOUT_TRUTH:
        for judge in (primitive.check, primitive.score):
            with pytest.raises((TypeError, ValueError)):
                judge(value, 1)
    for primitive in NUMERIC:
        for judge in (primitive.check, primitive.score):
            with pytest.raises((TypeError, ValueError)):
                judge(1, value)
        with pytest.raises((TypeError, ValueError)):
            primitive.check_ground_truth(value)


@pytest.mark.parametrize("text", ["9" * 5000, "-" + "9" * 5000, "1e999", " -1E+400 "])
def test_a_text_with_digits_never_reads_as_infinity(text: str) -> None:
    for primitive in NUMERIC + WITHOUT_TRUTH:
        with pytest.raises(ValueError, match="too large for a number") as refusal:
            primitive.check(text, 1)
        assert len(str(refusal.value)) < 200
    assert NumericExact().check("inf", INF)


@pytest.mark.parametrize("primitive", WITHOUT_TRUTH)
@pytest.mark.parametrize("placeholder", ["N/A", 0, None])
def test_a_range_ignores_its_placeholder(primitive: VerificationPrimitive, placeholder: Any) -> None:
    assert not primitive.uses_ground_truth
    primitive.check_ground_truth(placeholder)
    assert primitive.check(5, placeholder)
    assert not primitive.check(10, placeholder)


@pytest.mark.parametrize(
    ("tolerance", "mode", "extracted", "expected", "passed"),
    [
        (0.1, "relative", 110, 100, True),
        (0.1, "relative", 111, 100, False),
        (0.1, "relative", -95, -100, True),
        (0.1, "relative", 0, 0, True),
        (0.1, "relative", 1e-9, 0, False),
        (10, "absolute", 110, 100, True),
        (10, "absolute", 110.5, 100, False),
        (10, "absolute", 1, 0, True),
        (0.1, "relative", 10**400, 1.5, False),
        (0.1, "relative", 10**400, 10**400 + 1, True),
        (0.1, "relative", INF, 3, False),
        (0.1, "relative", 3, INF, False),
        (0.1, "absolute", INF, INF, True),
        (0.1, "absolute", INF, -INF, False),
    ],
)
def test_tolerance(tolerance: float, mode: str, extracted: Any, expected: Any, passed: bool) -> None:
    assert NumericTolerance(tolerance, mode).check(extracted, expected) is passed


@pytest.mark.parametrize(
    ("tolerance", "mode", "extracted", "expected"),
    [
        (0.1, "relative", 1.1, 1),
        (0.1, "absolute", "0.3", "0.2"),
        (0.2, "relative", 2.4, 2.0),
        (0.01, "absolute", 4.36, 4.35),
    ],
)
def test_a_value_on_the_edge_of_a_tolerance_passes_as_it_does_on_paper(
    tolerance: float, mode: str, extracted: Any, expected: Any
) -> None:
    assert NumericTolerance(tolerance, mode).check(extracted, expected)
    assert NumericGraded(tolerance * 2, tolerance, mode).score(extracted, expected) == 1


@given(st.integers(-(10**6), 10**6), st.integers(0, 10**4), st.integers(0, 4))
def test_a_tolerance_in_decimals_is_exact(expected: int, tolerance: int, places: int) -> None:
    unit = Decimal(10) ** -places
    primitive = NumericTolerance(float(tolerance * unit), "absolute")
    assert primitive.check(float((expected + tolerance) * unit), float(expected * unit))
    assert not primitive.check(float((expected + tolerance + 1) * unit), float(expected * unit))


@pytest.mark.parametrize("tolerance", [-1, float("nan"), INF, True, "0.1", None])
def test_a_tolerance_that_means_nothing_is_refused(tolerance: Any) -> None:
    with pytest.raises(ValueError, match="tolerance must be a number of at least 0"):
        NumericTolerance(tolerance)


@pytest.mark.parametrize(
    ("primitive", "extracted", "passed"),
    [
        (NumericRange(1, 2), 1, True),
        (NumericRange(1, 2), "2", True),
        (NumericRange(1, 2), 0.999, False),
        (NumericRange(1, 2), 2.001, False),
        (NumericRange(1, 2, exclusive_min=True), 1, False),
        (NumericRange(1, 2, exclusive_min=True), 2, True),
        (NumericRange(1, 2, exclusive_max=True), 2, False),
        (NumericRange(1, 2, exclusive_max=True), 1, True),
        (NumericRange(0), 0, True),
        (NumericRange(0), -1, False),
        (NumericRange(min=0), INF, True),
        (NumericRange(max=0), 0, True),
        (NumericRange(max=0), -INF, True),
        (NumericRange(max=0), 1, False),
        (NumericRange(3, 3), 3, True),
        (NumericRange(3, 3), 4, False),
    ],
)
def test_ranges(primitive: NumericRange, extracted: Any, passed: bool) -> None:
    assert primitive.check(extracted) is passed
    assert primitive.score(extracted, "N/A") == float(passed)


def test_a_range_that_every_number_or_none_would_pass_is_refused() -> None:
    with pytest.raises(ValueError, match="every number would pass"):
        NumericRange()
    with pytest.raises(ValueError, match="swap them"):
        NumericRange(2, 1)
    with pytest.raises(ValueError, match="nothing lies between"):
        NumericRange(1, 1, exclusive_max=True)
    with pytest.raises(ValueError, match="exclusive_min only means something together with min"):
        NumericRange(max=1, exclusive_min=True)
    with pytest.raises(TypeError, match="exclusive_max must be True or False"):
        NumericRange(max=1, exclusive_max=1)  # type: ignore[arg-type]  # the wrong type is the point


@pytest.mark.parametrize("bound", [INF, -INF, float("nan"), True, "1", [1]])
def test_a_bound_is_a_finite_number(bound: Any) -> None:
    for make in (
        lambda: NumericRange(min=bound),
        lambda: NumericRange(max=bound),
        lambda: NumericRangeGraded(bound, 9, 1),
    ):
        with pytest.raises(ValueError, match="must be a finite number"):
            make()


@pytest.mark.parametrize(
    ("primitive", "extracted", "expected", "passed"),
    [
        (NumericMinimum(), 5, 5, True),
        (NumericMinimum(), "5.1", 5, True),
        (NumericMinimum(), 4.9, 5, False),
        (NumericMinimum(exclusive=True), 5, 5, False),
        (NumericMinimum(exclusive=True), 5.1, "5", True),
        (NumericMaximum(), 5, 5, True),
        (NumericMaximum(), 4.9, 5, True),
        (NumericMaximum(), 5.1, 5, False),
        (NumericMaximum(exclusive=True), 5, 5, False),
        (NumericMaximum(exclusive=True), -INF, 5, True),
    ],
)
def test_thresholds(primitive: VerificationPrimitive, extracted: Any, expected: Any, passed: bool) -> None:
    assert primitive.check(extracted, expected) is passed
    assert primitive.score(extracted, expected) == float(passed)


@pytest.mark.parametrize(
    ("primitive", "extracted", "expected", "passed", "score"),
    [
        (NumericGraded(0.2), 100, 100, True, 1),
        (NumericGraded(0.2), 110, 100, True, 0.5),
        (NumericGraded(0.2), 90, 100, True, 0.5),
        (NumericGraded(0.2), 120, 100, True, 0),
        (NumericGraded(0.2), 121, 100, False, 0),
        (NumericGraded(0.2, decay="quadratic"), 110, 100, True, 0.75),
        (NumericGraded(0.3, 0.1), 110, 100, True, 1),
        (NumericGraded(0.3, 0.1), 120, 100, False, 0.5),
        (NumericGraded(0.3, 0.1, decay="quadratic"), 120, 100, False, 0.75),
        (NumericGraded(0.3, 0.1), 130, 100, False, 0),
        (NumericGraded(0.3, 0), 100, 100, True, 1),
        (NumericGraded(0.3, 0), 115, 100, False, 0.5),
        (NumericGraded(4, mode="absolute"), 11, 10, True, 0.75),
        (NumericGraded(4, mode="absolute"), 1, 0, True, 0.75),
        (NumericGraded(0.2), 0, 0, True, 1),
        (NumericGraded(0.2), 1e-12, 0, False, 0),
        (NumericGraded(0.2), -90, -100, True, 0.5),
        (NumericGraded(0.2), INF, 100, False, 0),
        (NumericGraded(0.2), 5, INF, False, 0),
        (NumericGraded(0.2), INF, INF, True, 1),
        (NumericGraded(0.2), "110", "100", True, 0.5),
        (NumericRangeGraded(10, 20, 4), 10, None, True, 1),
        (NumericRangeGraded(10, 20, 4), 20, None, True, 1),
        (NumericRangeGraded(10, 20, 4), 15, None, True, 1),
        (NumericRangeGraded(10, 20, 4), 9, None, False, 0.75),
        (NumericRangeGraded(10, 20, 4), 23, None, False, 0.25),
        (NumericRangeGraded(10, 20, 4), 24, None, False, 0),
        (NumericRangeGraded(10, 20, 4, decay="quadratic"), 22, None, False, 0.75),
        (NumericRangeGraded(10, 20, 0.4, mode="relative"), 22, None, False, 0.5),
        (NumericRangeGraded(10, 20, 4, exclusive_min=True), 10, None, False, 1),
        (NumericRangeGraded(10, 20, 4, exclusive_min=True), 20, None, True, 1),
        (NumericRangeGraded(10, 20, 4, exclusive_max=True), 20, None, False, 1),
        (NumericRangeGraded(10, 20, 4, exclusive_max=True), 10, None, True, 1),
        (NumericRangeGraded(10, 20, 4), INF, None, False, 0),
        (NumericRangeGraded(10, 20, 4), -INF, None, False, 0),
        (NumericThresholdGraded("min", 0.2), 100, 100, True, 1),
        (NumericThresholdGraded("min", 0.2), 500, 100, True, 1),
        (NumericThresholdGraded("min", 0.2), INF, 100, True, 1),
        (NumericThresholdGraded("min", 0.2), 90, 100, False, 0.5),
        (NumericThresholdGraded("min", 0.2), 80, 100, False, 0),
        (NumericThresholdGraded("max", 0.2), 110, 100, False, 0.5),
        (NumericThresholdGraded("max", 0.2), 90, 100, True, 1),
        (NumericThresholdGraded("max", 0.2), INF, 100, False, 0),
        (NumericThresholdGraded("max", 0.2), -110, -100, True, 1),
        (NumericThresholdGraded("max", 0.2), -90, -100, False, 0.5),
        (NumericThresholdGraded("max", 4, "absolute"), 1, 0, False, 0.75),
        (NumericThresholdGraded("max", 4, "absolute", "quadratic"), 2, 0, False, 0.75),
        (NumericThresholdGraded("max", 4), 1, 0, False, 0),
        (NumericThresholdGraded("max", 4), 0, 0, True, 1),
        (NumericThresholdGraded("max", 4, exclusive=True), 100, 100, False, 1),
        (NumericThresholdGraded("max", 4, exclusive=True), 99, 100, True, 1),
    ],
)
def test_graded(primitive: VerificationPrimitive, extracted: Any, expected: Any, passed: bool, score: float) -> None:
    assert primitive.check(extracted, expected) is passed
    assert primitive.score(extracted, expected) == score


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: NumericGraded(0), "cutoff must be a number above 0"),
        (lambda: NumericGraded(INF), "cutoff must be a number above 0"),
        (lambda: NumericGraded(True), "cutoff must be a number above 0"),
        (lambda: NumericGraded(1, 1), "must be below cutoff"),
        (lambda: NumericGraded(1, -0.1), "full_credit must be a number of at least 0"),
        (lambda: NumericGraded(1, mode="relativ"), "did you mean 'relative'"),
        (lambda: NumericGraded(1, decay="quadratc"), "did you mean 'quadratic'"),
        (lambda: NumericGraded(1, decay=2), "decay must be one of linear, quadratic"),  # type: ignore[arg-type]  # the wrong type is the point
        (lambda: NumericRangeGraded(1, 1, 1), "min 1 must be below max 1"),
        (lambda: NumericRangeGraded(1, 2, 0), "margin must be a number above 0"),
        (lambda: NumericThresholdGraded("up", 1), "direction must be one of max, min"),
        (lambda: NumericThresholdGraded("min", -1), "margin must be a number above 0"),
    ],
)
def test_graded_parameters_that_mean_nothing_are_refused(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()


NUMBERS = st.integers(-(10**9), 10**9) | st.floats(-1e9, 1e9)
POSITIVE = st.integers(1, 10**6) | st.floats(1e-6, 1e6)
MODES = st.sampled_from(["relative", "absolute"])
DECAYS = st.sampled_from(["linear", "quadratic"])


@st.composite
def two_bands(draw: Any) -> NumericGraded:
    cutoff = draw(POSITIVE)
    inner = draw(st.none() | st.floats(0, 0.99).map(lambda share: share * cutoff))
    return NumericGraded(cutoff, inner, draw(MODES), draw(DECAYS))


@st.composite
def graded_ranges(draw: Any) -> NumericRangeGraded:
    low, high = sorted(draw(st.lists(NUMBERS, min_size=2, max_size=2, unique=True)))
    margin, mode, decay = draw(POSITIVE), draw(MODES), draw(DECAYS)
    return NumericRangeGraded(low, high, margin, mode, decay, draw(st.booleans()), draw(st.booleans()))


THRESHOLDS = st.builds(NumericThresholdGraded, st.sampled_from(["max", "min"]), POSITIVE, MODES, DECAYS, st.booleans())
GRADED = two_bands() | graded_ranges() | THRESHOLDS


@given(GRADED, st.integers() | st.floats(allow_nan=False), NUMBERS)
def test_a_score_lies_between_0_and_1(primitive: VerificationPrimitive, extracted: float, expected: float) -> None:
    score = primitive.score(extracted, expected)
    assert isinstance(score, float)
    assert 0 <= score <= 1


@given(GRADED, st.integers() | st.floats(allow_nan=False), NUMBERS)
def test_what_passes_has_full_credit(primitive: VerificationPrimitive, extracted: float, expected: float) -> None:
    """Except within one band: there the score falls from the very first difference on."""
    assume(not isinstance(primitive, NumericGraded) or primitive.full_credit is not None)
    if primitive.check(extracted, expected):
        assert primitive.score(extracted, expected) == 1


@given(GRADED, NUMBERS, NUMBERS, POSITIVE)
def test_more_distance_never_gives_more_credit(
    primitive: VerificationPrimitive, extracted: float, expected: float, step: float
) -> None:
    best = expected
    if isinstance(primitive, NumericRangeGraded):
        best = primitive.min if extracted < primitive.min else max(min(extracted, primitive.max), primitive.min)
    further = extracted + math.copysign(step, extracted - best)
    assume(abs(further - best) >= abs(extracted - best))
    if isinstance(primitive, NumericThresholdGraded) and primitive.score(extracted, expected) == 1:
        return  # on the right side, distance does not count
    assert primitive.score(further, expected) <= primitive.score(extracted, expected)


@given(two_bands(), NUMBERS, NUMBERS)
def test_beyond_the_cutoff_there_is_no_credit(primitive: NumericGraded, extracted: float, expected: float) -> None:
    inside = NumericTolerance(primitive.cutoff, primitive.mode).check(extracted, expected)
    assert inside or primitive.score(extracted, expected) == 0


def test_what_fails_by_less_than_a_float_can_show_has_not_full_credit() -> None:
    graded = NumericThresholdGraded("min", margin=2, mode="absolute")
    assert not graded.check(0.0, 8e-251)
    assert graded.score(0.0, 8e-251) < 1


@given(st.sampled_from(["max", "min"]), st.booleans(), NUMBERS, NUMBERS)
def test_a_graded_threshold_passes_what_the_plain_one_passes(
    direction: str, exclusive: bool, extracted: float, expected: float
) -> None:
    plain = NumericMaximum(exclusive) if direction == "max" else NumericMinimum(exclusive)
    graded = NumericThresholdGraded(direction, 1, exclusive=exclusive)
    assert graded.check(extracted, expected) is plain.check(extracted, expected)


@given(graded_ranges(), NUMBERS)
def test_a_graded_range_passes_what_the_plain_one_passes(graded: NumericRangeGraded, extracted: float) -> None:
    plain = NumericRange(graded.min, graded.max, graded.exclusive_min, graded.exclusive_max)
    assert graded.check(extracted) is plain.check(extracted)
