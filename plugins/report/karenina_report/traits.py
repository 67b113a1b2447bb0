"""The traits of one item as the page shows them. `read_traits` decides what a score is; nothing is read again here."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen
from karenina_runs.results.item_rows import is_records, metric_text, record_columns, trait_reason
from karenina_vocabulary.rubric_part import COUNTS, FAILED, LABEL, RubricPart, TraitOutcome, read_traits

from .texts import number, value

__all__ = ["TraitView", "on_scale", "shown_score", "trait_views"]


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
    return [_view(trait, rubric.agentic_trait_investigation_traces) for trait in read_traits(rubric)]


def on_scale(scale: Mapping[str, Any]) -> str:
    """` of 1 to 5`; nothing where the ends of the scale are not known."""
    low, high = scale.get("min"), scale.get("max")
    return "" if low is None or high is None else f" of {low} to {high}"


def shown_score(trait: TraitOutcome) -> str:
    """The score in words and numbers; empty where there is none."""
    if trait.value is None:
        return ""
    if trait.kind == "metric":
        return metric_text(trait, {name: number(found) for name, found in trait.metrics.items()})
    if trait.kind == "template" and isinstance(trait.value, Mapping):
        return ", ".join(f"{name} {value(found)}" for name, found in trait.value.items())
    if trait.kind == "literal" and trait.label is not None:
        return trait.label
    found = value(trait.value) + (on_scale(trait.scale) if trait.kind == "score" else "")
    return found if trait.label is None else f"{trait.label} ({found})"


def _view(trait: TraitOutcome, traces: Mapping[str, Any]) -> TraitView:
    plain = [(name, found) for name, found in trait.details.items() if not is_records(found)]
    is_judged = isinstance(trait.value, bool) and trait.higher_is_better is not None
    return TraitView(
        name=trait.name,
        type=" ".join(word for word in (trait.type, trait.kind if trait.kind != trait.type else None) if word),
        score=shown_score(trait),
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
        investigation=str(traces.get(trait.name) or ""),
    )


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
