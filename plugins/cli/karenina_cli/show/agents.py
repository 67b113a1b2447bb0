"""What agents did, for people: the work of the answering model, what judges looked at, and the files that were kept."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from karenina_runs.summaries.details import workspace_text
from karenina_runs.workspaces.workspace_capture import WORKSPACES, captures

from karenina_core.errors import plural
from karenina_core.values.result import VerificationResult

from ..output import Part, Table, inline
from .conversation import indented, shortened_lines


def work(result: VerificationResult) -> list[Part]:
    """The numbers of an agent that answered, and what ended its work."""
    metrics = result.generation.agent_metrics or {}
    total, counted = metrics.get("tool_calls"), metrics.get("tool_call_counts")
    by_tool = ", ".join(f"{name} {count}" for name, count in counted.items()) if isinstance(counted, Mapping) else ""
    suspects = metrics.get("suspect_failed_tool_calls")
    named = inline(", ".join(map(str, metrics.get("suspect_failed_tools") or ())))
    failed = f"{plural(suspects, 'answer')} of tools" if isinstance(suspects, int) and suspects else ""
    rows = [
        ("replies", str(metrics.get("iterations", ""))),
        ("calls of tools", f"{total} ({inline(by_tool)})" if by_tool else str(total if total is not None else "")),
        ("may have failed", f"{failed} ({named})" if failed and named else failed),
        ("tool servers", inline(", ".join(result.generation.answering_mcp_servers))),
        ("ended by its limit of", inline(metrics.get("limit") or ("" if not metrics.get("limit_reached") else "?"))),
    ]
    return [Table(("", ""), [row for row in rows if metrics and row[1]], "Work of the answering agent")]


def investigations(result: VerificationResult) -> list[Part]:
    """What the agents of the judge did and found: for the fields, and for traits. Equal ones are printed once."""
    found: dict[str, list[str]] = {}
    for name, trace in (result.rubric.agentic_trait_investigation_traces or {} if result.rubric else {}).items():
        found.setdefault(str(trace or ""), []).append(inline(name, 60))
    parts: list[Part] = []
    if result.template is not None and (trace := result.template.investigation_trace):
        parts += _conversation("Investigation of the fields", trace)
    for trace, names in found.items():
        parts += _conversation(f"Investigation of the trait{'s' * (len(names) > 1)} {', '.join(names)}", trace)
    return parts


def _conversation(title: str, trace: str) -> list[Part]:
    return [title, indented(*(shortened_lines(trace) if trace else ["(there is no record of it)"])), ""]


def kept_workspace(result: VerificationResult, run_dir: Path | None) -> list[Part]:
    """Where the files are that the agent left, or why they were not kept."""
    row = captures(run_dir).get(result.metadata.result_id)
    if row is None or run_dir is None:
        return []
    errors = [f"  not kept: {inline(error)}" for error in row.get("copy_errors") or ()]
    return [f"Workspace: {inline(workspace_text(row, run_dir / WORKSPACES), 1000)}", *errors, ""]
