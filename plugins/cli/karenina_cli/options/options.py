"""Options that several commands share. None of them has a default: what is not given overrides nothing."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

import click

F = TypeVar("F", bound=Callable[..., Any])
FILE = click.Path(path_type=Path)
COUNT = click.IntRange(min=1)
MODES = ("template_only", "template_and_rubric", "rubric_only")


class RunFolder(click.Path):
    """The directory of a run; `latest` is the one under karenina-runs that began last, unless a file is called so."""

    def __init__(self) -> None:
        super().__init__(path_type=Path)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> Any:
        if str(value) == "latest" and not Path(value).exists():
            from karenina_runs.folder.directory import latest_run  # only where it is typed

            value = latest_run()
        return super().convert(value, param, ctx)


RUN = RunFolder()


def together(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several options as one decorator; help lists them in this order."""

    def decorated(function: F) -> F:
        for option in reversed(options):
            function = option(function)
        return function

    return decorated


def _has_value(ctx: click.Context, parameter: click.Parameter, values: tuple[str, ...]) -> tuple[str, ...]:
    for value in values:
        if "=" not in value:
            raise click.BadParameter(f"{value!r}: write key.path=value, such as run.concurrency=4", ctx, parameter)
    return values


run_argument = click.argument("directory", metavar="DIR", type=RUN)
json_option = click.option("--json", "as_json", is_flag=True, help="Print one JSON document on stdout.")
benchmark_option = click.option(
    "--benchmark", type=FILE, metavar="FILE", help="The benchmark of the run, if its file has moved."
)


def settings_options(config: str, setting: str) -> Callable[[F], F]:
    """--config and --set, with what help says about them."""
    path = "KEY.PATH=VALUE"
    return together(
        click.option("--config", type=FILE, metavar="FILE", help=config),
        click.option("--set", "sets", multiple=True, metavar=path, callback=_has_value, help=setting),
    )


configuration_options = together(
    click.option(
        "--preset",
        metavar="NAME|FILE",
        help="A configuration that was saved with `karenina preset save`. All other settings win over it.",
    ),
    settings_options(
        "Settings in TOML. No file is read unless it is named here.",
        "One setting: run.FIELD, models.NAME.FIELD or plugins.NAME.FIELD. The value is read as TOML, else as text. "
        "Dedicated options, such as --concurrency, win over it. Repeatable.",
    ),
)
run_options = together(
    configuration_options,
    click.option("--mode", type=click.Choice(MODES), help="What is evaluated."),
    click.option(
        "--judge-with",
        metavar="NAME",
        help="How questions without a template are judged. reference: the judge compares the answer with the reference "
        "answer, which is weaker evidence and is marked as such.",
    ),
    click.option(
        "--with",
        "features_on",
        multiple=True,
        metavar="FEATURE",
        help="Switch on an optional feature, such as abstention. Repeatable.",
    ),
    click.option(
        "--without",
        "features_off",
        multiple=True,
        metavar="FEATURE",
        help="Switch off an optional feature. Repeatable.",
    ),
)


def later_settings(before: str) -> Callable[[F], F]:
    """--config and --set of a command about a run which is there: `before` names the settings that these win over."""
    return settings_options(
        f"Settings in TOML that win over those of {before}.",
        "One setting: run.FIELD, models.ID.FIELD or plugins.NAME.FIELD. Repeatable.",
    )


def sink_option(effect: str) -> Callable[[F], F]:
    """--sink, with what help says about it."""
    return click.option("--sink", "sinks", multiple=True, metavar="NAME:TARGET", help=f"{effect} Repeatable.")


replicates_option = click.option(
    "--replicates", type=COUNT, metavar="N", help="Independent answers per question and model."
)


