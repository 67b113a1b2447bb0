"""Searches with a time limit find what Python's `re` finds, and end."""

from __future__ import annotations

import copy
import pickle
import re
import threading
import time
import unicodedata
import warnings
from collections.abc import Callable, Iterator
from functools import partial
from random import Random
from typing import Any

import pytest
import regex
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_template.language import searches
from karenina_template.language.primitives.text import RegexMatch, TraceRegex
from karenina_template.language.searches import Expression, expression, listed, run_patterns
from karenina_vocabulary.handle import LONGEST_PATTERN
from karenina_vocabulary.traits import RegexRubricTrait

LAW = settings(database=None, deadline=None, derandomize=True)
CASES = 40
"""Patterns and texts of one draw. Python's own generator makes them: hypothesis takes ten times as long for each, draws
many of them twice, and would make those of a failure hardly smaller."""
SLOW = r"(?!x)(a|aa)+$"
"""Takes time that doubles with every letter of a text such as aaaaaaaab."""
TRAP = "a" * 60 + "b"

PARTS = (
    *(r"\w", r"\W", r"\s", r"\S", r"\d", r"\D", r"\b", r"\B", ".", "^", "$", "a", "B", "é", "²", "_", "#", " ", r"\ "),
    *("{", "}", "{}", "{,}", "{d}", "{i}", "{e<=1}", "{,2}", "{1,2}", "*", "+", "?", "*?", "++", "|"),
    *("(?x:", "(?-x:", "(?i-s:", "\x85", "\u2028", "# c\n"),
    *("(", ")", "(?:", "(?=", "(?!", "(?<=", "(?<!", "(?i:", "(?>", "(?P<n>", "(?P=n)", r"\1"),
    *("[", "]", "[^", "[]", "[^]", "-", "[:alpha:]", "&&", r"\]", r"\[", r"\{", r"\\", r"\x41", r"\N{DIGIT ONE}"),
)
BEFORE = ("", "(?x)", "(?i)", "(?a)", "(?m)", "(?s)")
LETTERS = "aAbBdeEéÉ²½_ \n\t\x1c\x85\u0301\u203f\u200d[]{}<=1:#-&\\ß漢①٣"
FLAGS = (0, re.IGNORECASE, re.MULTILINE, re.DOTALL, re.VERBOSE, re.ASCII, re.ASCII | re.DOTALL)


def drawn(seed: int) -> Iterator[tuple[str, str, int]]:
    """Patterns, texts and flags."""
    random = Random(seed)
    for _ in range(CASES):
        parts = random.choices(PARTS, k=random.randint(1, 6))
        text = (random.choice(LETTERS) if random.random() < 0.7 else known(random) for _ in range(random.randint(0, 9)))
        yield random.choice(BEFORE) + "".join(parts), "".join(text), random.choice(FLAGS)


def known(random: Random) -> str:
    """A character that this Python knows; the two engines fold the Turkish dotted and dotless i in their own ways."""
    while True:
        character = chr(random.randrange(random.choice((0x80, 0x3000, 0x110000))))
        if unicodedata.category(character) not in ("Cn", "Cs") and character not in "iIıİ":
            return character


