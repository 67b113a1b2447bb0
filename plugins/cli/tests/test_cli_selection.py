"""`--questions`: positions, ranges and ids."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_cli.options.flags import select_questions

from karenina_core.errors import ConfigError

IDS = [f"urn:q{i}" for i in range(10)]


@pytest.mark.parametrize(
    ("text", "chosen"),
    [
        ("0", [0]),
        ("0-2", [0, 1, 2]),
        ("9,0-1", [0, 1, 9]),
        ("3-3", [3]),
        ("2, 2 ,2", [2]),
        ("urn:q4", [4]),
        ("urn:q4,7,5-6", [4, 5, 6, 7]),
    ],
)
def test_examples(text: str, chosen: list[int]) -> None:
    assert select_questions(text, IDS) == [IDS[i] for i in chosen]


entries = st.one_of(
    st.integers(0, 9).map(lambda i: (str(i), {i})),
    st.integers(0, 9).map(lambda i: (IDS[i], {i})),
    st.tuples(st.integers(0, 9), st.integers(0, 9)).map(
        lambda pair: (f"{min(pair)}-{max(pair)}", set(range(min(pair), max(pair) + 1)))
    ),
)


@given(st.lists(entries, min_size=1, max_size=6))
def test_a_selection_is_the_union_of_its_entries_in_the_order_of_the_file(parts: list[tuple[str, set[int]]]) -> None:
    chosen = set().union(*(numbers for _, numbers in parts))
    assert select_questions(",".join(text for text, _ in parts), IDS) == [IDS[i] for i in sorted(chosen)]


@given(st.text(max_size=20))
def test_any_text_selects_known_questions_or_is_refused(text: str) -> None:
    try:
        chosen = select_questions(text, IDS)
    except ConfigError:
        return
    assert chosen
    assert set(chosen) <= set(IDS)


def test_everything_unknown_is_reported_at_once() -> None:
    with pytest.raises(ConfigError) as raised:
        select_questions("urn:q44,10,5-3,,0", IDS)
    messages = [problem.message for problem in raised.value.problems]
    assert len(messages) == 4
    assert "no question 'urn:q44' (did you mean 'urn:q4'?)" in messages[0]
    assert "no position 10" in messages[1]
    assert "from 0 to 9" in messages[1]
    assert "write 3-5" in messages[2]
    assert "empty entry" in messages[3]


def test_an_id_wins_over_a_position_and_may_hold_a_comma() -> None:
    assert select_questions("1", ["2", "0", "1"]) == ["1"]
    assert select_questions("1-1", ["2", "0", "1"]) == ["0"]
    assert select_questions("1-2", ["1-2", "x", "y"]) == ["1-2"]
    assert select_questions("a,b", ["a", "a,b"]) == ["a,b"]


def test_nothing_can_be_selected_from_nothing() -> None:
    with pytest.raises(ConfigError, match="the benchmark has no questions"):
        select_questions("0", [])
