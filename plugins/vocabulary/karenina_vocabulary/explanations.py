"""Why an item ended as it did, in one line for people."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from typing import Any, Literal

from karenina_core.values.result import VerificationResult

from .evaluation_parts import TemplatePart

JUDGED_AGAINST_REFERENCE = "judged_against_reference"
"""The caveat of every result without a template, whose judge saw the reference answer and decided by itself."""


def why(result: VerificationResult) -> str:
    """The error, or the fields and patterns that decided, with what was due and found; empty for what passed."""
    metadata = result.metadata
    if metadata.outcome == "error":
        return metadata.error or metadata.outcome_detail or ""
    if metadata.outcome in ("passed", "scored"):
        return ""
    reasons = "; ".join(_reasons(result.template)) if result.template is not None else ""
    effects = [entry for entry in result.ledger if entry.effect.get("verdict") is False and entry.reason]
    effects = [entry for entry in effects if entry.stage == metadata.outcome_detail] or effects
    return reasons or (effects[-1].reason if effects else "") or metadata.outcome_detail or ""


def failure_kind(result: VerificationResult) -> Literal["wrong", "not_found"] | None:
    """What was wrong with a `failed` answer; None for every other outcome.

    `not_found`: the answer misses something that was expected, and has nothing wrong; an empty list for one with items
    misses them. `wrong`: all else.
    """
    if result.metadata.outcome != "failed":
        return None
    template = result.template
    if template is None or template.regex_overall_success is False:
        return "wrong"
    if template.field_results:
        wrong = [
            None if right is None or _is_empty(template, name) else right
            for name, right in template.field_results.items()
            if right is not True
        ]
    else:  # a verify() of the author's own says nothing of fields
        extracted = template.parsed_llm_response or {}
        due = template.parsed_gt_response or {}
        different = {name: found for name, found in extracted.items() if found != due.get(name)}
        wrong = [None if found is None or _is_empty(template, name) else False for name, found in different.items()]
    return "not_found" if wrong and all(right is None for right in wrong) else "wrong"


def _is_empty(template: TemplatePart, name: str) -> bool:
    """Whether nothing was extracted for a list that should have items."""
    expected, extracted = template.parsed_gt_response or {}, template.parsed_llm_response or {}
    return extracted.get(name) in ([], ()) and bool(expected.get(name))


def caveats_of(result: VerificationResult) -> list[str]:
    """The names of what to keep in mind about a result, each once."""
    template = result.template
    found = {
        "partial_content": "truncated" in result.generation.text_flags,
        "embedding_override": template is not None and template.embedding_override_applied,
        "retries_used": bool(result.metadata.retry_counts),
    }
    return list(dict.fromkeys([*[name for name in found if found[name]], *result.metadata.caveats]))


def _reasons(template: TemplatePart) -> Iterator[str]:
    expected, extracted = template.parsed_gt_response or {}, template.parsed_llm_response or {}

    def pair(name: str, nothing: str = "extracted null") -> str:
        found = nothing if extracted.get(name) is None else f"extracted {_shown(extracted[name])}"
        return f"{name} (expected {_shown(expected.get(name))}, {found})"

    compared = template.field_results or {}
    # What the judge was to extract and did not is None; what is False without a value is decided on the trace.
    traced = "the check on the trace says otherwise"
    if wrong := [pair(name, traced) for name, right in compared.items() if right is False]:
        yield f"wrong: {', '.join(wrong)}"
    if absent := [
        f"{name} (expected {_shown(expected.get(name))})" for name, right in compared.items() if right is None
    ]:
        yield f"not found: {', '.join(absent)}"
    judged = template.template_verification_performed  # or a guard has decided before anything was compared
    if judged and not compared and template.field_verification_result is False:  # a verify() of the author's own
        different = [pair(name) for name in extracted if extracted[name] != expected.get(name)]
        yield f"verify() says no{': ' if different else ''}{', '.join(different)}"
    for name, passed in (template.regex_validation_results or {}).items():
        if not passed:
            detail = (template.regex_validation_details or {}).get(name, {})
            wanted, found = _shown(detail.get("expected")), _shown(detail.get("matches_found"))
            yield f"pattern {name} (expected {wanted}, found {found})"


def _shown(value: Any) -> str:
    if isinstance(value, Sequence) and not isinstance(value, str):
        return ", ".join(map(_shown, value)) or "nothing"
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=str)
