"""`karenina judge`: commands that try a judge."""

from __future__ import annotations

import click
from karenina_cli.root import Commands


@click.group(
    cls=Commands,
    points="karenina.commands.judge",
    short_help="Try a judge: misreadings, attacks, drift, and how many labels it needs.",
)
def command() -> None:
    """Try a judge before its verdicts count."""
