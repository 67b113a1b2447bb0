"""What calls will take, before any of them is made: how many they are, tokens and cost as ranges.

Without an earlier run the ranges are wide: a text of a known size has so many tokens, about, and what a model replies
is bounded by its `max_tokens`. With one they are narrow: calls of a task take what they took, and the spread of what
they took says how far a sum of them may be off.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from attrs import define, field
from karenina_vocabulary.planned_calls import PlannedCall

from karenina_core.errors import KareninaError
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import ModelConfig
from karenina_core.values.fields import is_number

from ..limits.budget import FIRST_OUTPUT
from ..models.model_ports import make_port, model_ports
from .earlier_calls import AMOUNTS, NONE, EarlierCalls, Sample, Span

DENSE, LOOSE = 2, 8
"""Bytes of a token, at least and at most. The tokenizers of today have about four in English prose, two to three in
code and tables, and up to six in scripts of several bytes a character."""
INSTRUCTIONS = 1000
"""Tokens that karenina's own instructions of one call may have; 450 to 810 were counted for the tasks of a template."""


@define(eq=False)
class _Row:
    """The calls of one task and model."""

    task: str
    model: ModelConfig | str
    canaries: bool
    prices: tuple[float, float] | None
    repaired: bool
    """Whether a reply that does not fit is asked for again."""
    least: int = 0
    most: int | None = 0
    uses: int = 0
    """Items that may make them."""
    sent: Span = NONE
    replied: Span = NONE
    asked: dict[str, float] = field(factory=dict)
    """Uses by question."""

    @property
    def name(self) -> str:
        return self.model if isinstance(self.model, str) else str(self.model.identity)

    def add(self, call: PlannedCall, times: int, question: str, answer_tokens: int) -> None:
        least, most = call.least * times, None if call.most is None else call.most * times
        self.least += least
        self.most = None if self.most is None or most is None else self.most + most
        self.asked[question] = self.asked.get(question, 0.0) + times
        cap = (None if isinstance(self.model, str) else self.model.max_tokens) or FIRST_OUTPUT
        own, turns = (call.sends + call.may_send) / DENSE + INSTRUCTIONS, call.turns
        own += answer_tokens if call.reads_answer else 0
        # what an agent has been told and has said is sent again with each of its turns
        highest = turns * own + cap * turns * (turns - 1)
        self.sent += Span(least * call.sends / LOOSE, None, None if most is None else most * highest)
        self.replied += Span(least, None, None if most is None else most * cap * turns)

    def calls(self, earlier: EarlierCalls | None) -> Span:
        if self.least == self.most:
            return Span(self.least, self.least, self.most)
        expected = None
        if earlier is not None and earlier.items:
            expected = max(float(self.least), earlier.rate(self.task) * self.uses)
            expected = expected if self.most is None else min(expected, self.most)
        return Span(self.least, expected, self.most)

    def amounts(self, earlier: EarlierCalls | None) -> dict[str, Span | None]:
        """Tokens in and out, and US dollars; None: their price is not known."""
        found: dict[str, Span | None] = {"input_tokens": self.sent, "output_tokens": self.replied}
        calls = self.calls(earlier)
        sample, same = (None, False) if earlier is None else earlier.sample(self.task, self.name)
        learnt = sample is not None and calls.expected is not None
        if sample is not None and calls.expected is not None:
            found |= {name: _learnt(sample, name, self.asked, calls) for name in AMOUNTS[:2]}
        elif earlier is not None and calls.expected == 0:
            found |= {name: Span(0.0, 0.0, span.high) for name, span in found.items() if span is not None}
        if self.prices is not None:
            sent, replied = found["input_tokens"], found["output_tokens"]
            assert sent is not None  # nor is the other
            assert replied is not None
            found["cost_usd"] = sent.times(self.prices[0]) + replied.times(self.prices[1])
        elif learnt and same and sample is not None and not sample.unknown:
            found["cost_usd"] = _learnt(sample, "cost_usd", self.asked, calls)
        else:
            found["cost_usd"] = None
        return found


def _learnt(sample: Sample, name: str, asked: Mapping[str, float], calls: Span) -> Span:
    """An amount by what earlier calls took. `asked` are uses by question, over which the calls are spread evenly."""
    uses = sum(asked.values())
    if not calls.expected or not uses:
        each, off = sample.of(name, {"": 1.0})
        return Span(0.0, 0.0, None if calls.high is None else calls.high * (each + off))
    total, off = sample.of(name, {question: count * calls.expected / uses for question, count in asked.items()})
    high = None if calls.high is None else (total + off) * calls.high / calls.expected
    return Span(max(0.0, total - off) * calls.low / calls.expected, total, high)


