"""What judges are sent beside the question and the answer, in tokens, and how much of it a cache of prompts serves.

Tokens are counted with tiktoken's cl100k_base, whose vocabulary is in the package litellm. The template is that of the
question `warfarin` of `examples/pharmacology.jsonld`: a text and a list, with descriptions and a hint.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

import pytest

from karenina_core import Benchmark, Karenina, ModelConfig, VerificationConfig, run_single_model_verification
from karenina_core.testing import ScriptedServer, ServedRequest
from tests.benchmarks.prefixes import TRAITS, PrefixCache, scored

BENCHMARK = Path(__file__).parents[2] / "examples" / "pharmacology.jsonld"
ANSWER = "Warfarin inhibits VKORC1, and so impairs the synthesis of the factors II, VII, IX and X."
MOST = {"parsing": 260, "abstention": 350, "sufficiency": 450, "quotations": 400}
"""Tokens of a prompt beside the question and the answer. A prompt that has to say more may raise its number."""


@pytest.fixture(scope="module")
def app() -> Karenina:
    return Karenina.installed()


@pytest.fixture
def tokens(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], int]:
    tiktoken = pytest.importorskip("tiktoken")
    spec = importlib.util.find_spec("litellm")
    assert spec is not None
    assert spec.origin is not None
    vocabulary = Path(spec.origin).parent / "litellm_core_utils" / "tokenizers"
    monkeypatch.setenv("TIKTOKEN_CACHE_DIR", str(vocabulary))
    encoding = tiktoken.get_encoding("cl100k_base")
    return lambda text: len(encoding.encode(text, disallowed_special=()))


def kind(request: ServedRequest) -> str:
    """What the judge is asked for, by the schema of its reply."""
    schema = request.schema or {"properties": {}}
    for name, word in {"abstention_detected": "abstention", "sufficient": "sufficiency"}.items():
        if name in schema["properties"]:
            return word
    return "quotations" if "Excerpt" in str(schema) or "confidence" in str(schema) else "parsing"


def test_a_judge_is_told_little_beside_the_question_and_the_answer(
    app: Karenina, tokens: Callable[[str], int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karenina_calls.ports.own_tags._SECRET", bytes(16))  # tags differ by a few tokens
    (question,) = (question for question in Benchmark.load(BENCHMARK) if question.id == "warfarin")

    def replies(request: ServedRequest) -> object:
        return ANSWER if request.schema is None else "{}"

    found: dict[str, int] = {}
    with ScriptedServer(replies) as server:
        answering, parsing = (
            ModelConfig(model_name=name, interface="openai_endpoint", endpoint_base_url=server.url, max_retries=0)
            for name in ("a", "j")
        )
        for features in ({}, {"abstention_enabled": True, "sufficiency_enabled": True, "deep_judgment_enabled": True}):
            config = VerificationConfig(**features)
            run_single_model_verification(question, answering, parsing, config=config, app=app)
        for request in server.requests:
            if request.schema is not None:
                given = tokens(question.question) + tokens(ANSWER)
                found[kind(request)] = tokens(request.text) - given
    assert found.keys() == MOST.keys()
    assert not {name: count for name, count in found.items() if count > MOST[name]}, found


def test_most_of_what_ten_calls_about_an_answer_send_is_in_a_cache_and_the_scores_are_those_of_one_call(
    app: Karenina,
) -> None:
    judge, alone, together = PrefixCache(), PrefixCache(), PrefixCache()
    results = []
    for served, settings in ((judge, {}), (alone, {"rubric_concurrency": 1}), (together, {"strategy": "batch"})):
        given = {f"rubric_evaluation_{name}" if name == "strategy" else name: value for name, value in settings.items()}
        with ScriptedServer(served) as server:
            results.append(scored(app, server.url, **given))
            assert server.count == (2 if settings.get("strategy") else 1 + len(TRAITS))
    assert judge.share >= 0.7, f"{judge.read} of {judge.sent} tokens"
    assert judge.share == pytest.approx(alone.share, abs=0.01), "asking at the same time loses nothing"
    scores = [dict(result.rubric.llm_trait_scores) for result in results if result.rubric is not None]
    assert scores[0] == scores[1] == scores[2]
    assert len(scores[0]) == len(TRAITS)
    usage = results[0].generation.usage_metadata["rubric_llm_trait_single"]
    assert (usage["input_tokens"], usage["cache_read_tokens"]) == (judge.sent, judge.read)
