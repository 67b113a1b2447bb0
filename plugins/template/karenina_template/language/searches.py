r"""Regular expressions of templates and rubrics, run over untrusted text.

They find what Python's `re` finds. Unlike `re`, a search ends after a time, and other threads run meanwhile: a
pattern with a repetition inside a repetition can take years for a text of a hundred characters.

So RE2 searches where it finds the same (`linear`). Otherwise a pattern is rewritten for the package `regex`, which can
stop a search. It reads some patterns in another way:
braces that are plain text to `re` mean approximate matching to it (`frac{d}` would be found in "fra"), `[[:alpha:]]`
names a class, `[^\s\S]` is any character instead of none, superscripts are no letters or digits, combining marks are,
and with the flag `x` more characters than those of ASCII are white space to be left out.

Checks of `self.regex` are `{"pattern": ..., "expected": ..., "match_type": ...}`; what matched is what `re.findall`
returns: with one capture group the group's text, with several a list of the groups' texts. Write `(?:...)` for a group
that is only there to hold a part of the pattern together.
"""

from __future__ import annotations

import re
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import islice
from typing import Any, TypeVar

from attrs import field, frozen
from karenina_vocabulary.handle import RegexVerdict, compiled

from karenina_core.errors import did_you_mean, one_line

from .linear import linear

WORD = r"\p{L}\p{N}_"
NOT_WORD = r"\p{M}\p{S}\p{Z}\p{C}\p{Pd}\p{Ps}\p{Pe}\p{Pi}\p{Pf}\p{Po}‿⁀⁔︳︴﹍-﹏＿"
BLANK = r"\s\x1c-\x1f"
NOT_BLANK = r"\p{L}\p{M}\p{N}\p{P}\p{S}\p{Cf}\p{Co}\p{Cs}\p{Cn}\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f"
IN_CLASS = {r"\w": WORD, r"\W": NOT_WORD, r"\s": BLANK, r"\S": NOT_BLANK, "[": r"\["}
NOT_EMPTY = "" if re.search(r"\B", "") else r"(?!\A\Z)"
"""Before Python 3.14, `\\B` is nowhere in an empty text."""
OUTSIDE = {
    r"\w": f"[{WORD}]",
    r"\W": f"[^{WORD}]",
    r"\s": f"[{BLANK}]",
    r"\S": f"[^{BLANK}]",
    r"\b": f"(?:(?<=[{WORD}])(?![{WORD}])|(?<![{WORD}])(?=[{WORD}]))",
    r"\B": f"(?:(?<=[{WORD}])(?=[{WORD}])|{NOT_EMPTY}(?<![{WORD}])(?![{WORD}]))",
    "{": r"\{",
}
Rules = tuple[Mapping[str, str], Mapping[str, str]]
"""What is written for a token outside of brackets, and within."""
UNICODE: Rules = (OUTSIDE, IN_CLASS)
ASCII: Rules = ({r"\B": rf"(?:{NOT_EMPTY}\B)", "{": r"\{"}, {"[": r"\["})
"""For patterns that are ASCII only as a whole."""
ASCII_KINDS = {"d": "0-9", "w": "0-9A-Za-z_", "s": r"\t-\r\x20"}
ASCII_OTHERS = {
    "D": r"\x00-/:-\U0010ffff",
    "W": r"\x00-/:-@\x5b-\x5e`\x7b-\U0010ffff",
    "S": r"\x00-\x08\x0e-\x1f!-\U0010ffff",
}
ASCII_PART: Rules = (
    {
        **{rf"\{kind}": f"[{chars}]" for kind, chars in (ASCII_KINDS | ASCII_OTHERS).items()},
        r"\b": OUTSIDE[r"\b"].replace(WORD, ASCII_KINDS["w"]),
        r"\B": OUTSIDE[r"\B"].replace(WORD, ASCII_KINDS["w"]),
        "{": r"\{",
    },
    {**{rf"\{kind}": chars for kind, chars in (ASCII_KINDS | ASCII_OTHERS).items()}, "[": r"\["},
)
"""For groups that are ASCII only, in a pattern that is not: `regex` loses track of these."""
NOTHING = "(?:(?!))"
CLASS = r"\[\^?\]?(?:\\N\{[^}]*\}|\\.|[^\]])*\]"
"""A bracket right after the beginning does not end it."""
TOKEN = re.compile(
    rf"""(?sx)
    \\N\{{[^}}]*\}} | \\.               # an escape
    | {CLASS}
    | \{{(?:\d+(?:,\d*)?|,\d*)\}}       # a repetition
    | \(\?\#[^)]*\)                     # a comment
    | .
    """
)
TOKEN_IN_CLASS = re.compile(r"(?s)\\N\{[^}]*\}|\\.|.")
LINE_COMMENT = re.compile(r"\#[^\n]*")
OWN_FLAGS = re.compile(r"\(\?([aiLmsux]*)(?:-([imsx]+))?:")
"""The beginning of a group with flags of its own: those that it switches on, and off."""
OWN_LETTERS = (
    "it has a group with the flag 'a' or 'u', and is without regard to case or ASCII only; write such a group without "
    "that flag and with its classes spelt out, as [0-9A-Za-z_]"
)
COUNTED = re.compile(r"\{(\d+)")
MOST_PARTS = 20_000
"""`regex` writes a repeated group out as often as it has to occur: 100,000 parts took 0.3 s, 200,000 crashed it."""
TOO_LARGE = (
    f"its counted repetitions hold one another and have more than {MOST_PARTS} parts together; count less often, as in "
    "(?:a{0,100}) in place of (?:a{100})"
)
LEFT_OUT = " \t\n\r\f\v"
"""The white space that the flag `x` leaves out of a pattern."""


