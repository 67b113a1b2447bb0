"""What the outcomes are called, their order, and why items did not pass."""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple, get_args

from karenina_core import VerificationResult
from karenina_core.values.outcome import Effect, OutcomeName, fold


class OutcomeKind(NamedTuple):
    """One outcome for people: a sign beside the colour, so that colour alone carries no meaning."""

    name: str
    label: str
    sign: str
    meaning: str


KINDS: Mapping[str, OutcomeKind] = {
    kind.name: kind
    for kind in (
        OutcomeKind("passed", "passed", "✓", "every check holds"),
        OutcomeKind("failed", "failed", "✗", "a field, a pattern or the template's own check says no"),
        OutcomeKind("auto_failed", "auto-failed", "⊘", "a guard ended it before anything was compared"),
        OutcomeKind("abstained", "abstained", "–", "the answer declines"),
        OutcomeKind("insufficient", "insufficient", "…", "the answer says too little to be judged"),
        OutcomeKind("scored", "scored", "●", "traits only; nothing to pass or fail"),
        OutcomeKind("error", "error", "!", "something broke; counts in no rate"),
        OutcomeKind("skipped", "skipped", "○", "no stage gave a verdict; counts in no rate"),
    )
}
GROUPS: Mapping[str, str] = {
    "content": "wrong answer",
    "not_found": "something missing, nothing wrong",
    "autofail": "ended by a guard",
    "abstained": "no answer to judge",
    "retry": "model not reached",
    "system": "something broke",
}
"""What the groups of failures are called, whose names are those of the column `failure_group`."""
CAVEATS: Mapping[str, str] = {
    "partial_content": "the answer was cut off",
    "embedding_override": "a field that differs was accepted for its similarity",
    "retries_used": "some call failed and was tried again",
    "invented_quotations": "the judge gave quotations that are not in what it read",
    "parse_decision_malformed": "the judge gave no readable decision on whether an agent is needed",
    "ungrounded_values": "extracted values do not occur in the answer: look at the judge",
    "unquoted_abstention": "the judge claims an abstention and cannot quote it; not decided",
    "contradictory_abstention": "the judge claims an abstention and quotes an answer; not decided",
    "contradictory_sufficiency": "the judge of sufficiency contradicts itself; not decided",
    "invisible_characters": "the answer has invisible characters, which models read",
    "secret_removed": "a reply contained a secret, which was removed before anything read it",
    "judged_against_reference": "no template: the judge saw the reference answer and decided itself (weaker evidence)",
    "abstention_beside_values": "the judge claims an abstention, and every field has a value",
}
"""What caveats mean; those of other packages have their names alone."""
if set(KINDS) != set(get_args(OutcomeName)):
    raise AssertionError("every outcome needs a name for people")


def failure(result: VerificationResult) -> str:
    """Why an item did not pass, as one of few reasons; each item has exactly one. Empty for passed and scored."""
    metadata = result.metadata
    if metadata.outcome in ("passed", "scored"):
        return ""
    if metadata.outcome != "failed":
        return metadata.outcome_detail or ""
    template = result.template
    compared = (template.field_results or {}).values() if template else ()
    reasons = [
        *(["wrong value"] if False in compared else []),
        *(["value not found"] if None in compared else []),
        *(["pattern not met"] if template and template.regex_overall_success is False else []),
    ]
    if reasons:
        return " and ".join(reasons)
    if template and template.field_verification_result is False:
        return "verify() of the template says no"
    decided = fold(Effect(e.stage, e.effect.get("field"), e.effect.get("verdict")) for e in result.ledger).decided_by
    return f"decided by {decided.stage}" if decided else "no reason recorded"
