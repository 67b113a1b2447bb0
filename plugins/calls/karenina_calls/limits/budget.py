"""What a run may spend: set aside before each call, settled after it."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import define, evolve, field, frozen

from karenina_core.errors import ConfigError, Problem, plural
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import ModelConfig, VerificationConfig

from ..models.model_ports import model_ports
from ..ports.stored_calls import CallFacts
from ..records.prices import cost_of
from ..records.requests import KeptRequest

BYTES_PER_TOKEN = 4  # of English; the reply says what it was
DUST = 1e-9
"""Part of an amount that rounding may take."""
FIRST_OUTPUT = 1000
"""Tokens that a reply is expected to have before any has come."""


@frozen
class Estimate:
    """What a call is expected to take."""

    input_tokens: int
    output_tokens: int
    usd: float | None = None
    """None: unknown."""

    @property
    def tokens(self) -> int:
        return self.input_tokens + self.output_tokens


NOTHING = Estimate(0, 0)


@define
class _Mean:
    count: int = 0
    value: float = 0.0

    def add(self, value: float) -> None:
        self.count += 1
        self.value += (value - self.value) / self.count


@define(eq=False)
class Experience:
    """What the calls of one model took so far, task by task: what the next ones are expected to take."""

    _output: dict[str, _Mean] = field(factory=lambda: defaultdict(_Mean))
    _usd: dict[str, _Mean] = field(factory=lambda: defaultdict(_Mean))

    def estimate(self, sent: int, task: str, model: ModelConfig) -> Estimate:
        """For a call that sends so many tokens. Output: the mean of the same task, else of all tasks, else 1,000 tokens
        or `max_tokens`, if that is less. Price: by the model's own prices, else the mean in the same way."""
        expected = _known(self._output, task)
        expected = min(FIRST_OUTPUT, model.max_tokens or FIRST_OUTPUT) if expected is None else expected
        usd = cost_of(model, sent, expected)
        return Estimate(sent, round(expected), _known(self._usd, task) if usd is None else usd)

    def learn(self, task: str, facts: CallFacts) -> None:
        if not facts.usage_unavailable:
            self._output[task].add(facts.usage.output_tokens)
        if facts.usage.cost_usd is not None:
            self._usd[task].add(facts.usage.cost_usd)


def _known(means: Mapping[str, _Mean], task: str) -> float | None:
    if mean := means.get(task):
        return mean.value
    return sum(m.value * m.count for m in means.values()) / sum(m.count for m in means.values()) if means else None


def tokens_of(request: KeptRequest) -> int:
    """The tokens that a request sends, estimated: one for every four bytes."""
    sent = _texts(request.sent)
    return sum(len(t) if t.isascii() else len(t.encode("utf-8", "replace")) for t in sent) // BYTES_PER_TOKEN


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for key, entry in value.items():
            yield from _texts(key)
            yield from _texts(entry)
    elif isinstance(value, list | tuple):
        for entry in value:
            yield from _texts(entry)


