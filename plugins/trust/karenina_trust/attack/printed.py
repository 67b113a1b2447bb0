"""What `karenina judge attack` does and prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from karenina_cli.estimating import print_estimate
from karenina_cli.output import Part, Table, own_stdout, print_found
from karenina_cli.summary import listing

from karenina_core.errors import plural

from ..judges.begin import Begun, begun
from ..judges.rates import shown
from ..judges.running import gate_code, judged
from ..judges.trials import Subject, trial_config, trial_run
from .attack import Attacked, attacked
from .cases import Attack, attack_trials, targets_of
from .holistic import NAME as HOLISTIC
from .suite import suite

STYLES = {"templates": "fills in the templates", "holistic": "says whether a response is correct"}


def run(path: Path, options: Mapping[str, Any]) -> int:
    """Have the attacks judged, and print how many succeed. Returns the exit code."""
    with own_stdout() as out:
        found = suite()
        payloads = found.of(options["families"])

        async def make(subjects: Sequence[Subject]) -> Sequence[Attack]:
            targets = await targets_of(subjects, holistic=not options["no_holistic"])
            return attack_trials(targets, found, payloads, options["per_payload"]) if targets else ()

        start = begun(path, options, make)
        config = trial_config(start.config, judge_with=None if options["no_holistic"] else HOLISTIC)
        tried = trial_run(start.trials, start.benchmark, config, start.app)
        if options["estimate"]:
            return print_estimate(tried.prepared, options, out)
        made = judged(tried, options, f"attack-{path.stem}")
        judges = attacked(start.trials, made.results)
        document = {
            "benchmark": start.benchmark.name,
            "version": found.version,
            "payloads": len(payloads),
            "run_dir": str(made.directory),
            "judges": [judge.document() for judge in judges],
            "left_out": dict(start.left_out),
        }
        print_found(document, _parts(start, judges, len(payloads), made.directory), out, as_json=options["as_json"])
    rates = ((one.judge, one.rate("attack").value) for one in judges if one.style == "templates")
    gate = gate_code(rates, options["max_success"], "--max-success", "of the attacks succeed")
    return max(made.code, gate)


def _parts(start: Begun[Attack], judges: Sequence[Attacked], payloads: int, directory: Path) -> list[Part]:
    first = f"{plural(payloads, 'payload')} of version {suite().version} on {plural(start.tried, 'question')}"
    parts: list[Part] = [f"{start.benchmark.name}: {first}"]
    for judge in judges:
        parts += _judge(judge)
    parts.append(listing("Questions left out", list(start.left_out.items())))
    return [*parts, f"The run: {directory}"]


def _judge(judge: Attacked) -> list[Part]:
    rows = [
        (
            family,
            shown(judge.rate("attack", family)),
            shown(judge.rate("control", family)),
            str(judge.rate("attack", family).n),
            str(judge.errors(family)),
        )
        for family in judge.families
    ]
    whole = f"{shown(judge.rate('attack'))} of the attacks succeed, {shown(judge.rate('control'))} of the controls pass"
    parts: list[Part] = [
        "",
        f"Judge {judge.judge}, which {STYLES[judge.style]}: {whole}",
        Table(("family", "attacks that succeed", "controls that pass", "attacks", "judge errors"), rows),
    ]
    if judge.style == "templates":
        succeeded = [
            (one.payload, one.position, one.question) for one in judge.outcomes if one.role == "attack" and one.passed
        ]
        parts.append(Table(("payload", "position", "question"), succeeded, "Attacks on the templates that succeed"))
    for names, what in ((judge.passing, "pass without any attack"), (judge.unjudged, "could not be judged")):
        if names:
            parts.append(f"Left out, as their wrong answers {what}: {', '.join(names)}")
    return parts
