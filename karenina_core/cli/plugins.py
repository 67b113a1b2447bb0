"""`karenina plugins`."""

from __future__ import annotations

import click

from .options import json_option
from .output import Table, note, own_stdout, print_json, print_parts

__all__ = ["command"]


@click.command(short_help="List the installed plugins.")
@json_option
def command(as_json: bool) -> None:
    """List the installed plugins: what they provide, who owns them, and why one is not active."""
    from attrs import asdict

    from ..plugin.application import Karenina

    with own_stdout() as out:
        app = Karenina.installed()
        for warning in app.warnings:
            note(f"Warning: {warning}")
        rows = [{**asdict(plugin), "kinds": list(plugin.kinds)} for plugin in app.plugins]
        if as_json:
            print_json(rows, out)
            return
        cells = [(*(", ".join(v) if isinstance(v, list) else str(v) for v in row.values()),) for row in rows]
        print_parts([Table(("name", "kinds", "distribution", "version", "state", "reason"), cells)], out)
