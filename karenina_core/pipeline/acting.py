"""While a stage runs: its declaration says what the context lets through."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .context import VerificationContext
    from .stage import Stage

__all__ = ["Acting"]


class Acting:
    """See `VerificationContext.acting`. Entered for every stage of every item: a generator would take longer than most
    stages do."""

    __slots__ = ("_context", "_previous", "_stage")

    def __init__(self, context: VerificationContext, stage: Stage) -> None:
        self._context = context
        self._stage = stage
        self._previous: Stage | None = None

    def __enter__(self) -> None:
        self._previous, self._context._stage = self._context._stage, self._stage

    def __exit__(self, *_: object) -> None:
        self._context._stage = self._previous
