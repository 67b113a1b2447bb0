"""A whole plugin's promises, laws of both comparisons, and what a proof says of templates with them."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_example_names import SYMBOLS, FormulaMatch, GeneMatch, atoms

from karenina_core.templates import primitive_from_spec, to_spec
from karenina_core.testing import conformance_tests

ELEMENTS = st.sampled_from(["H", "C", "N", "O", "Na", "Cl", "Fe"])
PARTS = st.lists(st.tuples(ELEMENTS, st.integers(1, 20)), min_size=1, max_size=5)


test_it_keeps_its_promises = conformance_tests("example-names")


@pytest.mark.parametrize("name", SYMBOLS)
def test_every_symbol_of_a_gene_is_that_gene_and_no_other(name: str) -> None:
    match = GeneMatch()
    for other in SYMBOLS[name]:
        assert match.check(other.lower(), name)
        assert match.check(name, other)
        assert not any(match.check(other, stranger) for stranger in SYMBOLS if stranger != name)


@pytest.mark.parametrize(("extracted", "same"), [("tnf-alpha", False), ("TNF α", True), ("TNFB", False), ("", False)])
def test_spellings_of_one_gene(extracted: str, same: bool) -> None:
    assert GeneMatch().check(extracted, "TNF") is same


def test_aliases_and_other_symbols_are_its_other_forms() -> None:
    match = GeneMatch(["tumor protein 53"])
    assert match.other_forms("TP53") == ("p53", "tumor protein 53")
    assert all(match.check(form, "TP53") for form in match.other_forms("TP53"))
    assert primitive_from_spec(to_spec(match), {"GeneMatch": GeneMatch}) == match


@given(PARTS)
def test_a_formula_is_the_same_in_any_order_and_with_brackets(parts: list[tuple[str, int]]) -> None:
    formula = "".join(f"{name}{count}" for name, count in parts)
    match = FormulaMatch()
    assert match.check("".join(f"{name}{count}" for name, count in reversed(parts)), formula)
    assert match.check(f"({formula})2", "".join(f"{name}{2 * count}" for name, count in parts))
    assert all(match.check(form, formula) for form in match.other_forms(formula))
    assert not match.check(f"{formula}Xe", formula)


@pytest.mark.parametrize(
    ("extracted", "expected", "same"),
    [
        ("CH3COOH", "C2H4O2", True),
        ("H₂O", "H2O", True),
        ("CuSO4·5H2O", "CuSO9H10", True),
        ("Ca(OH)2", "CaO2H2", True),
        ("CO", "Co", False),
        ("H2O2", "H2O", False),
        ("water", "H2O", False),
        ("Ca(OH", "CaOH", False),
        ("", "H2O", False),
    ],
)
def test_formulas_are_read_as_chemists_write_them(extracted: str, expected: str, same: bool) -> None:
    assert FormulaMatch().check(extracted, expected) is same


@given(st.text("HOCNal()[]2·", max_size=40))
def test_no_text_breaks_the_reader_of_formulas(text: str) -> None:
    with suppress(ValueError):
        assert sum(atoms(text).values()) >= 0
