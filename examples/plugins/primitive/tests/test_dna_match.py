"""A whole plugin's promises, and laws of the comparison."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_example_primitive import COMPLEMENT, DnaMatch

from karenina_core.templates import primitive_from_spec, to_spec
from karenina_core.testing import conformance_tests

DNA = st.text("ACGT", min_size=1, max_size=40)


test_it_keeps_its_promises = conformance_tests("example-primitive")


@given(DNA)
def test_a_sequence_is_itself_however_it_is_written(bases: str) -> None:
    assert DnaMatch(either_strand=False).check(f"5'-{bases.lower()} -3'", bases)


@given(DNA, DNA)
def test_both_strands_are_one_sequence_and_order_does_not_matter(one: str, other: str) -> None:
    reverse = one[::-1].translate(COMPLEMENT)
    assert DnaMatch().check(reverse, one)
    assert DnaMatch(either_strand=False).check(reverse, one) is (reverse == one)
    assert DnaMatch().check(one, other) is DnaMatch().check(other, one)


@pytest.mark.parametrize("text", ["", "ACGU", "insulin", 7, None])
def test_what_is_no_dna_cannot_be_compared(text: Any) -> None:
    with pytest.raises((TypeError, ValueError), match="sequence of DNA"):
        DnaMatch().check(text, "ACGT")


def test_it_is_plain_data_in_a_template() -> None:
    spec = {"type": "DnaMatch", "either_strand": False}
    assert to_spec(primitive_from_spec(spec, {"DnaMatch": DnaMatch})) == spec
