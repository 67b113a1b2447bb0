"""Journals of other runs: what they paid for is taken over by what was asked."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from attrs import field, frozen

from ..errors import ConfigError, Problem, RunDirectoryError, plural
from .journal_reader import JournalReader, journal_of

__all__ = ["Sources", "opened_sources"]


@frozen
class Sources:
    """Journals that are only read, in the order in which replies are looked for."""

    readers: tuple[JournalReader, ...] = field(default=(), repr=False)

    @property
    def notes(self) -> tuple[str, ...]:
        """What was found to be damaged so far. Such replies are asked for again."""
        damaged = ((reader.path, reader.damaged["calls"]) for reader in self.readers)
        return tuple(
            f"{plural(count, 'call')} of {path} could not be reused, being damaged; look: karenina doctor {path.parent}"
            for path, count in damaged
            if count
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
