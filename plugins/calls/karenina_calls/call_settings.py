"""Settings of a run for its calls: how long, how often, how many at the same time, and what they may cost."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import evolve, field, frozen

from karenina_core.values.fields import instance_of, optional
from karenina_core.values.model_config import ModelConfig, RetryPolicy
from karenina_core.values.sections import Section, metadata, most, positive, setting, toml_or_text


def _limits(_: object, attribute: Any, value: Any) -> None:
    """A whole number from 1, or a table of such by model id."""
    for name, limit in value.items() if isinstance(value, Mapping) else [("", value)]:
        if not isinstance(name, str):
            raise ValueError(f"must be a table of whole numbers by model id; {name!r} is not an id")
        if isinstance(limit, bool) or not isinstance(limit, int) or limit < 1:
            raise ValueError(f"{f'{name}: ' if name else ''}must be a whole number from 1, not {limit!r}")


@frozen(kw_only=True, slots=False)
class CallSettings(Section):
    """Calls of models: time, retries, how many are under way, budgets."""

    request_timeout: float = positive(120.0, neutral=True)
    """Seconds for one attempt of one model call, from the first byte sent to the last received."""
    retry_policy: RetryPolicy = field(
        factory=RetryPolicy, validator=instance_of(RetryPolicy), metadata=metadata(neutral=True)
    )
    retry_max_elapsed_seconds: float | None = positive(None, neutral=True)
    """Seconds for one call with all its attempts and waits; None: as long as all attempts allowed after time-outs take
    (`request_timeout`), at least 120. A model that accepts no call for longer, or asks for a longer pause, gets no more
    calls in this run."""
    max_concurrent_requests: int | None = most(neutral=True)
    """Calls of all models that may be in flight at the same time, including those of an embedder that calls a provider;
    None: as many as the items make. Waiting models take turns."""
    answerer_concurrency_limits: int | Mapping[str, int] | None = setting(
        None, optional(_limits), read=toml_or_text, neutral=True
    )
    """Calls that may be in flight at the same time for each answering model, or for some, by their ids. Its calls as a
    judge count too. None: as many as its provider accepts."""
    budget_usd: float | None = positive(None, neutral=True)
    """US dollars that the run may spend; calls in flight can exceed this by what they cost beyond their estimates.
    Every model needs an adapter that reports what calls cost, or prices of its own."""
    budget_tokens: int | None = most(neutral=True)
    """Tokens, in and out, that the run may spend, in the same way."""

    @property
    def call_seconds(self) -> float:
        """Seconds for one call with all its attempts: `retry_max_elapsed_seconds`, or what None means."""
        models = map(self.for_model, (*self.answering_models, *self.parsing_models))
        own = [(m.request_timeout or 0.0) * (m.retry_policy or self.retry_policy).timeout.max_attempts for m in models]
        return self.retry_max_elapsed_seconds or max(
            120.0, self.request_timeout * self.retry_policy.timeout.max_attempts, *own
        )

    def for_model(self, model: ModelConfig) -> ModelConfig:
        """The model with the run's time limit and retries where it has none of its own."""
        return evolve(
            model,
            request_timeout=model.request_timeout or self.request_timeout,
            retry_policy=model.retry_policy or self.retry_policy,
        )
