"""One item as the page shows it: everything that is stored about it, in the order in which a person asks."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import SimpleNamespace
from typing import Any

from karenina_cli.show.traits import score_text, type_text
from karenina_runs.summaries.details import facts, remarks, shown_messages, workspace_text
from karenina_runs.summaries.item_rows import (
    as_json,
    check_rows,
    embedding_text,
    field_rows,
    pattern_rows,
    quoted_rows,
    reasoning_rows,
    trait_details,
    trait_reason,
)
from karenina_runs.workspaces.workspace_capture import WORKSPACES
from karenina_vocabulary.explanations import caveats_of, why
from karenina_vocabulary.quotations import judged_text, pieces, quotations
from karenina_vocabulary.rubric_part import COUNTS, FAILED, RubricPart, TraitOutcome, read_traits

from karenina_core import VerificationResult

from .calls import ItemCalls
from .listing import Sibling
from .outcomes import CAVEATS, KINDS
from .texts import cut, number, seconds, usage_cells

MARKS = {True: ("right", "✓ right"), False: ("wrong", "✗ wrong"), None: ("missing", "– not found")}
NOT_COMPARED = ("", "not compared")
MET = {True: "✓ met", False: "✗ not met"}


def item_view(
    result: VerificationResult,
    anchor: str,
    siblings: tuple[Sequence[Sibling], int] = ((), 0),
    workspace: Mapping[str, Any] | None = None,
    calls: ItemCalls = ItemCalls(),  # noqa: B008  # it cannot change
    traits: Sequence[TraitOutcome] | None = None,
) -> SimpleNamespace:
    """Everything about one result, as `item.html` names it; `siblings` are as `Listing` gives them, `workspace` is
    what the run says about the files that its agent left, `calls` are those that the page has of it, and `traits` those
    of the result where they have been read.
    """
    metadata, generation, template = result.metadata, result.generation, result.template
    read = judged_text(result)
    found = quotations(result, read)
    text, left_out = cut(read)
    outcomes = read_traits(result.rubric) if traits is None else traits
    shown_traits = [_trait(trait, result.rubric) for trait in outcomes] if result.rubric else []
    return SimpleNamespace(
        anchor=anchor,
        outcome=KINDS[metadata.outcome],
        detail=metadata.outcome_detail or "",
        metadata=metadata,
        reason=why(result),
        answer=pieces(text, found),
        left_out=left_out,
        raw_answer=None if read == generation.raw_llm_response else generation.raw_llm_response,
        error=metadata.error or "",
        caveats=[(name, CAVEATS.get(name, "")) for name in caveats_of(result)],
        notes=remarks(result),
        fields=[
            (row, *(MARKS[row.right] if row.compared else NOT_COMPARED), _score(row.score))
            for row in (field_rows(template) if template else ())
        ],
        granular=_score(template.verify_granular_result if template else None),
        patterns=[(name, MET[met], *cells) for name, met, *cells in (pattern_rows(template) if template else ())],
        checks=check_rows(result.checks),
        embedding=embedding_text(template, f" by {template.embedding_model_used}") if template else "",
        **_evidence(result),
        quoted=quoted_rows(found),
        traits=[trait for trait in shown_traits if trait.state != "skipped"],
        skipped=[trait for trait in shown_traits if trait.state == "skipped"],
        investigation=(template.investigation_trace or "") if template else "",
        ledger=[(entry.stage, as_json(entry.effect), entry.reason) for entry in result.ledger],
        trail=[(entry.stage, entry.status, seconds(entry.seconds), entry.reason) for entry in result.trail],
        sent=shown_messages(generation.conversation_context),
        trace=shown_messages(generation.trace_messages),
        usage=[
            (f"{task} (shared)" if row.get("cached") else task, str(row.get("model") or ""), *usage_cells(row))
            for task, row in generation.usage_metadata.items()
            if isinstance(row, Mapping) and row
        ],
        calls=calls,
        facts=_facts(result, workspace or {}),
        extensions=as_json(result.added) if result.added else "",
        siblings=siblings[0],
        more_siblings=siblings[1],
    )


def _score(found: float | None) -> str:
    return "" if found is None else number(float(found))


def _evidence(result: VerificationResult) -> dict[str, Any]:
    """What deep judgment concluded; what no quotation was found for, and what only invented ones were given for."""
    fields, traits = result.deep_judgment, result.deep_judgment_rubric
    found: dict[str, list[Any]] = {"reasoning": [], "without": [], "invented": []}
    for kind, part in (("field", fields), ("trait", traits)):
        if part is not None:
            found["reasoning"] += [(f"{kind} {name}", risk, text) for name, risk, text in reasoning_rows(part)]
    if fields is not None:
        found["without"] += [f"field {name}" for name in fields.attributes_without_excerpts]
        found["invented"] += [f"field {name}" for name in fields.attributes_with_invented_excerpts]
    if traits is not None:
        found["without"] += [f"trait {name}" for name in traits.traits_without_valid_excerpts]
        found["invented"] += [f"trait {name}" for name in traits.traits_with_invented_excerpts]
    return found


def _trait(trait: TraitOutcome, rubric: RubricPart) -> SimpleNamespace:
    """One trait. `failed`: it should have a score and has none; `good`: of a boolean, whether the score is the better
    one, None where the scale does not say."""
    texts, tables = trait_details(trait)
    counted = [[bucket, str(text)] for bucket in COUNTS for text in trait.confusion.get(bucket) or ()]
    records = [(name.replace("_", " "), columns, rows) for name, columns, rows in tables]
    if counted and not records:
        records.append(("what was counted", ["counted as", "text"], counted))
    is_judged = isinstance(trait.value, bool) and trait.higher_is_better is not None
    return SimpleNamespace(
        name=trait.name,
        type=type_text(trait.type, trait.kind),
        score=score_text(trait),
        state=trait.state,
        failed=trait.state in FAILED,
        good=(trait.value == trait.higher_is_better) if is_judged else None,
        reason=trait_reason(trait),
        provenance=(trait.provenance or "").replace("_", " "),
        details=[(name.replace("_", " "), text) for name, text in texts],
        records=records,
        investigation=str(rubric.agentic_trait_investigation_traces.get(trait.name) or ""),
    )


def _facts(result: VerificationResult, workspace: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Who answered and judged, the facts that `karenina show` gives too, and where the files of the agent are."""
    metadata, metrics = result.metadata, result.generation.agent_metrics
    return [
        ("answering model", metadata.answering_model),
        ("judge", metadata.parsing_model),
        ("replicate", str(metadata.replicate)),
        ("took", seconds(metadata.execution_time)),
        *facts(result),
        *([("agent", as_json(metrics))] if metrics else []),
        *([("workspace", workspace_text(workspace, WORKSPACES))] if workspace else []),
        *(("not kept", str(error)) for error in workspace.get("copy_errors") or ()),
    ]
