"""What a run has before its first call, what it repeats, and what it writes at its end.

`Continuation` is a run that begins, with nothing. A distribution that continues runs in another way derives a class
from it, and declares by an entry point of the group `karenina.continuations` what makes one of a run directory:
`repair = "my_package.repairs:begun"`. A manifest names those that have begun, in `continuations`.
"""

from __future__ import annotations

from collections.abc import Generator, Mapping
from pathlib import Path
from typing import Any, ClassVar

from attrs import evolve, field, frozen

from karenina_core.errors import RunDirectoryError
from karenina_core.pipeline.item import CachedAnswer

from ..journal.journal import Journal
from ..journal.reader import JournalReader
from ..kinds import declared
from ..plan.items import Item, Prepared
from .run_writer import PASSING, Keeper

KINDS = "karenina.continuations"
CONTINUATIONS = "continuations"


@frozen
class Progress:
    """The progress of a continuation, to be shown."""

    kind: str
    facts: Mapping[str, Any]
    text: str


@frozen
class Rest:
    """An item of which a part is there, and its answer."""

    item: Item
    """With what is still to be evaluated."""
    answer: CachedAnswer | None
    completed: Any = field(repr=False)
    """`(VerificationResult) -> VerificationResult`: both parts in one."""


@frozen(kw_only=True)
class Continuation:
    """That of a run that begins and, with `reopens`, of one that is resumed."""

    kind: ClassVar[str] = ""
    """The name of its entry point."""
    replaces: ClassVar[bool] = False
    """Whether results that are final are made again."""
    shares_answers: bool = False
    """Whether an answer that is there is read by judges of it that are added, whatever their order."""
    reopens: bool = False
    """Whether the run directory is there already."""
    again: frozenset[str] = PASSING
    """Kinds of errors with which an item is run again."""

    @property
    def has_results(self) -> bool:
        """Whether results are there before the first call."""
        return self.reopens

    @property
    def settings(self) -> Mapping[str, Any]:
        """Of the configuration, those that hold for it in place of the run's own."""
        return {}

    def resumed(self, prepared: Prepared, before: Continuation) -> Continuation:
        """This one when its run is resumed; `before` is what it continues. Raises ConfigError."""
        return evolve(self, reopens=True, again=before.again)

    def remaining(self, reader: JournalReader) -> set[str]:
        """Tasks whose results are to be replaced, whatever they are. Raises RunDirectoryError."""
        return set()

    def progress(self, remaining: int) -> Progress | None:
        """Where so many tasks remain; None: it is not shown."""
        return None

    def facts(self, *, done: bool = False) -> dict[str, Any]:
        """What the manifest has of it from the beginning on, and when `done`: all earlier results are taken over."""
        return {}

    def configured(self, facts: dict[str, Any]) -> dict[str, Any]:
        """The configuration of the run for the manifest. Raises RunDirectoryError."""
        return facts

    def replaced(self, journal: Journal) -> set[str]:
        """Have the journal ask again what is to be asked again. Returns what `remaining` does."""
        return set()

    async def take_over(self, keeper: Keeper, prepared: Prepared) -> None:
        """Keep results of other runs that are as they would be in this one. Raises RunDirectoryError."""

    def rest(self, keeper: Keeper, prepared: Prepared) -> Generator[Rest] | None:
        """What is done before anything else; None: nothing. Raises RunDirectoryError."""
        return None

    def answer(self, keeper: Keeper, item: Item) -> CachedAnswer | None:
        """What judges of an item read whose result is replaced; None: it is asked for again. Raises
        RunDirectoryError."""
        return None

    def notes(self, keeper: Keeper) -> tuple[str, ...]:
        """What is left of it."""
        return ()

    def ended(self, folder: Path) -> None:
        """The run has come to an end. Raises RunDirectoryError."""

    def failed(self, folder: Path) -> None:
        """The run has failed: where nothing was done, nothing has begun."""


def begun(folder: Path, manifest: Mapping[str, Any]) -> list[Continuation]:
    """What has begun in the run of this folder, in this order. Raises RunDirectoryError where it cannot be read, or the
    distribution that does it is not installed."""
    names = manifest.get(CONTINUATIONS, ())
    kinds = declared(KINDS) if names else {}
    if missing := [name for name in names if name not in kinds]:
        raise RunDirectoryError(f"{folder} was continued by {missing[0]!r}; install the distribution that does this")
    found = (kinds[name]()(folder, manifest) for name in names)
    return [continuation for continuation in found if continuation is not None]


def settings_of(manifest: Mapping[str, Any], there: list[Continuation]) -> Mapping[str, Any]:
    """The manifest with the settings with which the run is resumed."""
    config = dict(manifest["config"])
    for continuation in there:
        config |= continuation.settings
    return {**manifest, "config": config}
