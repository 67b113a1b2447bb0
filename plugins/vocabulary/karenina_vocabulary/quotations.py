"""Quotations of deep judgment, and where they are in the text that the judge read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import pairwise
from typing import Any, NamedTuple

from karenina_core.values.result import VerificationResult


class Quotation(NamedTuple):
    """One excerpt that deep judgment stored for a field or a trait."""

    kind: str
    """`field` or `trait`."""
    name: str
    facts: Mapping[str, Any]
    span: tuple[int, int] | None
    """Where it is in the text, in characters; None where it is not there."""
    in_trace: bool = False
    """Whether it is outside the text, in the trace: traits may be judged on all of it."""


class Piece(NamedTuple):
    """A run of text and what it is evidence for."""

    text: str
    names: tuple[str, ...] = ()
    kinds: str = ""
    """`field`, `trait` or `both`; empty for text that is no evidence."""


def judged_text(result: VerificationResult) -> str:
    """The text that the judge read; the whole answer where none was chosen for it."""
    return result.generation.raw_llm_response if result.evaluation_input is None else result.evaluation_input


def quotations(result: VerificationResult, text: str) -> list[Quotation]:
    """Every stored excerpt, with its place in the answer's text; those without a text explain why there is none."""
    fields = result.deep_judgment.extracted_excerpts if result.deep_judgment else {}
    traits = result.deep_judgment_rubric.extracted_rubric_excerpts if result.deep_judgment_rubric else {}
    whole = result.rubric is not None and result.rubric.rubric_used_full_trace
    source = result.generation.raw_llm_response if whole else text
    return [
        Quotation(kind, name, facts, span, span is None and _stored(facts, read) is not None)
        for kind, stored, read in (("field", fields, text), ("trait", traits, source))
        for name, entries in stored.items()
        for facts in (entries if isinstance(entries, list | tuple) else ())
        if isinstance(facts, Mapping)
        for span in (_span(facts, text, read),)
    ]


def pieces(text: str, evidence: Iterable[Quotation]) -> list[Piece]:
    """The text cut where evidence begins or ends. Put together again, the pieces are the text."""
    spans = [(*quotation.span, quotation) for quotation in evidence if quotation.span]
    borders = sorted(
        {0, len(text), *(border for low, high, _ in spans for border in (low, high) if border <= len(text))}
    )
    found = []
    for low, high in pairwise(borders):
        about = [quotation for start, end, quotation in spans if start <= low and high <= end]
        kinds = {quotation.kind for quotation in about}
        names = dict.fromkeys(f"{quotation.kind} {quotation.name}" for quotation in about)
        found.append(Piece(text[low:high], tuple(names), "both" if len(kinds) > 1 else "".join(kinds)))
    return found


def _span(facts: Mapping[str, Any], text: str, read: str) -> tuple[int, int] | None:
    """The stored place, which is one of what was read; else the first place where the text has it word for word."""
    before = read.rfind(text)
    if before >= 0 and (place := _stored(facts, read)):
        start, end = place[0] - before, place[1] - before
        if start >= 0 and end <= len(text):
            return start, end
    quoted = facts.get("text")
    if isinstance(quoted, str) and quoted and (found := text.find(quoted)) >= 0:
        return found, found + len(quoted)
    return None


def _stored(facts: Mapping[str, Any], read: str) -> tuple[int, int] | None:
    start, end = facts.get("start"), facts.get("end")
    if isinstance(start, int) and isinstance(end, int) and 0 <= start < end <= len(read):
        return start, end
    return None