def both(pattern: str, flags: int) -> tuple[re.Pattern[str], Expression] | None:
    """The pattern for Python's engine and for ours; none of those that ours refuses."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # sets in sets, which neither engine has
        try:
            return re.compile(pattern, flags), Expression(pattern, flags)
        except (re.error, OverflowError):
            return None


def check(pattern: str, text: str, flags: int = 0) -> bool:
    """Whether both engines have it; then they find the same."""
    if (engines := both(pattern, flags)) is None:
        return False
    own, ours = engines
    matches = ours.matches(text)
    assert [match.span() for match in matches] == [match.span() for match in own.finditer(text)], (pattern, text, flags)
    assert listed(matches) == own.findall(text), (pattern, text, flags)
    for found, wanted in ((ours.search(text), own.search(text)), (ours.fullmatch(text), own.fullmatch(text))):
        assert (found and found.span()) == (wanted and wanted.span()), (pattern, text, flags)
    return True


@LAW
@given(st.integers(0, 2**32))
def test_every_pattern_finds_what_python_s_own_engine_finds(seed: int) -> None:
    assert sum(check(*case) for case in drawn(seed)) > CASES // 10


@pytest.mark.parametrize(
    ("pattern", "text", "flags"),
    [
        (r"frac{d}", "fra", 0),
        ("[[:alpha:]]", "x", 0),
        (r"\B", "", 0),
        ("(?x) a # [\n b", "ab", 0),
        (r"[^\W_]", "é", 0),
        (r"\bcafe\b", "cafe\u0301", 0),
        ("x{e<=1}", "y", 0),
        (r"[^\s\S]", "a", 0),
        (r"(?a)[^]\D\d]*", "a", re.IGNORECASE),
        ("(?x)a\x85b", "ab", 0),
        ("(?x)a\u2028b", "a\u2028b", 0),
        ("(?x)(?-x:a #) b", "a #b", 0),
        ("(?x: a # (\n) {d}", "a {d}", 0),
        (r"(?a:x)|frac{d}", "fra", 0),
        (r"(?a:[[x]|[^\s\S])", "y", 0),
        (r"(?a:\w)|1\b", "1²", 0),
        (r"(?a:x)\w|\d", "٣", 0),
        (r"(?:(?a:\S\W\D|\b\B))", "\x85é٣", 0),
        (r"(?a:[^\W_]|[\d\s]\B)", "é٣", 0),
        (r"(?a:\w(?u:\w)\w)\w", "aéaé", 0),
        ("(?ax: \\w # (\n (?-x:[^\\S] ))", "a  ", 0),
        ("(a)|(b)", "ab", 0),
        ("(a)?b", "ab b", 0),
    ],
)
def test_patterns_that_the_engines_read_in_their_own_ways(pattern: str, text: str, flags: int) -> None:
    assert check(pattern, text, flags)


@pytest.mark.parametrize(
    ("pattern", "text"), [("frac{d}", "fra"), ("[[:alpha:]]", "x"), (r"[^\s\S]", "x"), (r"10\b", "10²")]
)
def test_the_two_engines_would_differ_on_the_pattern_as_it_is(pattern: str, text: str) -> None:
    """What the law above is about: remove this with the rewriting."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)
        assert bool(re.search(pattern, text)) != bool(regex.search(pattern, text, flags=regex.VERSION0))


# Patterns that take for ever


def test_the_limit_is_two_seconds() -> None:
    with pytest.raises(TimeoutError, match="was stopped after 2 s; rewrite it"):
        expression(SLOW).search(TRAP)
    assert searches.SECONDS == 2


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize(
    "search",
    [
        lambda: expression(SLOW).search(TRAP),
        lambda: expression(SLOW).fullmatch(TRAP),
        lambda: expression(SLOW).matches(TRAP),
        lambda: expression("(?:(?!x)(a|aa)+$|b)").matches(TRAP * 3),
        lambda: RegexMatch(pattern=SLOW).check(TRAP),
        lambda: RegexMatch(pattern=SLOW).check(["b", TRAP]),
        lambda: TraceRegex(pattern=SLOW).check_trace(TRAP),
        lambda: TraceRegex(pattern=SLOW, count_min=2).check_trace(TRAP),
        lambda: run_patterns({"slow": {"pattern": SLOW, "expected": "x"}}, TRAP),
    ],
)
def test_a_search_that_takes_too_long_ends_with_an_error(search: Any) -> None:
    began = time.thread_time()
    with pytest.raises(TimeoutError, match=r"was stopped after 0\.1 s; rewrite it"):
        search()
    assert time.thread_time() - began < 1


@pytest.mark.usefixtures("quick")
def test_many_quick_matches_have_one_limit_together() -> None:
    text = ("a" * 21 + "c") * 400  # some milliseconds for each, and far more than the limit for all
    with pytest.raises(TimeoutError):
        expression("(?!x)(a|aa)+b|c").matches(text)
    assert expression("(?!x)(a|aa)+b|c").count(text, 1) == 1


