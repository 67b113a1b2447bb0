"""Equal calls that are wanted at the same time: which of them are made, and which wait for the others."""

from __future__ import annotations

import asyncio
from contextlib import suppress

from attrs import define, field

Name = tuple[str, int]


@define(eq=False)
class _Flight:
    asking: int = 0
    """Never 0 while others wait."""
    turns: list[asyncio.Future[None]] = field(factory=list)
    """The longest wait first. No deque: an empty one takes 600 bytes, and for most calls none waits."""


@define(eq=False)
class Flights:
    """The first call of a name is made at once. Equal ones wait while it is made:

    - a reply is for all of them;
    - after an attempt without one, two of those that wait are made. So replies that were asked for at the same time are
      at most one more than attempts that failed, and those that wait do not fail one after the other;
    - where no attempt was made, and no other is being made, one of them is.

    A call that is made from within the work of another never waits: that work may have the very place in a queue that
    the other call waits for, and they would wait for each other.
    """

    _under_way: dict[Name, _Flight] = field(factory=dict)

    async def join(self, name: Name, *, waits: bool = True) -> None:
        """Returns when there is a reply, or when it is the caller's turn to ask: then `landed`, `failed` or `left` has
        to follow, and does no harm in the other case."""
        flight = self._under_way.get(name)
        if flight is None:
            flight = self._under_way[name] = _Flight()
        if not (waits and flight.asking):
            flight.asking += 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        flight.turns.append(turn)
        try:
            await turn
        except BaseException:
            if turn.cancelled():
                with suppress(ValueError):  # it was passed over already
                    flight.turns.remove(turn)
            elif self._under_way.get(name) is flight:  # its turn has come, and its caller was cancelled
                self.left(name)
            raise

    def landed(self, name: Name) -> None:
        """There is a reply, or there will never be one: all stop waiting."""
        flight = self._under_way.pop(name, None)
        while flight is not None and flight.turns:
            _wake(flight)

    def failed(self, name: Name) -> None:
        """One who asked has no reply."""
        self._gone(name, 2)

    def left(self, name: Name) -> None:
        """One who was to ask has not asked."""
        flight = self._under_way.get(name)
        self._gone(name, 0 if flight is not None and flight.asking > 1 else 1)

    def land_all(self) -> None:
        for name in list(self._under_way):
            self.landed(name)

    def _gone(self, name: Name, next_ones: int) -> None:
        flight = self._under_way.get(name)
        if flight is None:
            return
        flight.asking -= 1
        while next_ones and flight.turns:
            taken = _wake(flight)
            flight.asking += taken
            next_ones -= taken
        if not flight.asking:
            del self._under_way[name]


def _wake(flight: _Flight) -> bool:
    """Whether the one who has waited longest was still there."""
    turn = flight.turns.pop(0)
    if turn.done():
        return False
    turn.set_result(None)
    return True
