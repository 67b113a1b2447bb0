"""What `karenina show` says beside fields and traits: checks, the embedding check, the evidence of deep judgment."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from karenina_runs.summaries.details import as_json, check_rows, embedding_text, reasoning_rows
from karenina_vocabulary.evaluation_parts import ChecksPart, DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.quotations import Quotation

from karenina_core.values.fields import is_number

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
    own = [quotation for quotation in quoted if quotation.kind == "field"]
    rows = _rows(own, part.attributes_without_excerpts, part.attributes_with_invented_excerpts, risks)
    return filled(
        Table(("field", *EXCERPT), rows, title),
        _looked_up("field", own),
        Table(("field", "risk", "reasoning"), _reasoning(part), "Reasoning"),
    )


def trait_excerpts(part: DeepJudgmentRubricPart, quoted: Sequence[Quotation]) -> list[Part]:
    """The evidence for every trait that was judged deeply; the risk of a trait is beside its reasoning."""
    own = [quotation for quotation in quoted if quotation.kind == "trait"]
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
    found: Sequence[Quotation], without: Sequence[str], invented: Sequence[str], risks: Mapping[str, Any]
) -> list[tuple[str, ...]]:
    """A row for each excerpt, and for each name that has none, or only invented ones."""
    rows: list[tuple[str, ...]] = []
    for quotation in found:
        facts = quotation.facts
        text, similarity, left_out = facts.get("text"), facts.get("similarity_score"), facts.get("left_out")
        shown = inline(text or f"({facts.get('explanation', 'none')})")
        if isinstance(left_out, list | tuple) and left_out:
            shown += f" (leaves out: {inline('; '.join(map(str, left_out)), 100)})"
        place = "yes" if quotation.span is not None else "in the trace" if quotation.in_trace else "no"
        rows.append(
            (
                trait_name(quotation.name),
                shown,
                place if text else "",
                str(facts.get("confidence", "")),
                f"{similarity:.2f}" if is_number(similarity) else "",
                str(facts.get("hallucination_risk") or risks.get(quotation.name, "")),
            )
        )
    names = {quotation.name for quotation in found}
    named = {name: "(only invented ones)" if name in invented else "(none)" for name in without}
    return rows + [(trait_name(name), none, "", "", "", "") for name, none in named.items() if name not in names]


def _looked_up(kind: str, quoted: Sequence[Quotation]) -> Table:
    """What a search found about quotations, and what the judge made of it."""
    rows = []
    for quotation in quoted:
        facts, error = quotation.facts, quotation.facts.get("search_error")
        found = f"failed: {error}" if error else facts.get("search_results") or ""
        search = inline(found if isinstance(found, str) else as_json(found))
        why = inline(facts.get("hallucination_justification") or "")
        if search or why:
            rows.append((trait_name(quotation.name), inline(facts.get("text", ""), 60), search, why))
    return Table((kind, "excerpt", "search", "why this risk"), rows, f"What was looked up for {kind}s")
