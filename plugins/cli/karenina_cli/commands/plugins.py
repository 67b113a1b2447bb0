"""`karenina plugins`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import click

from karenina_core.errors import plural

from ..options.options import json_option
from ..options.sections import examples
from ..output import Part, Table, note, own_stdout, print_found
from ..root import Commands

if TYPE_CHECKING:
    from karenina_core.plugin.application import Karenina
    from karenina_core.plugin.discovery import PluginInfo


TESTING = "karenina-core[testing]"
"""What brings the commands for authors."""
COLUMNS = ("name", "kinds", "distribution", "version", "state", "reason")


@click.group(
    cls=Commands,
    points="karenina.commands.plugins",
    elsewhere={"new": TESTING, "check": TESTING},
    invoke_without_command=True,
    short_help="List the installed plugins; write and check one.",
    epilog=examples("karenina plugins", "karenina plugins --all", "karenina plugins check word-limit"),
)
@click.option(
    "--all", "every", is_flag=True, help="Also list what plugins may register, settings of runs, parts of results."
)
@json_option
@click.pass_context
def command(ctx: click.Context, every: bool, as_json: bool) -> None:
    """List the installed plugins by package: what each provides, and why one is not active or has no effect. To disable
    a plugin, set KARENINA_DISABLE=NAME.

    With --all, also list the kinds of things that plugins can register, with their hooks, the sections of settings of
    runs that packages declare, and the parts that results have.
    """
    if ctx.invoked_subcommand is None:
        _list(every=every, as_json=as_json)


def _list(*, every: bool, as_json: bool) -> None:
    from attrs import asdict

    from karenina_core.plugin.application import Karenina

    from ..doctor.misplaced import misplaced

    with own_stdout() as out:
        app = Karenina.installed()
        for warning in (*app.warnings, *misplaced()):
            note(f"Warning: {warning}")
        brought = _brought(app)
        others: dict[str, tuple[str, Sequence[PluginInfo]]] = {
            "kinds": ("Kinds of things", app.kinds),
            "run_settings": ("Settings of runs", app.sections),
            "result_parts": ("Parts of results", app.result_parts),
        }
        document: dict[str, Any] = {
            "plugins": [{**asdict(info), "brings": brought.get(info.name, {})} for info in app.plugins],
            **{name: [asdict(info) for info in infos] for name, (_, infos) in others.items()},
        }
        parts = [*_plugin_parts(app.plugins, brought)]
        for title, infos in others.values():
            rows = [(i.name, ", ".join(i.kinds), i.distribution, i.version, i.state, i.reason) for i in infos]
            parts.append(Table(COLUMNS, rows if every else [row for row in rows if row[4] != "active"], title))
        print_found(document, parts, out, as_json=as_json)


def _brought(app: Karenina) -> Mapping[str, Mapping[str, Sequence[str]]]:
    """What each plugin has registered: by the plugin, names by their kind."""
    found: dict[str, dict[str, list[str]]] = {}
    for registry in app.registries:
        for name, entry in registry.items():
            found.setdefault(entry.plugin, {}).setdefault(registry.kind, []).append(name)
    return found


def _plugin_parts(plugins: Sequence[PluginInfo], brought: Mapping[str, Mapping[str, Sequence[str]]]) -> Iterator[Part]:
    """A table for the plugins that are not active, and one for each package."""
    idle = [(i.name, i.state, i.distribution, i.reason) for i in plugins if i.state != "active"]
    packages: dict[str, list[PluginInfo]] = {}
    for info in plugins:
        if info.state == "active":
            packages.setdefault(f"{info.distribution} {info.version}".strip(), []).append(info)
    yield f"{plural(len(plugins) - len(idle), 'plugin')} of {plural(len(packages), 'package')}\n"
    yield Table(("name", "state", "package", "why"), idle, "Not active")
    for package, infos in sorted(packages.items()):
        rows = [(info.name, _said(info, brought.get(info.name, {})), info.reason) for info in infos]
        noted = any(reason for *_, reason in rows)
        yield Table(("", "", "")[: 3 if noted else 2], [row if noted else row[:2] for row in rows], package)


def _said(info: PluginInfo, brought: Mapping[str, Sequence[str]]) -> str:
    """What a plugin brings: kinds with the names of what is registered, and hooks that it implements."""
    named = [
        kind if list(names) == [info.name] and kind == "settings" else f"{_kind(kind, names)} {', '.join(names)}"
        for kind, names in sorted(brought.items())
    ]
    return "; ".join([*named, *(kind.replace("_", " ") for kind in info.kinds if kind not in brought)])


def _kind(kind: str, names: Sequence[str]) -> str:
    return kind if len(names) == 1 else kind.removesuffix("y") + ("ies" if kind.endswith("y") else "s")
