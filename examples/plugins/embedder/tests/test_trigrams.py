"""Every promise of an embedder, and that it finds alike what is alike."""

import asyncio

from karenina_example_embedder import MODEL, Trigrams

from karenina_core.testing import conformance_tests

test_it_keeps_its_promises = conformance_tests("example-embedder")


def test_another_spelling_is_nearer_than_another_word() -> None:
    made = asyncio.run(Trigrams(MODEL).aembed(["haemoglobin", "hemoglobin", "insulin"]))
    first, spelling, word = (sum(a * b for a, b in zip(made.vectors[0], v, strict=True)) for v in made.vectors)
    assert first > spelling > word


def test_another_model_is_refused_before_a_run() -> None:
    assert "write 'letters-3'" in str(Trigrams("letters-4").problem())
