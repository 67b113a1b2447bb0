"""What reaches a terminal: data, and never commands to it."""

from __future__ import annotations

import io
import json
import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from karenina_core.cli.output import Table, inline, note, own_stdout, print_json, print_parts, printable

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
    print_parts([text, Table(("column",), [(text,)], f"title {text}")], out)
    assert out.getvalue().count(printable(text)) == 3
    assert obeyed(out.getvalue()) == set()


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
    said = capsys.readouterr()
    assert said.out == "ours\nafterwards\n"
    assert said.err == "a plugin says hello\na \\x1b[31mnote\n"
