"""What calls took (attempts, time, tokens and money), and the records of the uses of a model by a stage."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any, Protocol

from attrs import evolve, field, frozen

from karenina_core.errors import ParseError, PortError
from karenina_core.pipeline.engine import error_kind
from karenina_core.ports.model_client import CallRecord
from karenina_core.ports.values import AgentResult
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import UsageMetadata

from ..ports.retry import Attempts, this_call
from .prices import may_have_cost, price_error, priced


@frozen(kw_only=True)
class CallFacts:
    """What a call took."""

    usage: UsageMetadata = UsageMetadata()
    usage_unavailable: bool = False
    seconds: float = 0.0
    attempts: int = 1
    """With those that failed before, in this run of the program."""
    retries: Mapping[str, int] = field(factory=dict)
    made: bool = True
    """Whether the provider was asked at all: without a place for it, a call is not made."""
    estimated_tokens: int | None = None
    """What it counts as against a budget where its tokens are unknown; None: they are known, or do not count."""
    estimated_usd: float | None = None
    """The same where its cost is unknown."""


def attempts_so_far() -> Attempts:
    """Those of the call that is under way."""
    return this_call.get() or Attempts(count=1)


def facts_of_failure(error: BaseException, model: ModelConfig, seconds: float) -> CallFacts | None:
    """What a call took that ended in an error, where the error holds it: a judge's useless reply, or what an agent had
    done until then. None: unknown."""
    if isinstance(error, ParseError):
        price_error(error, model)
        return facts_of_reply(error, seconds)
    done = error.evidence.get("agent_result") if isinstance(error, PortError) else None
    if not isinstance(done, AgentResult):
        return None
    facts = facts_of_reply(priced(done, model), seconds)
    return facts if facts.usage.total_tokens or facts.usage.cost_usd is not None else None


def facts_of_reply(reply: Any = None, seconds: float = 0.0) -> CallFacts:
    """What a call took, by its reply; without one, its attempts."""
    usage, attempts = getattr(reply, "usage", None), attempts_so_far()
    return CallFacts(
        usage=usage if isinstance(usage, UsageMetadata) else UsageMetadata(),
        usage_unavailable=bool(getattr(reply, "usage_unavailable", False)),
        seconds=seconds,
        attempts=attempts.count,
        retries=dict(attempts.retries),
    )


class Place(Protocol):
    """What a call occupies while it is under way."""

    def leave(self, facts: CallFacts | None, error: BaseException | None) -> CallFacts | None:
        """The call is over: with what it took, with what it ended in, or both. Returns what it took, as it is counted;
        None: it ended in an error, and cost nothing."""
        ...


def left(place: Place | None, facts: CallFacts | None, error: BaseException | None) -> CallFacts:
    """What the call took, once its place is free; it is counted among the attempts at it."""
    counted = facts if place is None else place.leave(facts, error)
    if counted is None or facts is None:
        counted = counted or CallFacts()
        tokens, usd = counted.estimated_tokens, counted.estimated_usd
        counted = evolve(facts or facts_of_reply(), made=counted.made, estimated_tokens=tokens, estimated_usd=usd)
    if not counted.made:
        attempts_so_far().not_made()
        return counted
    replied, usage = error is None or isinstance(error, ParseError), counted.usage
    known = replied or usage.total_tokens > 0 or usage.cost_usd is not None
    attempts_so_far().ended(replied=replied, unknown_cost=not known and counted.estimated_tokens is not None)
    return counted


def record_of(
    who: tuple[str, str], attempts: Attempts, started: float, error: BaseException | None = None, **facts: Any
) -> CallRecord:
    """The record of a call that is over. `who` is its task and its model; `error` is what it ended in."""
    usage, usage_unavailable = facts.pop("usage", None) or UsageMetadata(), facts.pop("usage_unavailable", False)
    unknown, replies = attempts.unknown_costs, attempts.replies
    if error is not None:
        facts["error_kind"] = error_kind(error)
    if not attempts.asked and attempts.count:  # no middleware in front of the model has counted
        replies = int(error is None or isinstance(error, ParseError))
        unknown = int(not replies and may_have_cost(error))
    if not replies and not unknown and usage.cost_usd is None and not usage.total_tokens:
        usage = evolve(usage, cost_usd=0.0)
    return CallRecord(
        task=who[0],
        model=who[1],
        attempts=attempts.count,
        retries=attempts.retries,
        seconds=time.monotonic() - started - attempts.waited + attempts.seconds_before,
        usage=usage,
        usage_unavailable=usage_unavailable or (error is not None and unknown > 0),
        replies=replies,
        unknown_cost_attempts=unknown,
        **{name: value for name, value in facts.items() if value is not None},
    )
