"""From a context to the parts of a result. Mechanical: which stage set what is none of its business."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..model.result import GenerationPart, LedgerEntry, MetadataPart, VerificationResult
from ..model.result_parts import result_parts
from ..model.usage_rows import is_cost_unknown
from ..ports.model_client import CallRecord
from .context import VerificationContext
from .keys import CoreKeys
from .stage import result_fields

__all__ = [
    "bare_result",
    "ending",
    "extensions",
    "finished",
    "ledger",
    "metadata",
    "usage_metadata",
    "usage_sum",
]
NUMBERS = (
    *("calls", "attempts", "replies", "seconds", "repairs", "input_tokens", "output_tokens", "total_tokens"),
    *("cost_usd", "unknown_cost_attempts", "usage_unavailable"),
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
        answering_system_prompt=_answered_under(context),
        parsing_system_prompt=context.system_prompt("parsing"),
        timestamp=context.started.isoformat(),
        run_name=context.run_name,
        replicate=context.replicate,
        evaluation_mode=context.mode,
        few_shot_enabled=examples > 0,
        few_shot_example_count=examples,
        retry_counts=retries,
        caveats=tuple(dict.fromkeys(context.get_result_field("caveats", ()))),
        template_isolation=context.get_result_field("template_isolation"),
        **ending(context),
    )


def _answered_under(context: VerificationContext) -> str | None:
    """The system prompt of the answer. Of one that was recorded elsewhere only what was recorded, or is configured for
    recorded answers; None where that says nothing."""
    cached, recorded = context.cached_answer_data, context.is_recorded
    if not recorded and (cached is None or cached.replayed_from is None):
        return context.system_prompt("answering")
    sent = cached.conversation_context if cached else context.get_result_field("conversation_context", ())
    system = [_text(row) for row in sent if row.get("role") == "system"]
    return (context.configured_prompt("answering") if recorded else None) or "\n\n".join(system) or None


def _text(row: Mapping[str, Any]) -> str:
    """The text of a stored message; its content is a text, or blocks."""
    content = row.get("blocks") or row.get("content") or ""
    return content if isinstance(content, str) else "\n".join(str(block.get("text") or "") for block in content)


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


def finished(context: VerificationContext) -> VerificationResult:
    """Everything that the stages left behind. A part exists where its class says so: see `ResultPart.of`."""
    fields = _part_fields(context)
    generation = fields.pop("generation")
    generation["usage_metadata"] = usage_metadata(context.calls, generation.get("usage_metadata"))
    return VerificationResult(
        metadata=metadata(context),
        generation=GenerationPart(**generation),
        parts={name: cls.of(context, fields.get(name, {})) for name, cls in result_parts().items()},
        ledger=ledger(context),
        extensions=extensions(context),
        **fields[""],
    )


def _part_fields(context: VerificationContext) -> dict[str, dict[str, Any]]:
    """The result fields that were set, by part; those of the root under `""`."""
    homes = result_fields()
    found: dict[str, dict[str, Any]] = {part: {} for part in homes.values() if part != "metadata"}
    for name, value in context.result_fields.items():
        if name in homes and homes[name] in found:
            found[homes[name]][name] = value
    return found


def extensions(context: VerificationContext) -> dict[str, dict[str, Any]]:
    """The result fields of other packages: `{plugin: {key: value}}`."""
    found: dict[str, dict[str, Any]] = {}
    homes = result_fields()
    for name, value in context.result_fields.items():
        if name not in homes:
            plugin, dot, key = name.partition(".")
            if dot:
                found.setdefault(plugin, {})[key] = value
    return found


def ledger(context: VerificationContext) -> tuple[LedgerEntry, ...]:
    """The recorded effects, in order."""
    rows = []
    for effect in context.effects:
        row: dict[str, Any] = {k: v for k, v in (("field", effect.field), ("verdict", effect.verdict)) if v is not None}
        if effect.verdict is False:
            row["outcome"] = effect.outcome
        rows.append(LedgerEntry(effect.stage, row, effect.reason))
    return tuple(rows)


def usage_metadata(calls: Sequence[CallRecord], earlier: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """Tokens, attempts, replies, channel and time by task, and in total.

    `attempts` are requests, `replies` those that had one. `usage_unavailable` says that it is unknown how many tokens
    some request took: those that are known are counted. `cost_usd` is None where a reply's cost is not known, or that
    of everything; `unknown_cost_attempts` are requests without a reply that may be on the provider's bill: the cost is
    what is known beside them.

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
            "replies": call.replies,
            "seconds": call.seconds,
            "repairs": call.repairs,
            "channel": call.channel,
            **call.usage.to_dict(),
            "model": call.model,
            "unknown_cost_attempts": call.unknown_cost_attempts,
            "usage_unavailable": call.usage_unavailable,
        }
        if call.usage_unavailable and not call.unknown_cost_attempts:
            one["cost_usd"] = None
        usage[call.task] = one if row is None else _merged(row, one, one)
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
        total = _merged(total, row, NUMBERS) if total else {key: row.get(key) for key in NUMBERS}
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
            found[task] = _merged(before, row, {**before, **row})
    return {**found, "total": _total(found)} if found else {}


def _merged(first: Mapping[str, Any], second: Mapping[str, Any], keys: Iterable[str]) -> dict[str, Any]:
    merged: dict[str, Any] = {}
    for key in keys:
        a, b = first.get(key), second.get(key)
        if key == "cost_usd":
            merged[key] = _sum_of_costs(first, second)
        elif key == "usage_unavailable":
            merged[key] = bool(a or b)
        elif key == "channel" or key == "model" or isinstance(a, str) or isinstance(b, str):
            merged[key] = a if a == b else b
        else:
            merged[key] = b if a is None else a if b is None else a + b
    return merged


def _sum_of_costs(first: Mapping[str, Any], second: Mapping[str, Any]) -> float | None:
    """What a request without a reply may have cost leaves that of the others known."""
    a, b = first.get("cost_usd"), second.get("cost_usd")
    if a is not None and b is not None:
        return float(a + b)
    if a is None and is_cost_unknown(first):
        return None
    return None if b is None and is_cost_unknown(second) else b if a is None else a


def bare_result(context: VerificationContext) -> VerificationResult:
    """What is known for certain, for when the final stage itself failed."""
    response = context.get_artifact(CoreKeys.RAW_LLM_RESPONSE, "")
    return VerificationResult(
        metadata=metadata(context),
        generation=GenerationPart(raw_llm_response=response, usage_metadata=usage_metadata(context.calls)),
        ledger=ledger(context),
        trail=tuple(context.trail),
    )
