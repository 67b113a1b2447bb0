"""What reaches a terminal: data, and never commands to it."""

from __future__ import annotations

import io
import json
import re
import sys
import unicodedata

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_cli.output import Passage, Table, inline, note, own_stdout, print_json, print_parts, printable

HOSTILE = st.text(
    alphabet=st.one_of(
        st.characters(),
        st.sampled_from("\x1b\x9b\x07\x08\r\n\t\0\x7f\u202e\u2066\u200f\u2028\ud800\U000e0041[]31m;\\"),
    ),
    max_size=60,
)
ALLOWED = {"\n", "\t"}


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def obeyed(text: str) -> set[str]:
    """Characters that a terminal would act upon."""
    return {c for c in text if unicodedata.category(c) in ("Cc", "Cs", "Zl", "Zp") and c not in ALLOWED} | (
        set(text) & set("\u061c\u200e\u200f\u202a\u202b\u202c\u202d\u202e\u2066\u2067\u2068\u2069")
    )


@given(HOSTILE)
def test_nothing_that_is_printed_can_be_obeyed(text: str) -> None:
    assert obeyed(printable(text)) == set()


@given(st.text(alphabet=st.characters(exclude_categories=("Cc", "Cn", "Cs", "Cf", "Zl", "Zp"))))
def test_ordinary_text_is_printed_as_it_is(text: str) -> None:
    assert printable(text) == text


@given(HOSTILE, st.integers(1, 80))
def test_inline_text_is_one_short_line(text: str, limit: int) -> None:
    line = inline(text, limit)
    assert len(line) <= limit
    assert "\n" not in line


@given(st.lists(st.tuples(HOSTILE, HOSTILE), min_size=1, max_size=4))
def test_a_plain_table_is_one_line_a_row(rows: list[tuple[str, str]]) -> None:
    out = io.StringIO()
    print_parts([Table(("a", "b"), rows)], out)
    assert obeyed(out.getvalue()) == set()
    assert out.getvalue().count("\n") == len(rows) + 2


@pytest.mark.parametrize("text", ["\x1b[31mred\x1b[0m", "a\x9b31mb", "[red]markup[/red]", ":smile:", "\u202eevil"])
def test_on_a_terminal_too(text: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    monkeypatch.setenv("TERM", "dumb")
    out = Terminal()
    print_parts([text, Table(("column",), [(text,)], f"title {text}"), Passage([(text, False), (text, True)])], out)
    assert out.getvalue().count(printable(text)) == 5
    assert obeyed(out.getvalue()) == set()


NARROW = Table(
    ("trait", "type", "score", "from", "reason"),
    [
        ("adjusts for side effects", "llm boolean", "true", "question_specific", ""),
        ("odd\n  no; score 9", "", "", "", "x"),
    ],
    "Rubric",
)


def drawn(part: Table | Passage, monkeypatch: pytest.MonkeyPatch, width: int, term: str = "xterm") -> str:
    monkeypatch.setenv("COLUMNS", str(width))
    monkeypatch.setenv("TERM", term)
    monkeypatch.delenv("NO_COLOR", raising=False)
    out = Terminal()
    print_parts([part], out)
    return "\n".join(line.rstrip() for line in out.getvalue().split("\n"))


def plain(text: str) -> str:
    """Without the styles that rich sets."""
    return re.sub(r"\x1b\[[\d;]*m", "", text).replace(" \n", "\n")


def test_a_table_that_would_break_words_is_a_list_of_records(monkeypatch: pytest.MonkeyPatch) -> None:
    assert plain(drawn(NARROW, monkeypatch, 53)) == (
        "Rubric\n"
        "  adjusts for side effects\n"
        "    type llm boolean; score true; from\n    question_specific\n"
        "  odd no; score 9\n"
        "    reason x\n\n"
    )


def test_where_there_is_room_a_table_is_a_table(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = plain(drawn(NARROW, monkeypatch, 100)).split("\n")
    assert lines[2].split() == list(NARROW.columns)
    assert lines[4].split() == ["adjusts", "for", "side", "effects", "llm", "boolean", "true", "question_specific"]


@given(
    st.integers(1, 5).flatmap(lambda n: st.lists(st.tuples(*[HOSTILE] * n), min_size=1, max_size=3)),
    st.integers(10, 90),
)
@settings(max_examples=40)
def test_no_width_of_a_terminal_makes_a_cell_a_command(rows: list[tuple[str, ...]], width: int) -> None:
    with pytest.MonkeyPatch.context() as monkeypatch:
        table = drawn(Table([f"c{number}" for number in range(len(rows[0]))], rows, "t"), monkeypatch, width)
        passage = drawn(Passage([(cell, True) for cell in rows[0]]), monkeypatch, width)
    assert obeyed(plain(table + passage)) == set()


MARKED = Passage([("one two three ", False), ("four five", True), (" six seven eight", False)])


def test_a_passage_is_wrapped_between_words_and_marks_need_no_colour(monkeypatch: pytest.MonkeyPatch) -> None:
    lines = drawn(MARKED, monkeypatch, 20).split("\n")
    assert plain("\n".join(lines)).split("\n")[:3] == [
        "  one two three four",
        "  five six seven",
        "  eight",
    ]
    assert "\x1b[1;7mfive\x1b[0m six" in "\n".join(lines)
    monkeypatch.setenv("NO_COLOR", "1")
    out = Terminal()
    print_parts([MARKED], out)
    assert "\x1b[1;7mfive\x1b[0m" in out.getvalue()
    assert not re.search(r"\x1b\[(\d+;)*[349]\d", out.getvalue())


def test_a_terminal_without_styles_and_a_pipe_have_brackets(monkeypatch: pytest.MonkeyPatch) -> None:
    assert drawn(MARKED, monkeypatch, 80, "dumb") == "  one two three [[four five]] six seven eight\n"
    pipe = io.StringIO()
    print_parts([MARKED], pipe)
    assert pipe.getvalue() == "  one two three [[four five]] six seven eight\n"


def test_json_is_ascii_and_one_document() -> None:
    out = io.StringIO()
    print_json({"text": "\x9b31m\u202e\ud800é"}, out)
    assert out.getvalue().isascii()
    assert json.loads(out.getvalue()) == {"text": "\x9b31m\u202e\ud800é"}


def test_json_has_no_numbers_that_json_cannot_hold() -> None:
    out = io.StringIO()
    print_json({"scores": [float("nan"), float("inf"), 0.5], 7: (1, True)}, out)
    assert json.loads(out.getvalue(), parse_constant=pytest.fail) == {"scores": [None, None, 0.5], "7": [1, True]}


def test_what_others_print_goes_to_stderr(capsys: pytest.CaptureFixture[str]) -> None:
    with own_stdout() as out:
        print("a plugin says hello")
        print_parts(["ours"], out)
    print("afterwards", file=sys.stdout)
    note("a \x1b[31mnote")
    captured = capsys.readouterr()
    assert captured.out == "ours\nafterwards\n"
    assert captured.err == "a plugin says hello\na \\x1b[31mnote\n"


def test_what_hides_text_is_written_out_and_emoji_are_not() -> None:
    family = "\U0001f468\u200d\U0001f469"
    assert printable(f"BCL\u200b2\u00ad {family}") == f"BCL\\u200b2\\xad {family}"
