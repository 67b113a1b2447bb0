"""The end of a run for people."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from itertools import islice, takewhile
from pathlib import Path
from typing import Any, NamedTuple

from karenina_runs.results.results import VerificationResultSet
from karenina_vocabulary.explanations import why

from karenina_core.entry_points import installed_entry_points
from karenina_core.errors import plural
from karenina_core.values.result import VerificationResult

from .output import Part, Table, inline
from .show.traits import trait_totals

MOST = 10
"""Items that did not pass that are listed after a run; chosen."""
COLLECTED = 10_000
"""Items that did not pass among which replicates are collected. Chosen: they are read within a second or two."""
GOOD = ("passed", "scored")
QUOTED = 20
"""Characters of a question by which it is found in an error that quotes more of it; chosen: they are seldom there by
chance."""
ANY = "*"
"""In place of the question, where errors of several are compared."""


def run_parts(
    results: VerificationResultSet, directory: Path, warnings: Sequence[str] = (), *, extends: Path | None = None
) -> list[Part]:
    """What is printed after a run whose results are in `directory`. `warnings` are the benchmark's; `extends` is the
    run whose results were taken over."""
    summary = results.get_summary()
    parts: list[Part] = [*model_parts(results), *not_passed(results)]
    parts.append(listing("Left out", [(row["question_id"], row["reason"]) for row in summary["left_out"]]))
    parts.append(canary_table(results.canaries))
    parts.append(listing("Notes", [(text,) for text in summary["notes"]]))
    parts.append(listing("Warnings of the benchmark", [(text,) for text in warnings]))
    unknown = " (the tokens of some calls are unknown)" if summary["usage_unavailable"] else ""
    failed = f" ({plural(summary['failed_attempts'], 'attempt')} failed)" if summary["failed_attempts"] else ""
    parts.append(f"Calls: {summary['calls']}{failed}, cost: {cost_text(summary)}{unknown}")
    if (cached := summary["cached_input_tokens"]) is not None and (sent := summary["tokens"]["input"]):
        parts.append(f"Input tokens: {sent}, of them read from a cache: {cached} ({percent(cached / sent)})")
    if summary["paid"] is not None and (extends is not None or summary["reused_calls"]):
        paid, calls = summary["paid"], summary["reused_calls"]
        lines = [f"taken over: the results of {extends}"] if extends is not None else []
        if calls:
            lines.append(f"reused: {plural(calls, 'call')} ({shown_cost(summary['reused_cost_usd'])})")
        lines.append(f"made in this run: {plural(paid['calls'], 'call')} ({cost_text(paid)})")
        line = ", ".join(lines)
        parts.append(line[0].upper() + line[1:])
    parts.append(f"Results: {directory}")
    if results:
        bad = _bad(results) > 0
        first = next(r for r in results if r.metadata.outcome not in GOOD) if bad else results[0]
        line = shlex.join(["karenina", "show", str(directory), first.metadata.question_id])
        parts.append(f"Details of one item: {line}")
        if "report" in installed_entry_points("karenina.commands").names:
            parts.append(f"Full report: {shlex.join(['karenina', 'report', str(directory)])}")
    return parts


def model_parts(results: VerificationResultSet) -> list[Part]:
    """A table of rates for every pair of answering model and judge, and one of traits where there are any."""
    parts: list[Part] = []
    for row in results.get_summary()["models"]:
        parts.append(_pair(row))
        parts += trait_totals(row["traits"], row["items_without_scores"])
    return parts


def canary_table(found: Mapping[str, Any] | None) -> Table:
    """How often each judge obeyed an instruction in an answer."""
    rows = [
        (
            row["judge"],
            row.get("path", "template"),
            f"{row['obeyed']} of {row['obeyed'] + row['resisted']}",
            _with_interval(row, "rate"),
            str(row["errors"] or ""),
        )
        for row in (found["judges"] if found else ())
    ]
    return Table(("judge", "path", "obeyed", "attack success rate", "errors"), rows, "Canaries")


def percent(rate: float | None) -> str:
    """A fraction with one decimal."""
    return "n/a" if rate is None else f"{100 * rate:.1f} %"


def shown_cost(cost: float | None) -> str:
    """Dollars; what is not known is never shown as 0."""
    if cost is None:
        return "unknown"
    return "< $0.0001" if 0 < cost < 0.0001 else f"${cost:.4f}"


def shown_tokens(known: Any, unknown: bool, written: Callable[[Any], str] = str) -> str:
    """How many tokens calls took; never a plain number, nor 0, where those of some call are `unknown`."""
    if not unknown:
        return written(known)
    return f"at least {written(known)}" if known else "unknown"


def cost_text(sums: Mapping[str, Any]) -> str:
    """The same of a sum, with what is unknown of it."""
    cost, attempts = sums["cost_usd"], sums["unknown_cost_attempts"]
    if not attempts or cost is None:
        return shown_cost(cost)
    known = shown_cost(cost) if cost else "unknown"
    return f"{known} (plus the unknown cost of {plural(attempts, 'failed attempt')})"


def _pair(row: Mapping[str, Any]) -> Table:
    """Where only a rubric is evaluated, no verdict is due and every rate is n/a: those that have scores are counted."""
    rates = {
        "pass rate": _with_interval(row, "pass_rate"),
        "partial credit": _with_interval(row, "partial_credit") if row["has_parts"] else "",
        "accuracy of answered": percent(row["answered_accuracy"]),
        "coverage": percent(row["coverage"]),
    }
    scored = row["items"] - row["items_without_scores"]
    # not shown where every failed answer has something wrong: that is what failed means to most
    failures = {name.replace("_", " "): count for name, count in row["failures"].items()}
    lines = {
        "items": str(row["items"]),
        "absent": str(row["absent"] or ""),
        **rates,
        "rubric scored": f"{scored} of {row['items']} items" if row["coverage"] is None else "",
        "outcomes": counts(row["outcomes"]),
        "failed": counts(failures) if failures.get("not found") else "",
        "errors": counts(row["errors"]),
        "caveats": counts(row["caveats"]),
    }
    rows = [pair for pair in lines.items() if pair[1]]
    return Table(("", ""), rows, f"{row['answering']}, judged by {row['parsing']}")


def _with_interval(row: Mapping[str, Any], name: str) -> str:
    low, high = row[f"{name}_low"], row[f"{name}_high"]
    interval = f" (95 %: {percent(low)} to {percent(high)})" if low is not None and high is not None else ""
    return percent(row[name]) + interval


def counts(found: Mapping[Any, int]) -> str:
    """`failed 2, error 1`, the largest first."""
    return ", ".join(f"{name} {count}" for name, count in sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


class Alike(NamedTuple):
    """Replicates of a question that failed in the same way; of an error, also those of other questions."""

    question: str
    model: str
    judge: str
    outcome: str
    why: str
    replicates: tuple[int, ...]
    """Of each item, so that they are as many as the items."""
    questions: int = 1
    """How many there are; `question` is the first one."""

    @property
    def times(self) -> str:
        """` (3 times)`; empty of one."""
        return f" ({len(self.replicates)} times)" if len(self.replicates) > 1 else ""

    @property
    def named(self) -> str:
        """`q1`, `q1 and 2 others`."""
        others = f" and {plural(self.questions - 1, 'other')}" if self.questions > 1 else ""
        return f"{self.question}{others}"


def alike_failures(results: VerificationResultSet, most: int) -> list[Alike]:
    """The first `most` items that did not pass, or where there are replicates or several errors the first `COLLECTED`:
    one for all of a question with the same models, outcome and reason, where the first of them is. Errors that differ
    by the question alone are one, too. The rest is not read."""
    collected = len(results.tally.replicates) > 1 or results.tally.outcomes.get("error", 0) > 1
    wanted = min(_bad(results), COLLECTED if collected else most)
    found: dict[tuple[str, str, str, str, str], list[VerificationResult]] = {}
    for r in islice((r for r in results if r.metadata.outcome not in GOOD), wanted):
        about = r.metadata
        whose, same = about.question_id, inline(why(r))
        if about.outcome == "error":
            whose, same = ANY, without_question(r)
        key = (whose, about.answering_model, about.parsing_model, str(r.outcome), same)
        found.setdefault(key, []).append(r)
    return [
        Alike(
            *(alike[0].metadata.question_id, *key[1:4], inline(why(alike[0]))),
            replicates=tuple(r.metadata.replicate for r in alike),
            questions=len({r.metadata.question_id for r in alike}),
        )
        for key, alike in found.items()
    ]


def without_question(result: VerificationResult) -> str:
    """Why an item ended as it did, without the id of its question, and its text as far as it is quoted."""
    reason, text = (" ".join(given.split()) for given in (why(result), result.metadata.question_text))
    head, found, rest = reason.partition(text[:QUOTED])
    if found and text:
        alike = takewhile(lambda pair: pair[0] == pair[1], zip(rest, text[QUOTED:], strict=False))
        rest = rest[len(list(alike)) :].removeprefix("…")
        reason = f"{head}{ANY}{rest}"
    return reason.replace(repr(result.metadata.question_id), ANY)


def replicates_text(numbers: Sequence[int]) -> str:
    """`1-3, 7`."""
    parts: list[list[int]] = []
    for number in sorted(numbers):
        if parts and number == parts[-1][-1] + 1:
            parts[-1].append(number)
        else:
            parts.append([number])
    return ", ".join(f"{part[0]}-{part[-1]}" if len(part) > 1 else str(part[0]) for part in parts)


def not_passed(results: VerificationResultSet, most: int = MOST) -> list[Part]:
    """The items that did not pass, at most `most` rows of them: replicates that failed alike are one row. With the
    model and the judge where there are several."""
    models, bad = results.tally.models["answering"], _bad(results)
    several = len(models) > 1, len(results.tally.models["parsing"]) > 1, len(results.tally.replicates) > 1
    unique = len(set(models.values())) == len(models)  # else two models have the same name
    names = models if unique else {identity: identity for identity in models}
    rows = alike_failures(results, most)
    shown = [
        (
            row.named,
            *([names[row.model]] if several[0] else []),
            *([row.judge] if several[1] else []),
            *([replicates_text(sorted(set(row.replicates)))] if several[2] else []),
            row.outcome,
            row.why,
        )
        for row in rows[:most]
    ]
    optional = [name for name, has in zip(("model", "judge", "replicates"), several, strict=True) if has]
    more = bad - sum(len(row.replicates) for row in rows[:most])
    return [
        Table(("question", *optional, "outcome", "why"), shown, f"Not passed: {bad} of {len(results)}"),
        *([f"  and {more} more"] if more else []),
    ]


def _bad(results: VerificationResultSet) -> int:
    """How many did not pass: none has to be read for that."""
    return sum(count for outcome, count in results.tally.outcomes.items() if outcome not in GOOD)


def listing(title: str, rows: Sequence[Sequence[str]]) -> Table:
    """A table without names of columns."""
    return Table(
        ("",) * len(rows[0]) if rows else (), [tuple(inline(cell, 500) for cell in row) for row in rows], title
    )
