"""Public names: in which module each one is. It is imported at its first use, from whatever distribution has it.

The core lists its own names. Any other distribution adds names to the public packages by an entry point of the group
`karenina.names`, called like what it has: `runs = "my_runs.names:NAMES"` for

    NAMES = {"karenina_core": {"Benchmark": "my_runs.benchmark"}}

`{"deprecated": {"karenina_core.Old": ("karenina_core.New", "0.3")}}` in a table says that a name is replaced by another
one, and in which version of karenina-core it will be gone: whoever uses it is warned.

Such tables are read when a name is asked for that the core does not have. A name of the core, or of a module of a
public package, keeps its meaning whatever a table says; of two distributions with the same name one has it (see
`plugin.discovery.Rank`). `problems` lists what was left out.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable, Iterator, Mapping
from functools import lru_cache
from types import ModuleType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

GROUP = "karenina.names"
CORE = "karenina-core"
NAMES: Mapping[str, Mapping[str, str]] = {
    "karenina_core": {
        "AdapterRegistry": "karenina_core.plugin.adapters",
        "AdapterSpec": "karenina_core.plugin.adapters",
        "AttemptPolicy": "karenina_core.values.config",
        "BaseVerificationStage": "karenina_core.pipeline.stage",
        "BenchmarkData": "karenina_core.values.benchmark",
        "Category": "karenina_core.pipeline.declaration",
        "DynamicRubric": "karenina_core.values.rubric",
        "Karenina": "karenina_core.plugin.application",
        "Key": "karenina_core.pipeline.artifact_keys",
        "ModelConfig": "karenina_core.values.config",
        "ModelIdentity": "karenina_core.values.identity",
        "KareninaDeprecationWarning": "karenina_core.plugin.api",
        "Outcome": "karenina_core.values.outcome",
        "PLUGIN_API": "karenina_core.plugin.api",
        "Question": "karenina_core.values.question",
        "RetryPolicy": "karenina_core.values.config",
        "Rubric": "karenina_core.values.rubric",
        "RubricTrait": "karenina_core.values.rubric",
        "Skip": "karenina_core.pipeline.stage",
        "Stage": "karenina_core.pipeline.stage",
        "StageOrchestrator": "karenina_core.pipeline.stage_plan",
        "TaskIdentity": "karenina_core.values.identity",
        "VerificationConfig": "karenina_core.values.config",
        "VerificationContext": "karenina_core.pipeline.context",
        "VerificationResult": "karenina_core.values.result",
        "VerificationStage": "karenina_core.pipeline.stage",
        "feature": "karenina_core.pipeline.stage",
        "hookimpl": "karenina_core.plugin.markers",
        "hookspec": "karenina_core.plugin.markers",
        "neutral": "karenina_core.plugin.markers",
    },
    "karenina_core.ports": {
        "AgentConfig": "karenina_core.ports.values",
        "AgentPort": "karenina_core.ports.protocols",
        "AgentResult": "karenina_core.ports.values",
        "CallContext": "karenina_core.ports.values",
        "LLMPort": "karenina_core.ports.protocols",
        "LLMResponse": "karenina_core.ports.values",
        "Message": "karenina_core.values.message",
        "OutputFormat": "karenina_core.ports.values",
        "ParsePortResult": "karenina_core.ports.values",
        "ParserPort": "karenina_core.ports.protocols",
        "PortCapabilities": "karenina_core.ports.values",
        "StreamingLLMPort": "karenina_core.ports.protocols",
        "StreamingLLMResponse": "karenina_core.ports.values",
        "TextBlock": "karenina_core.values.message",
        "ThinkingBlock": "karenina_core.values.message",
        "Tool": "karenina_core.ports.values",
        "ToolOutcome": "karenina_core.ports.values",
        "ToolResultBlock": "karenina_core.values.message",
        "ToolUseBlock": "karenina_core.values.message",
        "UsageMetadata": "karenina_core.values.message",
    },
    "karenina_core.prompts": {},
    "karenina_core.templates": {},
    "karenina_core.testing": {},
}
"""Public package -> name -> module, of the core itself."""
Table = Mapping[str, Mapping[str, str]]
Replaced = Mapping[str, tuple[str, str]]
DEPRECATED: Replaced = {}
"""Public name -> what to use instead, and the version in which it will be gone; of the core itself."""


def exports(package: str) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """`__getattr__` and `__dir__` of a public package; `__all__` is an attribute like any other name.

    A name whose distribution is not installed raises an error that says what to install.
    """
    own = NAMES[package]

    def __getattr__(name: str) -> Any:
        if name == "__all__":
            return sorted(public_names(package))
        value = _imported(own[name], name) if name in own else _of_others(package, name)
        every = DEPRECATED if name in own or isinstance(value, ModuleType) else _declared()[2]
        if replaced := every.get(f"{package}.{name}"):
            import warnings

            from .plugin.api import deprecation

            warnings.warn(deprecation(f"{package}.{name}", instead=replaced[0], gone=replaced[1]), stacklevel=2)
        else:  # one that is deprecated is not kept: each place that uses it is warned
            setattr(sys.modules[package], name, value)
        return value

    def __dir__() -> list[str]:
        return sorted({*vars(sys.modules[package]), *public_names(package)})

    return __getattr__, __dir__


def public_names(package: str) -> Mapping[str, str]:
    """The names of a public package and the module of each, of everything that is installed."""
    return {**_declared()[0][package], **NAMES[package]}


def problems() -> tuple[str, ...]:
    """Names of installed distributions that are left out, and why."""
    tables, left_out, _ = _declared()
    modules = [
        f"{package}.{name} is a module of {CORE}, not what the names of an installed package say"
        for package, names in tables.items()
        for name, home in names.items()
        if home != f"{package}.{name}" and _is_module(f"{package}.{name}")
    ]
    return (*left_out, *modules)


def _of_others(package: str, name: str) -> Any:
    """A module of the package, else what another distribution has. Raises AttributeError."""
    if not name.startswith("_"):
        if _is_module(f"{package}.{name}"):
            return importlib.import_module(f"{package}.{name}")
        if home := _declared()[0][package].get(name):
            return _imported(home, name)
    raise AttributeError(
        f"module {package!r} has no attribute {name!r}: no installed distribution has this name. If it belongs "
        f'to karenina, install the distribution that has it; pip install "{CORE}[all]" installs everything'
    )


def _is_module(name: str) -> bool:
    from importlib.util import find_spec  # not for the core's own names

    spec = find_spec(name)
    return spec is not None and spec.origin is not None  # a folder with nothing but caches in it is no module


def _imported(module: str, name: str) -> Any:
    top = module.partition(".")[0]
    try:
        found = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name != top:
            raise
        distribution = top.replace("_", "-")
        raise ImportError(f"{name} is in {distribution}, which is not installed: pip install {distribution}") from None
    return found if module.endswith(f".{name}") else getattr(found, name)


def _declared() -> tuple[Table, tuple[str, ...], Replaced]:
    from .entry_points import installed_entry_points

    return _merged(tuple(sorted(installed_entry_points(GROUP))))


@lru_cache(maxsize=1)
def _merged(points: tuple[EntryPoint, ...]) -> tuple[Table, tuple[str, ...], Replaced]:
    """The tables as one, what is left out of it, and which names are deprecated.

    Of distributions with the same name, one has it.
    """
    from .entry_points import owner

    offered: dict[tuple[str, str], dict[str, EntryPoint]] = {}
    merged: dict[str, dict[str, str]] = {package: {} for package in NAMES}
    left_out: list[str] = []
    replaced: dict[str, tuple[str, str]] = {}
    for point in points:
        try:
            table = point.load()
            for package, name, home in list(_entries(table)):
                offered.setdefault((package, name), {}).setdefault(home, point)
            replaced |= {name: (str(new), str(gone)) for name, (new, gone) in table.get("deprecated", {}).items()}
        except (Exception, SystemExit) as error:  # a stranger's module
            left_out.append(f"the names of {owner(point)} cannot be used: {type(error).__name__}: {error}")
    for (package, name), homes in offered.items():
        kept = NAMES[package].get(name) or _first(homes)
        if name not in NAMES[package]:
            merged[package][name] = kept
        if rivals := homes.keys() - {kept}:
            keeper = owner(homes[kept]) if kept in homes else CORE
            others = ", ".join(sorted(owner(homes[home]) for home in rivals))
            left_out.append(f"{package}.{name} is that of {keeper}, not that of {others}")
    return merged, tuple(left_out), replaced


def _entries(table: Table) -> Iterator[tuple[str, str, str]]:
    """`(package, name, module)` of everything in a table. Raises ValueError, and what reading no table raises."""
    for package, names in table.items():
        if package == "deprecated":
            continue
        if package not in NAMES:
            raise ValueError(f"there is no public package {package!r}, only {', '.join(NAMES)}")
        for name, home in names.items():
            if not name.isidentifier() or name.startswith("_") or not isinstance(home, str):
                raise ValueError(f"{package}: {name!r}: {home!r} is no public name and its module")
            yield package, name, home


def _first(homes: Mapping[str, EntryPoint]) -> str:
    if len(homes) == 1:
        return next(iter(homes))
    from .entry_points import owner
    from .plugin.discovery import Rank  # only needed where there is a clash

    return min(homes, key=Rank({home: owner(point) for home, point in homes.items()}))
