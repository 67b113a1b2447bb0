"""Which examples a question gets: from its own pool, the global ones, so many, these, or not those."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_generation.generate_answer import examples_for, with_examples
from karenina_vocabulary.prompt_config import FewShotQuestion

from karenina_core import FewShotConfig, Question
from karenina_core.errors import ConfigError

GLOBAL = [{"question": "global?", "answer": "yes"}]


def pool(count: int) -> list[dict[str, str]]:
    return [{"question": f"example {i}?", "answer": str(i)} for i in range(count)]


def asked(count: int = 5, question_id: str = "q") -> Question:
    return Question(id=question_id, question="Why?", few_shot_examples=pool(count))


def picked(config: FewShotConfig | None, question: Question | None = None) -> list[str]:
    return [example["answer"] for example in examples_for(config, question or asked())]


def md5(number: int) -> str:
    return hashlib.md5(f"example {number}?".encode()).hexdigest()


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("disabled", []),
        ("question_pool", ["0", "1", "2", "3", "4"]),
        ("global", ["yes"]),
        ("both", ["0", "1", "2", "3", "4", "yes"]),
    ],
)
def test_sources(source: Any, expected: list[str]) -> None:
    assert picked(FewShotConfig(source=source, global_examples=GLOBAL)) == expected


def test_without_a_configuration_there_are_no_examples() -> None:
    assert picked(None) == []


def only(**facts: Any) -> FewShotConfig:
    return FewShotConfig(question_configs={"q": FewShotQuestion(**facts)}, pool_mode="k-shot", pool_k=2)


@given(st.integers(0, 8), st.integers(1, 10), st.text(max_size=10), st.sets(st.integers(0, 7), max_size=4))
def test_k_shot_draws_the_same_subset_for_the_same_question(
    size: int, k: int, question_id: str, excluded: set[int]
) -> None:
    excluded = {position for position in excluded if position < size}
    own = FewShotQuestion(excluded_examples=sorted(excluded))
    config = FewShotConfig(pool_mode="k-shot", pool_k=k, question_configs={question_id: own})
    question = asked(size, question_id)
    drawn = [int(answer) for answer in picked(config, question)]
    assert drawn == [int(answer) for answer in picked(config, asked(size, question_id))]
    assert drawn == sorted(set(drawn)), "the order of the pool"
    assert len(drawn) == min(k, size - len(excluded))
    assert not set(drawn) & excluded


def test_different_questions_draw_differently() -> None:
    config = FewShotConfig(pool_mode="k-shot", pool_k=3)
    draws = {tuple(picked(config, asked(8, f"q{i}"))) for i in range(20)}
    assert len(draws) > 5


def test_a_question_may_have_a_number_of_its_own() -> None:
    assert len(picked(only())) == 2
    assert len(picked(only(k=4))) == 4
    assert len(picked(only(mode="all"))) == 5
    assert len(picked(only(), asked(5, "another"))) == 2


def test_custom_picks_by_position_or_by_the_example_s_md5() -> None:
    assert picked(only(mode="custom", selected_examples=[3, md5(1)])) == ["1", "3"]
    assert picked(only(mode="custom", selected_examples=[3, 1], excluded_examples=[md5(3)])) == ["1"]
    assert picked(only(mode="custom")) == []


@pytest.mark.parametrize("pick", [5, -1, "0", "f" * 32])
@pytest.mark.parametrize("where", ["selected_examples", "excluded_examples"])
def test_unknown_picks_are_refused(pick: int | str, where: str) -> None:
    with pytest.raises(ConfigError, match=r"few_shot_config: question q has no example .*; it has 5 of them"):
        picked(only(mode="custom", **{where: [pick]}))


def test_the_prompt() -> None:
    assert with_examples([], "Why?") == "Why?"
    assert with_examples(pool(2), "Why?") == (
        "Question: example 0?\nAnswer: 0\n\nQuestion: example 1?\nAnswer: 1\n\nQuestion: Why?\nAnswer:"
    )
