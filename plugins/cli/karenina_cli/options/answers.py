"""`--answers`: answers of another run that a run is given."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karenina_runs.answers.answers import MissPolicy, ReplayStore, as_store

from karenina_core.errors import BenchmarkError, ConfigError, Problem
from karenina_core.plugin.application import Karenina


def given_answers(options: Mapping[str, Any], app: Karenina) -> ReplayStore | None:
    """What `--answers` names. Raises ConfigError."""
    path = options["answers"]
    if path is None:
        if idle := [name for name in ("ask_missing", "only_answered", "parsed") if options[name]]:
            option = f"--{idle[0].replace('_', '-')}"
            raise ConfigError([Problem(option, "says how answers are used, and there are none; add --answers DIR")])
        return None
    if options["ask_missing"] and options["only_answered"]:
        raise ConfigError([Problem("--only-answered", "leaves out what --ask-missing asks for; give one of them")])
    policies: dict[str, MissPolicy] = {"ask_missing": "fall_through", "only_answered": "leave_out"}
    policy = next((policy for name, policy in policies.items() if options[name]), None)
    try:
        found = as_store(path, app=app, miss_policy=policy, parsed=options["parsed"])
    except BenchmarkError as error:
        other = "answers without a run behind them are given with --manual-traces"
        raise ConfigError([Problem("--answers", f"{error}; {other}")]) from None
    if found is not None and options["parsed"] and not any(entry.fields for _, entry in found):
        what = f"{path} has no fields that judges have extracted; leave it out, and the judge is asked"
        raise ConfigError([Problem("--parsed", what)])
    return found
