"""API keys that somebody wrote into a file: they are found, and never written again."""

from __future__ import annotations

from typing import Any

from .values import secret_keys
from .vocabulary import SECRET_KEYS

__all__ = ["stored_secrets", "without_secrets"]


def stored_secrets(value: Any, text: str) -> int:
    """How many keys are in the clear. `text` is the document; most have none of the names, which is quick to see."""
    return _count(value) if any(key in text for key in SECRET_KEYS) else 0


def _count(value: Any) -> int:
    if isinstance(value, dict):
        return len(secret_keys(value)) + sum(map(_count, value.values()))
    return sum(map(_count, value)) if isinstance(value, list) else 0


def without_secrets(value: Any) -> Any:
    """The same value without them; parts that hold none are the same objects."""
    if isinstance(value, dict):
        cleaned = {key: without_secrets(entry) for key, entry in value.items() if key not in secret_keys(value)}
        unchanged = len(cleaned) == len(value) and all(cleaned[key] is entry for key, entry in value.items())
        return value if unchanged else cleaned
    if isinstance(value, list):
        entries = [without_secrets(entry) for entry in value]
        return value if all(map(_same, entries, value)) else entries
    return value


def _same(a: Any, b: Any) -> bool:
    return a is b
