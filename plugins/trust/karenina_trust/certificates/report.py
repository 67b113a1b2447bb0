"""What `karenina report` says of the certificate in a run directory."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from karenina_core.errors import ConfigError
from karenina_core.plugin.command_line import Section

from .document import NAME, read_certificate
from .gates import out_of_date
from .printed import tables_of

__all__ = ["sections"]


def sections(run: Path) -> Sequence[Section]:
    """The tables of the certificate; nothing where there is none. What does not hold any more is said first."""
    if not (run / NAME).is_file():
        return []
    try:
        held = read_certificate(run / NAME)
    except ConfigError as error:
        return [Section({}, "Certificate", before=[str(error)])]
    changed = out_of_date(held, run)
    before = [f"This certificate no longer holds: {'; '.join(changed)}."] if changed else []
    tables = [table for table in tables_of(held.content) if table.rows]
    return [
        Section({}, table.title, table.columns, table.rows, before=before if place == 0 else [])
        for place, table in enumerate(tables)
    ]
