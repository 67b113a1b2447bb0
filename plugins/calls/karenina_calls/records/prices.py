"""What a call cost: by the prices that the user gave, where its adapter does not say; and whether it cost anything."""

from __future__ import annotations

from typing import TypeVar

from attrs import evolve

from karenina_core.errors import ParseError, PortError
from karenina_core.ports.values import AgentResult, LLMResponse, ParsePortResult
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import UsageMetadata

T = TypeVar("T")
REPLIES = (LLMResponse, ParsePortResult, AgentResult)
MAY_HAVE_COST = frozenset({"timeout", "bad_response", "too_large", "agent", "cancelled"})


def cost_of(model: ModelConfig, input_tokens: float, output_tokens: float) -> float | None:
    """US dollars for so many tokens; None where the model has no prices."""
    if model.input_cost_per_token is None or model.output_cost_per_token is None:
        return None
    return input_tokens * model.input_cost_per_token + output_tokens * model.output_cost_per_token


def priced(reply: T, model: ModelConfig) -> T:
    """The reply with its cost. It stays unknown where the provider did not say how many tokens it took."""
    if isinstance(reply, REPLIES) and not reply.usage_unavailable:
        usage = _priced_usage(reply.usage, model)
        return reply if usage is reply.usage else evolve(reply, usage=usage)
    return reply


def price_error(error: ParseError, model: ModelConfig) -> None:
    """The same for replies that could not be used."""
    if isinstance(error.usage, UsageMetadata) and not error.usage_unavailable:
        error.usage = _priced_usage(error.usage, model)


def _priced_usage(usage: UsageMetadata, model: ModelConfig) -> UsageMetadata:
    if usage.cost_usd is not None:
        return usage
    cost = cost_of(model, usage.input_tokens, usage.output_tokens)
    return usage if cost is None else evolve(usage, cost_usd=cost)


def may_have_cost(error: BaseException | None) -> bool:
    """Whether a call that ended so may be on the provider's bill: it was taken, and given up, or its reply was of no
    use. What was refused, or never arrived, costs nothing."""
    if isinstance(error, PortError):
        return error.kind in MAY_HAVE_COST or isinstance(error, ParseError)
    return error is not None and not isinstance(error, Exception)
