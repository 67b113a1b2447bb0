"""What `karenina show` says beside fields and traits: checks, the embedding check, the evidence of deep judgment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karenina_runs.results.item_rows import QuotedRow, check_rows, embedding_text, quoted_rows, reasoning_rows
from karenina_vocabulary.evaluation_parts import ChecksPart, DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.quotations import Quotation

from ..output import Part, Table, filled, inline
from .traits import trait_name

EXCERPT = ("excerpt", "found", "confidence", "similarity", "risk")
REASONING = 1000
"""Characters of what a judge thought about a field or a trait."""


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
