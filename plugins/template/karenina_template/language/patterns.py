"""Regular expressions that a template runs over the raw trace (`self.regex`).

Each check is `{"pattern": ..., "expected": ..., "match_type": ...}`; what matched is what `re.findall` returns. A
capture group changes that: with one group it is the group's text, with several a list of the groups' texts. Write
`(?:...)` for a group that is only there to hold a part of the pattern together.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karenina_vocabulary.handle import RegexVerdict

from karenina_core.errors import did_you_mean, one_line

from .searches import expression, listed

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
    return False, f"unknown match_type {kind!r}; there are {', '.join(MATCH_TYPES)}"


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
        problems.append(f"unknown match_type {kind!r}{hint}; there are {', '.join(MATCH_TYPES)}")
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
