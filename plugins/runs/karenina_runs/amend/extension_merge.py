"""A finished item with the scores of more traits: what they add, and nothing else that was there."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from typing import Any, TypeVar

from attrs import evolve, fields
from karenina_calls.usage_totals import usage_sum
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core.values.config import EvaluationMode
from karenina_core.values.outcome import Effect, fold, nothing_scored, outcome_of
from karenina_core.values.result import LedgerEntry, TrailEntry, VerificationResult
from karenina_core.values.result_parts import result_parts

P = TypeVar("P")
ERROR = "error"


def merged(
    row: VerificationResult,
    scored: VerificationResult,
    traits: Collection[str],
    stages: Collection[str],
    mode: EvaluationMode,
) -> VerificationResult:
    """The row with what the stages of rubrics, of these names, say about more traits in `scored`.

    Identity, times, answer, checks, template and the scores that were there stay as they are. What the traits took is
    added to `usage_metadata`, `retry_counts` and `execution_time`; their warnings, trail and effects follow those of
    the row. The mode becomes that of the run.
    """
    about, more = row.metadata, scored.metadata
    failed = _failed(scored, traits)
    rubric = scored.rubric if failed is None else _joined(scored.rubric, failed)
    counts = (about.retry_counts, more.retry_counts)
    error = [] if more.error is None else [f"the traits that were added: {more.error}"]
    usage = usage_sum(row.generation.usage_metadata, scored.generation.usage_metadata)
    known = result_parts()
    more_parts = {  # those that only their own packages know, and that the row does not have
        name: part
        for name, part in scored.parts.items()
        if row.parts.get(name) is None and not (name in known and known[name].has_columns)
    }
    result = evolve(
        row,
        metadata=evolve(
            about,
            evaluation_mode=mode,
            execution_time=about.execution_time + more.execution_time,
            retry_counts={name: sum(c.get(name, 0) for c in counts) for name in (*counts[0], *counts[1])},
            warnings=(*about.warnings, *error, *(line for line in more.warnings if line not in about.warnings)),
            caveats=tuple(dict.fromkeys((*about.caveats, *more.caveats))),
        ),
        generation=evolve(row.generation, usage_metadata=usage),
        rubric=_joined(row.rubric, rubric),
        deep_judgment_rubric=_joined(row.deep_judgment_rubric, scored.deep_judgment_rubric),
        trail=_trail(row.trail, [entry for entry in scored.trail if entry.stage in stages]),
        parts={**row.parts, **more_parts},
        extensions=_tables(scored.extensions, row.extensions),
    )
    declined = row.checks.abstention_detected is True
    effects = [] if declined else [entry for entry in scored.ledger if entry.stage in stages]
    if mode == "rubric_only" and (about.outcome != ERROR or _nothing_scored(row) is not None):
        return _decided(result, effects, mode, _nothing_scored(result))
    kept = (about.outcome_detail or "", about.error) if about.outcome == ERROR else None
    return _decided(result, effects, mode, kept) if effects else result


def _failed(scored: VerificationResult, traits: Collection[str]) -> RubricPart | None:
    """A part that says of traits which were not scored because of an error that this is so."""
    known = (scored.rubric or RubricPart()).trait_states
    missing = [name for name in traits if name not in known]
    if scored.metadata.error is None or not missing:
        return None
    failed = {"state": ERROR, "reason": scored.metadata.error, "kind": scored.metadata.outcome_detail or "stage"}
    return RubricPart(trait_states=dict.fromkeys(missing, failed))


def _joined(there: P | None, more: P | None) -> P | None:
    """Both parts in one: tables and lists together, numbers added up, and what one of them says where one says
    something; that which was there first."""
    if there is None or more is None:
        return more if there is None else there
    values: dict[str, Any] = {}
    for name in (attribute.name for attribute in fields(type(there))):  # type: ignore[arg-type]  # an attrs class
        one, other = getattr(there, name), getattr(more, name)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            nested = all(isinstance(value, Mapping) for value in (*one.values(), *other.values()))
            values[name] = _tables(one, other) if nested else {**one, **other}
        elif isinstance(one, tuple) and isinstance(other, tuple):
            values[name] = (*one, *(item for item in other if item not in one))
        elif isinstance(one, int) and isinstance(other, int) and not isinstance(one, bool):
            values[name] = one + other
        else:
            values[name] = other if one is None or one is False else one
    return type(there)(**values)


def _tables(there: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Tables of tables: an entry that both have holds what both say of it."""
    return {**there, **{name: {**there.get(name, {}), **table} for name, table in more.items()}}


def _trail(trail: Sequence[TrailEntry], more: Sequence[TrailEntry]) -> tuple[TrailEntry, ...]:
    """With what the stages of rubrics did: in their place, or before the stage that ends every item."""
    rows = {entry.stage: entry for entry in trail}
    for entry in more:
        before = rows.get(entry.stage)
        if before is None or before.status == "skipped":
            rows[entry.stage] = entry
        elif entry.status != "skipped":
            reason = "; then ".join(text for text in (before.reason, entry.reason) if text)
            rows[entry.stage] = TrailEntry(before.stage, before.status, reason, before.seconds + entry.seconds)
    last = list(rows)[len(trail) - 1 : len(trail)]
    order = [*(name for name in rows if name not in last), *last]
    return tuple(rows[name] for name in order)


def _nothing_scored(result: VerificationResult) -> tuple[str, str] | None:
    return nothing_scored(result.rubric.trait_states) if result.rubric is not None else None


def _decided(
    result: VerificationResult, more: Sequence[LedgerEntry], mode: EvaluationMode, error: tuple[str, str | None] | None
) -> VerificationResult:
    """The verdict with the effects of more traits: some of them fail an answer. `error` is its kind and message."""
    about, ledger = result.metadata, (*result.ledger, *more)
    verdict = fold(
        Effect(row.stage, effect.get("field"), effect.get("verdict"), row.reason, effect.get("outcome", "failed"))
        for row in ledger
        for effect in (row.effect,)
    )
    kind, message = error or (None, None)
    outcome = outcome_of(verdict, error_kind=kind, evaluates_template=mode != "rubric_only")
    return evolve(
        result,
        ledger=ledger,
        metadata=evolve(
            about,
            outcome=outcome.name,
            outcome_detail=outcome.detail,
            completed_without_errors=error is None,
            error=message,
        ),
        template=None if result.template is None else evolve(result.template, verify_result=verdict.verdict),
    )
