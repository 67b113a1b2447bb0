"""What the answering model was sent, did and replied, for people; what judges looked at, and files that were kept."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from contextlib import suppress
from itertools import groupby
from pathlib import Path
from typing import Any

from karenina_runs.summaries.details import shown_messages, workspace_text
from karenina_runs.workspaces.workspace_capture import WORKSPACES, captures
from karenina_vocabulary.quotations import Quotation, pieces
from karenina_vocabulary.traces import final_message, render_trace

from karenina_core.errors import plural
from karenina_core.values.message import trace_messages
from karenina_core.values.result import VerificationResult

from ..output import Part, Passage, Table, inline

MOST_LINES = 40
"""Lines of a conversation that are printed, half of them from its beginning; chosen."""
WIDEST = 500
"""Characters of such a line; chosen."""
ALL = "--json prints all of it"


def answer_parts(result: VerificationResult, quoted: Collection[Quotation] = ()) -> list[Part]:
    """The answer as the judge read it, with the quotations that are in it; where there is none, what was done."""
    metadata, generation = result.metadata, result.generation
    text = answer_text(result)
    title = f"Answer of {metadata.answering_model}, replicate {metadata.replicate}"
    if text:
        other = result.evaluation_input is not None and not _same(text, generation.raw_llm_response)
        runs = groupby(pieces(text, quoted), lambda piece: bool(piece.names))
        passage = Passage([("".join(piece.text for piece in run), mark) for mark, run in runs])
        names = dict.fromkeys(f"{found.kind} {inline(found.name, 60)}" for found in quoted if found.span)
        legend = [f"  (marked: quotations that were found in it, for {', '.join(names)})"] if passage.marked else []
        return [f"{title}{', as read by the judge' if other else ''}", passage, *legend, ""]
    if not generation.trace_messages:
        return [title, indented("(none)"), ""]
    done = shortened_lines(rendered(generation.trace_messages))
    return [title, indented("(none; the work until then:)"), "", indented(*done), ""]


def trace_parts(result: VerificationResult) -> list[Part]:
    """What the model wrote and did beside the answer; nothing where the answer is all of it."""
    rows, whole, text = result.generation.trace_messages, result.generation.raw_llm_response, answer_text(result)
    with suppress(AttributeError, KeyError, TypeError, ValueError):  # rows of another tool that cannot be read
        if _same(text, render_trace(trace_messages(rows))):
            return []  # it is shown in the place of the answer
    if not text:
        return []
    if any(not _only_says(row, text) for row in rows):
        return [f"Trace ({plural(len(rows), 'message')})", indented(*shortened_lines(rendered(rows))), ""]
    return [] if _same(whole, text) else ["The whole reply", indented(*shortened_lines(whole)), ""]


def sent_parts(result: VerificationResult) -> list[Part]:
    """What the model was sent, where that is more than its question and its system prompt."""
    metadata, rows = result.metadata, result.generation.conversation_context
    known = (metadata.question_text, metadata.answering_system_prompt or "")
    if all(any(_only_says(row, text) for text in known) for row in rows):
        return []
    lines = shortened_lines(rendered(rows))
    return [f"Sent to the model ({plural(len(rows), 'message')})", indented(*lines), ""]


def indented(*lines: str) -> Passage:
    """Lines of text, printed with two blanks before each of them."""
    return Passage([("\n".join(lines), False)])


def shortened_lines(text: str) -> list[str]:
    """The beginning and the end of a text, with what is left out between them."""
    lines = text.split("\n")
    cut = [
        line if len(line) <= WIDEST else f"{line[:WIDEST]}… ({len(line) - WIDEST} more characters)" for line in lines
    ]
    half = MOST_LINES // 2
    if len(cut) <= MOST_LINES:
        return cut if cut == lines else [*cut, f"({ALL})"]
    return [*cut[:half], f"… {plural(len(cut) - 2 * half, 'line')} left out; {ALL} …", *cut[-half:]]


def answer_text(result: VerificationResult) -> str:
    """What the judge read; where no text was chosen for it, the last message of the trace, or all of the reply."""
    if result.evaluation_input is not None:
        return result.evaluation_input
    raw = result.generation.raw_llm_response
    return final_message(result.generation.trace_messages, raw)[0] or raw


def rendered(rows: Iterable[Mapping[str, Any]]) -> str:
    """Who speaks at the edge, and the text two blanks from it, so that no text can pass for another message."""
    lines: list[str] = []
    for message in shown_messages(rows):
        lines.append(inline(message.role, 40))
        for label, text in message.blocks:
            shown = f"{inline(label, 100)}: {text}" if label else text
            lines += [f"  {line}" if line else "" for line in shown.split("\n")]
    return "\n".join(lines)


def _only_says(row: Mapping[str, Any], text: str) -> bool:
    """Whether a message is this text and nothing else."""
    (message,) = shown_messages([row])
    return all(not label for label, _ in message.blocks) and _same("\n".join(b.text for b in message.blocks), text)


def _same(a: str, b: str) -> bool:
    return a.strip() == b.strip()


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
    return [f"Workspace: {workspace_text(row, run_dir / WORKSPACES)}", *errors, ""]
