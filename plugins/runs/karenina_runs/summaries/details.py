"""What one result holds, as `karenina show` and the report print it: remarks, facts, rows of tables and messages."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

from karenina_vocabulary.evaluation_parts import DeepJudgmentPart, TemplatePart

from karenina_core.errors import plural
from karenina_core.values.result import VerificationResult

from .item_rows import as_json

ORIGIN = {"run": "run_name", "model": "answering_model", "replicate": "replicate"}
"""Of an answer that was replayed: what is shown, by key of `replayed_from`."""


def remarks(result: VerificationResult) -> list[str]:
    """The warnings of the result, and everything in it that did not go as it should."""
    generation, checks, template = result.generation, result.checks, result.template
    found: list[tuple[Any, str]] = [
        (generation.recursion_limit_reached, "the limit of steps was reached"),
        (generation.usage_unavailable, "the provider did not say how many tokens the answer took"),
        (generation.text_flags, f"odd in the answer: {', '.join(generation.text_flags)}"),
        (result.trace_extraction_error, f"no final message was found in the trace: {result.trace_extraction_error}"),
        (checks.trace_validation_failed, f"the trace is not valid: {checks.trace_validation_error}"),
    ]
    if template is not None:
        repairs, agent_error = template.judge_repairs, template.agentic_extraction_error
        invalid, not_compared = template.template_validation_error, template.field_verification_error
        ungrounded, recovery = template.ungrounded_values, template.agentic_extraction_recovery
        found += [
            (invalid, f"the template is not valid: {invalid}"),
            (not_compared, f"the fields were not compared: {not_compared}"),
            (repairs, f"the judge was shown a mistake and asked again {plural(repairs, 'time')}"),
            (ungrounded, f"values do not occur in the answer: {', '.join(ungrounded or ())}"),
            (agent_error, f"extraction by an agent failed: {agent_error}"),
            (recovery, f"extraction by an agent continued with {recovery}"),
        ]
    if (deep := result.deep_judgment) is not None and deep.values_beyond_excerpts:
        found.append((True, f"values are in none of their excerpts: {', '.join(deep.values_beyond_excerpts)}"))
    # Why a trait has no score, the trait itself says; here is what deep judgment warns of.
    for name, about in (result.deep_judgment_rubric.trait_metadata if result.deep_judgment_rubric else {}).items():
        warnings = about.get("warnings") if isinstance(about, Mapping) else None
        if isinstance(warnings, list | tuple):
            found += [(True, f"deep judgment of {name}: {warning}") for warning in warnings]
    return [*result.metadata.warnings, *(text for given, text in found if given)]


def facts(result: VerificationResult) -> list[tuple[str, str]]:
    """`(name, text)` of how the result came about, beside what it says; only what there is."""
    metadata, generation, template = result.metadata, result.generation, result.template
    rubric, of_traits = result.rubric, result.deep_judgment_rubric
    seen = {None: "", True: "the whole trace", False: "the final message"}
    origin = generation.replayed_from or {}
    replayed = [f"{name} {value}" for name, key in ORIGIN.items() if (value := origin.get(key))]
    found = {
        "mode": metadata.evaluation_mode,
        "keywords": ", ".join(metadata.keywords),
        "run": metadata.run_name,
        "began": metadata.timestamp,
        "result": metadata.result_id,
        "template": metadata.template_id,
        "item": metadata.item_digest,
        "template ran": metadata.template_isolation,
        "examples in the prompt": str(metadata.few_shot_example_count) if metadata.few_shot_enabled else "",
        "caveats": ", ".join(metadata.caveats),
        "tried again": ", ".join(f"{kind} {count}" for kind, count in metadata.retry_counts.items()),
        "answer replayed": f"of {', '.join(replayed)}"
        if replayed
        else "yes"
        if generation.replayed_from is not None
        else "",
        "tool servers": ", ".join(generation.answering_mcp_servers),
        "the judge read": seen[None if result.evaluation_input is None else bool(result.used_full_trace)],
        "composition": template.composition_strategy if template else "",
        "judge's channel": template.judge_channel if template else "",
        "agent for the fields": _agent(template) if template else "",
        "deep judgment": _deep(result.deep_judgment) if result.deep_judgment else "",
        "rubric": _joined(
            f"asked {rubric.rubric_evaluation_strategy}" if rubric.rubric_evaluation_strategy else "",
            f"scored on {scored}" if (scored := seen[rubric.rubric_used_full_trace]) else "",
            _listed("due in this answer", rubric.dynamic_rubric_promoted_traits),
        )
        if rubric
        else "",
        "deep judgment of traits": _joined(
            f"{plural(of_traits.total_traits_evaluated, 'trait')} scored",
            *_counted(of_traits.total_deep_judgment_model_calls, of_traits.total_excerpt_retries),
        )
        if of_traits and of_traits.deep_judgment_rubric_performed
        else "",
        "system prompt of the model": metadata.answering_system_prompt,
        "system prompt of the judge": metadata.parsing_system_prompt,
    }
    return [(name, text) for name, text in found.items() if text]


def workspace_text(row: Mapping[str, Any], folder: object) -> str:
    """Where in `folder` the files are that an agent left, or why they were not kept."""
    if not row.get("destination"):
        reason = " ".join(str(row.get("skip_reason") or "").split())
        return f"not kept: {reason or 'no reason is known'}"
    count = row.get("copied_file_count")
    return f"{folder}/{row['destination']}" + (f" ({plural(count, 'file')})" if isinstance(count, int) else "")


def _agent(template: TemplatePart) -> str:
    """Whether an agent filled in the fields, and who decided that."""
    if not (template.dynamic_parsing_performed or template.dynamic_parse_decision):
        return "as configured" if template.agentic_parsing_performed else ""
    decision = (template.dynamic_parse_decision or "no decision", template.dynamic_decision_reasoning)
    whose = "for the judge to decide: " if template.dynamic_parsing_performed else ""
    sent = "" if template.agentic_parsing_performed else "; none was sent"
    return f"{whose}{': '.join(text for text in decision if text)}{sent}"


def _deep(part: DeepJudgmentPart) -> str:
    if part.deep_judgment_mode == "disabled" and not part.deep_judgment_performed:
        return ""
    return _joined(
        f"mode {part.deep_judgment_mode}",
        "" if part.deep_judgment_performed else "not performed",
        _listed("done", part.deep_judgment_stages_completed),
        *_counted(part.deep_judgment_model_calls, part.deep_judgment_excerpt_retry_count),
        "with a search" if part.deep_judgment_search_enabled else "",
    )


def _counted(calls: int, retries: int) -> tuple[str, str]:
    asked = f"asked again for quotations {plural(retries, 'time')}" if retries else ""
    return f"{plural(calls, 'call')} of the judge", asked


def _listed(name: str, texts: Any) -> str:
    return f"{name}: {', '.join(map(str, texts))}" if texts else ""


def _joined(*texts: str) -> str:
    return "; ".join(text for text in texts if text)


class MessageBlock(NamedTuple):
    """What a message says, thinks, asks of a tool, or brings back from one."""

    label: str
    """Empty for what it says; else `thinks`, `calls <tool>`, `tool result`, `tool failed`, or the type of the block."""
    text: str


class ShownMessage(NamedTuple):
    """One message."""

    role: str
    blocks: tuple[MessageBlock, ...]


def shown_messages(rows: Iterable[Mapping[str, Any]]) -> list[ShownMessage]:
    """Messages in either form that results store (`trace_dicts`, or `Message.to_dict`); what is of no form as JSON."""
    return [ShownMessage(str(row.get("role") or "unknown"), tuple(_blocks(row))) for row in rows]


def _blocks(row: Mapping[str, Any]) -> list[MessageBlock]:
    listed = row.get("blocks") or row.get("content")
    blocks = []
    if isinstance(listed, list | tuple):
        for block in listed:
            about = block if isinstance(block, Mapping) else {"type": "text", "text": block}
            kind = about.get("type")
            if kind in ("text", "thinking"):
                blocks.append(_block("" if kind == "text" else "thinks", about.get(kind)))
            elif kind == "tool_use":
                blocks.append(_called(about))
            elif kind == "tool_result":
                blocks.append(_block(_result_label(about), about.get("content")))
            else:
                blocks.append(_block(str(kind or ""), block))
        return blocks
    thinking, result, calls = row.get("thinking"), row.get("tool_result"), row.get("tool_calls")
    if isinstance(thinking, Mapping) and thinking.get("thinking"):
        blocks.append(_block("thinks", thinking["thinking"]))
    if row.get("content"):
        blocks.append(_block("" if result is None else _result_label(result), row["content"]))
    for call in calls if isinstance(calls, list | tuple) else ():
        blocks.append(_called(call if isinstance(call, Mapping) else {"input": call}))
    return blocks


def _called(about: Mapping[str, Any]) -> MessageBlock:
    return _block(f"calls {about.get('name') or 'a tool'}", about.get("input"))


def _result_label(result: Any) -> str:
    return "tool failed" if isinstance(result, Mapping) and result.get("is_error") else "tool result"


def _block(label: str, found: Any) -> MessageBlock:
    return MessageBlock(label, found if isinstance(found, str) else as_json(found))
