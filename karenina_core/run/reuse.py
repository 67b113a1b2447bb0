"""Journals of other runs: what they paid for is taken over by what was asked."""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path
from typing import Any

from attrs import field, frozen

from ..errors import ConfigError, Problem, RunDirectoryError, plural
from .journal_reader import JournalReader, journal_of

__all__ = ["Sources", "opened_sources", "reused_by", "without"]


@frozen
class Sources:
    """Journals that are only read, in the order in which replies are looked for."""

    readers: tuple[JournalReader, ...] = field(default=(), repr=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found to be damaged so far. Such replies are asked for again."""
        damaged = ((reader.path, reader.damaged["calls"]) for reader in self.readers)
        return tuple(
            f"{plural(count, 'call')} of {path} could not be reused, being damaged; look: karenina doctor "
            f"{shlex.quote(str(path.parent))}"
            for path, count in damaged
            if count
        )


def reused_by(manifest: Mapping[str, Any]) -> tuple[tuple[Path, ...], tuple[Path, ...]]:
    """The run directories whose replies a run was given: those that are there, and those that are gone."""
    recorded = tuple(map(Path, manifest.get("reuse", ())))
    there = tuple(path for path in recorded if journal_of(path).is_file())
    return there, tuple(path for path in recorded if path not in there)


def without(gone: Sequence[Path]) -> tuple[str, ...]:
    """Notes of a run that does not have the replies of these directories."""
    return tuple(
        f"{path} is not there any more: what was asked there, and not by the run that reused it, is asked again"
        for path in gone
    )


@asynccontextmanager
async def opened_sources(folders: Sequence[Path], run_dir: Path | None) -> AsyncIterator[Sources]:
    """The journals of these run directories while the block runs.

    Raises RunDirectoryError where one of them has none, and ConfigError where the run keeps nothing itself.
    """
    if folders and run_dir is None:
        raise ConfigError([Problem("reuse", "what is reused is kept in the run directory; give run_dir")])
    with ExitStack() as stack:
        yield Sources(tuple(stack.enter_context(_opened(Path(folder))) for folder in folders))


def _opened(folder: Path) -> JournalReader:
    if not journal_of(folder).is_file():
        raise RunDirectoryError(f"{folder} has no journal to reuse replies from; give the directory of a run")
    return JournalReader.open(folder)
