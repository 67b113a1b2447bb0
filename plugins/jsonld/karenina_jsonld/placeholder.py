"""Recognise the template that authoring tools fill in before anybody writes one. The source is parsed, never run."""

from __future__ import annotations

import ast
import textwrap

__all__ = ["is_placeholder"]

# Longer sources are never placeholders, and a bound on the length bounds the parser's recursion.
MAX_CHARACTERS = 4000


def is_placeholder(source: str) -> bool:
    """Whether the source is one class with the single field `response: str` and a `verify` that only returns False."""
    if len(source) > MAX_CHARACTERS or "response" not in source or "verify" not in source:
        return False
    try:
        module = ast.parse(textwrap.dedent(source).strip())
    except (SyntaxError, ValueError, RecursionError, MemoryError, Warning):
        return False
    body = [node for node in _code(module.body) if not isinstance(node, ast.Import | ast.ImportFrom)]
    if len(body) != 1 or not isinstance(body[0], ast.ClassDef):
        return False
    members = _code(body[0].body)
    return len(members) == 2 and sum(map(_is_response, members)) == 1 and sum(map(_returns_false, members)) == 1


def _code(body: list[ast.stmt]) -> list[ast.stmt]:
    """Statements without docstrings, other bare texts and `pass`."""
    return [node for node in body if not isinstance(node, ast.Pass) and not _is_text(node)]


def _is_text(node: ast.stmt) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _is_response(node: ast.stmt) -> bool:
    if not isinstance(node, ast.AnnAssign) or not isinstance(node.target, ast.Name) or node.target.id != "response":
        return False
    annotation = node.annotation
    return (isinstance(annotation, ast.Name) and annotation.id == "str") or (
        isinstance(annotation, ast.Constant) and annotation.value == "str"
    )


def _returns_false(node: ast.stmt) -> bool:
    if not isinstance(node, ast.FunctionDef) or node.name != "verify":
        return False
    body = _code(node.body)
    if len(body) != 1 or not isinstance(body[0], ast.Return):
        return False
    value = body[0].value
    return isinstance(value, ast.Constant) and value.value is False
