"""What else a person should know about a result: remarks on what was odd, and the facts about it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from karenina_vocabulary.evaluation_parts import DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart

from karenina_core.errors import plural
from karenina_core.values.result import VerificationResult

__all__ = ["facts", "remarks"]


def remarks(result: VerificationResult) -> list[str]:
    """The warnings of the result, and everything in it that did not go as it should."""
    return [*result.metadata.warnings, *_about_the_answer(result), *_about_the_template(result), *_about_traits(result)]


def facts(result: VerificationResult) -> list[tuple[str, str]]:
    """`(name, text)` of how the result came about, beside what it says; only what there is."""
    metadata, generation, template = result.metadata, result.generation, result.template
    found = {
        "mode": metadata.evaluation_mode,
        "keywords": ", ".join(metadata.keywords),
        "run": metadata.run_name,
        "began": metadata.timestamp,
        "result": metadata.result_id,
        "template": metadata.template_id,
        "template ran": metadata.template_isolation,
        "examples in the prompt": str(metadata.few_shot_example_count) if metadata.few_shot_enabled else "",
        "caveats": ", ".join(metadata.caveats),
        "tried again": ", ".join(f"{kind} {count}" for kind, count in metadata.retry_counts.items()),
        "answer replayed": _replayed(generation.replayed_from) if generation.replayed_from is not None else "",
        "tool servers": ", ".join(generation.answering_mcp_servers),
        "the judge read": _read(result),
        "composition": template.composition_strategy if template else "",
        "judge's channel": template.judge_channel if template else "",
        "agent for the fields": _agent(template) if template else "",
        "deep judgment": _deep(result.deep_judgment) if result.deep_judgment else "",
        "rubric": _rubric(result),
        "deep judgment of traits": _deep_rubric(result.deep_judgment_rubric) if result.deep_judgment_rubric else "",
        "system prompt of the model": metadata.answering_system_prompt,
        "system prompt of the judge": metadata.parsing_system_prompt,
    }
    return [(name, text) for name, text in found.items() if text]


def _replayed(origin: Mapping[str, Any]) -> str:
    """Whose answer it is that was not asked for."""
    told = ((what, origin.get(name)) for what, name in (("run", "run_name"), ("model", "answering_model")))
    words = [f"{what} {value}" for what, value in told if value]
    if origin.get("replicate"):
        words.append(f"replicate {origin['replicate']}")
    return f"of {', '.join(words)}" if words else "yes"


def _about_the_answer(result: VerificationResult) -> Iterator[str]:
    generation, checks = result.generation, result.checks
    if generation.recursion_limit_reached:
        yield "the limit of steps was reached"
    if generation.usage_unavailable:
        yield "the provider did not say how many tokens the answer took"
    if generation.text_flags:
        yield f"odd in the answer: {', '.join(generation.text_flags)}"
    if result.trace_extraction_error:
        yield f"no final message was found in the trace: {result.trace_extraction_error}"
    if checks.trace_validation_failed:
        yield f"the trace is not valid: {checks.trace_validation_error}"


def _about_the_template(result: VerificationResult) -> Iterator[str]:
    template = result.template
    if template is None:
        return
    if template.template_validation_error:
        yield f"the template is not valid: {template.template_validation_error}"
    if template.field_verification_error:
        yield f"the fields were not compared: {template.field_verification_error}"
    if template.judge_repairs:
        yield f"the judge was shown a mistake and asked again {plural(template.judge_repairs, 'time')}"
    if template.ungrounded_values:
        yield f"values stand nowhere in the answer: {', '.join(template.ungrounded_values)}"
    if template.agentic_extraction_error:
        yield f"extraction by an agent failed: {template.agentic_extraction_error}"
    if template.agentic_extraction_recovery:
        yield f"extraction by an agent went on with {template.agentic_extraction_recovery}"


def _about_traits(result: VerificationResult) -> Iterator[str]:
    """What deep judgment warns of; why a trait has no score, the trait itself says."""
    for name, about in (result.deep_judgment_rubric.trait_metadata if result.deep_judgment_rubric else {}).items():
        told = about.get("warnings") if isinstance(about, Mapping) else None
        for warning in told if isinstance(told, list | tuple) else ():
            yield f"deep judgment of {name}: {warning}"


def _read(result: VerificationResult) -> str:
    if result.evaluation_input is None:
        return ""
    return "the whole trace" if result.used_full_trace else "the final message"


def _agent(template: TemplatePart) -> str:
    """Whether an agent filled in the fields, and who decided that."""
    if not (template.dynamic_parsing_performed or template.dynamic_parse_decision):
        return "as configured" if template.agentic_parsing_performed else ""
    told = (template.dynamic_parse_decision or "no decision", template.dynamic_decision_reasoning)
    whose = "for the judge to decide: " if template.dynamic_parsing_performed else ""
    sent = "" if template.agentic_parsing_performed else "; none was sent"
    return f"{whose}{': '.join(text for text in told if text)}{sent}"


def _rubric(result: VerificationResult) -> str:
    rubric = result.rubric
    if rubric is None:
        return ""
    seen = {True: "the whole trace", False: "the final message"}
    told = [
        f"asked {rubric.rubric_evaluation_strategy}" if rubric.rubric_evaluation_strategy else "",
        f"scored on {seen[rubric.rubric_used_full_trace]}" if rubric.rubric_used_full_trace is not None else "",
        _listed("due in this answer", rubric.dynamic_rubric_promoted_traits),
    ]
    return _joined(told)


def _deep(part: DeepJudgmentPart) -> str:
    if part.deep_judgment_mode == "disabled" and not part.deep_judgment_performed:
        return ""
    return _joined(
        [
            f"mode {part.deep_judgment_mode}",
            "" if part.deep_judgment_performed else "not performed",
            _listed("done", part.deep_judgment_stages_completed),
            *_counted(part.deep_judgment_model_calls, part.deep_judgment_excerpt_retry_count),
            "with a search" if part.deep_judgment_search_enabled else "",
        ]
    )


def _deep_rubric(part: DeepJudgmentRubricPart) -> str:
    if not part.deep_judgment_rubric_performed:
        return ""
    scored = f"{plural(part.total_traits_evaluated, 'trait')} scored"
    return _joined([scored, *_counted(part.total_deep_judgment_model_calls, part.total_excerpt_retries)])


def _counted(calls: int, retries: int) -> tuple[str, str]:
    asked = f"asked again for quotations {plural(retries, 'time')}" if retries else ""
    return f"{plural(calls, 'call')} of the judge", asked


def _listed(name: str, texts: Any) -> str:
    return f"{name}: {', '.join(map(str, texts))}" if texts else ""


def _joined(texts: list[str]) -> str:
    return "; ".join(text for text in texts if text)
