"""Telling a provider that fails from a call that fails."""

from __future__ import annotations

import math
from weakref import WeakValueDictionary

from attrs import define, field

from karenina_core.errors import ErrorKind, PortError

from ..ports.retry import Attempts

__all__ = ["FAILURES", "Storm"]

FAILURES: tuple[ErrorKind, ...] = ("server", "connection")
AWAY = (502, 503, 504, 529)
"""HTTP statuses of what is there, and has nobody at the moment who would answer."""
IN_A_ROW = 5
"""Failures with no reply between them that are nobody's own."""
SPARED = 45.0
"""Seconds in which they use up no attempts. Afterwards they do: calls that always fail, and have all the places there
are, would keep the others from their turn for ever."""


@define(eq=False)
class Storm:
    """What the failures of one model say, as long as no reply comes between them.

    That a call fails again after others were answered says nothing about the provider. After `IN_A_ROW` failures that
    do it is suspected, and they use up no attempts. When a call has failed twice among them it is a storm, and the lane
    pauses: it may be that all calls fail the first time that they are made.
    """

    kind: ErrorKind | None = field(default=None, init=False)
    """How every call fails; None: there is no storm."""
    _is_there: bool = field(default=False, init=False)
    """Before anybody has answered, it is more likely that the address is wrong, and nothing is waited for."""
    _failed: WeakValueDictionary[int, Attempts] = field(factory=WeakValueDictionary, init=False)
    """The calls that have, since the last reply, and are not over."""
    _in_a_row: int = field(default=0, init=False)
    _twice: bool = field(default=False, init=False)
    _suspected_since: float = field(default=math.inf, init=False)

    def answered(self, begun: float, *, inside: bool) -> None:
        """A reply came, to a call that began at this time; those from before it all do not say that it is over."""
        self._is_there = True
        if inside or self._suspected_since == math.inf or begun >= self._suspected_since:
            self._failed.clear()
            self._in_a_row, self._twice, self._suspected_since, self.kind = 0, False, math.inf, None

    def failed(self, error: PortError, call: Attempts, now: float) -> None:
        """An attempt has failed, as one of `FAILURES`. Records in the error whether it is `not_counted`."""
        self._is_there |= error.status in AWAY
        again = id(call) in self._failed
        if again or call.count == 1:
            self._in_a_row += 1
            self._twice |= again
        self._failed[id(call)] = call
        if self._is_there and self._in_a_row >= IN_A_ROW:
            self._suspected_since = min(self._suspected_since, now)
            error.not_counted = now - self._suspected_since <= SPARED
            if self._twice:
                self.kind = error.kind
