"""Texts that users read say what happened, why and what to type, in words that a dictionary explains.

The words below were met in messages, and each had a plain one in its place. Prompts are for models, and left out.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).parents[2]
IDIOM = re.compile(r"\b(anew|for good|gone on with|went on|hand(s|ed)? over|heard|nobody|stands? still|whence|dear)\b")
FILES = sorted(REPOSITORY.glob("karenina_core/**/*.py")) + sorted(REPOSITORY.glob("plugins/*/karenina_*/**/*.py"))


def texts(source: str) -> Iterator[tuple[int, str]]:
    """Texts of a module with their lines: all but docstrings, those of commands being help."""
    tree = ast.parse(source)
    said: set[int] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef) and any("command" in ast.unparse(d) for d in node.decorator_list):
            said.update(id(inner.value) for inner in node.body[:1] if isinstance(inner, ast.Expr))
    alone = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)} - said
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in alone:
            yield node.lineno, node.value


def found(path: Path) -> list[str]:
    source = path.read_text("utf-8")
    if "prompts" in path.stem or not IDIOM.search(source):  # most files have none of the words anywhere
        return []
    return [f"line {line}: {text!r:.80}" for line, text in texts(source) if " " in text and IDIOM.search(text)]


def test_messages_use_plain_words() -> None:
    wrong = {str(path.relative_to(REPOSITORY)): lines for path in FILES if (lines := found(path))}
    for path in list(wrong):
        if path.endswith("quotations/sense.py"):  # a list of English words that negate
            del wrong[path]
    assert wrong == {}


@pytest.mark.parametrize(
    ("source", "lines"),
    [
        ('"""It failed for good."""\n', []),
        ('raise ValueError(f"{name} failed for good")\n', [1]),
        ('@command\ndef f():\n    """Ask anew, please."""\n', [3]),
        ('def f():\n    """Ask anew, please."""\n', []),
    ],
)
def test_only_what_users_read_is_looked_at(source: str, lines: list[int]) -> None:
    assert [line for line, text in texts(source) if IDIOM.search(text)] == lines
