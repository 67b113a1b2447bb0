"""The traits of one item as the page shows them. `read_traits` decides what a score is; nothing is read again here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen
from karenina_cli.show.traits import score_text, type_text
from karenina_runs.summaries.details import is_records, record_columns, trait_reason
from karenina_vocabulary.rubric_part import COUNTS, FAILED, LABEL, RubricPart, TraitOutcome, read_traits

from .texts import value


@frozen(kw_only=True)
class TraitView:
    """One trait of an item."""

    name: str
    type: str
    score: str
    state: str
    failed: bool
    """Whether it should have a score and has none."""
    good: bool | None
    """Of a boolean: whether the score is the better one; None where the scale does not say."""
    reason: str
    provenance: str
    details: Sequence[tuple[str, str]]
    records: Sequence[tuple[str, Sequence[str], Sequence[Sequence[str]]]]
    """Details that are lists of records: title, columns, rows."""
    investigation: str


def trait_views(rubric: RubricPart) -> list[TraitView]:
    """Every trait that the result speaks of."""
    views = []
    for trait in read_traits(rubric):
        plain = [(name, found) for name, found in trait.details.items() if not is_records(found)]
        is_judged = isinstance(trait.value, bool) and trait.higher_is_better is not None
        views.append(
            TraitView(
                name=trait.name,
                type=type_text(trait.type, trait.kind),
                score=score_text(trait),
                state=trait.state,
                failed=trait.state in FAILED,
                good=(trait.value == trait.higher_is_better) if is_judged else None,
                reason=trait_reason(trait),
                provenance=(trait.provenance or "").replace("_", " "),
                details=[
                    (name.replace("_", " "), found if isinstance(found, str) else value(found))
                    for name, found in plain
                    if not (name == LABEL and found == trait.label)
                ],
                records=list(_records(trait)),
                investigation=str(rubric.agentic_trait_investigation_traces.get(trait.name) or ""),
            )
        )
    return views


def _records(trait: TraitOutcome) -> Iterator[tuple[str, list[str], list[list[str]]]]:
    for name, found in trait.details.items():
        if is_records(found):
            columns = record_columns(found)
            yield name.replace("_", " "), columns, [[_cell(entry.get(column)) for column in columns] for entry in found]
    counted = [[bucket, str(text)] for bucket in COUNTS for text in trait.confusion.get(bucket) or ()]
    if counted and not any(is_records(found) for found in trait.details.values()):
        yield "what was counted", ["counted as", "text"], counted


def _cell(found: Any) -> str:
    if isinstance(found, list | tuple) and all(isinstance(entry, Mapping) and "text" in entry for entry in found):
        return "; ".join(f"“{e['text']}”{'' if e.get('found', True) else ' (not in the answer)'}" for e in found)
    return found if isinstance(found, str) else value(found)
