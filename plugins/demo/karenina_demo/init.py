"""`karenina init`."""

from __future__ import annotations

from pathlib import Path

import click
from karenina_cli.options.sections import examples


@click.command(
    short_help="Write a small project that runs at once.", epilog=examples("karenina init", "karenina init my-project")
)
@click.argument("folder", type=click.Path(path_type=Path, file_okay=False), default=".")
def command(folder: Path) -> None:
    """Write a benchmark of four questions, recorded answers, a configuration, a workflow for GitHub and a README into
    FOLDER, by default the current one.

    The commands that it prints run at once, without a key and without a network. No file is overwritten: if one of them
    exists, nothing is written.

    Exit code 1: a file already exists, or cannot be written.
    """
    from .project import begun

    begun(folder)
