"""Why an item ended as it did, in one line for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any

from ..model.result import TemplatePart, VerificationResult

__all__ = ["why"]


def why(result: VerificationResult) -> str:
    """The error, or the fields and patterns that decided, with what was due and found; empty for what passed."""
    metadata = result.metadata
    if metadata.outcome == "error":
        return metadata.error or metadata.outcome_detail or ""
    if metadata.outcome in ("passed", "scored"):
        return ""
    said = [*_fields(result.template), *_patterns(result.template)] if result.template is not None else []
    spoken = [entry for entry in result.ledger if entry.effect.get("verdict") is False and entry.reason]
    spoken = [entry for entry in spoken if entry.stage == metadata.outcome_detail] or spoken
    return "; ".join(said) or (spoken[-1].reason if spoken else "") or metadata.outcome_detail or ""


def _fields(template: TemplatePart) -> Iterator[str]:
    expected, extracted = template.parsed_gt_response or {}, template.parsed_llm_response or {}

    def pair(name: str) -> str:
        return f"{name} (expected {_said(expected.get(name))}, extracted {_said(extracted.get(name))})"

    compared = template.field_results or {}
    if wrong := [pair(name) for name, right in compared.items() if right is False]:
        yield f"wrong: {', '.join(wrong)}"
    if absent := [
        f"{name} (expected {_said(expected.get(name))})" for name, right in compared.items() if right is None
    ]:
        yield f"not found: {', '.join(absent)}"
    judged = template.template_verification_performed  # or a guard has decided before anything was compared
    if judged and not compared and template.field_verification_result is False:  # a verify() of the author's own
        different = [pair(name) for name in extracted if extracted[name] != expected.get(name)]
        yield f"verify() says no{': ' if different else ''}{', '.join(different)}"


def _patterns(template: TemplatePart) -> Iterator[str]:
    for name, passed in (template.regex_validation_results or {}).items():
        if not passed:
            detail = (template.regex_validation_details or {}).get(name, {})
            expected, found = _said(detail.get("expected")), _said(detail.get("matches_found"))
            yield f"pattern {name} (expected {expected}, found {found})"


def _said(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_said, value)) or "nothing"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
