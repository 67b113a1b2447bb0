"""Limits that a reader feels. Above them the shape is wrong, and splitting lines does not help."""

from __future__ import annotations

import ast
from pathlib import Path

MAX_FUNCTION_LINES = 60
MAX_MODULE_LINES = 400


def _functions(path: Path) -> list[ast.FunctionDef | ast.AsyncFunctionDef]:
    tree = ast.parse(path.read_text("utf-8"))
    return [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]


def test_functions_are_short(source_files: list[Path], repository: Path) -> None:
    long = [
        f"{path.relative_to(repository)}: {node.name} has {(node.end_lineno or 0) - node.lineno + 1} lines"
        for path in source_files
        for node in _functions(path)
        if (node.end_lineno or 0) - node.lineno + 1 > MAX_FUNCTION_LINES
    ]
    assert long == []


def test_modules_are_short(source_files: list[Path], repository: Path) -> None:
    lengths = {path.relative_to(repository): len(path.read_text("utf-8").splitlines()) for path in source_files}
    assert {path: lines for path, lines in lengths.items() if lines > MAX_MODULE_LINES} == {}
