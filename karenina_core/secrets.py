"""What counts as a secret, by its name and by its value."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping

MASK = "[redacted]"
SHORTEST = 8
"""Characters. What is shorter is a placeholder such as `none`, which occurs in any text."""
SHORTEST_WORDS = 12
"""Characters from which plain words are a passphrase. Shorter ones, such as `postgres`, occur in answers."""
NAME = re.compile(
    r"(?:(?:^|[_.-])(?:TOKEN|(?:API)?(?<!PUBLIC_)KEY|SECRET|PASS(?:WORD|WD|PHRASE)?|PAT|CREDENTIALS?)|[_.-]PWD|^PGPASSWORD)"
    r"(?:[_.-]?\d+)?\Z",
    re.IGNORECASE,
)
HUMP = re.compile(r"(?<=[a-z0-9])(?=[A-Z])")
NUMBER = re.compile(r"[+-]?(?:\d[\d_,]*\.?\d*|\.\d+)(?:[eE][+-]?\d+)?")
TIME = r"\d{1,2}:?\d\d(?::?\d\d(?:[.,]\d+)?)?(?: ?(?:Z|[+-]\d\d:?\d\d))?"
DATE = re.compile(
    r"(?:\d{4}([-/.]?)(?:0[1-9]|1[0-2])\1(?:0[1-9]|[12]\d|3[01])|\d{1,2}([-/.])\d{1,2}\2(?:\d{4}|\d\d))"
    rf"(?:[T_ ]{TIME})?|\d{{1,2}}:\d\d:\d\d(?:[.,]\d+)?"
)
WORDS = re.compile(r"[^\W\d_]+(?:[_. -][^\W\d_]+)*")
ROOT = re.compile(r"(?:file:/*|~|\.{1,2}|[A-Za-z]:)?[/\\]")
IN_PATHS = re.compile(r"[A-Z]?[a-z]*[0-9]*|[A-Z]+[0-9]*|[a-z0-9]+")


def is_secret_name(name: str) -> bool:
    """Whether the last word of a name says that its value is secret.

    Words are what `_`, `-`, `.` and capitals within a name separate: `DB_PASSWORD` and `apiKey` are such names,
    `MAX_TOKENS` and `MONKEY` are none. `KEY` counts by itself, because `AWS_SECRET_ACCESS_KEY` ends so; `PWD` counts
    after another word, because `PWD` and `OLDPWD` are folders of the shell; a number may follow (`OPENAI_API_KEY_2`).
    """
    return NAME.search(HUMP.sub("_", name)) is not None


def secrets_in(environment: Mapping[str, str]) -> dict[str, str]:
    """Secrets among variables, each with the name of its variable.

    A value is no secret, whatever its name, where it is a number, a date, a path, plain words of fewer than 12
    characters, or of fewer than 8 characters.
    """
    names = (name for name in sorted(environment, reverse=True) if is_secret_name(name))
    return {environment[name]: name for name in names if _is_secret(environment[name])}


def _is_secret(value: str) -> bool:
    if len(value) < SHORTEST or NUMBER.fullmatch(value) or DATE.fullmatch(value) or _is_path(value):
        return False
    return len(value) >= SHORTEST_WORDS or not _is_words(value)


def _is_words(value: str) -> bool:
    """Letters in words that are not capitalised at random."""
    return WORDS.fullmatch(value) is not None and all(
        word.islower() or word.isupper() or word.istitle() for word in re.split(r"[_. -]", value)
    )


def _is_path(value: str) -> bool:
    """Keys of random characters may begin like a path, but mix capitals and digits within its parts."""
    root = ROOT.match(value)
    return root is not None and all(map(IN_PATHS.fullmatch, re.split(r"[/\\_. @-]", value[root.end() :])))


def masked(text: str, secrets: Iterable[str]) -> str:
    """The text with a mask in place of each of these values, also where they are written as Python or JSON writes them.

    What is written in other ways, such as in the address of a page, stays.
    """
    for value in sorted(filter(None, secrets), key=len, reverse=True):
        for form in (value, repr(value)[1:-1], json.dumps(value)[1:-1]):
            text = text.replace(form, MASK)
    return text
