"""Which examples a question gets: from its own pool, the global ones, so many, these, or not those; and never one that
holds its own answer."""

from __future__ import annotations

import hashlib
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_generation.few_shot import examples_for, few_shot_problems, with_examples
from karenina_vocabulary.prompt_config import FewShotQuestion

from karenina_core import FewShotConfig, Question
from karenina_core.errors import ConfigError

GLOBAL = [{"question": "global?", "answer": "yes"}]


def pool(count: int) -> list[dict[str, str]]:
    return [{"question": f"example {i}?", "answer": str(i)} for i in range(count)]


def asked(count: int = 5, question_id: str = "q") -> Question:
    return Question(id=question_id, question="Why?", few_shot_examples=pool(count))


def picked(config: FewShotConfig | None, question: Question | None = None) -> list[str]:
    return [example["answer"] for example in examples_for(config, question or asked())[0]]


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


WORDS = st.text("abcdefgh ", min_size=1, max_size=12).filter(str.strip)
PAIRS = st.lists(st.fixed_dictionaries({"question": WORDS, "answer": WORDS}), max_size=6)


def words(text: str) -> list[str]:
    return text.casefold().split()


@given(WORDS, st.text("ab ", max_size=4), PAIRS, PAIRS, st.sampled_from(["all", "k-shot"]), st.integers(1, 4))
def test_no_example_holds_the_question_s_own_answer(
    text: str, truth: str, own: list[Any], shared: list[Any], mode: Any, k: int
) -> None:
    question = Question(id="q", question=text, raw_answer=truth, few_shot_examples=own)
    config = FewShotConfig(pool_mode=mode, pool_k=k, global_examples=shared)
    chosen, withheld = examples_for(config, question)
    for example in chosen:
        assert words(example["question"]) != words(text)
        if len("".join(words(truth))) > 1:
            assert f" {' '.join(words(truth))} " not in f" {' '.join(words(example['answer']))} "
    harmless = [example for example in own if example not in withheld]
    assert len(chosen) == min(k if mode == "k-shot" else 99, len(harmless)) + sum(e not in withheld for e in shared)


@pytest.mark.parametrize(
    ("example", "given"),
    [
        (("which enzyme does  Warfarin inhibit", "The usual one."), False),
        (("What is blocked by warfarin?", "It is VKORC1."), False),
        (("What is blocked by warfarin?", "vkorc1"), False),
        (("What is blocked by warfarin?", "VKORC10"), True),
        (("What does VKORC1 do?", "It reduces vitamin K."), True),
    ],
)
def test_an_example_is_withheld_that_is_the_question_or_has_its_answer(example: tuple[str, str], given: bool) -> None:
    pair = dict(zip(("question", "answer"), example, strict=True))
    question = Question(question="Which enzyme does warfarin inhibit?", raw_answer="VKORC1")
    chosen, withheld = examples_for(FewShotConfig(global_examples=[pair]), question)
    assert (chosen, withheld) == (([pair], []) if given else ([], [pair]))


@pytest.mark.parametrize("label", ["Yes", "no.", "True", "B", "7"])
def test_answers_that_many_questions_share_are_no_reason_to_withhold(label: str) -> None:
    pair = {"question": "Is imatinib a kinase inhibitor?", "answer": label}
    question = Question(question="Is aspirin an NSAID?", raw_answer=label)
    assert examples_for(FewShotConfig(global_examples=[pair]), question) == ([pair], [])


def test_what_is_withheld_is_neither_drawn_nor_selected() -> None:
    question = Question(id="q", question="Why?", raw_answer="Because of 3", few_shot_examples=pool(5))
    leaking = {"question": "WHY", "answer": "x"}
    own = Question(id="q", question="Why?", few_shot_examples=[leaking, *pool(5)])
    assert len(picked(FewShotConfig(pool_mode="k-shot", pool_k=5), own)) == 5
    selected = FewShotQuestion(mode="custom", selected_examples=[0, 1])
    chosen, withheld = examples_for(FewShotConfig(question_configs={"q": selected}), own)
    assert (chosen, withheld) == ([pool(1)[0]], [leaking])
    assert len(picked(FewShotConfig(), question)) == 5


def found(config: FewShotConfig | None, *questions: Question) -> list[tuple[str, bool]]:
    return [(str(problem), problem.fatal) for problem in few_shot_problems(config, questions)]


def test_everything_wrong_with_the_examples_is_known_before_a_model_is_asked() -> None:
    odd = Question(id="odd", question="Odd?", few_shot_examples=[{"question": "a?"}])
    (problem,) = found(FewShotConfig(global_examples=[{"answer": "b"}]), odd)
    assert problem == (
        'few_shot_config: write every example as {"question": "...", "answer": "..."}; '
        "not so are global_examples[0], question odd, example 0",
        True,
    )
    assert found(FewShotConfig(source="global", global_examples=GLOBAL), odd) == []
    ((text, fatal),) = found(only(mode="custom", selected_examples=[7]), asked(), asked(3, "other"))
    assert (text, fatal) == ("few_shot_config: question q has no example 7; it has 5 of them", True)


def test_notes_say_what_examples_come_to() -> None:
    leaking = Question(id="q", question="global?")
    assert found(FewShotConfig(global_examples=GLOBAL), leaking, asked(1, "other")) == [
        ("few_shot_config: examples that hold a question's own answer are left out, for 1 question: q", False)
    ]
    assert found(only(), asked(2, "other")) == [
        ("few_shot_config.question_configs: no question of this run is called q", False)
    ]
    assert found(FewShotConfig(), asked(0)) == [
        ("few_shot_config: has no effect: it gives no question of this run an example", False)
    ]
    assert found(None, asked(0)) == found(FewShotConfig(source="disabled"), asked(0)) == []
