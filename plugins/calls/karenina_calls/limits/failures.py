"""What failed calls say about their provider: that it is down, or that it works on fewer calls at a time."""

from __future__ import annotations

import math
from collections import deque
from weakref import WeakValueDictionary

from attrs import define, field

from karenina_core.errors import ErrorKind, PortError, shortened
from karenina_core.values.config import AttemptPolicy

from ..ports.retry import Attempts

FAILURES: tuple[ErrorKind, ...] = ("server", "connection")
AWAY = (502, 503, 504, 529)
"""HTTP statuses of a server that is up and for which no model answers at the moment."""
IN_A_ROW = 5
"""Failures with no reply between them that say more about the provider than about the calls. Chosen, not measured."""
UNKNOWN = 404
"""The HTTP status of a server that does not know the model, or the address."""
ENOUGH: dict[str | int, int] = {"connection": IN_A_ROW, "auth": 3, UNKNOWN: 3, "server": IN_A_ROW, "timeout": IN_A_ROW}
"""Failed requests after which a model that has never answered is asked no more. A refused key or name is no chance and
is not tried again, so that few are enough; chosen."""
ABOUT_CALLS = ("server", "timeout")
"""Ways to fail that may be due to what was asked: here `MOST_ALIKE` different calls have to fail so."""
MOST_ALIKE = 3
"""Chosen: a benchmark may begin with two questions that a server cannot take, and seldom with three."""
NEVER_ANSWERED = {
    "connection": "{} cannot be reached ({} of {} requests failed, the last one with: {}); see whether its server runs "
    "and whether the address is right",
    "auth": "{} refuses the key ({} of {} requests failed, the last one with: {}); give it a key that is valid",
    UNKNOWN: "{} is not known there ({} of {} requests failed, the last one with: {}); see whether the "
    "name of the model and the address are right, and whether it is loaded",
    "server": "{} has only failed ({} of {} requests, the last one with: {}); see the log of its server, and whether "
    "it has the memory for its model",
    "timeout": "{} has answered nothing in time ({} of {} requests, the last one with: {}); see whether its server "
    "works, or give it longer (--set run.request_timeout=600)",
}
LONGEST = 200
"""Characters of the server's own words in that sentence; chosen, two lines."""
UNCOUNTED_FOR = 45.0
"""Seconds in which they use up no attempts. Afterwards they do: calls that always fail, and have all the places there
are, would keep the others from their turn for ever."""
TRY_MORE = 20
"""After so many replies for each call that may be under way, without a time-out, twice as many may be. Finding out that
this is still too many costs one call its `request_timeout`."""
MOST_TIMES = 128
"""Replies whose times are kept: as many as calls begin at first."""
TIMED_OUT = "timed out, with up to"
ADVICE = (
    "{} of {} calls of {} " + TIMED_OUT + " {} under way: a local server may work on one at a time. What helps: "
    "--concurrency 1, --set models.{}.max_tokens=512, --set run.request_timeout=600"
)


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
    """Before any reply, it is more likely that the address is wrong, and nothing is waited for."""
    _failed: WeakValueDictionary[int, Attempts] = field(factory=WeakValueDictionary, init=False)
    """The calls that have, since the last reply, and are not over."""
    _in_a_row: int = field(default=0, init=False)
    _twice: bool = field(default=False, init=False)
    _suspected_since: float = field(default=math.inf, init=False)

    def answered(self, begun: float, *, inside: bool) -> None:
        """A reply came, to a call that began at this time; those from before it all do not say that it is over."""
        self._is_there = True
        if inside or self._suspected_since == math.inf or begun >= self._suspected_since:
            if self._failed:
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
            error.not_counted = now - self._suspected_since <= UNCOUNTED_FOR
            if self._twice:
                self.kind = error.kind


