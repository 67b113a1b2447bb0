"""A comparison as annotations of GitHub Actions: workflow commands, one a line, that a step prints.

Escapes are those of the runner: %, CR and LF in messages, and also : and , in properties.
"""

from __future__ import annotations

from collections.abc import Sequence

from karenina_cli.output import inline, printable

from .gates import Gate
from .values import Comparison
from .wording import change, headline, line, models, notable

MOST = 10
"""GitHub shows so many annotations of a kind for a step."""
LONGEST = 1_000
"""Characters of a message; chosen."""


def github(comparison: Comparison, gates: Sequence[Gate]) -> str:
    """Failed gates are errors, questions that got worse warnings, and the rows notices."""
    lines: list[str] = []
    failed = [gate for gate in gates if not gate.passed]
    shown = failed if len(failed) <= MOST else failed[: MOST - 1]
    for gate in shown:
        lines.append(_command("error", f"{gate.name} gate failed", f"{gate.about}: {gate.message}"))
    if len(failed) > len(shown):
        lines.append(_command("error", "gates", f"{len(failed)} gates failed, {len(shown)} of them are shown"))
    rates = {row.metric: row.is_rate for row in comparison.rows}
    worse = [flip for flip in comparison.flipped if flip.change == "worse"]
    listed = worse if len(worse) <= MOST else worse[: MOST - 1]
    for flip in listed:
        message = f"{change(flip, rates[flip.metric])}. {flip.of_b.why}"
        lines.append(
            _command("warning", f"worse: {flip.question_id}", f"{models(flip.pair)}, {flip.metric}: {message}")
        )
    if len(worse) > len(listed):
        lines.append(_command("warning", "worse", f"{len(worse)} questions got worse, {len(listed)} of them are shown"))
    for row in notable(comparison.rows)[: MOST - 1]:
        cells = line(row)
        message = f"{cells.verdict}: {cells.difference}, adjusted p = {cells.p}"
        lines.append(_command("notice", f"{cells.models}: {cells.metric}", message))
    lines.append(_command("notice", "comparison", headline(comparison)))
    return "".join(f"{text}\n" for text in lines)


def _command(level: str, title: str, message: str) -> str:
    shown = inline(printable(title), 200)
    named = _data(shown).replace(":", "%3A").replace(",", "%2C")
    return f"::{level} title={named}::{_data(inline(printable(message), LONGEST))}"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")