def estimate_options(what: str) -> Callable[[F], F]:
    """--estimate and --from; `what` the estimate is of."""
    return together(
        click.option(
            "--estimate",
            is_flag=True,
            help=f"Only estimate the calls, tokens and cost of {what}; no call is made.",
        ),
        click.option(
            "--from",
            "from_run",
            type=click.Path(path_type=Path, exists=True),
            metavar="RUN",
            help="With --estimate: an earlier run (its directory or a file of its results), whose calls predict the "
            "tokens of calls for the same task.",
        ),
    )


def limit_options(spent: str) -> Callable[[F], F]:
    """How much is asked at a time and in all: `spent` says what the budgets are about."""
    positive = click.FloatRange(min=0, min_open=True)
    dollars = f"US dollars that {spent}. Once they are spent, no new calls are made."
    return together(
        click.option("--concurrency", type=COUNT, metavar="N", help="Items in flight."),
        click.option("--budget-usd", type=positive, metavar="X", help=dollars),
        click.option("--budget-tokens", type=COUNT, metavar="N", help=f"Tokens, in and out, that {spent}."),
    )


def work_options(*, spent: str, sinks: str) -> Callable[[F], F]:
    """Of commands that ask models: `spent` as of `limit_options`, `sinks` says what is written to them."""
    return together(
        limit_options(spent),
        sink_option(sinks),
        click.option(
            "--fail-fast",
            is_flag=True,
            default=None,
            help="Make no more calls once an item has ended in an error that is not about what a model said.",
        ),
        click.option("--strict-plugins", is_flag=True, help="Refuse to run if an installed plugin has failed."),
        click.option("--trust", is_flag=True, help="Run the file's Python templates in this process, unprotected."),
        click.option("--quiet", is_flag=True, help="Show no progress on stderr."),
        json_option,
    )


def options_of_a_later_run(
    *,
    before: str = "the original run",
    spent: str = "the whole run may spend, including what it has already spent",
    sinks: str = "Write results there instead of to the original sinks.",
) -> Callable[[F], F]:
    """What commands share that work on a run which is there; see `later_settings` and `work_options`."""
    return together(later_settings(before), work_options(spent=spent, sinks=sinks))


def model_options(role: str, *, added: bool = False) -> Callable[[F], F]:
    """--ROLE-model and the four options that say how to reach it. `added`: to the models of a run that is there."""
    effect = "Added to the models of the run" if added else f"Replaces run.{role}_models"
    model = f"A model's name, or the NAME of a [models.NAME] table. {effect}. Repeatable."
    return _reached(f"{role}-", f"{role}_", model, "" if added else f"The same for the {role} models only.")


def _reached(flag: str, name: str, model: str, others: str = "") -> Callable[[F], F]:
    """A model and how it is reached; `others` is the help of all options but the first."""
    interface = "The model's interface. Default: what a plugin says for PROVIDER/NAME, else litellm."
    address = f"The server's address; does not choose the interface (see --{flag}interface)."
    key = "The environment variable that holds the API key."
    return together(
        click.option(f"--{flag}model", f"{name}models", multiple=True, metavar="MODEL", help=model),
        click.option(f"--{flag}interface", f"{name}interface", metavar="NAME", help=others or interface),
        click.option(f"--{flag}provider", f"{name}provider", metavar="NAME", help=others or "The model's provider."),
        click.option(f"--{flag}base-url", f"{name}base_url", metavar="URL", help=others or address),
        click.option(f"--{flag}api-key-env", f"{name}api_key_env", metavar="NAME", help=others or key),
    )


one_model_options: Callable[[F], F] = _reached(
    "", "both_", "A model's name, or the NAME of a [models.NAME] table. Default: the one in run.parsing_models."
)
"""Of a command that asks one model; `configured` gives it both roles."""
models_options: Callable[[F], F] = together(
    _reached(
        "",
        "both_",
        "A model, or the NAME of a [models.NAME] table, for both roles: it answers and judges. The options below, "
        "for one role only, win. Repeatable.",
    ),
    model_options("answering"),
    model_options("parsing"),
)
"""Of both roles at once, and of each."""
