"""Options that say what a run must come to, and what becomes of them.

Other packages add gates by an entry point of the group `karenina.gates`: a function `asked(prepared)`, of the run that
is about to begin, that gives None, or what gives the gates for its results. It is called before anything is paid for,
and raises ConfigError.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..entries import usable
from ..output import Part, Table, note
from .options import together

if TYPE_CHECKING:
    from karenina_runs.plan.items import Prepared
    from karenina_runs.results.results import VerificationResultSet
    from karenina_runs.summaries.gates import Gate, RunLimits

GROUP = "karenina.gates"
F = TypeVar("F", bound=Callable[..., Any])
SHARE = click.FloatRange(0, 1)


def _of(ctx: click.Context, parameter: click.Parameter, value: str | None) -> tuple[int, int] | None:
    """`8/10`: so many of so many."""
    if value is None:
        return None
    found = re.fullmatch(r"(\d{1,6})/(\d{1,6})", value)
    least, of = (int(found[1]), int(found[2])) if found else (0, 0)
    if not 1 <= least <= of:
        raise click.BadParameter(f"{value!r}: write K/N, such as 8/10", ctx, parameter)
    return least, of


def _errors(ctx: click.Context, parameter: click.Parameter, value: str | None) -> int | float | None:
    """`5` or `2.5%`: a number, or a share."""
    if value is None or re.fullmatch(r"\d{1,9}", value):
        return None if value is None else int(value)
    if re.fullmatch(r"\d{1,3}(\.\d{1,6})?%", value) and float(value[:-1]) <= 100:
        return float(value[:-1]) / 100
    raise click.BadParameter(f"{value!r}: write a number, or a share such as 5%", ctx, parameter)


item_gate_options: Callable[[F], F] = together(
    click.option(
        "--must-pass",
        multiple=True,
        metavar="ID|keyword:X",
        help="Exit with 4 if this question, or one with this keyword, does not pass with every model and replicate. "
        "Repeatable.",
    ),
    click.option(
        "--min-pass-per-question",
        callback=_of,
        metavar="K/N",
        help="Exit with 4 if a question passes fewer than K of its N replicates.",
    ),
    click.option(
        "--max-errors",
        callback=_errors,
        metavar="N|P%",
        help="Exit with 4 if more items end in an error, and make no more calls from then on; otherwise errors do "
        "not change the exit code.",
    ),
)
gate_options: Callable[[F], F] = together(
    click.option(
        "--min-pass-rate",
        type=SHARE,
        metavar="X",
        help=(
            "Exit with 4 if a smaller share of the items passes for some model; items without a verdict count as "
            "not passed."
        ),
    ),
    click.option(
        "--min-coverage", type=SHARE, metavar="X", help="Exit with 4 if a smaller share of the items is right or wrong."
    ),
    item_gate_options,
    click.option(
        "--annotations",
        type=click.Choice(("github",)),
        help="Print failed gates and questions that did not pass on stderr, as GitHub Actions annotations.",
    ),
)


def run_limits(options: Mapping[str, Any]) -> RunLimits:
    """What the options ask for."""
    from karenina_runs.summaries.gates import RunLimits

    errors = options["max_errors"]
    return RunLimits(
        pass_rate=options.get("min_pass_rate"),
        coverage=options.get("min_coverage"),
        must_pass=options["must_pass"],
        per_question=options["min_pass_per_question"],
        errors=errors if isinstance(errors, int) else None,
        error_share=errors if isinstance(errors, float) else None,
    )


def asked_gates(prepared: Prepared, options: Mapping[str, Any]) -> Callable[[VerificationResultSet], Sequence[Gate]]:
    """What gives every gate that the options and settings ask for. Raises ConfigError, before a model is asked, where
    one could never be decided."""
    from karenina_runs.summaries.gates import must_pass_ids, run_gates

    limits, chosen = run_limits(options), {question.id: question.keywords for question in prepared.questions}
    must_pass = must_pass_ids(limits, chosen, prepared.config.replicate_count, prepared.mode)
    more = [judge for _, asked in usable(GROUP, "gate") if (judge := asked(prepared)) is not None]

    def judged(results: VerificationResultSet) -> Sequence[Gate]:
        own = run_gates(results, prepared.planned, limits, must_pass)
        return [*own, *(gate for judge in more for gate in judge(results))]

    return judged


def note_gates(gates: Sequence[Gate]) -> bool:
    """Say on stderr which gates failed, and which passed although nothing decides them. Returns whether all passed."""
    for gate in gates:
        if not gate.passed or gate.warns:
            state = "Warning" if gate.passed else "gate failed"
            note(f"{state}: {gate.name}, {gate.about}: {gate.message}")
    return all(gate.passed for gate in gates)


def gate_document(gates: Sequence[Gate]) -> dict[str, Any]:
    """What the JSON document of a run says of them; nothing where there are none."""
    from attrs import asdict  # the help of `verify` does without

    rows = [asdict(gate) for gate in gates]
    return {"gates": rows} if rows else {}


def gate_parts(gates: Sequence[Gate]) -> list[Part]:
    """The gates for people."""
    rows = [(gate.name, gate_state(gate), gate.about, gate.message) for gate in gates]
    return [Table(("gate", "result", "of", "why"), rows, "Gates")]


def gate_state(gate: Gate) -> str:
    """In a word."""
    return "FAILED" if not gate.passed else "WARNING" if gate.warns else "passed"
