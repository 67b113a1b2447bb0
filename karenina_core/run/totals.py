"""What a set of results holds: how many of what, tokens and time, replicates, tools, lengths of traces."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Mapping, Sequence
from statistics import fmean, median
from typing import Any

from ..model.result import VerificationResult
from ..model.trait_rows import read_traits
from ..model.trait_scale import is_number
from .usage import usage_by_task

__all__ = ["seconds", "tokens", "totals"]

TOKENS = {"input": "input_tokens", "output": "output_tokens", "total": "total_tokens"}


def totals(results: Sequence[VerificationResult], *, times: bool = False) -> dict[str, Any]:
    """Keys of the summary of a set of results.

    `num_...` count results, or different questions, models and replicates; `num_with_...` count results with the part.
    `tokens` as in `tokens`; `usage` as in `usage_by_task`. `rubric_traits` lists the names of traits by type (`null`:
    not told). `tool_usage_stats` is None where no answer was made with tools. `times` adds `total_execution_time`
    and the `seconds` of each task.
    """
    usage = usage_by_task(results)
    if not times:
        usage = {task: {name: value for name, value in row.items() if name != "seconds"} for task, row in usage.items()}
    metadata = [result.metadata for result in results]
    return {
        "num_results": len(results),
        "num_completed": sum(about.completed_without_errors for about in metadata),
        "num_with_template": sum(result.template is not None for result in results),
        "num_with_rubric": sum(result.rubric is not None for result in results),
        "num_with_judgment": sum((r.deep_judgment or r.deep_judgment_rubric) is not None for r in results),
        "num_questions": len({about.question_id for about in metadata}),
        "num_models": len({about.answering_model for about in metadata}),
        "num_parsing_models": len({about.parsing_model for about in metadata}),
        "num_replicates": len({about.replicate for about in metadata}),
        **({"total_execution_time": seconds(results)} if times else {}),
        "tokens": tokens(results),
        "usage": usage,
        "rubric_traits": _trait_names(results),
        "tool_usage_stats": _tools(results),
        "trace_length_stats": _lengths([len(result.generation.trace_messages) for result in results]),
    }


def seconds(results: Sequence[VerificationResult]) -> float:
    """What the items took, added up."""
    return math.fsum(result.metadata.execution_time for result in results)


def tokens(results: Sequence[VerificationResult]) -> dict[str, int]:
    """`{"input", "output", "total"}`, added up; 0 where nobody told."""
    rows = usage_by_task(results).values()
    return {name: sum(row[key] for row in rows) for name, key in TOKENS.items()}


def _trait_names(results: Sequence[VerificationResult]) -> dict[str, list[str]]:
    found: dict[str, dict[str, None]] = {}
    for result in results:
        for trait in read_traits(result.rubric) if result.rubric is not None else ():
            found.setdefault(trait.type or "null", {})[trait.name] = None
    return {type_: sorted(names) for type_, names in found.items()}


def _tools(results: Sequence[VerificationResult]) -> dict[str, Any] | None:
    """What the answering agents did. An answer that several judges share is counted once for each of them."""
    agents = [r.generation.agent_metrics for r in results if r.generation.agent_metrics]
    if not agents:
        return None
    calls = Counter[str]()
    for agent in agents:
        counts = agent.get("tool_call_counts")
        for name, count in counts.items() if isinstance(counts, Mapping) else ():
            calls[str(name)] += count if is_number(count) else 0
    return {
        "items": len(agents),
        "tool_calls": _sum(agents, "tool_calls"),
        "iterations": _sum(agents, "iterations"),
        "suspect_failed_tool_calls": _sum(agents, "suspect_failed_tool_calls"),
        "calls_by_tool": dict(calls),
    }


def _sum(rows: Sequence[Mapping[str, Any]], name: str) -> Any:
    return sum(row[name] for row in rows if is_number(row.get(name)))


def _lengths(lengths: Sequence[int]) -> dict[str, Any] | None:
    """Of traces, in messages."""
    if not lengths:
        return None
    return {"min": min(lengths), "mean": fmean(lengths), "median": median(lengths), "max": max(lengths)}
