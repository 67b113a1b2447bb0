"""Rubric traits for people: those of one item, what they come to over a run; and the evidence for fields and traits."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from karenina_runs.summaries.item_rows import (
    QuotedRow,
    as_json,
    check_rows,
    embedding_text,
    metric_text,
    passages,
    quoted_rows,
    reasoning_rows,
    trait_details,
    trait_reason,
)
from karenina_vocabulary.evaluation_parts import ChecksPart, DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.quotations import Quotation
from karenina_vocabulary.rubric_part import COUNTS, RubricPart, TraitOutcome, read_traits

from karenina_core.errors import plural
from karenina_core.values.fields import is_number

from ..output import Part, Table, filled, inline

MOST_LINES = 12
"""Traits of a run that are listed for one model; chosen."""
WIDEST = 60
"""Characters of a name, or of a text that is counted; chosen."""
EXCERPT = ("excerpt", "found", "confidence", "similarity", "risk")
"""What is shown of a quotation beside what it is for."""
REASONING = 1000
"""Characters of what a judge thought about a field or a trait; chosen."""
ONE_KIND = ("regex", "metric")
"""Types whose traits are all of one kind, which need not be shown."""
INSTRUCTIONS = "instructions"
"""The detail of a metric trait that says what was found for each of them."""


def trait_parts(rubric: RubricPart) -> list[Part]:
    """Everything about the traits of one item, but for the evidence of deep judgment."""
    traits = read_traits(rubric)
    placed = any(trait.provenance not in (None, "global") for trait in traits)
    columns = ("trait", "type", "score", "state", *(["from"] if placed else []), "reason")
    rows = [
        (
            trait_name(trait.name),
            type_text(trait.type, trait.kind),
            score_text(trait),
            trait.state,
            *([trait.provenance or ""] if placed else []),
            inline(trait_reason(trait)),
        )
        for trait in traits
    ]
    return filled(Table(columns, rows, "Rubric"), *_counted(traits), *_details(traits))


def trait_totals(
    lines: Sequence[Mapping[str, Any]], without: int = 0, *, most: int | None = MOST_LINES, title: str = "Traits"
) -> list[Part]:
    """The `traits` of a model in the summary of a run: at most `most`, then what is not in the table.

    `without` is the number of items in which scores were due and no trait has one.
    """
    rows = [
        (
            trait_name(line["trait"]),
            type_text(line["type"], line["kind"]),
            _total(line),
            f"{line['ok']} of {line['n']}" + (f", {line['skipped']} skipped" if line["skipped"] else ""),
            str(line["errors"] or ""),
        )
        for line in lines[:most]
    ]
    more = len(lines) - len(rows)
    notes = [
        *([f"  and {more} more (karenina show DIRECTORY prints all of them)"] if more else []),
        *([f"  {plural(without, 'item')} without a score of any trait"] if without else []),
    ]
    table = Table(("trait", "type", "value", "scored", "errors"), rows, title)
    return filled(table, *([*notes, ""] if notes else []))


def trait_name(name: str) -> str:
    """The name of a trait as tables show it."""
    return inline(name, WIDEST)


def type_text(type_name: str | None, kind: str | None) -> str:
    """The type of a trait, and its kind where that says more."""
    return " ".join(word for word in (type_name, None if type_name in ONE_KIND else kind) if word)


def score_text(trait: TraitOutcome) -> str:
    """The score in words and numbers; empty where there is none."""
    if trait.value is None:
        return ""
    if trait.kind == "metric":
        return metric_text(trait, {name: _number(value) for name, value in trait.metrics.items()})
    if trait.kind == "template" and isinstance(trait.value, Mapping):
        return ", ".join(f"{name} {as_json(value) or 'null'}" for name, value in trait.value.items())
    value = as_json(trait.value) + (scale_text(trait.scale) if trait.kind == "score" else "")
    return value if trait.label is None else f"{inline(trait.label)} ({value})"


def _counted(traits: Iterable[TraitOutcome]) -> list[Part]:
    """What metric traits counted: by instruction where the result says it, else by count."""
    listed = [(trait, _instructions(trait)) for trait in traits]
    rows: list[tuple[str, ...]] = []
    for trait, found in listed:
        for entry in found:
            about = (trait_name(trait.name), inline(entry.get("instruction", "")))
            rows.append((*about, str(entry.get("bucket", "")), inline(passages(entry.get("excerpts")))))
            if entry.get("wrong_attempts"):
                rows.append((*about, "fp", inline(passages(entry["wrong_attempts"]))))
    plain = [
        (trait_name(trait.name), bucket, inline(text))
        for trait, found in listed
        for bucket in (COUNTS if not found else ())
        for text in trait.confusion.get(bucket) or ()
    ]
    title = "What metric traits counted"
    return [
        Table(("trait", "instruction", "counted as", "passages"), rows, title),
        Table(("trait", "counted as", "text"), plain, title),
    ]


def _instructions(trait: TraitOutcome) -> list[Mapping[str, Any]]:
    found = trait.details.get(INSTRUCTIONS) if trait.kind == "metric" else None
    return [entry for entry in found if isinstance(entry, Mapping)] if isinstance(found, list | tuple) else []


def _details(traits: Iterable[TraitOutcome]) -> list[Part]:
    """Lists of records as tables of their own, everything else in one."""
    plain: list[tuple[str, str, str]] = []
    tables: list[Part] = []
    for trait in traits:
        texts, records = trait_details(trait)
        plain += [(trait_name(trait.name), trait_name(name), inline(text)) for name, text in texts]
        for name, columns, rows in records:
            if name != INSTRUCTIONS or not _instructions(trait):  # they are in another table
                cells = [[inline(cell) for cell in row] for row in rows]
                tables.append(Table(columns, cells, f"{trait_name(trait.name)}: {trait_name(name)}"))
    return [Table(("trait", "detail", "value"), plain, "Details"), *tables]


def _total(line: Mapping[str, Any]) -> str:
    if not line["ok"]:
        return ""
    if "classes" in line:
        counts = sorted(line["classes"].items(), key=lambda pair: -pair[1])
        return ", ".join(f"{name} {count}" for name, count in counts if count)
    if "texts" in line:
        counted = [f"{inline(text, WIDEST)} {count}" for text, count in line["texts"].items()]
        return ", ".join([*counted, *([f"and {line['other_texts']} more"] if line["other_texts"] else [])])
    if "metrics" in line:
        return ", ".join(f"{name} {_number(value)}" for name, value in line["metrics"].items())
    if line.get("rate") is not None:
        worse = " (lower is better)" if line["higher_is_better"] is False else ""
        return f"true {100 * line['rate']:.1f} %{worse}"
    if line.get("mean") is not None:
        worse = ", lower is better" if line["higher_is_better"] is False else ""
        return f"mean {_number(line['mean'])}{scale_text(line)}{worse}"
    return ""


def scale_text(scale: Mapping[str, Any]) -> str:
    """` of 1-5`; nothing where the ends of the scale are not known."""
    low: Any = scale.get("min")
    high: Any = scale.get("max")
    if not is_number(low) or not is_number(high):
        return ""
    return f" of {low} to {high}" if low < 0 else f" of {low}-{high}"


def _number(value: Any) -> str:
    return f"{value:.2f}" if is_number(value) else "n/a"


def checks(part: ChecksPart) -> list[Part]:
    """The checks that were performed, with their reasons."""
    rows = [(name, found, inline(reason)) for name, found, reason in check_rows(part)]
    return filled(Table(("check", "result", "reason"), rows, "Checks"))


def embedding(part: TemplatePart) -> list[Part]:
    """What the embedding check found, in one line."""
    found = embedding_text(part)
    return [f"Embedding check ({part.embedding_model_used}): {found}", ""] if found else []


def excerpts(part: DeepJudgmentPart, quoted: Sequence[Quotation]) -> list[Part]:
    """The evidence for every field; `quoted` are the quotations of the result."""
    risks = part.hallucination_risk_assessment or {}
    title = f"Evidence (deep judgment, {part.deep_judgment_mode})"
    own = [row for row in quoted_rows(quoted) if row.kind == "field"]
    rows = _rows(own, part.attributes_without_excerpts, part.attributes_with_invented_excerpts, risks)
    return filled(
        Table(("field", *EXCERPT), rows, title),
        _looked_up("field", own),
        Table(("field", "risk", "reasoning"), _reasoning(part), "Reasoning"),
    )


def trait_excerpts(part: DeepJudgmentRubricPart, quoted: Sequence[Quotation]) -> list[Part]:
    """The evidence for every trait that was judged deeply; the risk of a trait is beside its reasoning."""
    own = [row for row in quoted_rows(quoted) if row.kind == "trait"]
    rows = _rows(own, part.traits_without_valid_excerpts, part.traits_with_invented_excerpts, {})
    deep, standard = part.deep_judgment_rubric_scores, part.standard_rubric_scores
    scores = [(trait_name(name), str(deep[name]), str(standard[name])) for name in deep if name in standard]
    return filled(
        Table(("trait", "deep judgment", "standard"), scores, "Scores of traits that were judged in both ways"),
        Table(("trait", *EXCERPT), rows, "Evidence for traits (deep judgment)"),
        _looked_up("trait", own),
        Table(("trait", "risk", "reasoning"), _reasoning(part), "Reasoning about traits"),
    )


def _reasoning(part: DeepJudgmentPart | DeepJudgmentRubricPart) -> list[tuple[str, str, str]]:
    return [(trait_name(name), risk, inline(text, REASONING)) for name, risk, text in reasoning_rows(part)]


def _rows(
    found: Sequence[QuotedRow], without: Sequence[str], invented: Sequence[str], risks: Mapping[str, Any]
) -> list[tuple[str, ...]]:
    """A row for each excerpt, and for each name that has none, or only invented ones."""
    rows: list[tuple[str, ...]] = []
    for row in found:
        left_out = f" (leaves out: {inline(row.left_out, 100)})" if row.left_out else ""
        shown = inline(row.text or f"({row.explanation or 'none'})") + left_out
        risk = row.risk or str(risks.get(row.name, ""))
        rows.append((trait_name(row.name), shown, row.place, row.confidence, row.similarity, risk))
    names = {row.name for row in found}
    named = {name: "(only invented ones)" if name in invented else "(none)" for name in without}
    return rows + [(trait_name(name), none, "", "", "", "") for name, none in named.items() if name not in names]


def _looked_up(kind: str, quoted: Sequence[QuotedRow]) -> Table:
    """What a search found about quotations, and what the judge made of it."""
    rows = [
        (trait_name(row.name), inline(row.text, 60), inline(row.search), inline(row.justification))
        for row in quoted
        if row.search or row.justification
    ]
    return Table((kind, "excerpt", "search", "why this risk"), rows, f"What was looked up for {kind}s")
