"""Spans of runs, of items and of their stages."""

from __future__ import annotations

import re
from asyncio import current_task
from collections.abc import Awaitable, Callable, Iterator, Mapping
from contextvars import ContextVar, Token
from typing import Any

from attrs import frozen
from karenina_vocabulary.explanations import why
from karenina_vocabulary.rubric_part import FAILED, TraitOutcome, read_traits
from karenina_vocabulary.trait_scale import scale_classes
from opentelemetry import context, trace
from opentelemetry.context import Context
from opentelemetry.trace import Span

from karenina_core import VerificationResult
from karenina_core.values.fields import is_number
from karenina_core.values.identity import TaskIdentity

from .tracing import Tracing, ended, fill, harmless, known, tracing_of

EVENT = "gen_ai.evaluation.result"
VERDICT = "karenina.verdict"
"""The name of the event about the item as a whole; traits may be called `verdict`."""
OF_TEXT = re.compile(r"^urn:uuid:question-.*-([0-9a-f]{8})$", re.DOTALL)
"""An id that was made from the question's text and shows the beginning of it."""
SCORES = {"passed": 1.0, "failed": 0.0, "auto_failed": 0.0}
"""Outcomes that are a verdict; the others have a label only."""


@frozen
class _Run:
    tracing: Tracing
    span: Span
    token: Token[Context]
    task: Any
    outer: _Run | None
    """The run that this one is a part of, where a stage runs a benchmark of its own."""


_runs: ContextVar[_Run | None] = ContextVar("karenina_traced_run", default=None)


def started(run: Mapping[str, Any], app: Any) -> None:
    """Begin the span, and make it the current one of the run's task and of every task that it starts."""
    facts = {"run.name": run.get("run_name"), "benchmark": run.get("benchmark"), "run.items": run.get("items")}
    tracing = tracing_of(app)
    span = tracing.begun("run", {f"karenina.{name}": value for name, value in facts.items()})
    if span is not None:
        token = context.attach(trace.set_span_in_context(span))
        _runs.set(_Run(tracing, span, token, current_task(), _runs.get()))


def finished(summary: Mapping[str, Any], status: str) -> None:
    """End it. A run that ended before it had begun has no span; one that it is a part of continues."""
    run = _runs.get()
    if run is None or run.task is not current_task():
        return
    _runs.set(run.outer)
    outcomes = summary.get("outcomes") or {}
    fill(run.span, {f"karenina.outcomes.{name}": count for name, count in outcomes.items()})
    fill(run.span, {"karenina.run.status": status})
    if status != "completed":
        run.tracing.failed(run.span, status)
    context.detach(run.token)
    ended(run.span)


def _evaluation(
    name: str, value: float | None = None, label: str | None = None, error: str | None = None
) -> dict[str, Any]:
    """One evaluation: a number, a name for it, or why there is none."""
    return {
        "gen_ai.evaluation.name": name,
        "gen_ai.evaluation.score.value": value,
        "gen_ai.evaluation.score.label": label,
        "error.type": error,
    }


def around_item(app: Any) -> Callable[..., Awaitable[None]]:
    """See the hook `karenina_wrap_item`."""
    tracing = tracing_of(app)

    async def around(task: TaskIdentity, proceed: Callable[[], Awaitable[VerificationResult]]) -> None:
        facts = {
            "karenina.question.id": _shown_id(task.question_id, tracing),
            "karenina.template.id": task.template_id,
            "karenina.answering.model": str(task.answering),
            "karenina.parsing.model": str(task.parsing),
            "karenina.replicate": task.replicate,
        }
        with tracing.span("item", facts) as span:
            _fill(span, await proceed(), tracing)

    return around


def around_stage(stage: Any, app: Any) -> Callable[..., Awaitable[None]]:
    """See the hook `karenina_wrap_stage`. Stages that are skipped have no span."""
    tracing = tracing_of(app)

    async def around(context: Any, proceed: Callable[[], Awaitable[None]]) -> None:
        with tracing.span(f"stage {stage.name}", {"karenina.stage": stage.name}) as span:
            before = context.error
            await proceed()
            if context.error is not None and context.error != before:
                tracing.failed(span, str(context.error_kind), context.error)

    return around


def _shown_id(question: str, tracing: Tracing) -> str:
    """The id, without the words of the question that it may be made of."""
    if tracing.settings.content:
        return tracing.redacted(question)
    found = OF_TEXT.match(question)
    return f"question-{found[1]}" if found else question


@harmless
def _fill(span: Span, result: VerificationResult, tracing: Tracing) -> None:
    if not span.is_recording():
        return
    metadata = result.metadata
    fill(span, {"karenina.result.id": metadata.result_id, "karenina.outcome": metadata.outcome})
    error = (metadata.outcome_detail or "error") if metadata.outcome == "error" else None
    if error is not None:
        tracing.failed(span, error, metadata.error or "")
    verdict = _evaluation(VERDICT, SCORES.get(metadata.outcome), metadata.outcome, error)
    _event(span, verdict, why(result), tracing)
    for trait in read_traits(result.rubric) if result.rubric else ():
        for evaluation in _scores(trait):
            _event(span, evaluation, trait.reason, tracing)


def _scores(trait: TraitOutcome) -> Iterator[dict[str, Any]]:
    """What a judge wrote in its own words is content, and no score. A trait that was skipped was not evaluated."""
    name, value = trait.name, trait.value
    if trait.state in FAILED:
        yield _evaluation(name, error=trait.state)
    elif trait.kind in ("metric", "template"):
        parts = trait.metrics if trait.kind == "metric" else value if isinstance(value, dict) else {}
        yield from (_score(f"{name}.{part}", number) for part, number in parts.items() if _is_score(number))
    elif _is_score(value):
        classes = scale_classes(trait.scale) if trait.kind == "literal" else []
        of_class = classes[value] if isinstance(value, int) and 0 <= value < len(classes) else None
        yield _score(name, value, of_class)


def _is_score(value: object) -> bool:
    return isinstance(value, bool) or is_number(value)


def _score(name: str, value: Any, label: str | None = None) -> dict[str, Any]:
    return _evaluation(name, float(value), str(value).lower() if isinstance(value, bool) else label)


def _event(span: Span, evaluation: Mapping[str, Any], reason: str, tracing: Tracing) -> None:
    explanation = tracing.redacted(reason) if tracing.settings.content else None
    span.add_event(EVENT, known({**evaluation, "gen_ai.evaluation.explanation": explanation}))
