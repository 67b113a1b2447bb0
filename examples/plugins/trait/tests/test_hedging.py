"""Every promise of a trait evaluator, and which words it finds."""

import pytest
from karenina_example_trait import HEDGES, HedgingTrait

from karenina_core.testing import conformance_tests

test_it_keeps_its_promises = conformance_tests("example-trait")


@pytest.mark.parametrize(
    ("text", "count"),
    [("It binds BCL2.", 0), ("Perhaps it binds BCL2, maybe not.", 2), ("It might; the mighty dwarf may be small.", 2)],
)
def test_words_are_found_whole_and_in_any_case(text: str, count: int) -> None:
    assert len(HEDGES.findall(text)) == count


def test_fewer_than_no_words_cannot_be_allowed() -> None:
    with pytest.raises(ValueError, match="'most' must be >= 0"):
        HedgingTrait(name="Impossible", most=-1)
