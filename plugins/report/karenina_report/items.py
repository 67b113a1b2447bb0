"""One item as the page shows it: everything that is stored about it, in the order in which a person asks."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple
from urllib.parse import quote

from attrs import frozen
from karenina_runs.summaries.details import check_rows, embedding_text, facts, field_rows, pattern_rows, remarks
from karenina_runs.summaries.details import shown_messages as read_messages
from karenina_runs.workspaces.workspace_capture import WORKSPACES
from karenina_vocabulary.explanations import caveats_of, why
from karenina_vocabulary.quotations import Piece, judged_text, pieces, quotations

from karenina_core import VerificationResult
from karenina_core.errors import plural
from karenina_core.values.result import MetadataPart

from .evidence import Evidence, evidence_of
from .outcomes import CAVEATS, KINDS, OutcomeKind
from .texts import cut, number, seconds, usage_cells, value
from .traits import TraitView, trait_views

Rows = Sequence[Sequence[str]]
MARKS = {True: ("right", "✓ right"), False: ("wrong", "✗ wrong"), None: ("missing", "– not found")}
NOT_COMPARED = ("", "not compared")


@frozen
class Sibling:
    """Another answer to the same question."""

    anchor: str
    outcome: OutcomeKind
    label: str


@frozen(kw_only=True)
class Text:
    """A text of a model, cut where it is very long."""

    pieces: Sequence[Piece]
    left_out: int = 0


@frozen
class Field:
    """One field of the template."""

    name: str
    expected: str
    extracted: str
    mark: str
    comparison: str
    score: str


class Block(NamedTuple):
    """What a message says, thinks, asks of a tool, or brings back from one."""

    label: str
    text: str
    left_out: int = 0


class ShownMessage(NamedTuple):
    """One message."""

    role: str
    blocks: tuple[Block, ...]


@frozen(kw_only=True)
class Item:
    """What the template of an item needs."""

    anchor: str
    outcome: OutcomeKind
    detail: str
    metadata: MetadataPart
    reason: str
    answer: Text
    raw_answer: Text | None
    """The whole reply, where the judge read something else."""
    error: str
    caveats: Sequence[tuple[str, str]]
    """Name and meaning."""
    notes: Sequence[str]
    fields: Sequence[Field]
    granular: str
    patterns: Rows
    checks: Rows
    embedding: str
    evidence: Evidence
    traits: Sequence[TraitView]
    skipped: Sequence[TraitView]
    investigation: str
    ledger: Rows
    trail: Sequence[tuple[str, str, str, str]]
    sent: Sequence[ShownMessage]
    trace: Sequence[ShownMessage]
    usage: Rows
    facts: Rows
    extensions: str
    siblings: Sequence[Sibling]


def anchors(results: Iterable[VerificationResult]) -> list[str]:
    """`item-<result id>` for every result, each once on the page; what an address cannot hold is encoded."""
    found: dict[str, None] = {}
    for result in results:
        name = plain = f"item-{quote(result.metadata.result_id, safe='', errors='replace')}"
        number = 1
        while name in found:
            number += 1
            name = f"{plain}.{number}"
        found[name] = None
    return list(found)


def item_view(
    result: VerificationResult,
    anchor: str,
    siblings: Sequence[Sibling] = (),
    workspace: Mapping[str, Any] | None = None,
) -> Item:
    """Everything about one result; `workspace` is what the run says about the files that its agent left."""
    metadata, generation, template = result.metadata, result.generation, result.template
    read = judged_text(result)
    found = quotations(result, read)
    views = trait_views(result.rubric) if result.rubric else []
    fields, patterns = [], []
    if template:
        for row in field_rows(template):
            comparison = MARKS[row.right] if row.compared else NOT_COMPARED
            fields.append(Field(row.name, row.expected, row.extracted, *comparison, _score(row.score)))
        marks = ("✗ not met", "✓ met")
        patterns = [(name, marks[met], *cells) for name, met, *cells in pattern_rows(template)]
    return Item(
        anchor=anchor,
        outcome=KINDS[metadata.outcome],
        detail=metadata.outcome_detail or "",
        metadata=metadata,
        reason=why(result),
        answer=_text(read, found),
        raw_answer=None if read == generation.raw_llm_response else _text(generation.raw_llm_response),
        error=metadata.error or "",
        caveats=[(name, CAVEATS.get(name, "")) for name in caveats_of(result)],
        notes=remarks(result),
        fields=fields,
        granular=_score(template.verify_granular_result if template else None),
        patterns=patterns,
        checks=check_rows(result.checks),
        embedding=embedding_text(template, f" by {template.embedding_model_used}") if template else "",
        evidence=evidence_of(result, found),
        traits=[view for view in views if view.state != "skipped"],
        skipped=[view for view in views if view.state == "skipped"],
        investigation=(template.investigation_trace or "") if template else "",
        ledger=[(entry.stage, value(entry.effect), entry.reason) for entry in result.ledger],
        trail=[(entry.stage, entry.status, seconds(entry.seconds), entry.reason) for entry in result.trail],
        sent=_messages(generation.conversation_context),
        trace=_messages(generation.trace_messages),
        usage=[
            (f"{task} (shared)" if row.get("cached") else task, str(row.get("model") or ""), *usage_cells(row))
            for task, row in generation.usage_metadata.items()
            if isinstance(row, Mapping) and row
        ],
        facts=_facts(result, workspace or {}),
        extensions=value(result.added) if result.added else "",
        siblings=siblings,
    )


def _text(text: str, found: Iterable[Any] = ()) -> Text:
    kept, left_out = cut(text)
    return Text(pieces=pieces(kept, found), left_out=left_out)


def _score(found: float | None) -> str:
    return "" if found is None else number(float(found))


def _facts(result: VerificationResult, workspace: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Who answered and judged, the facts that `karenina show` gives too, and where the files of the agent are."""
    metadata, metrics = result.metadata, result.generation.agent_metrics
    details = {
        "answering model": metadata.answering_model,
        "judge": metadata.parsing_model,
        "replicate": str(metadata.replicate),
        "took": seconds(metadata.execution_time),
    }
    found = [*details.items(), *facts(result), *([("agent", value(metrics))] if metrics else [])]
    if workspace.get("destination"):
        count = workspace.get("copied_file_count")
        files = f" ({plural(count, 'file')})" if isinstance(count, int) else ""
        found.append(("workspace", f"{WORKSPACES}/{workspace['destination']}{files}"))
        found += [("not kept", str(error)) for error in workspace.get("copy_errors") or ()]
    elif workspace:
        found.append(("workspace", f"not kept: {workspace.get('skip_reason') or 'no reason is known'}"))
    return found


def _messages(rows: Iterable[Mapping[str, Any]]) -> list[ShownMessage]:
    """Messages in either form that results store; what is of no form as JSON."""
    return [
        ShownMessage(message.role, tuple(Block(block.label, *cut(block.text)) for block in message.blocks))
        for message in read_messages(rows)
    ]
