"""What a command does, read from its source: nothing of its package is imported for that."""

from __future__ import annotations

import ast
from importlib.metadata import EntryPoint
from importlib.util import find_spec
from pathlib import Path

import click


def source_help(point: EntryPoint, longest: int) -> str:
    """The short help of a command that is a decorated function: its docstring, or `help` or `short_help` where the
    decorator has it as a plain text. Empty where the source does not show it.
    """
    try:
        top, *rest = point.module.split(".")
        spec = find_spec(top)  # of a name without dots nothing is imported
        origin = Path((spec.origin if spec is not None else None) or "")
        path = origin.parent.joinpath(*rest) if rest else origin.with_suffix("")
        source = path / "__init__.py" if path.is_dir() and rest else path.with_suffix(".py")
        tree = ast.parse(source.read_bytes())
    except (ImportError, OSError, RecursionError, SyntaxError, ValueError):  # of another package
        return ""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef) and node.name == point.attr:
            given = {
                keyword.arg: keyword.value.value
                for decorator in node.decorator_list
                if isinstance(decorator, ast.Call)
                for keyword in decorator.keywords
                if isinstance(keyword.value, ast.Constant) and isinstance(keyword.value.value, str)
            }
            return click.Command(
                None, help=given.get("short_help") or given.get("help") or ast.get_docstring(node) or ""
            ).get_short_help_str(longest)
    return ""
