"""The end of a run for people."""

from __future__ import annotations

import shlex
from collections.abc import Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import Any

from karenina_runs.results.results import VerificationResultSet
from karenina_vocabulary.explanations import why

from karenina_core.errors import plural

from .output import Part, Table, inline
from .show.traits import trait_totals

__all__ = ["cost_text", "model_parts", "not_passed", "percent", "run_parts", "shown_cost"]

MOST = 10
GOOD = ("passed", "scored")


def run_parts(
    results: VerificationResultSet, directory: Path, warnings: Sequence[str] = (), *, extends: Path | None = None
) -> list[Part]:
    """What is printed after a run whose results are in `directory`. `warnings` are the benchmark's; `extends` is the
    run whose results were taken over."""
    summary = results.get_summary()
    parts: list[Part] = [*model_parts(results), *not_passed(results)]
    parts += _listing("Left out", [(row["question_id"], row["reason"]) for row in summary["left_out"]])
    parts += _listing("Notes", [(text,) for text in summary["notes"]])
    parts += _listing("Warnings of the benchmark", [(text,) for text in warnings])
    unknown = " (the tokens of some calls are unknown)" if summary["usage_unavailable"] else ""
    failed = f" ({plural(summary['failed_attempts'], 'attempt')} failed)" if summary["failed_attempts"] else ""
    parts.append(f"Calls: {summary['calls']}{failed}, cost: {cost_text(summary)}{unknown}")
    if summary["paid"] is not None and (extends is not None or summary["reused_calls"]):
        parts.append(_made_here(summary, extends))
    parts.append(f"Results: {directory}")
    if results:
        parts.append(f"One item explained: {_show_line(results, directory)}")
    return parts


def model_parts(results: VerificationResultSet) -> list[Part]:
    """A table of rates for every pair of answering model and judge, and one of traits where there are any."""
    parts: list[Part] = []
    for row in results.get_summary()["models"]:
        parts.append(_pair(row))
        parts += trait_totals(row["traits"], row["items_without_scores"])
    return parts


def _made_here(summary: Mapping[str, Any], extends: Path | None) -> str:
    """What was asked now, and what was there."""
    paid, calls = summary["paid"], summary["reused_calls"]
    lines = [f"taken over: the results of {extends}"] if extends is not None else []
    if calls:
        lines.append(f"reused: {plural(calls, 'call')} ({shown_cost(summary['reused_cost_usd'])})")
    lines.append(f"made in this run: {plural(paid['calls'], 'call')} ({cost_text(paid)})")
    line = ", ".join(lines)
    return line[0].upper() + line[1:]


def percent(rate: float | None) -> str:
    """A fraction with one decimal."""
    return "n/a" if rate is None else f"{100 * rate:.1f} %"


def shown_cost(cost: float | None) -> str:
    """Dollars; what is not known is never shown as 0."""
    if cost is None:
        return "unknown"
    return "< $0.0001" if 0 < cost < 0.0001 else f"${cost:.4f}"


def cost_text(sums: Mapping[str, Any]) -> str:
    """The same of a sum, with what is unknown of it."""
    cost, attempts = sums["cost_usd"], sums["unknown_cost_attempts"]
    if not attempts or cost is None:
        return shown_cost(cost)
    known = shown_cost(cost) if cost else "unknown"
    return f"{known} (without that of {plural(attempts, 'failed attempt')} whose cost is unknown)"


def _pair(row: Mapping[str, Any]) -> Table:
    """Where only a rubric is evaluated, no verdict is due and every rate is n/a: those that have scores are counted."""
    rates = {
        "pass rate": _with_interval(row, "pass_rate"),
        "partial credit": _with_interval(row, "partial_credit") if row["has_parts"] else "",
        "accuracy of answered": percent(row["answered_accuracy"]),
        "coverage": percent(row["coverage"]),
    }
    scored = row["items"] - row["items_without_scores"]
    lines = {
        "items": str(row["items"]),
        "absent": str(row["absent"] or ""),
        **rates,
        "rubric scored": f"{scored} of {row['items']} items" if row["coverage"] is None else "",
        "outcomes": _counts(row["outcomes"]),
        "failed": _failures(row["failures"]),
        "errors": _counts(row["errors"]),
        "caveats": _counts(row["caveats"]),
    }
    rows = [pair for pair in lines.items() if pair[1]]
    return Table(("", ""), rows, f"{row['answering']}, judged by {row['parsing']}")


def _failures(counts: Mapping[str, int]) -> str:
    """Nothing where every failed answer has something wrong: that is what failed means to most."""
    return _counts({name.replace("_", " "): n for name, n in counts.items()}) if counts.get("not_found") else ""


def _with_interval(row: Mapping[str, Any], name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    interval = f" (95 %: {percent(low)} to {percent(high)})" if low is not None and high is not None else ""
    return percent(row[name]) + interval


def _counts(counts: Mapping[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(counts.items(), key=lambda pair: (-pair[1], pair[0])))


def not_passed(results: VerificationResultSet, most: int = MOST) -> list[Part]:
    """The items that did not pass, at most `most` of them; with the model where there are several."""
    models, bad = results.tally.models["answering"], _bad(results)
    several = len(models) > 1
    names = _short_names(models)
    rows = [
        (
            r.metadata.question_id,
            *([names[r.metadata.answering_model]] if several else []),
            str(r.outcome),
            inline(why(r)),
        )
        for r in islice((r for r in results if r.metadata.outcome not in GOOD), min(most, bad))
    ]
    head = ("question", *(["model"] if several else []), "outcome", "why")
    more = bad - len(rows)
    return [
        *([Table(head, rows, f"Not passed: {bad} of {len(results)}")] if rows else []),
        *([f"  and {more} more"] if more else []),
    ]


def _bad(results: VerificationResultSet) -> int:
    """How many did not pass: none has to be read for that."""
    return sum(count for outcome, count in results.tally.outcomes.items() if outcome not in GOOD)


def _short_names(models: Mapping[str, str]) -> Mapping[str, str]:
    """Identity -> the model's own name where that is enough to tell them apart."""
    unique = len(set(models.values())) == len(models)
    return models if unique else {identity: identity for identity in models}


def _listing(title: str, rows: Sequence[Sequence[str]]) -> list[Part]:
    cells = [tuple(inline(cell, 500) for cell in row) for row in rows]
    return [Table(("",) * len(rows[0]), cells, title)] if rows else []


def _show_line(results: VerificationResultSet, directory: Path) -> str:
    bad = _bad(results) > 0
    first = next(r for r in results if r.metadata.outcome not in GOOD) if bad else results[0]
    return shlex.join(["karenina", "show", str(directory), first.metadata.question_id])