def as_regex(pattern: str, flags: int = 0) -> str:
    """The pattern for `regex` (version 0), to be compiled with the same flags.

    Raises re.error for one that `re` cannot read, and ValueError for one that `regex` cannot be given: it does not know
    which letters are the same in a part of a pattern alone, and needs too much memory for counted repetitions of
    counted repetitions.
    """
    flags = compiled(pattern, flags).flags
    ignore_case = bool(flags & re.IGNORECASE)
    scopes = [(ASCII if flags & re.ASCII else UNICODE, bool(flags & re.VERBOSE))]  # the groups around a place
    own_letters = False
    tokens: list[str] = []
    written: list[str] = []
    place = 0
    while place < len(pattern):
        rules, verbose = scopes[-1]
        comment = LINE_COMMENT.match(pattern, place) if verbose else None
        found = comment or OWN_FLAGS.match(pattern, place) or TOKEN.match(pattern, place)
        assert found is not None  # the last alternative of a token is any character
        token = found.group()
        place += len(token)
        tokens.append(token)
        written.append(_rewritten(token, rules, verbose))
        if token == ")":
            scopes.pop()
        elif own := OWN_FLAGS.fullmatch(token):
            on, off = own.group(1), own.group(2) or ""
            own_letters, ignore_case = own_letters or "a" in on or "u" in on, ignore_case or "i" in on
            own_rules = ASCII_PART if "a" in on else UNICODE if "u" in on else rules
            scopes.append((own_rules, "x" in on or (verbose and "x" not in off)))
        elif token == "(":
            scopes.append(scopes[-1])
    if own_letters and (ignore_case or flags & re.ASCII):
        raise ValueError(OWN_LETTERS)
    _check_copies(tokens)
    return "".join(written)


def _check_copies(tokens: Iterable[str]) -> None:
    """Raises ValueError where groups with counted repetitions hold one another, and together are too large."""
    sizes, last = [0], 0  # parts of each group around a place; parts of the group that has just ended
    for token in tokens:
        if token == "(" or OWN_FLAGS.fullmatch(token):
            sizes.append(1)
        elif token == ")":
            last = sizes.pop()
            sizes[-1] += last
            continue
        elif counted := COUNTED.match(token):
            copies = min(int(counted[1]), MOST_PARTS + 1)
            sizes[-1] += last * max(copies - 1, 0)
            if last * copies > MOST_PARTS:
                raise ValueError(TOO_LARGE)
        else:
            sizes[-1] += 1
        last = 0


def _rewritten(token: str, rules: Rules, verbose: bool) -> str:
    outside, in_class = rules
    if len(token) > 1 and token.startswith("["):
        tokens = TOKEN_IN_CLASS.findall(token[1:])
        if tokens[0] == "^" and any({rf"\{kind}", rf"\{kind.upper()}"} <= set(tokens) for kind in "dsw"):
            return NOTHING  # neither one kind nor its opposite: `regex` would find any character
        return "[" + "".join(in_class.get(part, part) for part in tokens)
    if verbose and token.isspace() and token not in LEFT_OUT:
        return "\\" + token
    return outside.get(token, token)


T = TypeVar("T")
SECONDS = 2.0
"""Of processor time for one search in a short text. Usual patterns take milliseconds; one that runs into this limit
would hardly ever have ended."""
PER_CHARACTER = 2e-6
"""Seconds more for each character of the text. Measured: 0.03 to 0.2 millionths of a second for usual patterns, whose
time grows as the text does, 1.4 for one of 200 words in either case."""
FLAGS = ("ASCII", "DOTALL", "IGNORECASE", "MULTILINE", "VERBOSE")
"""Those of `re` that change what a text pattern finds; their values differ between the two engines."""
ENOUGH = 0.9
"""Of the time of a search: clocks are not exact. Chosen, not measured."""


