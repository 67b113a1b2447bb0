"""Journals of other runs, whose replies a run reuses."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Iterable, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import field, frozen

from karenina_core.errors import ConfigError, Problem, RunDirectoryError, plural

from ..files.run_lock import owner_of
from ..journal.reader import ENDING, OPEN, JournalReader, journal_of
from .directory import read_manifest
from .status import cancel_command, read_status, resume_command


@frozen
class Sources:
    """Journals that are only read, in the order in which replies are looked for."""

    readers: tuple[JournalReader, ...] = field(default=(), repr=False)
    missing: tuple[str, ...] = ()
    """Notes of directories that are not among them; see `followed`."""

    @property
    def notes(self) -> tuple[str, ...]:
        """What is missing, and what was found to be damaged so far. Such replies are asked for again."""
        damaged = ((reader.path, reader.damaged["calls"]) for reader in self.readers)
        return self.missing + tuple(
            f"{plural(count, 'call')} of {path} could not be reused, because they are damaged; check: karenina doctor "
            f"{shlex.quote(str(path.parent))}"
            for path, count in damaged
            if count
        )


def followed(folders: Iterable[Path], run_dir: Path | None = None) -> tuple[tuple[Path, ...], tuple[str, ...]]:
    """These run directories, and what their manifests lead back to: a run that reuses or extends another one has only
    those replies of it that it needed itself. `run_dir`, that of the run which is given them, is none of them.

    Those with a journal, in the order in which replies are looked for, and notes of the others."""
    given = list(folders)
    there: list[Path] = []
    missing: list[str] = []
    seen = {run_dir.resolve()} if run_dir is not None else set()
    waiting = list(given)
    while waiting:
        folder = waiting.pop(0)
        if (place := folder.resolve()) in seen:
            continue
        seen.add(place)
        if journal_of(folder).is_file():
            there.append(folder)
        elif folder not in given:
            missing += without((folder,))
            continue
        try:
            waiting[:0] = _recorded(read_manifest(folder))
        except ConfigError:
            missing.append(
                f"the manifest of {folder} cannot be read, so it is unknown whose replies that run reused; give "
                "those directories, too (--reuse)"
            )
    return tuple(there), tuple(missing)


def reused_by(manifest: Mapping[str, Any]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The run directories whose replies a run was given: those that are there, and those that are gone."""
    given = _recorded(manifest)
    there = tuple(path for path in given if journal_of(path).is_file())
    return there, tuple(path for path in given if path not in there)


def _recorded(manifest: Mapping[str, Any]) -> tuple[Path, ...]:
    return tuple(map(Path, manifest.get("reuse", ())))


def without(gone: Sequence[Path]) -> tuple[str, ...]:
    """Notes of a run that does not have the replies of these directories."""
    return tuple(f"{path} no longer exists: calls that were made only there are made again" for path in gone)


@asynccontextmanager
async def opened_sources(folders: Sequence[Path], run_dir: Path | None) -> AsyncIterator[Sources]:
    """The journals of these run directories, and of those that they lead back to, while the block runs.

    Raises RunDirectoryError where one of them has none, and ConfigError where the run keeps nothing itself, or one of
    them has calls at a provider that would be made twice.
    """
    if folders and run_dir is None:
        raise ConfigError([Problem("reuse", "what is reused is kept in the run directory; give run_dir")])
    for folder in folders:
        if not journal_of(folder).is_file():
            raise RunDirectoryError(f"{folder} has no journal to reuse replies from; give the directory of a run")
    there, missing = followed(folders, run_dir)
    with ExitStack() as stack:
        readers = tuple(stack.enter_context(JournalReader.open(folder)) for folder in there)
        for folder, reader in zip(there, readers, strict=True):
            # Batches that a run does not wait for any more, and those of a run that cannot be resumed, do not matter.
            rows = [row for row in reader.batches() if row.status in OPEN and row.status != ENDING]
            try:
                if not rows or read_manifest(folder)["status"] == "completed":
                    continue
            except ConfigError:
                continue
            calls = plural(sum(len(row.keys) for row in rows), "call")
            what = f"the run in {folder} has {calls} in batches at the provider, which would be made and paid for twice"
            if owner_of(folder) is not None:
                raise ConfigError(f"{what}; a process works on that run: wait until it ends, or leave the run out")
            raise ConfigError(
                f"{what}. To fetch their replies, type: {resume_command(read_status(folder), folder)}\n"
                f"To cancel those that have not been made yet, type: {cancel_command(folder)}"
            )
        yield Sources(readers, missing)
