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

__all__ = ["merged"]

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
    retries = {k: about.retry_counts.get(k, 0) + more.retry_counts.get(k, 0) for k in _keys(about, more)}
    told = [] if more.error is None else [f"the traits that were added: {more.error}"]
    usage = usage_sum(row.generation.usage_metadata, scored.generation.usage_metadata)
    result = evolve(
        row,
        metadata=evolve(
            about,
            evaluation_mode=mode,
            execution_time=about.execution_time + more.execution_time,
            retry_counts=retries,
            warnings=(*about.warnings, *told, *(line for line in more.warnings if line not in about.warnings)),
            caveats=tuple(dict.fromkeys((*about.caveats, *more.caveats))),
        ),
        generation=evolve(row.generation, usage_metadata=usage),
        rubric=_joined(row.rubric, rubric),
        deep_judgment_rubric=_joined(row.deep_judgment_rubric, scored.deep_judgment_rubric),
        trail=_trail(row.trail, [entry for entry in scored.trail if entry.stage in stages]),
        parts={**row.parts, **_added(row, scored)},
        extensions=_tables(scored.extensions, row.extensions),
    )
    declined = row.checks.abstention_detected is True
    effects = [] if declined else [entry for entry in scored.ledger if entry.stage in stages]
    if mode == "rubric_only" and (about.outcome != ERROR or _nothing_scored(row) is not None):
        return _decided(result, effects, mode, _nothing_scored(result))
    kept = (about.outcome_detail or "", about.error) if about.outcome == ERROR else None
    return _decided(result, effects, mode, kept) if effects else result


def _added(row: VerificationResult, scored: VerificationResult) -> dict[str, Any]:
    """The parts that the row has not, of those that only their own packages know."""
    known = result_parts()
    return {
        name: part
        for name, part in scored.parts.items()
        if row.parts.get(name) is None and not (name in known and known[name].has_columns)
    }


def _failed(scored: VerificationResult, traits: Collection[str]) -> RubricPart | None:
    """A part that says of traits which nobody came to score, because of an error, that this is so."""
    known = (scored.rubric or RubricPart()).trait_states
    missing = [name for name in traits if name not in known]
    if scored.metadata.error is None or not missing:
        return None
    failed = {"state": ERROR, "reason": scored.metadata.error, "kind": scored.metadata.outcome_detail or "stage"}
    return RubricPart(trait_states=dict.fromkeys(missing, failed))


def _keys(*parts: Any) -> list[str]:
    return list(dict.fromkeys(name for part in parts for name in part.retry_counts))


def _joined(there: P | None, more: P | None) -> P | None:
    """Both parts in one: tables and lists together, numbers added up, and what one of them says where one says
    something; that which was there first."""
    if there is None or more is None:
        return more if there is None else there
    names = [attribute.name for attribute in fields(type(there))]  # type: ignore[arg-type]  # both are attrs classes
    values = {name: _both(getattr(there, name), getattr(more, name)) for name in names}
    return type(there)(**values)


def _both(there: Any, more: Any) -> Any:
    if isinstance(there, Mapping) and isinstance(more, Mapping):
        nested = all(isinstance(value, Mapping) for value in (*there.values(), *more.values()))
        return _tables(there, more) if nested else {**there, **more}
    if isinstance(there, tuple) and isinstance(more, tuple):
        return (*there, *(item for item in more if item not in there))
    if isinstance(there, int) and isinstance(more, int) and not isinstance(there, bool):
        return there + more
    return more if there is None or there is False else there


def _tables(there: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Tables of tables: an entry that both have holds what both say of it."""
    return {**there, **{name: {**there.get(name, {}), **table} for name, table in more.items()}}


def _trail(trail: Sequence[TrailEntry], more: Sequence[TrailEntry]) -> tuple[TrailEntry, ...]:
    """With what the stages of rubrics did: where they stand, or before the stage that ends every item."""
    rows = {entry.stage: entry for entry in trail}
    for entry in more:
        before = rows.get(entry.stage)
        rows[entry.stage] = entry if before is None or before.status == "skipped" else _again(before, entry)
    last = list(rows)[len(trail) - 1 : len(trail)]
    order = [*(name for name in rows if name not in last), *last]
    return tuple(rows[name] for name in order)


def _again(before: TrailEntry, more: TrailEntry) -> TrailEntry:
    if more.status == "skipped":
        return before
    reason = "; then ".join(text for text in (before.reason, more.reason) if text)
    return TrailEntry(before.stage, before.status, reason, before.seconds + more.seconds)


def _nothing_scored(result: VerificationResult) -> tuple[str, str] | None:
    return nothing_scored(result.rubric.trait_states) if result.rubric is not None else None


def _decided(
    result: VerificationResult, more: Sequence[LedgerEntry], mode: EvaluationMode, error: tuple[str, str | None] | None
) -> VerificationResult:
    """The verdict with the effects of more traits: some of them fail an answer. `error` is its kind and message."""
    about, ledger = result.metadata, (*result.ledger, *more)
    verdict = fold(map(_effect, ledger))
    kind, told = error or (None, None)
    outcome = outcome_of(verdict, error_kind=kind, evaluates_template=mode != "rubric_only")
    return evolve(
        result,
        ledger=ledger,
        metadata=evolve(
            about,
            outcome=outcome.name,
            outcome_detail=outcome.detail,
            completed_without_errors=error is None,
            error=told,
        ),
        template=None if result.template is None else evolve(result.template, verify_result=verdict.verdict),
    )


def _effect(entry: LedgerEntry) -> Effect:
    said = entry.effect
    return Effect(entry.stage, said.get("field"), said.get("verdict"), entry.reason, said.get("outcome", "failed"))
