"""Results as older versions of the export format, or later ones, or other tools write them.

What is called otherwise is found; what has no place, or is of another type than its place, is kept as
`extensions["unread"]`, by its path.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, get_args

from attrs import NOTHING, Attribute, fields_dict, resolve_types
from karenina_vocabulary.evaluation_parts import ChecksPart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.errors import ConfigError
from karenina_core.values.convert import converter, structure
from karenina_core.values.identity import TaskIdentity
from karenina_core.values.outcome import OutcomeName
from karenina_core.values.result import GenerationPart, LedgerEntry, MetadataPart, TrailEntry, all_parts

from ..columns.shared import ERRORS, GUARDS

NO_TEMPLATE = {
    "template_verification_performed": False,
    "parsed_gt_response": None,
    "parsed_llm_response": None,
    "verify_result": None,
    "verify_granular_result": None,
}
"""All that the part `template` says of its own where there is no template: one that is there has all of its fields."""

UNREAD = "unread"
UNKNOWN = "unknown"
OLD_NAMES = {
    *("answering_model", "parsing_model", "answering_replicate", "parsing_replicate"),
    *("failure", "caveats", "partial_content", "completed_without_errors", "retry_counts"),
}
"""Of the metadata: what is read although it is called otherwise now, or follows from the rest."""
GUARD_OF = {category: stage for stage, category in GUARDS.items()}
KIND_OF = {category: kind for kind, (category, _) in ERRORS.items()}
CAVEATS = {"embedding_override", "partial_content", "retries_used"}
"""Those that follow from the rest of a result."""


def result_from(data: Any) -> VerificationResult:
    """The result that plain data describes, whichever version wrote it. Raises ConfigError."""
    data = _without_copies(data)
    try:
        return structure(data, VerificationResult)
    except ConfigError:
        if not isinstance(data, Mapping) or not isinstance(data.get("metadata"), Mapping):
            raise
    unread: dict[str, Any] = {}
    parts = {name: data[name] if isinstance(data.get(name), Mapping) else {} for name in (*all_parts(), "metadata")}
    template = parts["template"]
    parts["generation"] = {**_of(GenerationPart, template), **parts["generation"]}
    parts["checks"] = {**_of(ChecksPart, template), **parts["checks"]}
    moved = {*fields_dict(GenerationPart), *fields_dict(ChecksPart), "response_timeout_partial"}
    parts["template"] = {name: value for name, value in template.items() if name not in moved}
    _generation(parts["generation"], template, parts["metadata"])
    if isinstance(parts["rubric"].get("dynamic_rubric_skipped_traits"), list):
        names = parts["rubric"]["dynamic_rubric_skipped_traits"]
        parts["rubric"] = {**parts["rubric"], "dynamic_rubric_skipped_traits": dict.fromkeys(names, "")}
    made: dict[str, Any] = {"metadata": _metadata(data, parts, unread)}
    for name, cls in all_parts().items():
        if name in ("generation", "checks") or data.get(name) is not None:
            made[name] = _known(cls, parts[name], name, unread)
    if made["metadata"].get("evaluation_mode") == "rubric_only":
        made.pop("template", None)
    for name, cls in (("ledger", LedgerEntry), ("trail", TrailEntry)):
        made[name] = [_known(cls, entry, name, unread) for entry in data.get(name) or ()]
    rest = {name: value for name, value in data.items() if name not in made and name not in all_parts()}
    made |= _known(VerificationResult, rest, "", unread)
    if unread:
        made["extensions"] = {**(made.get("extensions") or {}), UNREAD: unread}
    return structure(made, VerificationResult)


def _without_copies(data: Any) -> Any:
    """Without what the template repeats of the generation and of the checks; the data where they differ."""
    found = [data.get(name) for name in ("template", "generation", "checks")] if isinstance(data, Mapping) else []
    parts = [part for part in found if isinstance(part, Mapping)]
    if len(parts) < 3:
        return data
    template, there = parts[0], {**parts[1], **parts[2]}
    kept = {name: value for name, value in template.items() if name not in there}
    same = all(there[name] == value for name, value in template.items() if name in there)
    return {**data, "template": None if kept == NO_TEMPLATE else kept} if same else data


def _generation(part: dict[str, Any], template: Mapping[str, Any], metadata: Mapping[str, Any]) -> None:
    """Nothing is an empty list here, and an answer that was cut off is flagged."""
    for name in ("trace_messages", "conversation_context", "answering_mcp_servers", "text_flags"):
        part[name] = part.get(name) or []
    for name, nothing in (("raw_llm_response", ""), ("usage_metadata", {})):
        part[name] = part.get(name) or nothing
    if template.get("response_timeout_partial") or metadata.get("partial_content"):
        part["text_flags"] = list(dict.fromkeys([*part["text_flags"], "truncated"]))


def _metadata(
    data: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]], unread: dict[str, Any]
) -> dict[str, Any]:
    given = parts["metadata"]
    replicates = (given.get(f"{role}replicate") for role in ("", "answering_", "parsing_"))
    outcome, detail = _outcome(data, parts)
    failure = given.get("failure") if isinstance(given.get("failure"), Mapping) else {}
    made = _known(MetadataPart, {k: v for k, v in given.items() if k not in OLD_NAMES}, "metadata", unread)
    caveats = given["caveats"] if isinstance(given.get("caveats"), list) else []
    if odd := [caveat for caveat in caveats if not isinstance(caveat, str)]:
        unread["metadata.caveats"] = odd
    retries = {
        kind: count.get("used", 0) if isinstance(count, Mapping) else count
        for kind, count in (given.get("retry_counts") or {}).items()
    }
    made |= {
        "outcome": outcome,
        "outcome_detail": detail,
        "completed_without_errors": outcome != "error",
        "error": given.get("error") or ((failure or {}).get("reason") if outcome == "error" else None),
        "answering": _identity(given, "answering", unread),
        "parsing": _identity(given, "parsing", unread),
        "caveats": [caveat for caveat in caveats if isinstance(caveat, str) and caveat not in CAVEATS],
        "replicate": next((number for number in replicates if number is not None), 1),
        "retry_counts": {kind: used if isinstance(used, int) else 0 for kind, used in retries.items()},
        "question_text": given.get("question_text") or "",
        "template_id": given.get("template_id") or "no_template",
        "execution_time": given.get("execution_time") or 0.0,
        "evaluation_mode": given.get("evaluation_mode") or _mode(parts),
    }
    for name in ("keywords", "warnings"):
        made[name] = given.get(name) or []
    if not made.get("result_id") and "question_id" in made:
        identity = TaskIdentity(
            question_id=str(made["question_id"]),
            template_id=str(made["template_id"]),
            answering=structure(made["answering"], ModelIdentity),
            parsing=structure(made["parsing"], ModelIdentity),
            replicate=made["replicate"],
        )
        made["result_id"] = identity.result_id(made.get("run_name"))
    return made


def _identity(given: Mapping[str, Any], role: str, unread: dict[str, Any]) -> dict[str, Any]:
    """Who answered or judged. A text is a name; it is not taken apart."""
    found = given.get(role)
    if isinstance(found, Mapping):
        known = _known(ModelIdentity, found, f"metadata.{role}", unread)
        return {"interface": UNKNOWN, "model_name": UNKNOWN, **known, "tools": known.get("tools") or []}
    name = found if isinstance(found, str) else given.get(f"{role}_model")
    return {"interface": UNKNOWN, "model_name": str(name or UNKNOWN)}


def _outcome(data: Mapping[str, Any], parts: Mapping[str, Mapping[str, Any]]) -> tuple[str, str | None]:
    """The outcome as recorded; where there is none, as the rest implies it."""
    given, template, checks = parts["metadata"], parts["template"], parts["checks"]
    if given.get("outcome") in get_args(OutcomeName):
        return given["outcome"], given.get("outcome_detail")
    failure = given.get("failure")
    if isinstance(failure, Mapping) and failure.get("group"):
        group = str(failure["group"])
        category = str(failure.get("category") or "")
        if group == "content":
            return "failed", None
        if group == "autofail":
            return "auto_failed", GUARD_OF.get(category, category or UNKNOWN)
        if group == "abstained":
            return ("insufficient" if category == "sufficiency" else "abstained"), None
        return "error", KIND_OF.get(category, category or UNKNOWN)
    if given.get("error") or given.get("completed_without_errors") is False:
        return "error", UNKNOWN
    verdict = template.get("verify_result")
    if verdict is not True and checks.get("abstention_override_applied"):
        return "abstained", None
    if verdict is not True and checks.get("sufficiency_override_applied"):
        return "insufficient", None
    if isinstance(verdict, bool):
        return ("passed" if verdict else "failed"), None
    return ("scored", None) if data.get("rubric") else ("skipped", "no verdict is stored")


def _mode(parts: Mapping[str, Mapping[str, Any]]) -> str:
    if not parts["rubric"]:
        return "template_only"
    template = parts["template"]
    judged = template.get("template_verification_performed") or template.get("verify_result") is not None
    return "template_and_rubric" if judged else "rubric_only"


def _of(cls: type, data: Mapping[str, Any]) -> dict[str, Any]:
    names = fields_dict(cls)
    return {name: value for name, value in data.items() if name in names}


def _known(cls: type, data: Mapping[str, Any], path: str, unread: dict[str, Any]) -> dict[str, Any]:
    """What the class has a field for that can hold it; the rest is noted, where it says anything. Nothing is what
    fields begin with."""
    fields = {name: f for name, f in fields_dict(resolve_types(cls)).items() if not name.startswith("_")}
    known = {}
    for name, value in data.items():
        if name in fields and _fits(value, fields[name]):
            known[name] = value
        elif value not in (None, [], {}, ""):
            unread[f"{path}.{name}".lstrip(".")] = value
    return known


def _fits(value: Any, field: Attribute[Any]) -> bool:
    """What a result cannot be without is left for the error that says so."""
    if value is None or field.default is NOTHING:
        return field.default is None or value is not None
    try:
        converter().structure(value, field.type or Any)
    except Exception:  # of whatever the field's type has to say about it
        return False
    return True
