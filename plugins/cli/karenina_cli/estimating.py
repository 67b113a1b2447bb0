"""What `verify --estimate` and `plan --estimate` say: how many calls, how many tokens, at what cost."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any

from karenina_runs.benchmark import Benchmark
from karenina_runs.plan.estimate import earlier_calls, estimated
from karenina_runs.plan.items import Prepared
from karenina_runs.plan.prepare import prepare

from karenina_core.errors import ConfigError, Problem, plural

from .exits import OK
from .options.flags import configured
from .output import Part, Table, own_stdout, print_found
from .summary import listing


def check_estimate(options: Mapping[str, Any]) -> None:
    """Raises ConfigError for --from without --estimate."""
    if options["from_run"] is not None and not options["estimate"]:
        raise ConfigError([Problem("--from", "has no effect alone; add --estimate")])


def plan_estimate(path: Path | None, options: Mapping[str, Any]) -> int:
    """Print the estimate of a run of a benchmark with the configured models. No code of the benchmark is executed, so
    that it need not be trusted. Returns the exit code."""
    if path is None:
        raise ConfigError([Problem("--estimate", "needs a benchmark: karenina plan FILE --estimate")])
    with own_stdout() as out:
        loaded = configured({**options, "trust": True})
        benchmark = Benchmark.load(path, app=loaded.app)
        return print_estimate(prepare(benchmark, loaded.config, app=loaded.app), options, out)


def print_estimate(prepared: Prepared, options: Mapping[str, Any], out: IO[str]) -> int:
    """Print what the run would take. Returns the exit code."""
    source = options["from_run"]
    found = estimated(prepared, None if source is None else earlier_calls(source))
    document = {"mode": prepared.mode, "from": None if source is None else str(source), **found}
    parts = estimate_parts(document, f"{plural(found['items'], 'item')}, mode {prepared.mode}")
    print_found(document, parts, out, as_json=options["as_json"])
    return OK


def estimate_parts(document: Mapping[str, Any], what: str) -> list[Part]:
    """The document of an estimate for people. `what` says of what it is."""
    rows = [
        (
            f"{row['task']} (canaries)" if row["canaries"] else row["task"],
            row["model"],
            ranged(row["calls"]),
            ranged(row["tokens"]["input"]),
            ranged(row["tokens"]["output"]),
            "unknown" if row["cost_usd"] is None else dollars(row["cost_usd"]),
        )
        for row in document["rows"]
    ]
    unknown = document["unknown_price_share"]
    cost = document["cost_usd"]
    shown = "unknown" if cost is None else f"{dollars(cost)} US dollars"
    if unknown > 0 and cost is not None:
        shown += f", without {unknown:.0%} of the calls, whose cost is unknown"
    repairs = document["repairs"]
    earlier = "" if repairs["earlier"] is None else f"; in the earlier run {repairs['earlier']:.2f} for each call"
    return [
        f"Estimate of {what}. No call is made.",
        "",
        Table(("task", "model", "calls", "tokens in", "tokens out", "US dollars"), rows),
        f"calls   {ranged(document['calls'])}{'' if document['exact'] else ' (depends on what models say)'}",
        f"tokens  {ranged(document['tokens']['total'])}",
        f"cost    {shown}",
        f"Counted {document['assumed']}. Of repairs there are at most {repairs['most']}{earlier}.",
        listing("Notes", [(text,) for text in document["notes"]]),
    ]


def ranged(span: Mapping[str, Any], form: str = ",.0f") -> str:
    """`12`, `10 to 20`, or `10 to 20, about 12`."""
    low, expected, high = span["low"], span["expected"], span["high"]
    if low == high:
        return format(low, form)
    text = f"{low:{form}} to {high:{form}}" if high is not None else f"{low:{form}} or more"
    return text if expected is None else f"{text}, about {expected:{form}}"


def dollars(span: Mapping[str, Any]) -> str:
    """The same of money."""
    return ranged(span, ",.4f")