def test_long_texts_are_given_the_time_that_they_take() -> None:
    """One that grows as the text does; one that grows as its square is stopped."""
    letters = [chr(ord("a") + number) for number in range(26)]
    words = "|".join(a + b + "zzzz" for a in letters for b in letters[:3])
    text = "the words that are looked for are nowhere in this text. " * 4000
    assert expression(words).search(text, 0.001) is None
    with pytest.raises(TimeoutError, match=r"was stopped after 2\.1 s; .* takes the same characters"):
        expression(r"(?!x)\s*\s+$").search(" " * 50_000 + "x")


def test_a_million_matches_are_counted(long: bool) -> None:
    """A seventh of them in the short form."""
    words = 150_000 if long else 20_000
    text = "the word, " * words
    assert TraceRegex(pattern="[a-z]", count_min=7 * words).check_trace(text)
    check = {"pattern": r"\bword\b", "match_type": "count", "expected": words * 2 // 3}
    assert run_patterns({"words": check}, text[: words * 20 // 3]).success


def test_other_threads_go_on_while_a_pattern_is_searched_for() -> None:
    turns, done = 0, threading.Event()

    def search() -> None:
        with pytest.raises(TimeoutError):
            expression(SLOW).search(TRAP, 0.5)
        done.set()

    threading.Thread(target=search, daemon=True).start()
    while not done.wait(0.005):
        turns += 1
    assert turns >= 5  # Python's own engine gives none


@pytest.mark.parametrize(
    "pattern",
    ["(?:(?:(?:|x){1000}){1000}){1000}", "(?:(?:(?:x|yy){60}){60}){60}", "(ab){9999999}", "((a|b){200,300}){200}"],
)
def test_repetitions_that_would_crash_the_engine_are_refused(pattern: str) -> None:
    """Its own compiler writes them out, and needs gigabytes for that."""
    with pytest.raises(ValueError, match="counted repetitions hold one another"):
        expression(pattern)
    with pytest.raises(ValueError, match="counted repetitions"):
        TraceRegex(pattern=pattern)


@pytest.mark.parametrize(
    "pattern", [r"(?:\d{1000}){10}", "x{60000}", "(?:ab){0,9999}", "(?:(?:ab){100}c){50}", "(a){3}{"]
)
def test_usual_repetitions_are_not(pattern: str) -> None:
    assert expression(pattern).search("") is None or pattern == "(?:ab){0,9999}"


def test_a_pattern_that_takes_long_to_be_compiled_is_refused() -> None:
    names = "|".join(f"gene{number}" for number in range(9_000))
    assert expression(names).search("has gene7")
    longer = names + "x" * LONGEST_PATTERN
    makers: tuple[Callable[..., Any], ...] = (expression, TraceRegex, partial(RegexRubricTrait, name="n"))
    for made in makers:
        with pytest.raises(ValueError, match="100,000 are the most"):
            made(pattern=longer)


@pytest.mark.parametrize(
    ("pattern", "problem"),
    [
        ("(?i)" + "".join(f"[{chr(200 + number)}-\U0010ffff]" for number in range(18_000)), "sets of characters"),
        ("[^a-z]" * 16_000, "sets of characters"),
        ("(" * 40_000 + ")" * 40_000, "nested too deeply"),
    ],
)
def test_a_short_pattern_that_takes_long_to_be_compiled_is_refused_too(pattern: str, problem: str) -> None:
    makers: tuple[Callable[..., Any], ...] = (expression, TraceRegex, partial(RegexRubricTrait, name="n"))
    for made in makers:
        with pytest.raises(ValueError, match=problem):
            made(pattern=pattern)
    usual = "[a-z]+[\u4e00-\u9fff]*[^\x00-\x7f]?" * 10
    assert expression(usual).search("abcdefghijk") is not None
    assert RegexRubricTrait(name="n", pattern=f"(?i){usual}").pattern.endswith(usual)


def test_an_expression_can_be_copied_and_compared() -> None:
    found = expression("a(b)", re.IGNORECASE)
    for copied in (copy.deepcopy(found), pickle.loads(pickle.dumps(found))):
        assert copied == found
        assert listed(copied.matches("AB")) == ["B"]