@define(eq=False)
class Budget:
    """US dollars and tokens that a run may spend.

    A call begins where what is spent, what is set aside for the calls under way and its own estimate fit in. Otherwise
    it waits for the calls under way. While there are none, and something is left, a call begins whatever its estimate:
    the last of the budget is spent call by call. So more is spent than allowed by what calls under way took beyond
    their estimates, by a call that began while no other was under way, and by calls that are made from within the work
    of another, which do not wait for it.
    """

    usd: float | None = None
    tokens: int | None = None
    exhausted: str = field(default="", init=False)
    """Why nothing may be asked any more, and what to do."""
    calls: int = field(default=0, init=False)
    """Calls that count against the budget."""
    spent_usd: float = field(default=0.0, init=False)
    """What they cost; where that is unknown, what they were estimated to cost."""
    spent_tokens: int = field(default=0, init=False)
    _aside_usd: float = field(default=0.0, init=False)
    _aside_tokens: int = field(default=0, init=False)
    _under_way: int = field(default=0, init=False)
    limited: bool = field(init=False)
    """Whether there is a limit."""

    @limited.default
    def _limited(self) -> bool:
        return self.usd is not None or self.tokens is not None

    @property
    def idle(self) -> bool:
        """Whether no call is under way."""
        return not self._under_way

    def fits(self, estimate: Estimate) -> bool:
        """Whether a call may begin now. If not, it may when one under way has ended, unless `exhausted` then."""
        if not self._under_way:
            return True
        fits_usd = self.usd is None or self.spent_usd + self._aside_usd + (estimate.usd or 0.0) <= self.usd * (1 + DUST)
        return fits_usd and (
            self.tokens is None or self.spent_tokens + self._aside_tokens + estimate.tokens <= self.tokens
        )

    def set_aside(self, estimate: Estimate) -> None:
        self._under_way += 1
        self._aside_usd += estimate.usd or 0.0
        self._aside_tokens += estimate.tokens

    def give_back(self, estimate: Estimate) -> None:
        """The call is over, or was never made."""
        self._under_way -= 1
        self._aside_usd = self._aside_usd - (estimate.usd or 0.0) if self._under_way else 0.0
        self._aside_tokens -= estimate.tokens

    def settle(self, estimate: Estimate, facts: CallFacts, model: ModelConfig, *, replied: bool = True) -> CallFacts:
        """Count what the call took; what the provider does not say counts as it was estimated. Returns what it took,
        with these estimates."""
        usage = facts.usage
        if facts.usage_unavailable or not (replied or usage.total_tokens):
            known = usage.input_tokens + usage.output_tokens
            facts = evolve(facts, estimated_tokens=max(estimate.tokens - known, 0))
        if usage.cost_usd is None and facts.estimated_usd != estimate.usd:
            facts = evolve(facts, estimated_usd=estimate.usd)
        cost = estimate.usd if usage.cost_usd is None else usage.cost_usd
        self.calls += 1
        self.spent_tokens += usage.input_tokens + usage.output_tokens + (facts.estimated_tokens or 0)
        self.spent_usd += cost or 0.0
        if replied and not self.exhausted and self.usd is not None and cost is None:
            self.exhausted = (
                f"budget_usd: the cost of calls of {model.identity} is unknown, so the budget cannot be kept; give the "
                "model input_cost_per_token and output_cost_per_token (an embedder: the settings of its plugin), or "
                "limit budget_tokens instead"
            )
        self._look()
        return facts

    def spent_before(self, usd: float, tokens: int, calls: int) -> None:
        """What the run spent before it was resumed: a budget is that of the whole run."""
        self.spent_usd += usd
        self.spent_tokens += tokens
        self.calls += calls
        self._look()

    def _look(self) -> None:
        if self.exhausted:
            return
        if self.usd is not None and self.spent_usd >= self.usd * (1 - DUST):
            self.exhausted = self._used_up(f"{self.usd:g} US dollars", f"{self.spent_usd:.6g}", "budget_usd", "usd")
        elif self.tokens is not None and self.spent_tokens >= self.tokens:
            self.exhausted = self._used_up(f"{self.tokens} tokens", str(self.spent_tokens), "budget_tokens", "tokens")

    def _used_up(self, limit: str, spent: str, setting: str, option: str) -> str:
        return (
            f"{setting}: the budget of {limit} is used up ({spent} in {plural(self.calls, 'call')}); to run the "
            f"rest, raise it (--budget-{option})"
        )


def check_limits(app: Karenina, config: VerificationConfig, overrides: Iterable[ModelConfig] = ()) -> None:
    """What can be known before a run about its limits. `overrides` are models beside those of the configuration.

    Raises ConfigError for limits of models that do not answer, and for a budget in US dollars with models that neither
    have prices nor an adapter that reports costs.
    """
    problems: list[Problem] = []
    limits = config.answerer_concurrency_limits
    known = [model.id for model in config.answering_models]
    if isinstance(limits, Mapping):
        what = f"no answering model has this id; they are {', '.join(map(repr, known))}"
        problems += [Problem(f"answerer_concurrency_limits.{name}", what) for name in limits if name not in known]
    if config.budget_usd is not None:
        models = (*config.answering_models, *config.parsing_models, *overrides)
        unpriced = dict.fromkeys(str(model.identity) for model in models if _costs_are_unknown(app, model))
        what = (
            "its adapter does not report what calls cost; give it input_cost_per_token and output_cost_per_token, or "
            "limit budget_tokens instead"
        )
        problems += [Problem("budget_usd", f"{name}: {what}") for name in unpriced]
    if problems:
        raise ConfigError(problems)


def _costs_are_unknown(app: Karenina, model: ModelConfig) -> bool:
    if cost_of(model, 0, 0) is not None:
        return False
    ports = model_ports(app, app.adapters.resolve_interface(model.interface).spec, model).values()
    return any(port.capabilities.needs_provider and not port.capabilities.reports_cost for port in ports)
