"""Similarities by the configured embedder: one call, tried again like that of a model, accounted for, checked."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from attrs import define, field
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.services import similarity
from karenina_calls.services.embedding import Embeddings
from karenina_judging.services import Similarities

from karenina_core import Question, VerificationConfig, VerificationContext, hookimpl
from karenina_core.errors import KareninaError, PluginError, PortError, UnknownName
from karenina_core.testing import application
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.message import UsageMetadata

QUICK = RetryPolicy(server=AttemptPolicy(3), timeout=AttemptPolicy(2))


@define(eq=False)
class Letters:
    """An embedder that counts letters, and its plugin; it first gives the outcomes of a list."""

    first: list[Any] = field(factory=list)
    calls: list[tuple[str, ...]] = field(factory=list)

    @hookimpl
    def karenina_register_embedders(self, registry: Any) -> None:
        registry.add(self, name="letters")

    def problem(self) -> str | None:
        return None

    async def aembed(self, texts: Sequence[str]) -> Any:
        self.calls.append(tuple(texts))
        if self.first:
            outcome = self.first.pop(0)
            if isinstance(outcome, BaseException):
                raise outcome
            return outcome
        vectors = tuple((1.0, *(float(text.count(letter)) for letter in "abc")) for text in texts)
        return Embeddings(vectors=vectors, model="abc", usage=UsageMetadata(3, 0, 3, cost_usd=0.5))


def context_with(embedder: Letters, name: str = "letters") -> VerificationContext:
    return VerificationContext(
        question=Question(question="?"),
        app=application(embedder),
        config=VerificationConfig(embedding_check_embedder=name, embedding_check_model="wanted", retry_policy=QUICK),
    )


async def similarities(about: VerificationContext, pairs: Sequence[tuple[str, str]]) -> Similarities:
    return await similarity.similarities(about.app, about.config, about.calls, pairs)


def test_all_texts_are_embedded_in_one_call_and_compared_pair_by_pair() -> None:
    embedder = Letters()
    about = context_with(embedder)
    found = asyncio.run(similarities(about, [("a", "a"), ("a", "b")]))
    assert embedder.calls == [("a", "b")]
    assert found.scores == (1.0, 0.5)
    assert found.model == "abc"
    (call,) = about.calls
    assert (call.task, call.model, call.attempts, call.error_kind) == ("embedding", "letters:abc", 1, None)
    assert (call.usage.input_tokens, call.usage.cost_usd) == (3, 0.5)
    assert call.seconds >= 0


@given(st.lists(st.floats(-1, 1).filter(lambda x: abs(x) > 1e-3), min_size=3, max_size=8), st.randoms())
def test_the_last_bits_of_vectors_do_not_decide_whether_texts_are_similar_enough(
    vector: list[float], random: Any
) -> None:
    """A threshold of 1 asks for texts of the same vector; another processor computes it with other last bits."""
    other = [number * (1 + random.uniform(-1e-6, 1e-6)) for number in vector]
    embedder = Letters([Embeddings(vectors=(tuple(vector), tuple(other)), model="abc")])
    assert asyncio.run(similarities(context_with(embedder), [("a", "A")])).scores == (1.0,)


def test_similarities_have_four_decimals() -> None:
    vectors = ((1.0, 0.0), (0.849_968, 0.526_834_2), (1.0, 0.0), (0.849_94, 0.526_879_4))
    found = asyncio.run(
        similarities(context_with(Letters([Embeddings(vectors=vectors, model="abc")])), [("a", "b"), ("c", "d")])
    )
    assert found.scores == (0.85, 0.8499)


def test_no_pairs_have_no_scores() -> None:
    assert asyncio.run(similarities(context_with(Letters()), [])) == Similarities((), "abc")


def test_what_passes_is_tried_again_and_counted() -> None:
    about = context_with(Letters([PortError("busy", kind="server"), PortError("busy", kind="server")]))
    assert asyncio.run(similarities(about, [("a", "a")])).scores == (1.0,)
    assert (about.calls[0].attempts, about.calls[0].retries) == (3, {"server": 2})


@pytest.mark.parametrize(
    ("failure", "kind", "attempts"),
    [
        (PortError("no key", kind="auth"), "auth", 1),
        (PortError("down", kind="server"), "server", 3),
        (TimeoutError(), "timeout", 2),
        (PluginError("not installed"), "plugin", 1),
        (ZeroDivisionError("a bug"), "plugin", 1),
        (Embeddings(vectors=((1.0,),), model="abc"), "bad_response", 1),
        (Embeddings(vectors=((1.0,), (1.0, 2.0)), model="abc"), "bad_response", 1),
        (Embeddings(vectors=((0.0,), (1.0,)), model="abc"), "bad_response", 1),
        ([[1.0], [1.0]], "bad_response", 1),
        (None, "bad_response", 1),
    ],
)
def test_a_failure_is_an_error_of_its_kind_and_a_call_all_the_same(failure: Any, kind: str, attempts: int) -> None:
    about = context_with(Letters([failure] * 3))
    with pytest.raises(KareninaError) as caught:
        asyncio.run(similarities(about, [("a", "b")]))
    (call,) = about.calls
    assert (caught.value.kind, call.error_kind, call.attempts) == (kind, kind, attempts)


def test_a_bug_of_an_embedder_names_it() -> None:
    with pytest.raises(PluginError, match="the embedder 'letters' failed: ZeroDivisionError: a bug"):
        asyncio.run(similarities(context_with(Letters([ZeroDivisionError("a bug")])), [("a", "b")]))


def test_an_embedder_that_no_plugin_provides_is_an_error_before_any_call() -> None:
    about = context_with(Letters(), "leters")
    with pytest.raises(UnknownName, match="did you mean 'letters'"):
        asyncio.run(similarities(about, [("a", "b")]))
    assert about.calls == []


def test_the_embedder_is_made_for_the_configured_model() -> None:
    made: list[str] = []

    class OfModel:
        name = "of_model"

        def __init__(self, model: str) -> None:
            made.append(model)

        def problem(self) -> str | None:
            return None

        async def aembed(self, texts: Sequence[str]) -> Embeddings:
            return Embeddings(vectors=((1.0,),) * len(texts), model=f"really {made[-1]}")

    class Plugin:
        @hookimpl
        def karenina_register_embedders(self, registry: Any) -> None:
            registry.add(OfModel, name="of_model")

    about = VerificationContext(
        question=Question(question="?"),
        app=application(Plugin()),
        config=VerificationConfig(embedding_check_embedder="of_model", embedding_check_model="wanted"),
    )
    assert asyncio.run(similarities(about, [("a", "b")])).model == "really wanted"
    asyncio.run(similarities(about, [("a", "b")]))
    assert made == ["wanted"], "and once"
