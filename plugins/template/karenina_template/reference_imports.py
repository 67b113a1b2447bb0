"""Imports from the reference project's package, inside templates only.

Benchmark files carry templates that begin with `from karenina.schemas.entities import BaseAnswer`. No module of
that name exists here. A loaded template gets its own `__import__`, which answers for `karenina` and everything
below it with the names that templates use; any other import goes the usual way.
"""

from __future__ import annotations

import builtins
from collections.abc import Callable, Mapping
from types import ModuleType
from typing import Any

from karenina_core.errors import did_you_mean

__all__ = ["template_import"]

_PACKAGES = ("schemas", "entities")


def template_import(names: Mapping[str, Any]) -> Callable[..., Any]:
    """An `__import__` for one template that finds `names` in every module of the reference package."""
    known: dict[str, ModuleType] = {}

    def module(path: str) -> ModuleType:
        if path not in known:
            known[path] = made = ModuleType(path, "Replaces a module of the reference project inside a template.")
            made.__dict__.update(names, __all__=sorted(names), __path__=[])
            parent, _, last = path.rpartition(".")
            if parent:
                setattr(module(parent), last, made)
        return known[path]

    # The names of the parameters are those of the function that it replaces.
    def find(name: str, globals: Any = None, locals: Any = None, fromlist: Any = (), level: int = 0) -> Any:
        if level or name.partition(".")[0] != "karenina":
            return builtins.__import__(name, globals, locals, fromlist, level)
        found = module(name)
        for word in fromlist or ():
            if word in _PACKAGES:
                module(f"{name}.{word}")
            elif word != "*" and word not in names:
                raise ImportError(
                    f"cannot import {word!r} from {name!r}{did_you_mean(word, names)}; templates can import "
                    f"{', '.join(sorted(names))}"
                )
        return found if fromlist else known["karenina"]

    return find
