"""What `karenina doctor` does: looks at everything that a run needs and calls no model."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from attrs import asdict

from .. import __version__
from ..errors import ConfigError, PluginError, one_line
from ..model.config import VerificationConfig
from ..model.embedder_settings import EMBEDDING_MODEL
from ..pipeline.kinds import TemplateRuntimeRegistry
from ..plugin.adapters import AdapterSpec
from ..plugin.application import Karenina
from ..plugin.registry import Registry
from ..plugin.services import EmbedderRegistry, SearchToolRegistry, ToolServerRegistry, embedder_of, search_tool_of
from ..run.directory import default_directory
from ..run.places import Place, place_of
from .exits import COULD_NOT_RUN, OK
from .output import Part, Table, inline, note, own_stdout, print_json, print_parts

__all__ = ["examine", "findings"]

DEEP_SECONDS = 120.0
CORE = "karenina-core"


def examine(*, deep: bool = False, as_json: bool = False) -> int:
    """Print what was found. Returns the exit code."""
    with own_stdout() as out:
        app = Karenina.installed()
        found = findings(app, deep=deep)
        if as_json:
            print_json(found, out)
        else:
            print_parts(_parts(found), out)
        for problem in found["problems"]:
            note(f"Problem: {problem}")
    return OK if found["usable"] else COULD_NOT_RUN


def findings(app: Karenina, *, deep: bool = False) -> dict[str, Any]:
    """Everything as plain data. `usable` is False where a plugin failed or no adapter can be used."""
    plugins = [asdict(plugin) for plugin in app.plugins]
    adapters = [_adapter(app, name, deep=deep) for name in app.adapters.get_interfaces()]
    listed = (*app.plugins, *app.kinds, *app.result_parts)
    failed = [f"plugin {p.name} failed: {p.reason}" for p in listed if p.state == "failed"]
    failed += [f"settings {s.name} of {s.distribution} failed: {s.reason}" for s in app.sections if s.state == "failed"]
    noted = [f"plugin {p.name}: {p.reason}" for p in app.plugins if p.state == "active" and p.reason]
    reachable = any(adapter["state"] == "available" for adapter in adapters)
    none = [] if reachable else ["no adapter can be used; install one, such as karenina-litellm"]
    folder = _run_directory()
    place = place_of(Path(folder["path"]))
    model, environment = _default_model()
    return {
        "usable": not failed and reachable,
        "problems": [*failed, *noted, *none, *app.warnings, *environment, *_of_place(folder, place)],
        "python": platform.python_version(),
        "karenina_core": __version__,
        "plugins": plugins,
        "run_settings": [asdict(section) for section in app.sections],
        "adapters": adapters,
        "template_runtimes": [_runtime(app, name) for name in app.registry(TemplateRuntimeRegistry)],
        "embedders": [{**row, "model": model} for row in _made(app, EmbedderRegistry, embedder_of, model)],
        "search_tools": _made(app, SearchToolRegistry, search_tool_of),
        "tool_servers": _made(app, ToolServerRegistry, _Client),
        "run_directory": folder,
        "file_system": {"mount": place.mount, "type": place.kind, "suitable": place.suitable},
        "environment": sorted(name for name in os.environ if name.endswith("_API_KEY") or name.startswith("KARENINA_")),
        "packages": _packages(app),
    }


def _adapter(app: Karenina, interface: str, *, deep: bool) -> dict[str, Any]:
    row = {"interface": interface, "plugin": app.adapters[interface].plugin, "state": "available", "reason": ""}
    try:
        resolution = app.adapters.resolve_interface(interface)
    except Exception as error:  # a plugin's checker may do anything
        found = _availability(app, interface)
        return {**row, "state": found or "broken", "reason": str(error) or one_line(error)}
    row["reason"] = resolution.note
    if deep and (failure := _import_failure(resolution.spec)):
        return {**row, "state": "broken", "reason": failure}
    return row


def _availability(app: Karenina, interface: str) -> str | None:
    try:
        return app.adapters.check_availability(interface).state
    except Exception:  # as above; the first error has been told
        return None


def _import_failure(spec: AdapterSpec) -> str | None:
    """Import what the adapter needs, in a process of its own: nothing that happens there can hurt this one."""
    factories = (spec.llm_factory, spec.parser_factory, spec.agent_factory)
    modules = [*spec.requires_modules, *(f.partition(":")[0] for f in factories if isinstance(f, str))]
    code = "import importlib, sys\nfor name in sys.argv[1:]: importlib.import_module(name)"
    command = [sys.executable, "-P", "-c", code, *dict.fromkeys(modules)]
    try:
        ran = subprocess.run(command, capture_output=True, text=True, errors="replace", timeout=DEEP_SECONDS)
    except subprocess.TimeoutExpired:
        return f"importing {', '.join(modules)} takes longer than {DEEP_SECONDS:g} s"
    if ran.returncode == 0:
        return None
    lines = ran.stderr.strip().splitlines()
    return inline(lines[-1] if lines else f"importing {', '.join(modules)} ended with code {ran.returncode}")


def _runtime(app: Karenina, name: str) -> dict[str, Any]:
    try:
        runtime = app.registry(TemplateRuntimeRegistry).load(name)
    except PluginError as error:
        return {"name": name, "languages": [], "isolation": None, "executes_code": None, "reason": str(error)}
    made = runtime() if isinstance(runtime, type) else runtime
    return {
        "name": name,
        "languages": sorted(made.languages),
        "isolation": made.isolation,
        "executes_code": made.executes_code,
        "reason": "",
    }


def _default_model() -> tuple[str, list[str]]:
    """The model that embedders are made for where nothing is configured, and what is wrong with the environment."""
    try:
        return VerificationConfig().embedding_check_model, []
    except ConfigError as error:
        return EMBEDDING_MODEL, [str(problem) for problem in error.problems]


def _made(app: Karenina, kind: type[Registry[Any]], make: Callable[..., Any], *more: Any) -> list[dict[str, Any]]:
    """What the things of a kind say about themselves; each is made with `make(app, name, *more)`."""
    return [
        {"name": name, "plugin": entry.plugin} | _readiness(partial(make, app, name, *more))
        for name, entry in app.registry(kind).items()
    ]


class _Client:
    """A client's class, which says for all servers what a made client says for one. Whether a single server can be
    reached shows when a run begins."""

    def __init__(self, app: Karenina, name: str) -> None:
        self.look = getattr(app.registry(ToolServerRegistry).load(name), "unavailable", None)

    def problem(self) -> Any:
        return self.look() if self.look else None


def _readiness(make: Callable[[], Any]) -> dict[str, str]:
    """What a thing says about itself: `available`, `not_ready` with its own reason, or `broken`."""
    try:
        problem = make().problem()
    except Exception as error:  # a plugin's code may do anything
        return {"state": "broken", "reason": str(error) if isinstance(error, PluginError) else one_line(error)}
    return {"state": "not_ready" if problem else "available", "reason": inline(str(problem or ""))}


def _run_directory() -> dict[str, Any]:
    """Whether a run without --out could keep its results here."""
    folder = default_directory("run").parent
    there = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    try:
        with tempfile.TemporaryFile(dir=there):
            reason = ""
    except OSError as error:
        reason = f"{there} cannot be written ({error.strerror}); run with --out DIR"
    return {"path": str(folder), "writable": not reason, "reason": reason}


def _of_place(folder: Mapping[str, Any], place: Place) -> list[str]:
    found = [folder["reason"]] if folder["reason"] else []
    if not place.suitable:
        found.append(f"{folder['path']} is on a network file system ({place.kind}); run with --out and a local folder")
    return found


def _packages(app: Karenina) -> dict[str, str]:
    """Versions of the core's dependencies and of every distribution that brings a plugin."""
    try:
        needed = [line for line in requires(CORE) or () if "extra ==" not in line]
    except PackageNotFoundError:
        needed = []
    names = {re.split(r"[ ;<>=!~\[]", line, maxsplit=1)[0] for line in needed}
    names |= {plugin.distribution for plugin in app.plugins if plugin.version}
    return {name: found for name in sorted(names | {CORE}) if (found := _version(name))}