@frozen
class Expression:
    """A regular expression with flags of `re`. Every method raises TimeoutError where a search takes too long."""

    pattern: str
    flags: int = 0
    _engine: Any = field(init=False, eq=False, repr=False)

    @_engine.default
    def _compile(self) -> Any:
        import regex  # type: ignore[import-untyped]  # it brings no types; only patterns that are used pay for it

        flags = [getattr(regex, name) for name in FLAGS if self.flags & getattr(re, name)]
        return regex.compile(as_regex(self.pattern, self.flags), sum(flags, regex.VERSION0))

    @property
    def groups(self) -> int:
        """How many capture groups it has."""
        return int(self._engine.groups)

    def search(self, text: str, seconds: float = SECONDS, stopped: threading.Event | None = None) -> Any:
        """The first match, or None. Once `stopped` is set, the search is not given more time than it has."""
        if form := linear(self.pattern, self.flags, text):
            return form.search(text)
        return self._timed(
            lambda limit: self._engine.search(text, concurrent=True, timeout=limit),
            seconds + PER_CHARACTER * len(text),
            stopped or threading.Event(),
        )

    def fullmatch(self, text: str, start: int = 0) -> Any:
        """The match of the whole text from `start` on, or None."""
        if not start and (form := linear(self.pattern, self.flags, text)):
            return form.fullmatch(text)
        seconds = SECONDS + PER_CHARACTER * len(text)
        return self._timed(lambda limit: self._engine.fullmatch(text, start, concurrent=True, timeout=limit), seconds)

    def matches(self, text: str) -> list[Any]:
        """All matches that do not overlap, from left to right."""
        return self._timed(
            lambda limit: list(self._each(text, limit, counted=False)), SECONDS + PER_CHARACTER * len(text)
        )

    def count(self, text: str, most: int) -> int:
        """How many matches there are, counted up to `most`."""

        def counted(limit: float) -> int:
            return sum(1 for _ in islice(self._each(text, limit, counted=True), most))

        return self._timed(counted, SECONDS + PER_CHARACTER * len(text))

    def _each(self, text: str, limit: float, *, counted: bool) -> Iterator[Any]:
        ends, look = time.thread_time() + limit, time.monotonic() + limit
        for match in self._found(text, limit, counted=counted):
            yield match
            if time.monotonic() > look:  # each of them may have been quick; this clock is the quicker one to read
                left = ends - time.thread_time()
                if left < 0:
                    raise TimeoutError
                look = time.monotonic() + left

    def _found(self, text: str, limit: float, *, counted: bool) -> Iterator[Any]:
        start: int | None = 0
        if form := linear(self.pattern, self.flags, text):
            start = yield from (form.rounds(text) if counted else form.matches(text))
        if start is not None:
            yield from self._engine.finditer(text, start, concurrent=True, timeout=limit)

    def _timed(self, search: Callable[[float], T], seconds: float, stopped: threading.Event | None = None) -> T:
        """The limit of the engine counts the processor time of all threads: where others have used it up, there is
        more."""
        limit = seconds
        while True:
            began = time.thread_time()
            try:
                return search(limit)
            except TimeoutError:
                taken = time.thread_time() - began
                if (stopped is not None and stopped.is_set()) or taken >= ENOUGH * seconds:
                    raise TimeoutError(
                        f"the pattern {self.pattern!r:.200} was stopped after {seconds:.3g} s; rewrite it so that no "
                        "repetition holds another one, or is followed by one that takes the same characters"
                    ) from None
            limit *= min(4.0, 1.2 * seconds / max(taken, 0.01 * seconds))  # 4: others may be done soon


def listed(matches: Sequence[Any]) -> list[Any]:
    """What `re.findall` makes of matches: texts, or the groups where the pattern has any."""
    groups = len(matches[0].groups()) if matches else 0
    if groups > 1:
        return [match.groups("") for match in matches]
    return [match.group(groups) or "" for match in matches]


@lru_cache(maxsize=1024)
def expression(pattern: str, flags: int = 0) -> Expression:
    """The expression, compiled once. Raises ValueError for what is no regular expression of `re`, or one that the
    engine cannot be given, and what a parser may run into, such as OverflowError.
    """
    try:
        return Expression(pattern, flags)
    except re.error as error:
        raise ValueError(f"{pattern!r:.200} is not a regular expression: {error}") from None


MATCH_TYPES: Mapping[str, tuple[type, ...]] = {
    "exact": (str,),
    "contains": (str,),
    "count": (int,),
    "all": (list, tuple),
}
"""Each kind of check and the types that its `expected` may have."""


