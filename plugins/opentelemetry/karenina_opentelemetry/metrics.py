"""Metrics of items and calls, for the meter provider of the program; without one they go nowhere.

Of calls they are those of the conventions for generative AI: `gen_ai.client.operation.duration` and
`gen_ai.client.token.usage` (https://github.com/open-telemetry/semantic-conventions-genai).
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Any
from weakref import WeakKeyDictionary

from karenina_calls.services.embedding import Embeddings
from opentelemetry import metrics
from opentelemetry.metrics import MeterProvider

from karenina_core import VerificationResult, __version__
from karenina_core.ports.middleware import CallTarget, Proceed
from karenina_core.values.fields import is_number

from .calls import request_facts, server_facts
from .tracing import error_type, harmless, known

SECONDS = (0.01, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 1.28, 2.56, 5.12, 10.24, 20.48, 40.96, 81.92)
"""Bounds of the histogram of durations: those that the conventions advise."""
TOKENS = (1, 4, 16, 64, 256, 1024, 4096, 16384, 65536, 262144, 1048576, 4194304, 16777216, 67108864)
"""Bounds of the histogram of tokens, likewise."""
OPERATIONS = {"llm": "chat", "parser": "chat", "agent": "invoke_agent", "embedder": "embeddings"}
"""Kinds of calls that are measured. `work` is made of those of an agent or a model."""
Around = Callable[[Any, Proceed], Awaitable[Any]]


class Instruments:
    """What one application counts and measures."""

    def __init__(self, provider: MeterProvider | None = None) -> None:
        meter = metrics.get_meter("karenina", __version__, meter_provider=provider)
        self.items = meter.create_counter("karenina.items", "{item}", "Items that have a result")
        self.cost = meter.create_counter("karenina.cost", "{USD}", "What items cost, as far as it is known")
        self.duration = meter.create_histogram(
            "gen_ai.client.operation.duration",
            "s",
            "Duration of a call",
            explicit_bucket_boundaries_advisory=SECONDS,
        )
        self.tokens = meter.create_histogram(
            "gen_ai.client.token.usage",
            "{token}",
            "Tokens of a call",
            explicit_bucket_boundaries_advisory=TOKENS,
        )

    @harmless
    def called(self, facts: dict[str, Any], seconds: float, reply: Any, error: BaseException | None) -> None:
        """A call ended."""
        usage = getattr(error if reply is None else reply, "usage", None)
        answered = getattr(reply, "actual_model", None) or getattr(usage, "model", None)
        about = known({**facts, "gen_ai.response.model": answered})
        self.duration.record(seconds, about if error is None else {**about, "error.type": error_type(error)})
        if usage is None or getattr(error if reply is None else reply, "usage_unavailable", False):
            return  # unknown, which is not 0
        self.tokens.record(usage.input_tokens, {**about, "gen_ai.token.type": "input"})
        if not isinstance(reply, Embeddings):
            self.tokens.record(usage.output_tokens, {**about, "gen_ai.token.type": "output"})

    @harmless
    def finished(self, result: VerificationResult) -> None:
        """An item has its result."""
        about = result.metadata
        facts = {
            "karenina.outcome": about.outcome,
            "karenina.answering_model": about.answering_model,
            "karenina.parsing_model": about.parsing_model,
        }
        self.items.add(1, known(facts))
        parts = dict(result.generation.usage_metadata)
        for task, used in parts.items():
            if task != "total" and is_number(cost := used.get("cost_usd")) and cost > 0:
                self.cost.add(cost, known({"karenina.task": task, "karenina.answering_model": about.answering_model}))


_of_applications: WeakKeyDictionary[Any, Instruments] = WeakKeyDictionary()


def use_meter_provider(app: Any, provider: MeterProvider) -> None:
    """Send the metrics of this application to a provider, instead of that of the program. Before its first run."""
    _of_applications[app] = Instruments(provider)


def instruments_of(app: Any) -> Instruments:
    """Those of an application, made at the first use."""
    if app not in _of_applications:
        _of_applications[app] = Instruments()
    return _of_applications[app]


def measured(target: CallTarget, app: Any, inside: Around | None) -> Around | None:
    """See the hook `karenina_wrap_call`. `inside` is what makes the spans of the same calls, or None."""
    operation, model = OPERATIONS.get(target.kind), target.config
    if operation is None:
        return inside
    if model is None:
        facts = {"gen_ai.operation.name": operation, "gen_ai.provider.name": target.name}
        facts["gen_ai.request.model"] = target.model
    else:
        facts = {**request_facts(operation, model), **server_facts(model)}
    found = instruments_of(app)

    async def around(call: Any, proceed: Proceed) -> Any:
        began, reply, failed = time.perf_counter(), None, None
        try:
            reply = await (proceed(call) if inside is None else inside(call, proceed))
            return reply
        except BaseException as error:
            failed = error
            raise
        finally:
            found.called(facts, time.perf_counter() - began, reply, failed)

    return around
