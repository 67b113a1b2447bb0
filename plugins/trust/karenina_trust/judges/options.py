"""Options of the commands that have trials judged."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click
from karenina_cli.options.options import (
    FILE,
    configuration_options,
    estimate_options,
    one_model_options,
    together,
    work_options,
)
from karenina_cli.options.sections import SECTIONS
from karenina_cli.plugin_options import VerifyCommand

F = TypeVar("F", bound=Callable[..., Any])


class TrialCommand(VerifyCommand):
    """A command with the options that packages bring, but for gates: a rate of trials is not one of a model."""

    without = frozenset(SECTIONS["Gates"])


def trial_options(what: str) -> Callable[[F], F]:
    """The judge, the questions, the run directory, and all that has to do with asking; `what` is estimated."""
    return together(
        one_model_options,
        configuration_options,
        click.option(
            "--questions",
            metavar="0-5,7|ID,...",
            help="Only these: positions counted from 0, inclusive ranges, or ids.",
        ),
        click.option(
            "--out",
            type=FILE,
            metavar="DIR",
            help="The run directory; it must be empty, or hold this very run. Default: karenina-runs/FILE-TIME.",
        ),
        estimate_options(what),
        work_options(spent=f"{what} may spend", sinks="Also write results there."),
    )
