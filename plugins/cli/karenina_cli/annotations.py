"""Annotations of GitHub Actions: workflow commands, one a line, that a step prints on stdout or stderr."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from karenina_core.errors import plural

from .output import inline, printable
from .summary import GOOD, alike_failures

if TYPE_CHECKING:
    from karenina_runs.results.results import VerificationResultSet
    from karenina_runs.summaries.gates import Gate

MOST = 10
"""GitHub shows so many annotations of a kind for a step."""
LONGEST = 1_000
"""Characters of a message; chosen."""


def annotation(level: str, title: str, message: str) -> str:
    """One line. `level` is `error`, `warning` or `notice`.

    Escapes are those of the runner: %, CR and LF in messages, and also : and , in titles.
    """
    shown = inline(printable(title), 200)
    named = _data(shown).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={named}::{_data(inline(printable(message), LONGEST))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def gate_annotations(gates: Sequence[Gate]) -> list[str]:
    """Those that failed are errors, those that passed undecided are warnings; no more than GitHub shows."""
    failed = [gate for gate in gates if not gate.passed]
    shown = failed if len(failed) <= MOST else failed[: MOST - 1]
    lines = [annotation("error", f"{gate.name} gate failed", f"{gate.about}: {gate.message}") for gate in shown]
    if len(failed) > len(shown):
        lines.append(annotation("error", "gates", f"{len(failed)} gates failed, {len(shown)} of them are shown"))
    warned = [gate for gate in gates if gate.passed and gate.warns]
    return lines + [annotation("warning", f"{g.name} gate", f"{g.about}: {g.message}") for g in warned[:MOST]]


def run_annotations(results: VerificationResultSet, gates: Sequence[Gate]) -> list[str]:
    """Of a run: its gates, and questions that did not pass as warnings."""
    bad = alike_failures(results, MOST + 1)
    shown = bad if len(bad) <= MOST else bad[: MOST - 1]
    lines = [
        annotation("warning", f"{row.outcome}: {row.named}", f"{row.model}: {row.why}{row.times}") for row in shown
    ]
    if len(bad) > len(shown):
        failed = sum(count for outcome, count in results.tally.outcomes.items() if outcome not in GOOD)
        more = f"{plural(failed, 'item')} did not pass, {sum(len(row.replicates) for row in shown)} of them are shown"
        lines.append(annotation("warning", "not passed", more))
    return gate_annotations(gates) + lines
