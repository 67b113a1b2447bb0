"""Making some results of a finished run anew: with the same answers, or with new ones."""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

from attrs import evolve
from karenina_calls.secrets.redaction import redactor

from karenina_core.errors import ConfigError, Problem, plural
from karenina_core.plugin.application import Karenina, current
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import VerificationConfig

from ..answers.replaying import judged_by_folder
from ..config.config_file import RunConfig
from ..execute.control import RunControl
from ..execute.run_writer import write_missing_results
from ..files.run_lock import RunLock, owner_of
from ..folder.directory import RunDirectory, read_manifest, secrets_of_run
from ..folder.status import state_of
from ..plan.items import Prepared
from ..results.results import VerificationResultSet
from ..resume import Resumption, Wanted, configured_by, resumption
from .repair_selection import RepairPlan, RepairSelection, plan_repair
from .repairs import Mode, Row, begin_repair, pending

__all__ = ["RepairPlan", "RepairSelection", "arepair_run", "begun_repair", "planned_repair", "repair_run"]

MOST_NAMED = 5
LIVE = "let the model answer again (--mode live), or choose others"


def planned_repair(folder: str | Path, selection: RepairSelection, mode: Mode = "replay") -> RepairPlan:
    """What would be made anew. Nothing is changed.

    Raises ConfigError where the run has not ended, or a repair of it has not, or nothing is chosen.
    """
    if mode not in get_args(Mode):
        raise ConfigError([Problem("mode", f"must be one of {', '.join(get_args(Mode))}, not {mode!r}")])
    folder = Path(folder)
    _check_ended(folder, read_manifest(folder))
    return plan_repair(folder, selection, mode)


def begun_repair(
    folder: Path,
    plan: RepairPlan,
    configured: RunConfig | Callable[[Mapping[str, Any]], RunConfig],
    wanted: Wanted | None = None,
) -> Resumption:
    """Check everything, keep what is there in a folder of its own, and give what carries the repair out.

    From then on `resumption` goes on with it. Raises what `resumption` and `planned_repair` raise, and ConfigError
    where an answer that is to be judged again is not there.
    """
    anew = frozenset(row.answer for row in plan.rows) if plan.mode == "live" else frozenset()
    found = resumption(folder, configured, evolve(wanted or Wanted(), reuses=False, asked_again=anew))
    _check_answers(found.prepared, plan)
    write_missing_results(folder)  # what is kept beside the run is what there is
    with RunLock(folder):
        _check_ended(folder, read_manifest(folder))  # nobody else has begun meanwhile
        config = RunDirectory(folder, redactor(secrets_of_run(found.prepared))).configured(found.prepared)["config"]
        repair = begin_repair(folder, plan.rows, plan.mode, config, {"selected": plan.selected})
    repair = evolve(repair.resumed(found.prepared, found.destination.continuation), again=frozenset(), begins=True)
    destination = evolve(found.destination, reuse=(), continuation=repair)
    done = found.items - len(plan.rows)
    return evolve(found, destination=destination, done=done, errors=0, completed=False)


def _check_ended(folder: Path, manifest: Mapping[str, Any]) -> None:
    line = f"karenina resume {shlex.quote(str(folder))}"
    if pending(folder, manifest) is not None:
        raise ConfigError(f"a repair of {folder} has not ended; go on with it: {line}")
    if manifest.get("status") != "completed":
        raise ConfigError(
            f"the run in {folder} has not ended ({state_of(manifest, owner_of(folder))}), and only results of a "
            f"finished run are repaired; go on with it: {line}"
        )


def _check_answers(prepared: Prepared, plan: RepairPlan) -> None:
    """Raises ConfigError where an answer cannot be judged again."""
    if plan.mode == "live":
        return
    if missing := plan.without_answer:
        have = "has" if len(missing) == 1 else "have"
        raise ConfigError(_named(f"{len(missing)} of these results {have} no answer; {LIVE}", missing))
    rows = {row.result_id: row for row in plan.rows}
    items = (item for generation in prepared.generations() for item in generation.items)
    chosen = ((item, rows.get(item.task.result_id(prepared.run_name))) for item in items)
    if gone := [row for item, row in chosen if row is not None and judged_by_folder(prepared, item)]:
        what = f"agents look into the folders in which {plural(len(gone), 'answer')} came about, which are gone; {LIVE}"
        raise ConfigError(_named(what, gone))


def _named(what: str, rows: Sequence[Row]) -> str:
    """What is wrong, with a line for each of the first of these results."""
    named = [
        f"{row.question_id}, {row.answering_model}, {row.parsing_model}, replicate {row.replicate}"
        for row in rows[:MOST_NAMED]
    ]
    if len(rows) > MOST_NAMED:
        named.append(f"and {len(rows) - MOST_NAMED} more")
    return "\n  ".join([what, *named])


async def arepair_run(
    run_dir: str | Path,
    selection: RepairSelection,
    *,
    mode: Mode = "replay",
    benchmark: BenchmarkData | None = None,
    config: VerificationConfig | None = None,
    app: Karenina | None = None,
    control: RunControl | None = None,
) -> VerificationResultSet:
    """Make the results of a finished run anew that are selected, in its own directory. The results are those of the
    whole run.

    `replay` keeps the answers and has them judged again; `live` asks the questions again, and has every judge of these
    answers read the new ones. Calls are really made again. What is not given is as the run's manifest says; see
    `aresume_run`, which also goes on with a repair that was interrupted. What was there before is kept in `repairs/`.
    Raises ConfigError where nothing is selected, the run has not ended, or an answer is missing; Changed where
    something that affects the numbers is not as it was; and what `Benchmark.arun_verification` raises.
    """
    folder = Path(run_dir)
    plan = planned_repair(folder, selection, mode)
    begun = begun_repair(folder, plan, configured_by(config, app), Wanted(benchmark=benchmark))
    return await begun.carry_out(control=control)


def repair_run(
    run_dir: str | Path, selection: RepairSelection, *, app: Karenina | None = None, **options: Any
) -> VerificationResultSet:
    """The same for synchronous callers; works inside notebooks. See `arepair_run`."""
    return current(app).run(arepair_run(run_dir, selection, app=app, **options))
