"""What `karenina doctor DIR` does: checks the journal of a run, and saves what is in a damaged one."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from karenina_calls.files.bounded import read_json
from karenina_runs.files.run_files import MANIFEST, place_of
from karenina_runs.files.run_lock import owner_of
from karenina_runs.journal.check import check
from karenina_runs.journal.reader import JOURNAL
from karenina_runs.journal.salvage import put_in_place, salvage

from karenina_core.errors import RunDirectoryError
from karenina_core.plugin.command_line import Section


def examine_journal(folder: Path, *, replace: bool = False) -> Section:
    """What was found, and what could be saved. Raises ConfigError where there is no journal."""
    owner = owner_of(folder)
    health = check(folder)
    found: dict[str, Any] = {
        **health.to_dict(),
        "file_system": place_of(folder).kind or None,
        "written_by": owner,
        "salvaged": None,
        "replaced": None,
    }
    failure = None
    if not health.sound and owner is None:
        try:
            names = ("journal-salvaged.sqlite", *(f"journal-salvaged-{number}.sqlite" for number in range(2, 1000)))
            to = next((folder / name for name in names if not (folder / name).exists()), None)
            if to is None:
                raise RunDirectoryError(f"{folder} holds many salvaged journals; move them away first")
            saved = salvage(health.path, to, health.run_id or _run_of(folder))
            found["salvaged"] = {"journal": str(saved.path), "rows": saved.rows}
            if replace:
                found["replaced"] = str(put_in_place(folder, saved))
                found["salvaged"]["journal"] = str(folder / JOURNAL)
        except RunDirectoryError as error:  # what can be saved cannot be written
            failure = error
    salvaged = found["salvaged"] or {}
    return Section(
        found,
        columns=("table", "sound rows", *(("saved",) if found["salvaged"] else ())),
        rows=[
            (name, str(count), *((str(salvaged["rows"].get(name, 0)),) if salvaged else ()))
            for name, count in (found["rows"] or salvaged.get("rows", {})).items()
        ],
        before=[
            f"Journal {found['journal']}" + (f", run {found['run_id']}" if found["run_id"] else ""),
            f"File system: {found['file_system'] or 'unknown'}",
            "",
        ],
        after=[
            *(f"Damage: {problem}" for problem in found["problems"]),
            "The journal is whole." if found["sound"] else "The journal is damaged.",
        ],
        notes=_advice(folder, found) if failure is None else (),
        usable=health.sound or bool(found["replaced"]),
        failure=failure,
    )


def _run_of(folder: Path) -> str | None:
    """Whose journal it is, as the manifest says."""
    try:
        manifest = read_json(folder / MANIFEST)
    except (OSError, ValueError):
        return None
    run_id = manifest.get("run_id") if isinstance(manifest, dict) else None
    return run_id if isinstance(run_id, str) else None


def _advice(folder: Path, found: Mapping[str, Any]) -> list[str]:
    if found["sound"]:
        return []
    where = shlex.quote(str(folder))
    if found["written_by"] is not None:
        return [f"Process {found['written_by']} writes to it: stop that first, then: karenina doctor {where}"]
    if found["replaced"]:
        return [f"The damaged journal is now {found['replaced']}. To continue: karenina resume {where}"]
    saved = found["salvaged"]["journal"]
    return [
        f"The readable part is in {saved}. To continue with it: karenina doctor {where} --replace",
        "Missing calls are made again.",
    ]
