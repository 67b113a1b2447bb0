"""Traces: which text of an answer is judged, and how a trace is shown as text.

Structured messages are the source; text is generated from them. An answer that contains lines which look like the
headers below is never cut.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import frozen

from ..model.trace_text import render_trace

__all__ = ["EvaluationInput", "evaluation_input", "final_message", "model_text", "render_trace"]

Failure = Literal["empty", "last_not_ai", "no_text"]
WORDS = {
    "empty": "the trace is empty",
    "last_not_ai": "the last message of the trace is not from the answering model",
    "no_text": "the last message of the trace holds no text",
}


@frozen
class EvaluationInput:
    """The text for the judge, or why there is none."""

    text: str
    used_full_trace: bool
    error: str | None = None


def final_message(rows: Sequence[Mapping[str, Any]], raw: str) -> tuple[str, Failure | None]:
    """The final message of a trace and None, or no text and the kind of failure.

    Where there are structured messages, they alone decide; `raw` is the answer where there are none, whole and without
    white space around it. Text is never searched for headers. Tool calls beside a text do not take it away, nor does
    what a user says after it.
    """
    if not rows:
        text = raw.strip()
        return (text, None) if text else ("", "empty")
    last = next((row for row in reversed(rows) if row.get("role") != "user"), rows[-1])
    if last.get("role") != "assistant":
        return "", "last_not_ai"
    text = _text(last.get("content")).strip()
    return (text, None) if text else ("", "no_text")


def model_text(rows: Sequence[Mapping[str, Any]], raw: str) -> str:
    """What the answering model itself wrote, without tool output and headers; `raw` where there are no messages."""
    if not rows:
        return raw
    texts = [_text(row.get("content")) for row in rows if row.get("role") == "assistant"]
    return "\n\n".join(text for text in texts if text)


def _text(content: object) -> str:
    """The text of a row; a list of blocks, as `Message.to_dict` writes it, is read too."""
    if isinstance(content, list | tuple):
        texts = (block.get("text") for block in content if isinstance(block, Mapping))
        return "\n".join(text for text in texts if isinstance(text, str))
    return content if isinstance(content, str) else ""


def evaluation_input(rows: Sequence[Mapping[str, Any]], raw: str, *, full_trace: bool) -> EvaluationInput:
    """What a judge reads: the final message, or the whole trace. Every stage that shows an answer to one asks here.

    Where there is nothing to read, `error` says why and `text` is the raw answer, for display only.
    """
    if full_trace:
        return EvaluationInput(raw, True, None if raw.strip() else WORDS["empty"])
    text, failure = final_message(rows, raw)
    return EvaluationInput(text or raw, False, WORDS[failure] if failure else None)
