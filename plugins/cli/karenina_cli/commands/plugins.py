"""`karenina plugins`."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import click

from ..options.options import json_option
from ..output import Part, Table, note, own_stdout, print_json, print_parts

if TYPE_CHECKING:
    from karenina_core.plugin.discovery import PluginInfo


@click.command(short_help="List the installed plugins.")
@json_option
def command(as_json: bool) -> None:
    """List the installed plugins: what they provide, who owns them, and why one is not active or has no effect.

    Below, the kinds of things that installed packages let plugins register, by the hook that does it, the sections of
    settings of runs that they declare, and the parts that results have.
    """
    from attrs import asdict

    from karenina_core.plugin.application import Karenina

    with own_stdout() as out:
        app = Karenina.installed()
        for warning in app.warnings:
            note(f"Warning: {warning}")
        if as_json:
            listed = {
                "plugins": app.plugins,
                "kinds": app.kinds,
                "run_settings": app.sections,
                "result_parts": app.result_parts,
            }
            print_json({name: [asdict(info) for info in infos] for name, infos in listed.items()}, out)
            return
        tables: dict[str, Iterable[PluginInfo]] = {
            "": app.plugins,
            "Kinds of things": app.kinds,
            "Settings of runs": app.sections,
            "Parts of results": app.result_parts,
        }
        columns = ("name", "kinds", "distribution", "version", "state", "reason")
        parts: list[Part] = []
        for title, infos in tables.items():
            cells = [(i.name, ", ".join(i.kinds), i.distribution, i.version, i.state, i.reason) for i in infos]
            parts.append(Table(columns, cells, title))
        print_parts(parts, out)