def run_patterns(checks: Mapping[str, Mapping[str, Any]], text: str) -> RegexVerdict:
    """Run every check over the text. One that cannot be run fails with an `error`; the others are not affected.
    Raises TimeoutError where a search takes too long: that says nothing about the text.

    The details of a check say where the first match is (`match_start` and `match_end`, in characters) and what all
    of it is (`full_match`), beside everything that matched.
    """
    results: dict[str, bool] = {}
    details: dict[str, Any] = {}
    extractions: dict[str, Any] = {}
    for name, check in checks.items():
        results[name], details[name] = _run(check, text)
        extractions[name] = details[name].get("matches_found", [])
    return RegexVerdict(bool(checks), all(results.values()), results, details, extractions)


def _run(check: Mapping[str, Any], text: str) -> tuple[bool, dict[str, Any]]:
    detail: dict[str, Any] = {}
    try:
        detail = {key: check.get(key) for key in ("pattern", "expected")}
        detail["match_type"] = kind = check.get("match_type", "exact")
        matches = expression(check["pattern"]).matches(text)
        found = listed(matches)
        detail["matches_found"] = [list(match) if isinstance(match, tuple) else match for match in found]
        detail["match_count"] = len(found)
        for first in matches[:1]:
            detail |= {"match_start": first.start(), "match_end": first.end(), "full_match": first.group()}
        passed, reason = _judge(kind, found, check["expected"])
    except (AttributeError, LookupError, TypeError, ValueError, OverflowError, RecursionError) as error:
        return False, {**detail, "error": one_line(error)}
    detail["success_reason" if passed else "failure_reason"] = reason
    return passed, detail


def _judge(kind: str, found: list[Any], expected: Any) -> tuple[bool, str]:
    if kind == "exact":
        passed = len(found) == 1 and found[0] == expected
        return passed, f"{len(found)} matches, exactly one equal to {expected!r} is due"
    if kind == "contains":
        passed = expected in found
        return passed, f"{expected!r} is {'' if passed else 'not '}among the {len(found)} matches"
    if kind == "count":
        return len(found) == expected, f"{len(found)} matches, {expected!r} are due"
    if kind == "all":
        missing = [item for item in expected if item not in found]
        return not missing, f"missing: {missing!r}" if missing else f"all {len(expected)} expected matches were found"
    return False, f"unknown match_type {kind!r}; available: {', '.join(MATCH_TYPES)}"


def pattern_problems(checks: Any) -> list[str]:
    """What would keep these checks from ever being run, in words for the template's author."""
    if not isinstance(checks, Mapping):
        return [f"self.regex must be a dict of checks by name, not {type(checks).__name__}"]
    return [f"self.regex[{name!r}]: {problem}" for name, check in checks.items() for problem in _problems(check)]


def _problems(check: Any) -> list[str]:
    if not isinstance(check, Mapping):
        return [f"must be a dict with pattern, expected and match_type, not {type(check).__name__}"]
    if missing := [f"{key!r} is missing" for key in ("pattern", "expected") if key not in check]:
        return missing
    kind, expected = check.get("match_type", "exact"), check["expected"]
    problems = _pattern_problems(check["pattern"], expected)
    if not isinstance(kind, str) or kind not in MATCH_TYPES:
        hint = did_you_mean(kind, MATCH_TYPES) if isinstance(kind, str) else ""
        problems.append(f"unknown match_type {kind!r}{hint}; available: {', '.join(MATCH_TYPES)}")
    elif not isinstance(expected, MATCH_TYPES[kind]):
        wanted = " or ".join(type_.__name__ for type_ in MATCH_TYPES[kind])
        problems.append(f"expected must be of type {wanted} for match_type {kind!r}, not {expected!r}")
    return problems


def _pattern_problems(written: Any, expected: Any) -> list[str]:
    texts = [expected] if isinstance(expected, str) else expected if isinstance(expected, list | tuple) else []
    try:
        pattern = expression(written)
        if pattern.groups > 1 and isinstance(expected, str):
            return [
                f"with {pattern.groups} capture groups no match is a text, so it can never pass; write (?:...) instead"
            ]
        replaced = {
            text: listed(pattern.matches(text))
            for text in texts
            if pattern.groups and isinstance(text, str) and pattern.fullmatch(text)
        }
    except (TypeError, ValueError, OverflowError, RecursionError, TimeoutError) as error:
        return [f"the pattern is not a regular expression that can be used: {error}"]
    return [
        f"{text!r} is a whole match of the pattern, but its capture group is what counts as the match and gives "
        f"{found!r}; write (?:...) instead"
        for text, found in replaced.items()
        if text not in found
    ]
