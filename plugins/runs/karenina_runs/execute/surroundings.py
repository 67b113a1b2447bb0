"""What is opened around the making of one answer and its judging, such as the folder that a model works in."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from pathlib import Path
from typing import Any, Protocol

from karenina_core.pipeline.artifact_keys import Key
from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import VerificationConfig
from karenina_core.values.result import VerificationResult

from ..kinds import declared
from ..plan.items import Item, Prepared

KINDS = "karenina.surroundings"


class Place(Protocol):
    """The surroundings of one answer."""

    @property
    def path(self) -> Path | None:
        """The folder that models and stages work in."""
        ...


class Surroundings:
    """Those of a run, here none. A distribution that has some declares a class derived from this one by an entry point
    of the group `karenina.surroundings`."""

    notes: Sequence[str] = ()
    """Of a run: settings that have no effect."""

    @classmethod
    def of_run(cls, prepared: Prepared, run_dir: Path | None) -> Surroundings:
        """Raises ConfigError."""
        return cls()

    @classmethod
    def of_item(
        cls, app: Karenina, item: Item, config: VerificationConfig, root: str | Path | None, *, is_answered: bool
    ) -> Surroundings:
        """Those of an item that is verified without a run; `is_answered`: its answer is there. Raises ConfigError."""
        return cls()

    def wanted(self, item: Item) -> bool:
        """Whether the answer of an item is made, or judged, in a place of its own."""
        return False

    def opened(self, item: Item) -> AbstractAsyncContextManager[Place | None]:
        """The place of an answer, as long as its judges need it; None where the item needs none."""
        return nullcontext()

    def lent(self, path: Path) -> Place | None:
        """A folder that the caller removes."""
        return None

    def begin(self, context: VerificationContext, place: Place | None, cached: CachedAnswer | None) -> None:
        """An item begins there: with an error where the place is not what it should be."""

    def service(self, kind: Key[Any], place: Place | None, files: dict[str, str] | None) -> Any:
        """What stages are offered; None where there is no such service."""
        return None

    def files_to_keep(self) -> dict[str, str] | None:
        """Where the stages of an item put texts that are to be kept, by path; None where nothing is kept."""
        return None

    async def keep(
        self, place: Place | None, item: Item, result: VerificationResult, files: Mapping[str, str] | None = None
    ) -> None:
        """Keep what came about there, and `files`."""

    def close(self) -> None:
        """Remove what is left. Waits for nothing but the disk."""


def surroundings_kind() -> type[Surroundings]:
    """That of the distribution which has some. Raises PluginError."""
    found: type[Surroundings] = next((load() for load in declared(KINDS).values()), Surroundings)
    return found
