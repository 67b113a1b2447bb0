"""Texts that are nothing but separators: a quotation is looked for in a time that grows as they do."""

from __future__ import annotations

import time

import pytest
from karenina_deep_judgment.quotations.matching import Source

UNITS = [*"-_*|#>=.,1", "- ", "* ", "| ", "1.", "a-", "a_", "a, ", "(a) ", "<li>", "a\n"]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("quotation", ["{}{}{}", "a {}{} b", "40 mg"])
def test_a_long_line_of_separators_is_searched_once(unit: str, quotation: str) -> None:
    """In some tenths of a second; starting again at each of these characters would take minutes."""
    source = Source("a " + unit * (200_000 // len(unit)) + " 40 mg of it")
    began = time.thread_time()
    source.find(quotation.format(unit, unit, unit))
    assert time.thread_time() - began < 10
