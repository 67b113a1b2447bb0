"""From a context to the parts of a result. Mechanical: which stage set what is none of its business."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..model.result import PARTS, GenerationPart, LedgerEntry, MetadataPart, VerificationResult
from ..ports.client import CallRecord
from .context import VerificationContext
from .keys import ArtifactKeys
from .stage import RESULT_FIELDS

__all__ = [
    "bare_result",
    "ending",
    "extensions",
    "ledger",
    "metadata",
    "part_fields",
    "usage_metadata",
    "usage_sum",
]
NUMBERS = (
    *("calls", "attempts", "seconds", "repairs", "input_tokens", "output_tokens", "total_tokens"),
    *("cost_usd", "usage_unavailable"),
)
"""What is added up over all tasks."""


def metadata(context: VerificationContext) -> MetadataPart:
    """Who, what, when, and how it ended so far."""
    question = context.question
    retries: dict[str, int] = {}
    for call in context.calls:
        for kind, count in call.retries.items():
            retries[kind] = retries.get(kind, 0) + count
    cached = context.cached_answer_data
    examples = context.get_result_field("few_shot_example_count", cached.few_shot_example_count if cached else 0)
    return MetadataPart(
        question_id=question.id,
        template_id=context.task.template_id,
        result_id=context.task.result_id(context.run_name),
        question_text=question.question,
        raw_answer=question.raw_answer or None,
        keywords=question.keywords,
        answering=context.task.answering,
        parsing=context.task.parsing,
        answering_system_prompt=context.system_prompt("answering"),
        parsing_system_prompt=context.system_prompt("parsing"),
        timestamp=context.started.isoformat(),
        run_name=context.run_name,
        replicate=context.replicate,
        evaluation_mode=context.mode,
        few_shot_enabled=examples > 0,
        few_shot_example_count=examples,
        retry_counts=retries,
        caveats=context.get_result_field("caveats", ()),
        template_isolation=context.get_result_field("template_isolation"),
        **ending(context),
    )


def ending(context: VerificationContext) -> dict[str, Any]:
    """The fields of the metadata that say how the item ended; they can change until the last stage is done."""
    outcome = context.outcome
    return {
        "outcome": outcome.name,
        "outcome_detail": outcome.detail,
        "completed_without_errors": context.completed_without_errors,
        "error": context.error,
        "warnings": tuple(context.warnings),
    }


def part_fields(context: VerificationContext) -> dict[str, dict[str, Any]]:
    """The result fields that were set, by part; those of the root under `""`."""
    found: dict[str, dict[str, Any]] = {"": {}, **{part: {} for part in PARTS}}
    for name, value in context.result_fields.items():
        if name in RESULT_FIELDS and (part := RESULT_FIELDS[name]) in found:
            found[part][name] = value
    return found


def extensions(context: VerificationContext) -> dict[str, dict[str, Any]]:
    """The result fields of other packages: `{plugin: {key: value}}`."""
    found: dict[str, dict[str, Any]] = {}
    for name, value in context.result_fields.items():
        if name not in RESULT_FIELDS:
            plugin, dot, key = name.partition(".")
            if dot:
                found.setdefault(plugin, {})[key] = value
    return found


def ledger(context: VerificationContext) -> tuple[LedgerEntry, ...]:
    """The recorded effects, in order."""
    rows = []
    for effect in context.effects:
        said: dict[str, Any] = {
            k: v for k, v in (("field", effect.field), ("verdict", effect.verdict)) if v is not None
        }
        if effect.verdict is False:
            said["outcome"] = effect.outcome
        rows.append(LedgerEntry(effect.stage, said, effect.reason))
    return tuple(rows)


def usage_metadata(calls: Sequence[CallRecord], earlier: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Tokens, attempts, channel and time by task, and in total.

    `usage_unavailable` says that nobody told how many tokens some call took: those that are known are counted, and
    `cost_usd` is None.

    `earlier` is the usage of an answer that was generated for another judge: shown, marked `cached`, and not counted
    again. What is marked as not `cached` is the item's own, and counts.
    """
    usage = {task: _earlier(row) for task, row in (earlier or {}).items() if task != "total"}
    for call in calls:
        row = usage.get(call.task)
        if row is not None and row.get("cached"):
            row = None
        one = {
            "calls": 1,
            "attempts": call.attempts,
            "seconds": call.seconds,
            "repairs": call.repairs,
            "channel": call.channel,
            **call.usage.to_dict(),
            "model": call.model,
            "usage_unavailable": call.usage_unavailable,
        }
        if call.usage_unavailable:
            one["cost_usd"] = None
        usage[call.task] = one if row is None else {key: _merged(key, row.get(key), one[key]) for key in one}
    if usage:
        usage["total"] = _total(usage)
    return usage


def _earlier(row: Mapping[str, Any]) -> dict[str, Any]:
    if row.get("cached") is False:
        return {name: value for name, value in row.items() if name != "cached"}
    return {**row, "cached": True}


def _total(usage: Mapping[str, Any]) -> dict[str, Any]:
    total: dict[str, Any] = {}
    for row in (row for row in usage.values() if not row.get("cached")):
        total = {key: _merged(key, total.get(key), row.get(key)) if total else row.get(key) for key in NUMBERS}
    return total


def usage_sum(usage: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """The usage of an item with that of calls which were made for it later; what `more` marks as `cached` is known."""
    found = {task: row for task, row in usage.items() if task != "total"}
    for task, row in more.items():
        if task == "total" or row.get("cached"):
            continue
        before = found.get(task)
        if before is None or before.get("cached"):
            found[task] = row
        else:
            found[task] = {key: _merged(key, before.get(key), row.get(key)) for key in {**before, **row}}
    return {**found, "total": _total(found)} if found else {}


def _merged(key: str, a: Any, b: Any) -> Any:
    if key == "usage_unavailable":
        return bool(a or b)
    if key == "cost_usd":
        return None if a is None or b is None else a + b
    if isinstance(a, str) or isinstance(b, str) or key in ("channel", "model"):
        return a if a == b else b
    return b if a is None else a if b is None else a + b


def bare_result(context: VerificationContext) -> VerificationResult:
    """What is known for certain, for when the final stage itself failed."""
    response = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE, "")
    return VerificationResult(
        metadata=metadata(context),
        generation=GenerationPart(raw_llm_response=response, usage_metadata=usage_metadata(context.calls)),
        ledger=ledger(context),
        trail=tuple(context.trail),
    )
