"""The one way out: every call of a run's models, and of an embedder that asks a provider, has a place here while it is
under way. Search tools are asked without one."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from collections.abc import Callable, Coroutine, Iterable, Mapping
from contextvars import ContextVar
from typing import Any

from attrs import define, field

from karenina_core.errors import ParseError, PortError
from karenina_core.values.config import ModelConfig, VerificationConfig

from ..ports.retry import Attempts, this_call
from ..ports.stored_calls import StoredCall
from ..records.call_facts import CallFacts, Place
from ..records.prices import may_have_cost
from ..records.requests import KeptRequest
from .budget import NOTHING, Budget, Estimate, tokens_of
from .queues import Closed, LaneKey, LaneState, Moment, Taken, Waiter

SOON = 1e-6  # seconds: not in this turn of the loop, and in the next


@define(eq=False)
class _Entrance:
    """The lane of a model, as one configuration of it enters."""

    gateway: Gateway
    state: LaneState
    model: ModelConfig

    def enter(self, call: StoredCall) -> Coroutine[Any, Any, Place]:
        return self.gateway.enter(call, self.state, self.model)


@define(eq=False)
class _Place:
    """See `karenina_calls.ports.stored_calls.Place`."""

    gateway: Gateway
    lane: LaneState
    taken: Taken
    left: bool = False
    request: KeptRequest | None = None

    def leave(self, facts: CallFacts | None, error: BaseException | None) -> CallFacts | None:
        if self.left:
            return facts
        self.left = True
        request, self.request = self.request, None
        return self.gateway.ended(self.lane, self.taken, facts, error, request)


_holder: ContextVar[_Place | None] = ContextVar("karenina_place", default=None)
"""The place of the work under way."""


@define(eq=False)
class Gateway:
    """Gives out places: within each lane in the order of arrival, and by turns to lanes that wait for the same.

    A call that is made by work which has a place itself, such as a tool of an adapter's own agent that asks a model,
    takes no second one: it would wait for itself. It counts for everything else.
    """

    config: VerificationConfig
    clock: Callable[[], float] | None = None
    """Seconds of a clock that never goes backwards; by default the event loop's."""
    budget: Budget = field(init=False)
    stopped: str = field(default="", init=False)
    """Why nothing more is to be asked, whatever is left of the budget; see `stop`."""
    patience: float = field(init=False)
    """Seconds that a call has."""
    under_way: int = field(default=0, init=False)
    """Calls that have a place."""
    draining: bool = field(default=False, init=False)
    """Whether no attempt begins any more."""
    _lanes: dict[LaneKey, LaneState] = field(factory=dict, init=False)
    _caps: dict[LaneKey, int] = field(factory=dict, init=False)
    _turns: deque[LaneState] = field(factory=deque, init=False)
    """Lanes in which calls wait."""
    _arrived: int = field(default=0, init=False)
    _started: float | None = field(default=None, init=False)
    _timer: asyncio.TimerHandle | None = field(default=None, init=False)
    _answered_before: frozenset[str] = field(default=frozenset(), init=False)
    _quiet: list[asyncio.Future[None]] = field(factory=list, init=False)

    def __attrs_post_init__(self) -> None:
        self.budget = Budget(self.config.budget_usd, self.config.budget_tokens)
        self.patience = self.config.call_seconds
        limits = self.config.answerer_concurrency_limits
        for model in self.config.answering_models:
            cap = limits.get(model.id or "") if isinstance(limits, Mapping) else limits
            if cap is not None:
                key = LaneKey.of(model)
                self._caps[key] = min(cap, self._caps.get(key, cap))

    def lane(self, model: ModelConfig) -> _Entrance:
        """The way to this model, shared by all of its configurations that reach it in the same way."""
        key = LaneKey.of(model)
        if key not in self._lanes:
            taken = {state.name for state in self._lanes.values()}  # lanes that differ in their keys alone have numbers
            names = [str(key), *(f"{key} [{number}]" for number in range(2, len(taken) + 2))]
            self._lanes[key] = LaneState(next(name for name in names if name not in taken), key=key)
            self._lanes[key].opening.has_answered = key.identity in self._answered_before
        state = self._lanes[key]
        state.restrict(model, self._caps.get(key))
        return _Entrance(self, state, model)

    def answered_before(self, models: Iterable[str]) -> None:
        """Models, as their identities are written, that have answered in an earlier process of the run."""
        self._answered_before = frozenset(models)
        for key, state in self._lanes.items():
            state.opening.has_answered = key.identity in self._answered_before

    @property
    def exhausted(self) -> str:
        """Why nothing may be asked any more, and what to do; empty as long as something may."""
        return self.stopped or self.budget.exhausted

    @property
    def left_undone(self) -> tuple[str, ...]:
        """Why the run leaves something undone, and what to do: the budget, and models that are asked no more."""
        closed = (state.closed.why for state in self._lanes.values() if state.closed is not None)
        return (*([self.exhausted] if self.exhausted else []), *closed)

    @property
    def waiting(self) -> int:
        """Calls that wait for a place."""
        return sum(len(state.waiting) for state in self._lanes.values())

    def slowed(self) -> list[tuple[str, str]]:
        """The models that take fewer calls than were wanted, and what that means now."""
        if self.clock is None:  # nothing was asked yet
            return []
        now = self.clock()
        found = ((state.name, state.slowed(now)) for state in self._lanes.values())
        return [(name, how) for name, how in found if how]

    @property
    def advice(self) -> tuple[str, ...]:
        """Settings that help where calls timed out side by side."""
        lanes = [(state, key) for key, state in self._lanes.items() if state.timeouts.count]
        return tuple(filter(None, (state.timeouts.advice(state.name, key.model_name) for state, key in lanes)))

    @property
    def has_closed(self) -> bool:
        """Whether some model is asked nothing more until the run is resumed."""
        return bool([state for state in self._lanes.values() if state.closed is not None])

    def is_closed(self, model: ModelConfig) -> bool:
        """Whether this model is asked nothing more until the run is resumed."""
        return self._closed(model) is not None

    def never_answered(self, model: ModelConfig) -> bool:
        """Whether that is because it has never answered: it is not there, or refuses the key."""
        closed = self._closed(model)
        return closed is not None and closed.never_answered

    @property
    def unanswered(self) -> tuple[str, ...]:
        """The models of which that is so, and what to look at."""
        closed = [state.closed for state in self._lanes.values() if state.closed is not None]
        return tuple(each.why for each in closed if each.never_answered)

    def _closed(self, model: ModelConfig) -> Closed | None:
        state = self._lanes.get(LaneKey.of(model))
        return None if state is None else state.closed

    def stop(self, why: str) -> None:
        """From now on nothing is asked; what is under way is waited for. The first reason is kept."""
        self.stopped = self.stopped or why
        self._dispatch()

    def settled(self, estimate: Estimate, facts: CallFacts | None, model: ModelConfig) -> CallFacts | None:
        """A call is over that was made without a place; its estimate was set aside. Returns what it took, as it is
        counted. One that was not made is not."""
        if facts is not None and facts.made:
            facts = self.budget.settle(estimate, facts, model)
        self.budget.give_back(estimate)
        self._dispatch()
        return facts

    def drain(self) -> None:
        """From now on no attempt begins; whoever waits for a place waits until it is cancelled."""
        self.draining = True

    async def quiet(self) -> None:
        """Wait until no call is under way."""
        while self.under_way:
            waiting = asyncio.get_running_loop().create_future()
            self._quiet.append(waiting)
            await waiting

    def history(self) -> dict[str, list[dict[str, Any]]]:
        """`{lane: [{"at": seconds since the first call, "limit", "why"}]}`: how many calls each provider was given at
        the same time, and at the end of each list how many it would be now."""
        found: dict[str, list[dict[str, Any]]] = {}
        for state in self._lanes.values():
            if moments := state.history.moments:
                every = (*moments, Moment(self._now(), state.adaptive.limit, "now"))
                found[state.name] = [
                    {"at": round(m.at - (self._started or 0.0), 3), "limit": round(m.limit, 2), "why": m.why}
                    for m in every
                ]
        return found

    async def enter(self, call: StoredCall, lane: LaneState, model: ModelConfig) -> Place:
        """Wait for a place. Raises PortError where nothing may be asked any more: `budget`, or of a lane that is
        closed, for the provider asks for a longer wait than a call has (`retry_max_elapsed_seconds`), or has taken
        nothing for so long: `rate_limited`, or the kind of its failures."""
        holder = _holder.get()
        inside = holder is not None and not holder.left and holder.gateway is self
        size = tokens_of(call.request) if self._counts(lane) else 0
        self._arrived += 1
        attempts = this_call.get() or Attempts(count=1)
        number = 0 if lane.opening.is_asking(attempts) else self._arrived  # the others wait for it
        waiter = Waiter(call.request.task, model, size, inside, number, self._now(), attempts)
        found = math.inf if lane.waiting else self._turn_of(waiter, lane, waiter.since)
        while isinstance(found, float):
            found = await self._turn(waiter, lane)
            if isinstance(found, _Place) and lane.adaptive.paused_until > self._now():
                self._give_back(found)  # a pause began after the place was given
                found = math.inf
        if isinstance(found, PortError):
            raise found
        found.request = call.request
        if not inside:
            _holder.set(found)
        return found

    async def _turn(self, waiter: Waiter, lane: LaneState) -> _Place | PortError:
        if not lane.waiting:
            self._turns.append(lane)
        turn: asyncio.Future[_Place | PortError] = asyncio.get_running_loop().create_future()
        waiter.turn = turn
        lane.join(waiter)
        try:
            self._dispatch()
            return await turn
        except BaseException:  # the call waits no more: it keeps neither its place in the queue nor a given one
            if waiter in lane.waiting:
                lane.waiting.remove(waiter)
                if not lane.waiting:
                    self._turns.remove(lane)
            elif not turn.cancelled() and isinstance(place := turn.result(), _Place):
                self._give_back(place)
            self._dispatch()
            raise

    def _give_back(self, place: _Place) -> None:
        """The place was given, and not taken."""
        place.left = True
        place.lane.not_begun(place.taken, self._now())
        self._free(place.taken)

    def _dispatch(self) -> None:
        """Let in whoever may begin now, lane by lane in turns, and come back when the next one may."""
        if not self._turns:  # as it is most of the time
            self.close()
            return
        now = self._now()
        nearest, passed = math.inf, 0
        while passed < len(self._turns):
            lane = self._turns[0]
            waiter = lane.waiting[0]
            found = None if waiter.turn.done() else self._turn_of(waiter, lane, now)
            if isinstance(found, float):
                nearest, passed = min(nearest, found), passed + 1
            else:
                lane.waiting.remove(waiter)
                if found is not None:
                    waiter.turn.set_result(found)
                passed = 0
            if lane.waiting:
                self._turns.rotate(-1)
            else:
                self._turns.popleft()
        self.close()
        if nearest < math.inf:
            self._timer = asyncio.get_running_loop().call_later(max(nearest, SOON), self._dispatch)

    def _turn_of(self, waiter: Waiter, lane: LaneState, now: float) -> _Place | PortError | float:
        """A place, a refusal, or the seconds until there may be a place; infinite: not before something has ended."""
        if self.exhausted:
            return PortError(self.exhausted, kind="cancelled" if self.stopped else "budget", final=True)
        if (closed := lane.close_if_due(waiter, self.patience, now)) is not None:
            pause = max(lane.adaptive.paused_until - now, lane.alone_for(now), 0.0)
            return PortError(closed.why, kind=closed.kind, retry_after=pause or None, final=True)
        estimate = NOTHING
        if self._counts(lane):
            estimate = lane.experience.estimate(waiter.size, waiter.task, waiter.model)
        if not waiter.inside and not self._has_room(lane, estimate):
            return math.inf
        if (wait := lane.wait(estimate, now, inside=waiter.inside, call=waiter.call)) > 0.0:
            return wait
        taken = Taken(waiter.task, waiter.model, estimate, now, waiter.inside, waiter.call)
        lane.begin(taken)
        self.budget.set_aside(estimate)
        self.under_way += not waiter.inside
        return _Place(self, lane, taken)

    def _counts(self, lane: LaneState) -> bool:
        """Whether anything depends on what calls take."""
        return self.budget.limited or lane.tokens is not None

    def _has_room(self, lane: LaneState, estimate: Estimate) -> bool:
        most = self.config.max_concurrent_requests
        if self.draining or (most is not None and self.under_way >= most):
            return False
        if self.budget.usd is not None and estimate.usd is None and lane.under_way:
            return False  # the first call of a model goes alone: its cost may be unknown
        return not self.budget.limited or self.budget.fits(estimate)

    def ended(
        self,
        lane: LaneState,
        taken: Taken,
        facts: CallFacts | None,
        error: BaseException | None,
        request: KeptRequest | None = None,
    ) -> CallFacts | None:
        """A call is over: its place is free, and what it took is known, or counts as it was estimated. Returns that;
        None: it cost nothing."""
        replied = error is None or isinstance(error, ParseError)
        if isinstance(error, PortError) and error.kind == "rate_limited" and error.retry_after:
            lane.share_limit(self._lanes.values())
        lane.ended(taken, facts if replied else None, error, self._now())
        if isinstance(error, PortError):
            error.queued = not lane.is_long(self.patience, self._now())
            if not error.queued:
                error.not_counted, error.retry_after = True, lane.alone_for(self._now())
            elif error.kind == "rate_limited":
                error.not_counted = lane.answers_others(taken)
        if facts is None and may_have_cost(error):
            facts = CallFacts()
        if facts is not None:
            estimate, unknown = taken.estimate, facts.usage_unavailable or not replied
            if unknown and request is not None and not self._counts(lane):  # nothing depended on it until now
                estimate = lane.experience.estimate(tokens_of(request), taken.task, taken.model)
            facts = self.budget.settle(estimate, facts, taken.model, replied=replied)
        self._free(taken)
        self._dispatch()
        return facts

    def _free(self, taken: Taken) -> None:
        self.budget.give_back(taken.estimate)
        self.under_way -= not taken.inside
        if not self.under_way:
            for waiting in self._quiet:
                if not waiting.done():
                    waiting.set_result(None)
            self._quiet.clear()

    def close(self) -> None:
        """No timer is set any more."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _now(self) -> float:
        if self.clock is None:
            self.clock = asyncio.get_running_loop().time
        now = self.clock()
        if self._started is None:
            self._started = now
        return now
