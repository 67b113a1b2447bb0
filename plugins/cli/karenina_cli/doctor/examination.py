"""What `karenina doctor` does: looks at everything that a run needs and calls no model."""

from __future__ import annotations

import os
import platform
import re
import subprocess
import sys
import tempfile
import textwrap
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from importlib.metadata import PackageNotFoundError, requires, version
from pathlib import Path
from typing import Any

from attrs import asdict
from karenina_runs.files.run_files import place_of
from karenina_runs.folder.directory import default_directory

from karenina_core import __version__
from karenina_core.errors import KareninaError, one_line, plural
from karenina_core.names import problems
from karenina_core.plugin.adapters import AdapterSpec
from karenina_core.plugin.api import PLUGIN_API, KareninaDeprecationWarning
from karenina_core.plugin.application import Karenina
from karenina_core.plugin.command_line import Section

from ..entries import every_section, merged, section_parts
from ..exits import COULD_NOT_RUN, OK
from ..output import inline, note, own_stdout, print_found
from .misplaced import misplaced

DEEP_SECONDS = 120.0
"""Seconds for importing what an adapter needs; chosen."""
CORE = "karenina-core"
COLUMNS = ("interface", "plugin", "state", "reason")
"""What is shown of an adapter."""


def examine(*, deep: bool = False, as_json: bool = False) -> int:
    """Print what was found. Returns the exit code."""
    with own_stdout() as out:
        app, deprecated = _installed()
        sections = every_section("karenina.doctor", lambda section: section(app))
        found = findings(app, sections, deep=deep)
        found["problems"] += deprecated
        folder = found["run_directory"]
        variables = ", ".join(found["environment"]) or "no API keys and no KARENINA_ variables"
        parts = [
            f"karenina-core {found['karenina_core']} (plugin API {found['plugin_api']}), Python {found['python']}",
            *_plugin_lines(found["plugins"]),
            "",
            *section_parts(Section.of("adapters", "Adapters", COLUMNS, found["adapters"])),
            *(part for section in sections for part in section_parts(section)),
            f"Run directory {folder['path']}: {'writable' if folder['writable'] else 'not writable'}"
            f" ({found['file_system']['type'] or 'unknown file system'})",
            f"Environment: {variables} (names only)",
            *_package_lines(found["packages"]),
            "",
            "karenina can be used here." if found["usable"] else "karenina cannot be used here.",
        ]
        print_found(found, parts, out, as_json=as_json)
        for problem in found["problems"]:
            note(f"Problem: {problem}")
    return OK if found["usable"] else COULD_NOT_RUN


def _plugin_lines(plugins: Sequence[Mapping[str, Any]]) -> list[str]:
    """How many are active, and the names of the others."""
    states: dict[str, list[str]] = {}
    for plugin in plugins:
        states.setdefault(plugin["state"], []).append(plugin["name"])
    active = len(states.pop("active", []))
    others = [f"Plugins {state}: {', '.join(names)}" for state, names in sorted(states.items())]
    return [f"{plural(active, 'plugin')} active, listed by: karenina plugins", *others]


def _package_lines(packages: Mapping[str, str]) -> list[str]:
    """The versions of packages; how many of karenina's own have that of the core."""
    same = [name for name, number in packages.items() if name.startswith("karenina-") and number == __version__]
    others = [f"{name} {number}" for name, number in packages.items() if name not in same]
    return [
        f"Packages: {plural(len(same), 'package')} of karenina {__version__}",
        *textwrap.wrap(", ".join(others), 78),
    ]


def _installed() -> tuple[Karenina, list[str]]:
    """The installed plugins, and what they use that is deprecated, each once with its place."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", KareninaDeprecationWarning)
        app = Karenina.installed()
    found = []
    for warning in caught:
        if issubclass(warning.category, KareninaDeprecationWarning):
            found.append(f"{warning.message} ({warning.filename}, line {warning.lineno})")
        else:
            warnings.warn_explicit(warning.message, warning.category, warning.filename, warning.lineno)
    return app, list(dict.fromkeys(found))


def examine_run(folder: Path, *, replace: bool = False, as_json: bool = False) -> int:
    """Print what packages say about a run directory. Returns the exit code. Raises what their sections raise."""
    with own_stdout() as out:
        sections = every_section(
            "karenina.doctor.run", lambda section: section(folder, replace=replace), (KareninaError,)
        )
        parts = [part for section in sections for part in section_parts(section)]
        print_found(merged({}, sections), parts, out, as_json=as_json)
        for section in sections:
            for line in (*(f"Problem: {problem}" for problem in section.problems), *section.notes):
                note(line)
        if failures := [section.failure for section in sections if section.failure is not None]:
            raise failures[0]
    return OK if all(section.usable for section in sections) else COULD_NOT_RUN


def findings(app: Karenina, sections: Sequence[Section] = (), *, deep: bool = False) -> dict[str, Any]:
    """Everything as plain data. `usable` is False where a plugin or a section failed or no adapter can be used."""
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
    unsuitable = [folder["reason"]] if folder["reason"] else []
    if not place.suitable:
        kind = f"a network file system ({place.kind})"
        unsuitable.append(f"{folder['path']} is on {kind}; run with --out and a local folder")
    brought = [problem for section in sections for problem in section.problems]
    try:
        needed = [line for line in requires(CORE) or () if "extra ==" not in line]
    except PackageNotFoundError:
        needed = []
    names = {re.split(r"[ ;<>=!~\[]", line, maxsplit=1)[0] for line in needed}
    every = (*app.plugins, *app.kinds, *app.sections, *app.result_parts)
    names |= {info.distribution for info in every if info.version}
    versions = {}
    for name in sorted(names | {CORE}):
        with suppress(PackageNotFoundError):
            versions[name] = version(name)
    found = {
        "usable": not failed and reachable and all(section.usable for section in sections),
        "problems": [*failed, *noted, *none, *misplaced(), *app.warnings, *problems(), *brought, *unsuitable],
        "python": platform.python_version(),
        "karenina_core": __version__,
        "plugin_api": PLUGIN_API,
        "plugins": plugins,
        "run_settings": [asdict(section) for section in app.sections],
        "adapters": adapters,
        "run_directory": folder,
        "file_system": {"mount": place.mount, "type": place.kind, "suitable": place.suitable},
        "environment": sorted(name for name in os.environ if name.endswith("_API_KEY") or name.startswith("KARENINA_")),
        "packages": versions,
    }
    return merged(found, sections)


def _adapter(app: Karenina, interface: str, *, deep: bool) -> dict[str, Any]:
    row = {"interface": interface, "plugin": app.adapters[interface].plugin, "state": "available", "reason": ""}
    try:
        resolution = app.adapters.resolve_interface(interface)
    except Exception as error:  # a plugin's checker may do anything
        row |= {"state": "broken", "reason": str(error) or one_line(error)}
        with suppress(Exception):  # the first error is reported
            row["state"] = app.adapters.check_availability(interface).state
        return row
    row["reason"] = resolution.note
    if deep and (failure := _import_failure(resolution.spec)):
        return {**row, "state": "broken", "reason": failure}
    return row


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