def _version(distribution: str) -> str | None:
    try:
        return version(distribution)
    except PackageNotFoundError:
        return None


def _parts(found: Mapping[str, Any]) -> list[Part]:
    states: dict[str, list[str]] = {}
    for plugin in found["plugins"]:
        states.setdefault(plugin["state"], []).append(plugin["name"])
    folder = found["run_directory"]
    return [
        f"karenina-core {found['karenina_core']}, Python {found['python']}",
        *(f"Plugins {state}: {', '.join(names)}" for state, names in sorted(states.items())),
        "",
        *_rows("Adapters", ("interface", "plugin", "state", "reason"), found["adapters"]),
        *_rows("Template runtimes", ("name", "languages", "isolation", "reason"), found["template_runtimes"]),
        *_rows("Embedders", ("name", "model", "state", "reason"), found["embedders"]),
        *_rows("Search tools", ("name", "state", "reason"), found["search_tools"]),
        *_rows("Clients of tool servers", ("name", "state", "reason"), found["tool_servers"]),
        f"Run directory {folder['path']}: {'writable' if folder['writable'] else 'not writable'}"
        f" ({found['file_system']['type'] or 'unknown file system'})",
        f"Environment: {', '.join(found['environment']) or 'no API keys and no KARENINA_ variables'} (names only)",
        f"Packages: {', '.join(f'{name} {number}' for name, number in found['packages'].items())}",
        "",
        "karenina can be used here." if found["usable"] else "karenina cannot be used as it is here.",
    ]


def _rows(title: str, keys: Sequence[str], rows: Iterable[Mapping[str, Any]]) -> list[Part]:
    cells = [tuple(_cell(row[key]) for key in keys) for row in rows]
    return [Table(keys, cells, title)] if cells else []


def _cell(value: Any) -> str:
    return ", ".join(value) if isinstance(value, list) else str(value if value is not None else "")
