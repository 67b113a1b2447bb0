"""What `karenina show --calls` prints: every request and every reply of an item, as the journal of the run has them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from karenina_runs.journal.reader import JournalReader, journal_of
from karenina_runs.journal.rows import CALLS, FAILURES, Row, Table
from karenina_vocabulary.tasks import PromptTask

from karenina_core.errors import ConfigError, Problem
from karenina_core.values.result import MetadataPart, VerificationResult

from ..output import Part, inline
from .conversation import indented, rendered

ASIDE = ("stage", "trait", "seconds", "reused_from")
"""What is shown of a call beside its line in a recording."""


def calls_of(run_dir: Path | None, results: Sequence[VerificationResult]) -> list[list[dict[str, Any]]]:
    """The calls of each result in the order in which they ended, as their lines in a recording and how they came about.

    An answer that several judges read was asked for once, and is among the calls of each of its results. An attempt
    that failed has an `error`, and what was asked where it was not tried again.

    Raises ConfigError where there is no journal, RunDirectoryError where it cannot be read.
    """
    if run_dir is None or not journal_of(run_dir).is_file():
        raise ConfigError([Problem("--calls", "the calls are in the journal of a run directory: name that directory")])
    with JournalReader.open(run_dir) as reader:
        found: dict[str, list[tuple[Row, dict[str, Any]]]] = {r.metadata.question_id: [] for r in results}
        for question, calls in found.items():
            for table in (CALLS, FAILURES):
                ids = reader.query(f"SELECT id FROM {table.name} WHERE question_id = ?", question)
                rows = (reader.candidates(table, [id_], {"question_id": question}) for (id_,) in ids)
                calls += [(row, _call(reader, table, row)) for row in rows if row is not None]
            calls.sort(key=lambda found: (found[0]["at"], found[0].id))

    def is_of(row: Row, call: Mapping[str, Any], about: MetadataPart) -> bool:
        if row["result_id"] == about.result_id:
            return True
        shared = row["task"] == PromptTask.GENERATION and row["model"] == about.answering_model
        return bool(shared and call.get("replicate", about.replicate) == about.replicate)

    return [[c for row, c in found[r.metadata.question_id] if is_of(row, c, r.metadata)] for r in results]


def _call(reader: JournalReader, table: Table, row: Row) -> dict[str, Any]:
    line = json.loads(reader.bodies.unpacked(row.body)) if row.body else {}
    if table is FAILURES and "error" not in line:
        known = {"kind": row["kind"], "model": row["model"], "task": row["task"]}
        line = {**known, "error": {"message": row["message"], "kind": row["error"], "status": row["status"]}}
    shown = {name: row[name] for name in ASIDE if row.facts.get(name)}
    at = datetime.fromtimestamp(row["at"], UTC).isoformat()
    return {"at": at, **shown, **line}


def call_parts(calls: Sequence[Mapping[str, Any]]) -> list[Part]:
    """The calls for people, without leaving anything out."""
    parts: list[Part] = [f"Requests and replies ({len(calls)})"]
    for number, call in enumerate(calls, 1):
        shown = (call.get("stage"), call["task"], call.get("trait"), call.get("channel"), call["at"])
        parts += ["", f"{number}. {', '.join(inline(text) for text in shown if text)}"]
        schema = call.get("schema")
        texts = (
            rendered(call.get("messages") or ()),
            *call.get("texts", ()),
            call.get("query", ""),
            f"schema: {_json(schema)}" if schema else "",
        )
        parts += [
            "Request",
            indented("\n".join(filter(None, texts)) or "(not kept: the failure was transient)"),
            *_came(call),
        ]
    return parts


def _came(call: Mapping[str, Any]) -> list[Part]:
    if error := call.get("error"):
        came = error.get("raw") or (error.get("parse") or {}).get("raw_response") or ""
        return [f"Failed: {error['kind']}: {inline(error['message'], 2000)}", *([indented(came)] if came else [])]
    reply = call["reply"]
    if listed := reply.get("trace_messages"):
        return ["Reply", indented(rendered(listed))]
    texts = [reply.get(key) for key in ("thinking", "content", "structured", "raw", "final_response")]
    tools = [_json(tool) for tool in reply.get("tool_calls") or ()]
    text = "\n".join(text for text in (*texts, *tools) if text)
    return ["Reply", indented(text or ("(empty)" if "content" in reply else _json(reply)))]


def _json(data: Any) -> str:
    return json.dumps(data, ensure_ascii=False)