@define(eq=False)
class Opening:
    """What the first requests to a model say, as long as none was answered and all failed in the same way.

    After the first of them requests are made one at a time, and those of one call before those of another: a server
    that is starting has as long as one call has, and one that is dead costs few requests. A failure of any other kind
    says that something is there.
    """

    has_answered: bool = field(default=False, init=False)
    """Whether it did in an earlier process of the run. What may be due to the calls says nothing then: those that are
    left may be those that it cannot take."""
    is_over: bool = field(default=False, init=False)
    count: int = field(default=0, init=False)
    _way: str | int | None = field(default=None, init=False)
    """How all have failed."""
    _given_up: bool = field(default=False, init=False)
    """Whether some call has used up its attempts."""
    _calls: int = field(default=0, init=False)
    """Calls that have failed: their first attempts."""
    _asking: Attempts | None = field(default=None, init=False)
    """The call that asks, while others wait for what comes of it,"""
    _until: float = field(default=-math.inf, init=False)
    """and until when it asks again, unless it was cancelled."""

    def answered(self) -> None:
        self.is_over, self._asking = True, None

    def failed(self, error: PortError, call: Attempts, policy: AttemptPolicy, now: float) -> None:
        """A request of a call has failed that is tried again by this policy."""
        way = UNKNOWN if error.status == UNKNOWN and error.kind == "invalid_request" else error.kind
        by_the_calls = self.has_answered and way in ABOUT_CALLS
        if way not in ENOUGH or self._way not in (None, way) or error.status in AWAY or by_the_calls:
            self.is_over = True
        if self.is_over:
            return
        self._way, self.count, self._calls = way, self.count + 1, self._calls + (call.count == 1)
        is_last = error.final or call.count >= policy.max_attempts
        self._given_up |= is_last
        if is_last and self.is_asking(call):
            self._asking = None
        self._until = now + policy.max_wait

    def is_asking(self, call: Attempts | None) -> bool:
        """Whether others wait for what becomes of this call."""
        return call is not None and self._asking is call

    def wait(self, call: Attempts | None, under_way: int, now: float) -> float:
        """Seconds until a request may be made, infinite: not before another has ended."""
        if self.is_over or not self.count:
            return 0.0
        if under_way:
            return math.inf
        return 0.0 if self._asking is None or self.is_asking(call) else max(self._until - now, 0.0)

    def begun(self, call: Attempts) -> None:
        if not self.is_over and self.count:
            self._asking = call

    def why(self, lane: str, error: PortError) -> str:
        """Why it is asked no more, and what to look at; empty as long as it is. `error` is the last failure."""
        if self.is_over or not self._given_up or self._way is None or self.count < ENOUGH[self._way]:
            return ""
        if self._way in ABOUT_CALLS and self._calls < MOST_ALIKE:
            return ""
        words = shortened(" ".join(str(error).split()), LONGEST)
        return NEVER_ANSWERED[self._way].format(lane, self.count, self.count, words)


@define(eq=False)
class Timeouts:
    """When all calls that were under way time out, half as many may be, or as many as were answered meanwhile."""

    most: float = field(default=math.inf, init=False)
    """Calls that may be under way."""
    count: int = field(default=0, init=False)
    """Time-outs so far,"""
    peak: int = field(default=0, init=False)
    """and the most calls that were under way then."""
    crowded: bool = field(default=False, init=False)
    """Whether the last one says less about the call than about how many were under way."""
    ended: int = field(default=0, init=False)
    """Calls that were answered or timed out."""
    _in_a_row: int = field(default=0, init=False)
    _together: int = field(default=0, init=False)
    """Calls that were under way at the first of them."""
    _answered: deque[float] = field(factory=lambda: deque(maxlen=MOST_TIMES), init=False)
    """When the last replies came."""
    _fine: int = field(default=0, init=False)
    """Replies since the last time-out."""

    def answered(self, now: float) -> None:
        self.ended += 1
        self._in_a_row = 0
        self._fine += 1
        self._answered.append(now)
        if self._fine >= TRY_MORE * self.most:
            self.most, self._fine = 2.0 * self.most, 0

    def timed_out(self, begun: float, under_way: int) -> bool:
        """A call that began at `begun`, one of so many under way. Returns whether fewer may be under way now."""
        self.ended += 1
        self.count += 1
        self._in_a_row += 1
        self._fine = 0
        self.peak = max(self.peak, under_way)
        if self._in_a_row == 1:
            self._together = under_way
        meanwhile = sum(at > begun for at in self._answered)  # others have taken their places since
        self.crowded = self._together > 1 and self.most > 1 and meanwhile < self._together
        if not self.crowded or self._in_a_row < self._together - meanwhile:
            return False
        fewer = max(1, meanwhile or self._together // 2)
        self._in_a_row, lower = 0, fewer < self.most
        self.most = min(self.most, float(fewer))
        return lower

    def advice(self, lane: str, model: str) -> str:
        """What to change; empty where that is not known to help."""
        return ADVICE.format(self.count, self.ended, lane, self.peak, model) if self.peak > 1 else ""
