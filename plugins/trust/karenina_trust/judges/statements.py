"""Answers that are written from values: the same contents in several forms."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

Pairs = Sequence[tuple[str, str]]
"""What is named, and its value, both as text."""


def pairs_of(values: Mapping[str, Any]) -> Pairs:
    """Of fields and their values; those without a value are left out."""
    shown = ((name.replace("_", " "), value_text(value)) for name, value in values.items())
    return [(name, text) for name, text in shown if text]


def value_text(value: Any) -> str:
    """A value as an answer would say it."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, list) and all(isinstance(member, str) for member in value):
        return "; ".join(value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def lines(pairs: Pairs) -> str:
    return "\n".join(f"{name}: {text}" for name, text in pairs)


FORMS: Mapping[str, Callable[[Pairs], str]] = {
    "lines": lines,
    "sentences": lambda pairs: " ".join(f"The {name} is {text}." for name, text in pairs),
    "list": lambda pairs: "\n".join(f"- **{name}**: {text}" for name, text in pairs),
    "table": lambda pairs: "\n".join(["| item | value |", "|---|---|", *(f"| {n} | {t} |" for n, t in pairs)]),
    "reversed": lambda pairs: lines(pairs[::-1]),
    "json": lambda pairs: json.dumps(dict(pairs), ensure_ascii=False, indent=2),
}
"""Forms of the same contents. None of them changes what is said."""


def _sentences(text: str) -> list[str]:
    return [part for part in re.split(r"(?<=[.!?])\s+(?=[A-Z])|\n+", text.strip()) if part]


REWRITES: Mapping[str, Callable[[str], str]] = {
    "as a list": lambda text: "\n".join(f"- {part}" for part in _sentences(text)),
    "within a greeting": lambda text: f"Good question! Here is what I found.\n\n{text}\n\nI hope that this helps.",
    "as a quotation": lambda text: "\n".join(f"> {line}" for line in text.splitlines()),
    "under a heading": lambda text: f"## Answer\n\n{text}",
}
"""Other settings of a text whose words stay the same."""
