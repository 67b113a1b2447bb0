"""Searches in linear time find what Python's `re` finds, and take a time that grows as the text does."""

from __future__ import annotations

import re
import sys
import time
import warnings
from collections.abc import Iterator
from random import Random
from types import ModuleType

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_template.language import linear as module
from karenina_template.language.linear import Found, linear
from karenina_template.language.primitives.text import TraceRegex
from karenina_template.language.searches import expression, listed, run_patterns

LAW = settings(database=None, deadline=None, derandomize=True)
CASES = 80
"""Patterns and texts of one draw. Python's own generator makes them: hypothesis takes ten times as long for each, draws
many of them twice, and would make those of a failure hardly smaller."""
PARTS = (
    *(
        r"\w",
        r"\W",
        r"\s",
        r"\S",
        r"\d",
        r"\D",
        r"\b",
        ".",
        "^",
        "$",
        r"\Z",
        r"\A",
        "a",
        "K",
        "s",
        "i",
        "I",
        "é",
        "²",
        "–",
    ),
    *("[a-c]", "[^a-z]", r"[\W\d]", r"[\s_]", "[^", "[", "]", "{1,2}", "{1,3}?", "*", "+", "?", "*?", "+?", "|", "ab"),
    *(
        "(",
        ")",
        "(?:",
        "(?i:",
        "(?-i:",
        "(?a:",
        "(?u:",
        "(?s:",
        "(?m:",
        ")*",
        ")+",
        ")?",
        "(a)|b",
        "((a)|b)+",
        "(?P<n>",
    ),
)
BEFORE = ("", "(?x)", "(?i)", "(?a)", "(?m)", "(?s)", "(?im)", "(?ai)")
LETTERS = "aAbBkKsSiIeEéÉ²½_ \n\t\x1c\x85\xa0\u0301\u200d\u2028-–1ßſıİ\u212aµ漢①Ⓐⓐ٣"
FLAGS = (0, re.IGNORECASE, re.MULTILINE, re.DOTALL, re.VERBOSE, re.ASCII)
Place = tuple[tuple[int, int], tuple[str | None, ...]]


def drawn(seed: int) -> Iterator[tuple[str, str, int]]:
    """Patterns, texts and flags."""
    random = Random(seed)
    for _ in range(CASES):
        parts = random.choices(PARTS, k=random.randint(1, 8))
        text = random.choices(LETTERS, k=random.randint(0, 12))
        yield random.choice(BEFORE) + "".join(parts), "".join(text), random.choice(FLAGS)


def check(pattern: str, text: str, flags: int) -> bool:
    """Whether it has a linear form for this text; then that finds what `re` finds."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        try:
            own = re.compile(pattern, flags)
        except (re.error, OverflowError):
            return False
        form = linear(pattern, flags, text)
    if form is None:
        return False
    case = pattern, text, flags
    for found, wanted in ((form.search(text), own.search(text)), (form.fullmatch(text), own.fullmatch(text))):
        assert (found and (found.span(), found.groups())) == (wanted and (wanted.span(), wanted.groups())), case
    due: list[Place] = []
    empty = None
    for match in own.finditer(text):
        if match.start() == match.end():
            empty = match.start()
            break
        due.append((match.span(), match.groups()))

    def matches() -> Iterator[Found]:
        assert (yield from form.matches(text)) == empty, case

    assert [(match.span(), match.groups()) for match in matches()] == due, case
    try:
        limited = expression(pattern, flags)
    except ValueError:  # it is refused as a pattern: the engine with a limit would read it otherwise
        return True
    assert limited.count(text, 99) == len(own.findall(text)), case
    return True


@pytest.mark.filterwarnings("ignore:Possible:FutureWarning")  # Python's own, of `[[` and the like
@LAW
@given(st.integers(0, 2**32))
def test_what_has_a_linear_form_finds_what_python_s_own_engine_finds(seed: int) -> None:
    assert sum(check(*case) for case in drawn(seed)) > CASES // 20


@pytest.mark.parametrize(
    ("pattern", "text", "flags", "formed"),
    [
        ("a$", "a\n", 0, False),  # one that the engine cannot be asked for is left to Python's
        ("i", "ıİ", re.IGNORECASE, True),
        (r"\b.", "1\x85²", 0, False),
        (r"(?a:\w(?u:\w)\w)\w", "aéaé", 0, True),
        ("((a)|b)+", "éab–ab", 0, True),
    ],
)
def test_texts_that_the_engines_read_in_their_own_ways(pattern: str, text: str, flags: int, formed: bool) -> None:
    assert check(pattern, text, flags) is formed


@pytest.mark.parametrize(
    ("pattern", "text"),
    [
        ("(a+)+$", "a" * 100_000 + "b"),
        ("(a|aa)+$", "a" * 100_000 + "é"),
        (r"(?i)(\w+\s?)+!$", "word " * 20_000),
        (r"\bx+x+y", "x" * 100_000),
        (r"^(([a-z])+.)+[A-Z]([a-z])+$", "a" * 100_000),
    ],
)
def test_patterns_that_would_never_end_end_at_once(pattern: str, text: str) -> None:
    """Milliseconds; the limit is far above, for a machine that is busy, and far below what trying again would take."""
    assert linear(pattern, 0, text) is not None
    began = time.thread_time()
    assert expression(pattern).search(text) is None
    assert not TraceRegex(pattern=pattern, count_min=2).check_trace(text)
    assert not run_patterns({"p": {"pattern": pattern, "expected": "x"}}, text).success
    assert time.thread_time() - began < 1.0


@pytest.mark.parametrize(
    "pattern", ["(?=a)a", "(a)\\1", "(?>a)b", "a++", "(a*)*", r"\B", "x{1001}", "(?i)é", "(?:x{100}){100}", "(?<!b)a"]
)
def test_what_has_none_is_left_to_the_engine_that_can_stop(pattern: str) -> None:
    assert linear(pattern, 0, "aa") is None
    own = re.compile(pattern)
    assert [match.span() for match in expression(pattern).matches("aab")] == [m.span() for m in own.finditer("aab")]


@pytest.mark.parametrize(
    ("pattern", "text"),
    [("a$", "a\n"), (r"\bé", "é"), ("a", "\ud800a"), ("a{1000}b" * 9, "a" * 20_000)],
    ids=["a last line break", "letters beside a border", "half of a character", "too many steps"],
)
def test_texts_that_the_linear_form_would_not_read_are_left_to_it_too(pattern: str, text: str) -> None:
    assert linear(pattern, 0, text) is None
    own = re.search(pattern, text)
    found = expression(pattern).search(text)
    assert (found and found.span()) == (own and own.span())


@pytest.mark.parametrize("there", [None, ModuleType("re2")], ids=["nothing", "another package"])
def test_without_re2_every_pattern_is_searched_for_with_a_time_limit(
    there: ModuleType | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    pattern = "(b+)(c)|b"
    monkeypatch.setitem(sys.modules, "re2", there)
    module._form.cache_clear()
    try:
        assert linear(pattern, 0, "bc") is None
        assert listed(expression(pattern).matches("bbc b")) == re.findall(pattern, "bbc b")
    finally:
        module._form.cache_clear()


def test_a_match_of_no_characters_leaves_the_rest_to_it() -> None:
    for pattern, text in (("a|b*", "aabxé"), ("a*?", "aa"), (r"\b|x", "ax x")):
        own = re.compile(pattern)
        assert [match.span() for match in expression(pattern).matches(text)] == [m.span() for m in own.finditer(text)]
        assert expression(pattern).count(text, 99) == len(own.findall(text))
