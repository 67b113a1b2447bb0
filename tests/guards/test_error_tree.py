"""The tree in the docstring of errors.py is the tree of its classes."""

from __future__ import annotations

import inspect
import re

from karenina_core import errors


def _drawn(text: str) -> dict[str, str | None]:
    """`{class: parent}` from a tree that is drawn with four columns per level."""
    parents: dict[str, str | None] = {}
    path: list[str] = []
    for line in text.splitlines():
        found = re.match(r"^([│ ├└─]*)([A-Z]\w+)", line)
        if found is None or not (found[1] or found[2].endswith("Error")):
            continue
        depth = len(found[1]) // 4
        path[depth:] = [found[2]]
        parents[found[2]] = path[depth - 1] if depth else None
    return parents


def test_the_drawn_tree_is_the_real_one() -> None:
    real = {
        name: next((base.__name__ for base in cls.__bases__ if issubclass(base, errors.KareninaError)), None)
        for name, cls in inspect.getmembers(errors, inspect.isclass)
        if issubclass(cls, errors.KareninaError)
    }
    assert _drawn(inspect.getdoc(errors) or "") == real


def test_every_error_says_what_it_is_and_is_exported() -> None:
    classes = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, errors.KareninaError)]
    assert [cls.__name__ for cls in classes if not (cls.__doc__ or "").strip()] == []
    assert not any(cls.__name__.startswith("_") for cls in classes)


def test_values_errors_are_value_errors() -> None:
    """Promised to callers who know nothing of karenina's tree."""
    assert issubclass(errors.ConfigError, ValueError)
    assert issubclass(errors.BenchmarkError, ValueError)
    assert issubclass(errors.PlanError, ValueError)
