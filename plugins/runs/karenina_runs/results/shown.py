"""Result sets and benchmarks in a console and in a notebook: short, and nothing of a benchmark or a model is markup."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from html import escape
from pathlib import Path
from typing import Any

from karenina_core.errors import plural, shortened
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.rubric import TRAIT_LISTS

from ..summaries.summary import Tally

MOST = 20
"""Pairs of models, or questions, of a table; chosen."""
LONGEST = 100
"""Characters of a text in a cell; chosen."""


def results_text(tally: Tally, run_dir: Path | None) -> str:
    """One line: how many there are, what became of them, and where they are."""
    count = tally.outcomes.total()
    found = f"{plural(count, 'result')}: {_counts(tally.outcomes)}" if count else "no results"
    where = f", in {run_dir}" if run_dir else ""
    return f"<VerificationResultSet: {found}{where}>"


def results_html(tally: Tally, run_dir: Path | None) -> str:
    """The rates of each pair of models, with their intervals of 95 %, and the outcomes."""
    rows = [
        (
            *(row["answering"], row["parsing"], str(row["items"])),
            _rate(row),
            "" if row["coverage"] is None else f"{100 * row['coverage']:.1f} %",
            _counts(row["outcomes"]),
        )
        for row in tally.document()["models"]
    ]
    head = ("model", "judge", "items", "pass rate (95 %)", "coverage", "outcomes")
    where = f" in <code>{escape(str(run_dir))}</code>" if run_dir else ""
    return f"<div><b>{plural(tally.outcomes.total(), 'result')}</b>{where}{_table(head, rows, 'pairs of models')}</div>"


def benchmark_text(benchmark: BenchmarkData) -> str:
    """One line: its name, and how many questions of which kind."""
    return f"<{type(benchmark).__name__} {shortened(benchmark.name, LONGEST)!r}: {_content(benchmark)}>"


def benchmark_html(benchmark: BenchmarkData) -> str:
    """What it holds, and its first questions."""
    rows = [
        (
            shortened(question.id, LONGEST),
            shortened(question.question, LONGEST),
            shortened(question.raw_answer or "", LONGEST),
            "yes" if question.template is not None else "no",
            ", ".join(question.keywords),
        )
        for question in benchmark.questions
    ]
    head = ("id", "question", "reference answer", "template", "keywords")
    name = escape(shortened(benchmark.name, LONGEST))
    return f"<div><b>{name}</b>: {escape(_content(benchmark))}{_table(head, rows, 'questions')}</div>"


def _content(benchmark: BenchmarkData) -> str:
    questions = benchmark.questions
    templates = len([question for question in questions if question.template is not None])
    rubric = benchmark.rubric
    traits = sum(len(getattr(rubric, name)) for name in TRAIT_LISTS) if rubric is not None else 0
    parts = [plural(len(questions), "question"), f"{templates} with a template"]
    return ", ".join([*parts, *([plural(traits, "trait")] if traits else [])])


def _rate(row: dict[str, Any]) -> str:
    rate, low, high = (row[name] for name in ("pass_rate", "pass_rate_low", "pass_rate_high"))
    if rate is None:
        return ""
    return f"{100 * rate:.1f} %" + (f" ({100 * low:.1f} to {100 * high:.1f} %)" if low is not None else "")


def _counts(found: Counter[str] | dict[str, int]) -> str:
    return ", ".join(f"{name} {count}" for name, count in sorted(found.items(), key=lambda pair: (-pair[1], pair[0])))


def _table(head: Iterable[str], rows: Sequence[Sequence[str]], what: str) -> str:
    lines = [f"<tr>{''.join(f'<th>{escape(name)}</th>' for name in head)}</tr>"]
    lines += [f"<tr>{''.join(f'<td>{escape(cell)}</td>' for cell in row)}</tr>" for row in rows[:MOST]]
    more = f"<p>and {len(rows) - MOST} more {what}</p>" if len(rows) > MOST else ""
    return f"<table>{''.join(lines)}</table>{more}"
