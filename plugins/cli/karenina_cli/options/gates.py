"""Options that say what a run must come to, and what becomes of them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

import click

from ..output import Part, Table
from .options import together

if TYPE_CHECKING:
    from karenina_runs.summaries.gates import Gate, RunLimits

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


gate_options: Callable[[F], F] = together(
    click.option(
        "--min-pass-rate",
        type=SHARE,
        metavar="X",
        help="Exit with 4 where a smaller share of the items passes, with some model; items without a verdict do not.",
    ),
    click.option(
        "--min-coverage", type=SHARE, metavar="X", help="Exit with 4 where a smaller share is right or wrong."
    ),
    click.option(
        "--must-pass",
        multiple=True,
        metavar="ID|keyword:X",
        help="Exit with 4 where this question, or one with this keyword, does not pass with every model and replicate. "
        "Repeatable.",
    ),
    click.option(
        "--min-pass-per-question",
        callback=_of,
        metavar="K/N",
        help="Exit with 4 where a question passes fewer than K of its N replicates.",
    ),
    click.option(
        "--max-errors",
        callback=_errors,
        metavar="N|P%",
        help="Exit with 4 where more items end in an error, and ask nothing more from then on; with fewer, errors do "
        "not change the exit code.",
    ),
)


def run_limits(options: Mapping[str, Any]) -> RunLimits:
    """What the options ask for."""
    from karenina_runs.summaries.gates import RunLimits

    errors = options["max_errors"]
    return RunLimits(
        pass_rate=options["min_pass_rate"],
        coverage=options["min_coverage"],
        must_pass=options["must_pass"],
        per_question=options["min_pass_per_question"],
        errors=errors if isinstance(errors, int) else None,
        error_share=errors if isinstance(errors, float) else None,
    )


def gate_document(gates: Sequence[Gate]) -> dict[str, Any]:
    """What the JSON document of a run says of them; nothing where there are none."""
    rows = [{"name": g.name, "about": g.about, "passed": g.passed, "message": g.message} for g in gates]
    return {"gates": rows} if rows else {}


def gate_parts(gates: Sequence[Gate]) -> list[Part]:
    """The gates for people."""
    rows = [(gate.name, "passed" if gate.passed else "FAILED", gate.about, gate.message) for gate in gates]
    return [Table(("gate", "result", "of", "why"), rows, "Gates")]
