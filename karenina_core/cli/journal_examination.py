"""What `karenina doctor DIR` does: checks the journal of a run, and saves what is in a damaged one."""

from __future__ import annotations

import json
import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from ..errors import RunDirectoryError
from ..run.directory import MANIFEST
from ..run.journal_check import Health, check
from ..run.journal_reader import JOURNAL
from ..run.journal_salvage import Salvage, put_in_place, salvage
from ..run.owner import owner_of
from ..run.places import place_of
from .exits import COULD_NOT_RUN, OK
from .output import Part, Table, note, own_stdout, print_json, print_parts

__all__ = ["examine_journal"]


def examine_journal(folder: Path, *, replace: bool = False, as_json: bool = False) -> int:
    """Print what was found. Returns the exit code. Raises ConfigError where there is no journal, and RunDirectoryError
    where what can be saved cannot be written."""
    with own_stdout() as out:
        owner = owner_of(folder)
        health = check(folder)
        found: dict[str, Any] = {
            **health.to_dict(),
            "file_system": place_of(folder).kind or None,
            "written_by": owner,
            "salvaged": None,
            "replaced": None,
        }
        saved = None
        try:
            if not health.sound and owner is None:
                saved = _saved(folder, health)
                found["salvaged"] = {"journal": str(saved.path), "rows": saved.rows}
                if replace:
                    found["replaced"] = str(put_in_place(folder, saved))
                    found["salvaged"]["journal"] = str(folder / JOURNAL)
        finally:
            if as_json:
                print_json(found, out)
            else:
                print_parts(_parts(found), out)
        for line in _advice(folder, found):
            note(line)
    return OK if health.sound or found["replaced"] else COULD_NOT_RUN


def _saved(folder: Path, health: Health) -> Salvage:
    names = ("journal-salvaged.sqlite", *(f"journal-salvaged-{number}.sqlite" for number in range(2, 1000)))
    to = next((folder / name for name in names if not (folder / name).exists()), None)
    if to is None:
        raise RunDirectoryError(f"{folder} holds many salvaged journals; move them away first")
    return salvage(health.path, to, health.run_id or _run_of(folder))


def _run_of(folder: Path) -> str | None:
    """Whose journal it is, as the manifest says."""
    try:
        manifest = json.loads((folder / MANIFEST).read_text("utf-8"))
    except (OSError, ValueError):
        return None
    run_id = manifest.get("run_id") if isinstance(manifest, dict) else None
    return run_id if isinstance(run_id, str) else None


def _parts(found: Mapping[str, Any]) -> list[Part]:
    salvaged = found["salvaged"]
    rows = [
        (name, str(count), *((str(salvaged["rows"].get(name, 0)),) if salvaged else ()))
        for name, count in (found["rows"] or (salvaged or {}).get("rows", {})).items()
    ]
    columns = ("table", "sound rows", *(("saved",) if salvaged else ()))
    return [
        f"Journal {found['journal']}" + (f", run {found['run_id']}" if found["run_id"] else ""),
        f"File system: {found['file_system'] or 'unknown'}",
        "",
        *([Table(columns, rows)] if rows else []),
        *(f"Damage: {problem}" for problem in found["problems"]),
        "The journal is whole." if found["sound"] else "The journal is damaged.",
    ]


def _advice(folder: Path, found: Mapping[str, Any]) -> list[str]:
    if found["sound"]:
        return []
    where = shlex.quote(str(folder))
    if found["written_by"] is not None:
        return [f"Process {found['written_by']} writes to it: stop that first, then: karenina doctor {where}"]
    if found["replaced"]:
        return [f"The damaged journal is now {found['replaced']}. To go on: karenina resume {where}"]
    return [
        f"What can be read is in {found['salvaged']['journal']}. To go on with it: karenina doctor {where} --replace",
        "What is missing there is asked again.",
    ]
