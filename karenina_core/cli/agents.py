"""What agents did, for people: the work of the answering model, what judges looked at, and the files that were kept."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from ..errors import plural
from ..model.message import trace_messages
from ..model.result import VerificationResult
from ..pipeline.trace import render_trace
from ..run.workspace_capture import MANIFEST, WORKSPACES
from .output import Part, Table, inline

__all__ = ["answer_parts", "indented", "investigations", "kept_workspace", "work"]

MOST_LINES = 40
"""Lines of a conversation that are printed, half of them from its beginning."""
WIDEST = 500
"""Characters of such a line."""
ALL = "--json prints all of it"


def answer_parts(result: VerificationResult) -> list[Part]:
    """The answer; where there is none, what was done until then."""
    metadata, generation = result.metadata, result.generation
    title = f"Answer of {metadata.answering_model}, replicate {metadata.replicate}"
    if generation.raw_llm_response:
        return [title, indented(generation.raw_llm_response), ""]
    if not generation.trace_messages:
        return [title, indented("(none)"), ""]
    done = _shortened(render_trace(trace_messages(generation.trace_messages)))
    return [title, indented("(none; what was done until then:)"), "", *map(indented, done), ""]


def work(result: VerificationResult) -> list[Part]:
    """The numbers of an agent that answered, and what ended its work."""
    metrics = result.generation.agent_metrics or {}
    rows = [
        ("replies", str(metrics.get("iterations", ""))),
        ("calls of tools", _counted(metrics.get("tool_calls"), metrics.get("tool_call_counts"))),
        ("may have failed", _suspects(metrics)),
        ("tool servers", inline(", ".join(result.generation.answering_mcp_servers))),
        ("ended by its limit of", inline(metrics.get("limit") or ("" if not metrics.get("limit_reached") else "?"))),
    ]
    told = [row for row in rows if row[1]]
    return [Table(("", ""), told, "Work of the answering agent")] if metrics and told else []


def _counted(total: Any, counts: Any) -> str:
    by_tool = counts if isinstance(counts, Mapping) else {}
    named = ", ".join(f"{name} {count}" for name, count in by_tool.items())
    return f"{total} ({inline(named)})" if named else str(total if total is not None else "")


def _suspects(metrics: Mapping[str, Any]) -> str:
    count = metrics.get("suspect_failed_tool_calls")
    if not isinstance(count, int) or not count:
        return ""
    named = ", ".join(map(str, metrics.get("suspect_failed_tools") or ()))
    return f"{plural(count, 'answer')} of tools{f' ({inline(named)})' if named else ''}"


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
    return [title, *map(indented, _shortened(trace) if trace else ["(there is no record of it)"]), ""]


def _shortened(text: str) -> list[str]:
    """The beginning and the end of a text, with what is left out between them."""
    lines = text.split("\n")
    cut = [
        line if len(line) <= WIDEST else f"{line[:WIDEST]}… ({len(line) - WIDEST} more characters)" for line in lines
    ]
    half = MOST_LINES // 2
    if len(cut) <= MOST_LINES:
        return cut if cut == lines else [*cut, f"({ALL})"]
    return [*cut[:half], f"… {plural(len(cut) - 2 * half, 'line')} left out; {ALL} …", *cut[-half:]]


def kept_workspace(result: VerificationResult, run_dir: Path | None) -> list[Part]:
    """Where the files are that the agent left, or why they were not kept."""
    row = _captures(run_dir).get(result.metadata.result_id) if run_dir is not None else None
    if row is None or run_dir is None:
        return []
    if row.get("destination"):
        files = row.get("copied_file_count")
        count = plural(files, "file") if isinstance(files, int) else "files"
        parts: list[Part] = [f"Workspace: {run_dir / WORKSPACES / str(row['destination'])} ({count})"]
        parts += [f"  not kept: {inline(error)}" for error in row.get("copy_errors") or ()]
        return [*parts, ""]
    return [f"Workspace: not kept: {inline(row.get('skip_reason') or 'no reason is known')}", ""]


def _captures(run_dir: Path) -> dict[str, Mapping[str, Any]]:
    """The rows of the manifest of workspaces, by result; a later row of a result counts."""
    try:
        lines = (run_dir / WORKSPACES / MANIFEST).read_text("utf-8", errors="replace").splitlines()
    except OSError:
        return {}
    return {str(row.get("result_id")): row for row in _rows(lines)}


def _rows(lines: Iterable[str]) -> Iterable[Mapping[str, Any]]:
    for line in lines:
        try:
            row = json.loads(line)
        except ValueError:
            continue  # a run that was killed may leave half a line
        if isinstance(row, Mapping):
            yield row


def indented(text: str) -> str:
    """The text with two blanks before every line."""
    return "\n".join(f"  {line}" for line in text.split("\n"))
