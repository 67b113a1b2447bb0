"""What a set of results holds: parts, tokens and time, traits, tools, lengths of traces."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from statistics import fmean, median
from typing import Any

from attrs import define, field
from karenina_vocabulary.rubric_part import TraitOutcome

from karenina_core.values.fields import is_number
from karenina_core.values.result import VerificationResult

from .exact import ExactSum
from .usage import TOKENS, UsageTally

OF_AGENTS = ("tool_calls", "iterations", "suspect_failed_tool_calls")


@define(eq=False)
class TotalsTally:
    """Counts, result by result. What it keeps follows neither the number of questions nor that of results."""

    counts: Counter[str] = field(factory=Counter)
    usage: UsageTally = field(factory=UsageTally)
    seconds: ExactSum = field(factory=ExactSum)
    traits: dict[str, set[str]] = field(factory=dict)
    agents: Counter[str] = field(factory=Counter)
    """What the answering agents did. An answer that several judges share is counted once for each of them."""
    tool_calls: Counter[str] = field(factory=Counter)
    lengths: Counter[int] = field(factory=Counter)
    """Of traces, in messages."""

    def add(self, result: VerificationResult, traits: Iterable[TraitOutcome]) -> None:
        """`traits` are those of the result, as `read_traits` gives them."""
        about, counts = result.metadata, self.counts
        counts["results"] += 1
        counts["completed"] += about.completed_without_errors
        counts["template"] += result.template is not None
        counts["rubric"] += result.rubric is not None
        counts["judgment"] += (result.deep_judgment or result.deep_judgment_rubric) is not None
        self.usage.add(result)
        self.seconds.add(about.execution_time)
        for trait in traits:
            self.traits.setdefault(trait.type or "null", set()).add(trait.name)
        if agent := result.generation.agent_metrics:
            self.agents.update({name: agent[name] for name in OF_AGENTS if is_number(agent.get(name))}, items=1)
            calls = agent.get("tool_call_counts")
            for name, count in calls.items() if isinstance(calls, Mapping) else ():
                self.tool_calls[str(name)] += count if is_number(count) else 0
        self.lengths[len(result.generation.trace_messages)] += 1

    def to_dict(self, *, times: bool) -> dict[str, Any]:
        """Keys of the summary of a set of results.

        `num_...` count results, `num_with_...` those with the part. `usage` as in `usage_by_task`. `rubric_traits`:
        names of traits by type (`null`: not known). `tool_usage_stats` is None where no answer was made with tools.
        `times` adds `total_execution_time` and the `seconds` of each task.
        """
        usage, tasks = self.usage.by_task(), self.usage.tasks.values()
        if not times:
            usage = {task: {k: v for k, v in row.items() if k != "seconds"} for task, row in usage.items()}
        counts, lengths = self.counts, list(self.lengths.elements())
        agents = {name: self.agents[name] for name in ("items", *OF_AGENTS)}
        return {
            "num_results": counts["results"],
            "num_completed": counts["completed"],
            **{f"num_with_{part}": counts[part] for part in ("template", "rubric", "judgment")},
            **({"total_execution_time": self.seconds.total} if times else {}),
            "tokens": {name: sum(task.counts[key] for task in tasks) for name, key in TOKENS.items()},
            "usage": usage,
            "rubric_traits": {type_: sorted(names) for type_, names in self.traits.items()},
            "tool_usage_stats": {**agents, "calls_by_tool": dict(self.tool_calls)} if agents["items"] else None,
            "trace_length_stats": (
                {"min": min(lengths), "mean": fmean(lengths), "median": median(lengths), "max": max(lengths)}
                if lengths
                else None
            ),
        }
