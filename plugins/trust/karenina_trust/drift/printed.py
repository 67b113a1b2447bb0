"""What `karenina judge drift` does and prints."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import frozen
from karenina_cli.exits import GATE_FAILED, OK
from karenina_cli.output import Part, Table, note, own_stdout, print_found
from karenina_cli.summary import listing

from karenina_core.plugin.application import Karenina

from ..labels.binding import judged_otherwise
from ..labels.file import verdicts_of_people
from .looks import Judged, in_time, looks_of
from .sequence import Look, Monitor, monitored


@frozen(kw_only=True)
class Watched:
    """One judge, and all looks at it."""

    judge: str
    runs: Sequence[Judged]
    looks: Sequence[Look]
    monitor: Monitor

    @property
    def changed(self) -> list[str]:
        """Answers that it judges otherwise in the last run than in the first."""
        first, last = self.runs[0].verdicts, self.runs[-1].verdicts
        both = (item for item in last if None not in (last[item], first.get(item)))
        return sorted(item for item in both if last[item] is not first[item])

    def document(self) -> dict[str, Any]:
        monitor = self.monitor
        untested: list[float | None] = [None] * monitor.baseline
        rows = zip(self.runs, self.looks, [*untested, *monitor.evidence], strict=True)
        return {
            "judge": self.judge,
            "floor": monitor.floor,
            "baseline": monitor.baseline,
            "limit": monitor.limit,
            "alpha": monitor.alpha,
            "alarm": None if monitor.alarm is None else self.runs[monitor.alarm].run,
            "changed": self.changed,
            "looks": [
                {
                    "run": run.run,
                    "agreed": look.agreed,
                    "judged": look.judged,
                    "errors": look.errors,
                    "agreement": look.agreed / look.judged,
                    "evidence": value,
                }
                for run, look, value in rows
            ],
        }


def run(paths: Sequence[Path], options: Mapping[str, Any]) -> int:
    """Returns the exit code. Raises BenchmarkError, ConfigError and StatisticsError."""
    with own_stdout() as out:
        labels = verdicts_of_people(options["labels"], paths)
        runs = in_time(paths, Karenina.installed())
        found, once = _often_enough(looks_of(runs, labels), options)
        watched = [_watched(judge, looks, labels, options) for judge, looks in found.items()]
        first, *others = (name for name, _ in runs)
        otherwise = {name: lines for name in others if (lines := judged_otherwise(Path(first), Path(name)))}
        document = {
            "labels": len(labels),
            "judges": [one.document() for one in watched],
            "not_tested": once,
            "judged_otherwise": otherwise,
        }
        rows = [(name, text) for name, lines in otherwise.items() for text in lines]
        parts = [part for one in watched for part in _parts(one)]
        parts.append(listing("Differences from the first run, which may explain lower agreement", rows))
        print_found(document, parts, out, as_json=options["as_json"])
    for judge in once:
        note(f"{judge} is not tested: it judged in too few of the runs")
    alarms = [one for one in watched if one.monitor.alarm is not None]
    for one in alarms:
        note(
            f"Error: {one.judge} agrees with people less often than {one.monitor.floor:.1%}, which is what it did "
            "before: review its answers, and do not rely on earlier labels"
        )
    return GATE_FAILED if alarms else OK


def _often_enough(
    found: Mapping[str, Sequence[Judged]], options: Mapping[str, Any]
) -> tuple[Mapping[str, Sequence[Judged]], list[str]]:
    """Judges with looks to be tested, and the names of the others; all of them where none has."""
    least = 1 if options["floor"] is not None else (options["baseline"] or 1) + 1
    enough = {judge: looks for judge, looks in found.items() if len(looks) >= least}
    return (enough, [judge for judge in found if judge not in enough]) if enough else (found, [])


def _watched(judge: str, runs: Sequence[Judged], labels: Mapping[str, bool], options: Mapping[str, Any]) -> Watched:
    looks = [run.look(labels) for run in runs]
    monitor = monitored(looks, baseline=options["baseline"] or 1, floor=options["floor"], alpha=options["alpha"])
    return Watched(judge=judge, runs=runs, looks=looks, monitor=monitor)


def _parts(one: Watched) -> list[Part]:
    found = one.document()
    rows = [
        (
            look["run"],
            f"{look['agreed']} of {look['judged']}",
            f"{look['agreement']:.1%}",
            str(look["errors"]),
            "" if look["evidence"] is None else f"{look['evidence']:.3g}",
        )
        for look in found["looks"]
    ]
    alarm = "none" if found["alarm"] is None else f"at {found['alarm']}"
    return [
        f"{one.judge}: agreement with people, tested against {one.monitor.floor:.1%}",
        Table(("run", "agrees", "share", "errors", "evidence"), rows),
        f"alarm    {alarm} (evidence of {one.monitor.limit:.0f} or more)",
        f"changed  {len(one.changed)} labelled answers are judged differently than in the first run",
        "",
    ]