@define(eq=False)
class CallsEstimate:
    """Sums of planned calls. `app` says what calls of a model cost, where that is known before a call."""

    app: Karenina
    earlier: EarlierCalls | None = None
    notes: dict[str, None] = field(factory=dict)
    """What else is to be known, each once."""
    _rows: dict[tuple[str, str, bool], _Row] = field(factory=dict)
    _prices: dict[str, tuple[float, float] | None] = field(factory=dict)

    def add(
        self,
        calls: Iterable[tuple[PlannedCall, ModelConfig | str, int]],
        *,
        question: str = "",
        answer_tokens: int = FIRST_OUTPUT,
        canaries: bool = False,
    ) -> None:
        """Count the calls of an item, each with what is asked and how often the item is made. `answer_tokens`: what the
        answer that they read has at most. `canaries`: the item is one of a run's own checks of its judges."""
        counted: set[int] = set()
        for call, model, times in calls:
            row = self._row(call, model, canaries)
            if id(row) not in counted:
                row.uses += times
                counted.add(id(row))
            row.add(call, times, question, answer_tokens)

    def _row(self, call: PlannedCall, model: ModelConfig | str, canaries: bool) -> _Row:
        name = model if isinstance(model, str) else str(model.identity)
        key = (call.task, name, canaries)
        if (row := self._rows.get(key)) is None:
            row = self._rows[key] = _Row(call.task, model, canaries, self._price(name, model), call.role == "parsing")
        return row

    def _price(self, name: str, model: ModelConfig | str) -> tuple[float, float] | None:
        if isinstance(model, str):
            return None
        if name not in self._prices:
            self._prices[name] = known_prices(self.app, model)
        return self._prices[name]

    def document(self) -> dict[str, Any]:
        """Plain data: `calls`, `tokens` (`input`, `output`, `total`) and `cost_usd` are ranges `{"low", "expected",
        "high"}`, `expected` being None where there is nothing to go by, and `high` where there is no bound. `exact`:
        whether the calls are known to the last one. `cost_usd` is that of the calls whose prices are known, None where
        there are none; `unknown_price_share` is the share of the others, from 0 to 1. `repairs`: how many replies of
        judges may be asked for again. `rows`: the same by task and model."""
        rows, total = [], {"calls": NONE, **dict.fromkeys(AMOUNTS, NONE)}
        unpriced, counted, repairs = 0.0, 0.0, 0
        for row in self._sorted():
            calls, amounts = row.calls(self.earlier), row.amounts(self.earlier)
            total["calls"] += calls
            for name, span in amounts.items():
                total[name] += NONE if span is None else span
            weight = calls.expected if calls.expected is not None else calls.high or calls.low
            counted += weight
            unpriced += weight if amounts["cost_usd"] is None else 0.0
            if row.repaired and not isinstance(row.model, str):
                repairs += (row.most or row.least) * row.model.max_retries
            rows.append(_shown(row, calls, amounts))
        nothing_known = counted > 0 and unpriced == counted
        return {
            "exact": all(row["calls"]["low"] == row["calls"]["high"] for row in rows),
            "calls": total["calls"].document(),
            "tokens": _tokens(total),
            "cost_usd": None if nothing_known else total["cost_usd"].document(whole=False),
            "unknown_price_share": unpriced / counted if counted else 0.0,
            "repairs": {"most": repairs, "earlier": self._earlier_repairs()},
            "rows": rows,
            "notes": [*self.notes, *self._of_other_models()],
        }

    def _sorted(self) -> Iterator[_Row]:
        return iter(sorted(self._rows.values(), key=lambda row: row.canaries))

    def _earlier_repairs(self) -> float | None:
        """Of the earlier run, for each of its calls; None without one."""
        if self.earlier is None:
            return None
        samples = [sample for row in self._rows.values() if (sample := self.earlier.sample(row.task, row.name)[0])]
        calls = sum(sample.calls for sample in samples)
        return sum(sample.repairs for sample in samples) / calls if calls else None

    def _of_other_models(self) -> Iterator[str]:
        if self.earlier is None:
            return
        for row in self._rows.values():
            sample, same = self.earlier.sample(row.task, row.name)
            if sample is None and row.most != 0 and row.calls(self.earlier).expected:
                yield f"{row.task}: the earlier run has no such call, so its tokens are a rough estimate"
            elif sample is not None and not same:
                yield (
                    f"{row.task}: the earlier run used another model than {row.name}; the tokens of that model are used"
                )


def _shown(row: _Row, calls: Span, amounts: Mapping[str, Span | None]) -> dict[str, Any]:
    cost = amounts["cost_usd"]
    return {
        "task": row.task,
        "model": row.name,
        "canaries": row.canaries,
        "calls": calls.document(),
        "tokens": _tokens(amounts),
        "cost_usd": None if cost is None else cost.document(whole=False),
    }


def _tokens(amounts: Mapping[str, Span | None]) -> dict[str, Any]:
    sent, replied = amounts["input_tokens"] or NONE, amounts["output_tokens"] or NONE
    parts = {"input": sent, "output": replied, "total": sent + replied}
    return {name: span.document() for name, span in parts.items()}


def known_prices(app: Karenina, model: ModelConfig) -> tuple[float, float] | None:
    """US dollars for a token in and out, as they are known before a call: those of the model's configuration, 0 where
    no provider is asked, and what the port of its adapter says by `token_prices`, a pair or None. None: not known."""
    if model.input_cost_per_token is not None and model.output_cost_per_token is not None:
        return model.input_cost_per_token, model.output_cost_per_token
    try:
        spec = app.adapters.resolve_interface(model.interface).spec
        if spec.is_recorded or not any(
            port.capabilities.needs_provider for port in model_ports(app, spec, model).values()
        ):
            return 0.0, 0.0
        if spec.llm_factory is None:
            return None
        found = getattr(make_port(app.adapters, spec.llm_factory, model, spec), "token_prices", None)
    except KareninaError:
        return None
    return _pair(found)


def _pair(found: Any) -> tuple[float, float] | None:
    if not isinstance(found, Iterable) or isinstance(found, str):
        return None
    prices = [price for price in found if is_number(price) and price >= 0]
    return (float(prices[0]), float(prices[1])) if len(prices) == 2 else None
