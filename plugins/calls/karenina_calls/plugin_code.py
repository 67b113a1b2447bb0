"""The code of plugins, by which it is seen whether it is still what it was."""

from __future__ import annotations

import hashlib
import importlib.util
import re
import sys
from collections.abc import Collection, Iterable
from functools import cache
from importlib.metadata import PackageNotFoundError, distribution, requires
from pathlib import Path
from typing import TYPE_CHECKING

from karenina_core.plugin.discovery import CORE
from karenina_core.plugin.markers import is_neutral

if TYPE_CHECKING:
    from karenina_core.plugin.application import Karenina

LENGTH = 16
"""Hexadecimal digits of a digest: enough to see a change, short enough for a file of many questions."""


def code_of(app: Karenina, plugin: str) -> dict[str, str] | None:
    """`{"distribution", "version", "digest"}` of an active plugin, the digest that of all its package's Python files;
    None for any other."""
    info = {info.name: info for info in app.plugins}.get(plugin)
    if info is None or info.state != "active":
        return None
    digest = code_digest(package_of(app.module_of(plugin)))
    return {"distribution": info.distribution, "version": info.version, "digest": digest}


def code_behind(app: Karenina, plugin: str, in_front: Collection[str]) -> str:
    """The code that answers where this plugin is asked: its own, and that of the plugins `in_front` of it whose
    middleware is not neutral. Equal texts mean equal code; what else is installed has no part in it."""
    wrapping = (impl for impl in app.hooks.karenina_wrap_call.get_hookimpls() if not is_neutral(impl.function))
    plugins = (plugin, *sorted(impl.plugin_name for impl in wrapping if impl.plugin_name in in_front))
    return "\n".join(f"{name} {sorted((code_of(app, name) or {}).items())}" for name in plugins)


def libraries_of(distributions: Iterable[str]) -> list[str]:
    """The core, and what these distributions declare, directly or not, of what declares the core too: libraries that
    plugins share, whose code makes numbers as theirs does."""
    found: set[str] = set()
    waiting = [*distributions]
    while waiting:
        for need in _needs(waiting.pop()):
            if need not in found and (need == CORE or CORE in _needs(need)):
                found.add(need)
                waiting.append(need)
    return sorted(found)


@cache
def _needs(name: str) -> frozenset[str]:
    """The names of what a distribution needs, without its extras."""
    try:
        lines = requires(name) or ()
    except PackageNotFoundError:
        return frozenset()
    return frozenset(re.split(r"[ ;<>=!~\[(]", line, maxsplit=1)[0] for line in lines if "extra ==" not in line)


def library_digest(library: str) -> str:
    """The digest of the code of a library: of the package of its name and of those that its entry points name."""
    found = sorted({code_digest(package) for package in {library.replace("-", "_"), *_named(library)}} - {""})
    return found[0] if len(found) == 1 else hashlib.sha256("".join(found).encode()).hexdigest()[:LENGTH]


@cache
def _named(library: str) -> frozenset[str]:
    """The packages that the entry points of a library name."""
    return frozenset(package_of(point.value.partition(":")[0]) for point in distribution(library).entry_points)


def package_of(module: str) -> str:
    """The package that a module is in: `karenina_core` for `karenina_runs.folder.fingerprint`."""
    return module.partition(".")[0]


@cache
def code_digest(package: str) -> str:
    """The digest of all Python files of a package, or of a module; empty where there are none to read."""
    try:
        spec = importlib.util.find_spec(package)
    except (ImportError, ValueError):
        spec = None
    folders, origin = (spec.submodule_search_locations, spec.origin) if spec else (None, None)
    if folders is None:
        script = origin or getattr(sys.modules.get(package), "__file__", None)  # a program's own module has no spec
        files = [Path(script)] if script and Path(script).is_file() else []
    else:
        files = sorted(path for folder in folders for path in Path(folder).rglob("*.py"))
    if not files:
        return ""
    hashed = hashlib.sha256()
    for file in files:
        hashed.update(f"{file.name}\0".encode())
        hashed.update(file.read_bytes())
    return hashed.hexdigest()[:LENGTH]
