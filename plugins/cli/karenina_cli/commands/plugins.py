"""`karenina plugins`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ..options.options import json_option
from ..output import Part, Table, note, own_stdout, print_found
from ..root import Commands

if TYPE_CHECKING:
    from karenina_core.plugin.discovery import PluginInfo


TESTING = "karenina-core[testing]"
"""What brings the commands for authors."""


@click.group(
    cls=Commands,
    points="karenina.commands.plugins",
    elsewhere={"new": TESTING, "check": TESTING},
    invoke_without_command=True,
    short_help="List the installed plugins; write and check one.",
)
@json_option
@click.pass_context
def command(ctx: click.Context, as_json: bool) -> None:
    """List the installed plugins: what they provide, who owns them, and why one is not active or has no effect.

    Below, the kinds of things that installed packages let plugins register, by the hook that does it, the sections of
    settings of runs that they declare, and the parts that results have.
    """
    if ctx.invoked_subcommand is None:
        _list(as_json)


def _list(as_json: bool) -> None:
    from attrs import asdict

    from karenina_core.plugin.application import Karenina

    from ..doctor.misplaced import misplaced

    with own_stdout() as out:
        app = Karenina.installed()
        for warning in (*app.warnings, *misplaced()):
            note(f"Warning: {warning}")
        listed: dict[str, tuple[str, Iterable[PluginInfo]]] = {
            "plugins": ("", app.plugins),
            "kinds": ("Kinds of things", app.kinds),
            "run_settings": ("Settings of runs", app.sections),
            "result_parts": ("Parts of results", app.result_parts),
        }
        columns = ("name", "kinds", "distribution", "version", "state", "reason")
        parts: list[Part] = []
        for title, infos in listed.values():
            cells = [(i.name, ", ".join(i.kinds), i.distribution, i.version, i.state, i.reason) for i in infos]
            parts.append(Table(columns, cells, title))
        document = {name: [asdict(info) for info in infos] for name, (_, infos) in listed.items()}
        print_found(document, parts, out, as_json=as_json)
