"""How similar two vectors are: a number from 0 to 1, or an error that says what is wrong with them."""

from __future__ import annotations

import asyncio
import math
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from karenina_calls.models.model_ports import embedder_port
from karenina_calls.records.requests import embeddings_from, embeddings_to
from karenina_calls.services.embedding import EmbedderPort, Embeddings, cosine

from karenina_core.errors import PortError
from karenina_core.ports.middleware import CallTarget

ODD = CallTarget("embedder", "odd", "m")
NUMBERS = st.floats(-1e300, 1e300, allow_subnormal=False)
PAIRS = st.integers(1, 6).flatmap(lambda n: st.tuples(*[st.lists(NUMBERS, min_size=n, max_size=n)] * 2))


def has_direction(vector: list[float]) -> bool:
    return 0 < math.hypot(*vector) < math.inf


@given(PAIRS)
def test_it_is_within_0_and_1_and_the_same_both_ways(pair: tuple[list[float], list[float]]) -> None:
    a, b = pair
    assume(has_direction(a) and has_direction(b))
    assert 0 <= cosine(a, b) <= 1
    assert cosine(a, b) == pytest.approx(cosine(b, a), abs=1e-12)


@given(st.lists(st.floats(-100, 100), min_size=1, max_size=6), st.floats(1e-100, 1e100))
def test_length_does_not_matter(vector: list[float], factor: float) -> None:
    assume(math.hypot(*vector) > 1e-3)
    assert cosine(vector, [factor * x for x in vector]) == pytest.approx(1.0)


@given(st.lists(st.floats(-1, 1), min_size=2, max_size=6), st.lists(st.floats(-1, 1), min_size=6, max_size=6))
def test_it_has_6_digits(vector: list[float], other: list[float]) -> None:
    assume(math.hypot(*vector) > 1e-3 and math.hypot(*other[: len(vector)]) > 1e-3)
    found = cosine(vector, other[: len(vector)])
    assert found == round(found, 4)


def test_the_last_bits_of_vectors_of_single_precision_do_not_matter_at_a_threshold() -> None:
    close = 0.85, math.sqrt(1 - 0.85**2)
    for bits in (-6e-8, -1e-12, 0.0, 1e-12, 6e-8):
        assert cosine([1.0, 0.0], [close[0] + bits, close[1] - bits]) == 0.85


def test_the_textbook_cases() -> None:
    assert cosine([1, 0], [0, 2]) == 0
    assert cosine([1, 0], [1, 1]) == round(math.sqrt(0.5), 4)
    assert cosine([1, 0], [-1, 0]) == 0, "what points away is not similar"


@pytest.mark.parametrize(
    ("a", "b", "words"),
    [
        ([1.0], [1.0, 2.0], r"vectors of \d and \d numbers"),
        ([0.0, 0.0], [1.0, 2.0], "zero or not finite"),
        ([], [], "zero or not finite"),
        ([math.nan], [1.0], "zero or not finite"),
        ([math.inf, -math.inf], [1.0, 1.0], "zero or not finite"),
        ([1e308, 1.7e308], [1.0, 1.0], "zero or not finite"),
        (["a"], [1.0], "not a number"),
        ([None], [1.0], "not a number"),
        ([10**400], [1.0], "not a number"),
    ],
)
def test_what_cannot_be_compared_is_a_bad_response(a: list[float], b: list[float], words: str) -> None:
    for pair in ((a, b), (b, a)):
        with pytest.raises(PortError, match=words) as caught:
            cosine(*pair)
        assert caught.value.kind == "bad_response"


def test_an_embedder_is_known_by_its_two_methods() -> None:
    class Constant:
        def problem(self) -> None:
            return None

        async def aembed(self, texts: list[str]) -> Embeddings:
            return Embeddings(vectors=((1.0,),) * len(texts), model="constant")

    assert isinstance(Constant(), EmbedderPort)
    assert not isinstance(object(), EmbedderPort)


@pytest.mark.parametrize(
    ("vectors", "words"),
    [
        ([[1.0, 0.0], [1.0]], "vectors of 2 and 1 numbers"),
        ([[1.0, 0.0], [0.0, 0.0]], "zero or not finite"),
        ([[math.nan, 1.0], [1.0, 1.0]], "zero or not finite"),
        ([[math.inf, 1.0], [1.0, 1.0]], "zero or not finite"),
        ([[10**400, 1.0], [1.0, 1.0]], "not a number"),
        ([["a", 1.0], [1.0, 1.0]], "not a number"),
        ([None, [1.0, 1.0]], "not a number"),
    ],
)
def test_vectors_that_can_be_compared_with_nothing_are_refused_where_they_come_from(vectors: Any, words: str) -> None:
    class Odd:
        def __init__(self, vectors: Any) -> None:
            self.vectors = vectors

        async def aembed(self, texts: list[str]) -> Embeddings:
            return Embeddings(vectors=tuple(self.vectors), model="m")

    for given_ in (vectors, vectors[::-1]):
        with pytest.raises(
            PortError, match="vectors of .* numbers" if words.startswith("vectors") else words
        ) as caught:
            asyncio.run(embedder_port(ODD, Odd(given_)).aembed(["a", "b"]))
        assert caught.value.kind == "bad_response"
    for fine in ([], [[3.0, 4.0], (1, 2)]):
        found = asyncio.run(embedder_port(ODD, Odd(fine)).aembed(["a", "b"][: len(fine)]))
        assert len(found.vectors) == len(fine)


@pytest.mark.parametrize("unknown", [True, False])
def test_only_a_reply_of_unknown_usage_is_kept_with_that_field(unknown: bool) -> None:
    """So lines of recordings are as they were before the field was added."""
    embeddings = Embeddings(vectors=((1.0, 2.0),), model="m", usage_unavailable=unknown)
    data = embeddings_to(embeddings)
    assert sorted(data) == sorted(["model", "usage", "vectors", *["usage_unavailable"] * unknown])
    assert embeddings_from(data) == embeddings
