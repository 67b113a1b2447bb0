"""From a context to the parts of a result. Mechanical: which stage set what is none of its business."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from operator import attrgetter
from typing import Any

from attrs import fields_dict

from ..values.result import GenerationPart, LedgerEntry, MetadataPart, VerificationResult
from .artifact_keys import CoreKeys, Key
from .context import VerificationContext

USAGE: Key[Callable[[Mapping[str, Any]], Mapping[str, Any]]] = Key("usage of calls", Callable)
"""A service: the `usage_metadata` of the item's calls, beside that of an answer which was generated for another judge.
"""
METADATA = tuple(fields_dict(MetadataPart))


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
        item_digest=question.digest,
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


def ended(metadata: MetadataPart, context: VerificationContext, seconds: float) -> MetadataPart:
    """The same when the last stage is done; `evolve` takes twice as long."""
    values = dict(zip(METADATA, attrgetter(*METADATA)(metadata), strict=True))
    return MetadataPart(**values | ending(context) | {"execution_time": seconds})


def ledger(context: VerificationContext) -> tuple[LedgerEntry, ...]:
    """The recorded effects, in order."""
    rows = []
    for effect in context.effects:
        row: dict[str, Any] = {k: v for k, v in (("field", effect.field), ("verdict", effect.verdict)) if v is not None}
        if effect.verdict is False:
            row["outcome"] = effect.outcome
        rows.append(LedgerEntry(effect.stage, row, effect.reason))
    return tuple(rows)


def bare_result(context: VerificationContext) -> VerificationResult:
    """What is known for certain, for when the final stage itself failed."""
    response = context.get_artifact(CoreKeys.RAW_LLM_RESPONSE, "")
    return VerificationResult(
        metadata=metadata(context),
        generation=GenerationPart(raw_llm_response=response, usage_metadata=context.service(USAGE, dict)({})),
        ledger=ledger(context),
        trail=tuple(context.trail),
    )
