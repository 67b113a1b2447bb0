"""How help is laid out: options under headings, and examples below."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import click

REACHED = ("model", "interface", "provider", "base-url", "api-key-env")
SECTIONS: Mapping[str, Sequence[str]] = {
    "Models": tuple(f"--{role}{option}" for role in ("", "answering-", "parsing-") for option in REACHED),
    "What is evaluated": (
        *("--mode", "--with", "--without", "--questions", "--replicates", "--benchmark", "--workspace-root"),
        *("--judge-with", "--canaries", "--trust"),
    ),
    "Settings": ("--preset", "--config", "--set", "--strict-plugins"),
    "Which results": (
        *("--all", "--replicate", "--outcome", "--kind", "--stage", "--unscored", "--retry-failed"),
        *("--dry-run", "--undo"),
    ),
    "Existing answers and calls": (
        *("--reuse", "--answers", "--ask-missing", "--only-answered", "--parsed"),
        *("--manual-traces", "--record", "--replay"),
    ),
    "Limits and costs": (
        "--estimate",
        "--from",
        "--concurrency",
        "--budget-usd",
        "--budget-tokens",
        "--fail-fast",
    ),
    "Results": ("--output", "--journal", "--sheet", "--out", "--fork", "--sink", "--export", "--quiet", "--json"),
    "Gates": (
        *("--min-pass-rate", "--min-coverage", "--must-pass", "--min-pass-per-question", "--max-errors"),
        *("--max-drop", "--fail-on-regression", "--baseline", "--annotations"),
        *("--certificate", "--min-certified-rate"),
    ),
}
"""Headings, and the options below each, in this order. All others follow under `Others`."""
PLACES = {flag: (number, flags.index(flag)) for number, flags in enumerate(SECTIONS.values()) for flag in flags}


def examples(*lines: str) -> str:
    """The end of a command's help: what one may type, a command or a part of one in each line."""
    return "\n".join(["\b", "Examples:", *(f"  {line}" for line in lines)])


def write_sections(ctx: click.Context, formatter: click.HelpFormatter, parameters: Iterable[click.Parameter]) -> None:
    """The options under their headings; under one heading alone where they are few."""
    last = (len(SECTIONS), 0)
    found = [(PLACES.get(p.opts[-1], last), p.get_help_record(ctx)) for p in parameters]
    records = sorted(((place, record) for place, record in found if record), key=lambda pair: pair[0])
    titles = [*SECTIONS, "Others"]
    for number, title in enumerate(titles):
        if rows := [record for place, record in records if place[0] == number]:
            with formatter.section(title):
                formatter.write_dl(rows)
