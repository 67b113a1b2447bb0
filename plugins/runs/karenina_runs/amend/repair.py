"""Making some results of a finished run again, with the same answers or with new ones, and taking that back."""

from __future__ import annotations

import json
import shlex
import shutil
import sqlite3
from collections import Counter
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import closing, suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, get_args

from attrs import asdict, evolve, field, fields, frozen
from karenina_calls.files.bounded import read_json
from karenina_vocabulary.rubric_part import FAILED

from karenina_core.errors import ConfigError, Problem, RunDirectoryError, did_you_mean, plural
from karenina_core.plugin.application import Karenina, current
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import VerificationConfig
from karenina_core.values.identity import ModelIdentity
from karenina_core.values.result import EMPTY

from ..config.config_file import RunConfig
from ..execute.continuation import unreadable, write_missing_results
from ..execute.control import RunControl
from ..files.atomic_files import replacing, write_json
from ..files.run_files import MANIFEST, RESULTS
from ..files.run_lock import RunLock, marked, owner_of
from ..folder.directory import RunDirectory, read_manifest
from ..folder.status import state_of
from ..journal.reader import ENDING, JOURNAL, OPEN, JournalReader, StoredResult
from ..journal.wal import log_of
from ..plan.items import judged_by_folder
from ..results.results import VerificationResultSet
from ..resume import Resumption, Wanted, configured_by, resumption
from .repair_record import REPAIR, UNDONE, Mode, Row, begin_repair, change_manifest, continued, pending, undo_line

MOST_NAMED, MOST_VALUES = 5, 8
"""Results, and values of a condition, that a message names; chosen."""
LIVE = "let the model answer again (--mode live), or choose others"
UNSCORED = "a trait without a score"


def _names(value: Any) -> frozenset[Any] | None:
    if value is None:
        return None
    return frozenset([value] if isinstance(value, str | int) else value)


@frozen(kw_only=True)
class RepairSelection:
    """Conditions on results: one that is given must hold, one that is None always holds. Nothing given chooses nothing.

    Models may be named as `result.metadata.answering_model` has them, by their own names, or by their ids.
    """

    question_ids: Collection[str] | None = field(default=None, converter=_names)
    answering_models: Collection[str] | None = field(default=None, converter=_names)
    parsing_models: Collection[str] | None = field(default=None, converter=_names)
    replicates: Collection[int] | None = field(default=None, converter=_names)
    outcomes: Collection[str] | None = field(default=None, converter=_names)
    """`error`, `failed`, `auto_failed` and the like."""
    details: Collection[str] | None = field(default=None, converter=_names)
    """The kind of an error (`judge`, `timeout`), or the guard that failed the answer."""
    stages: Collection[str] | None = field(default=None, converter=_names)
    """Stages that failed."""
    unscored: bool = False
    """Results with a trait that should have a score and has none (`RubricPart.trait_errors`)."""
    everything: bool = False
    """All results."""

    @property
    def conditions(self) -> dict[str, frozenset[Any]]:
        """Those that are given, by name."""
        given = {a.name: getattr(self, a.name) for a in fields(type(self)) if a.name != "everything"}
        given["unscored"] = frozenset([UNSCORED]) if self.unscored else None
        return {name: wanted for name, wanted in given.items() if wanted is not None}


@frozen(kw_only=True)
class RepairPlan:
    """What a repair would make again. Nothing has been changed for it."""

    mode: Mode
    rows: tuple[Row, ...] = field(repr=False)
    """In the order of the run's plan."""
    selected: int
    """Those that were chosen; the others share an answer with one of them, which is asked for again."""
    without_answer: tuple[Row, ...] = field(default=(), repr=False)
    """Those that have no answer to be judged again. There are none in the mode `live`."""
    results: int = 0
    """Of the whole run."""

    def to_dict(self) -> dict[str, Any]:
        """`{"mode", "results", "rows", "selected", "questions", "outcomes", "models", "without_answer",
        "selected_keys"}` as plain data."""
        models = Counter((row.answering_model, row.parsing_model) for row in self.rows)
        return {
            "mode": self.mode,
            "results": self.results,
            "rows": len(self.rows),
            "selected": self.selected,
            "questions": len({row.question_id for row in self.rows}),
            "outcomes": dict(sorted(Counter(row.outcome for row in self.rows).items())),
            "models": [
                {"answering": answering, "parsing": parsing, "rows": count}
                for (answering, parsing), count in models.items()
            ],
            "without_answer": len(self.without_answer),
            "selected_keys": [asdict(row) for row in self.rows],
        }


@frozen
class _Found:
    """A result of the run, as far as a selection can ask about it."""

    row: Row
    values: Mapping[str, frozenset[Any]]
    """By the names of the conditions."""
    has_answer: bool

    @classmethod
    def of(cls, stored: StoredResult) -> _Found:
        """Raises RunDirectoryError."""
        try:
            data = json.loads(stored.line)
            about = data["metadata"]
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            raise unreadable(stored, error) from error
        answering, parsing = (ModelIdentity(**about[role]) for role in ("answering", "parsing"))
        row = Row(
            result_id=stored.task,
            question_id=about["question_id"],
            answering_model=str(answering),
            parsing_model=str(parsing),
            replicate=about["replicate"],
            outcome=stored.outcome,
            detail=stored.detail,
        )
        failed = {entry["stage"] for entry in data.get("trail", ()) if entry["status"] == "failed"}
        states = {trait["state"] for trait in ((data.get("rubric") or {}).get("trait_states") or {}).values()}
        values: dict[str, frozenset[Any]] = {
            "question_ids": frozenset([row.question_id]),
            "answering_models": _names_of(answering),
            "parsing_models": _names_of(parsing),
            "replicates": frozenset([row.replicate]),
            "outcomes": frozenset([row.outcome]),
            "details": frozenset([row.detail] if row.detail else []),
            "stages": frozenset(failed),
            "unscored": frozenset([UNSCORED] if states & set(FAILED) else []),
        }
        answer = data["generation"]
        return cls(row, values, bool(answer["raw_llm_response"]) or EMPTY in answer.get("text_flags", ()))


def _names_of(model: ModelIdentity) -> frozenset[str]:
    return frozenset(name for name in (str(model), model.model_name, model.config_id) if name)


def planned_repair(folder: str | Path, selection: RepairSelection, mode: Mode = "replay") -> RepairPlan:
    """The results that a selection chooses; in the mode `live` with all that share an answer with them: no two judges
    of a run read different answers. Nothing is changed.

    Raises ConfigError where the run has not ended, or a repair of it has not, or nothing is chosen, and with every
    condition that fits no result; RunDirectoryError.
    """
    if mode not in get_args(Mode):
        raise ConfigError([Problem("mode", f"must be one of {', '.join(get_args(Mode))}, not {mode!r}")])
    folder = Path(folder)
    _check_ended(folder)
    conditions = selection.conditions
    if not conditions and not selection.everything:
        raise ConfigError("choose the results to repair, or all of them (--all)")
    with JournalReader.open(folder) as reader:
        every = [_Found.of(stored) for stored in reader.results()]
    if problems := list(_unknown(conditions, every)):
        raise ConfigError(problems)
    fitting = (found for found in every if all(found.values[name] & wanted for name, wanted in conditions.items()))
    chosen = {found.row.result_id: found.row.answer for found in fitting}
    if not chosen:
        raise ConfigError("no result of the run matches all conditions; remove one")
    shared = set(chosen.values()) if mode == "live" else set()
    rows = [found for found in every if found.row.result_id in chosen or found.row.answer in shared]
    return RepairPlan(
        mode=mode,
        rows=tuple(found.row for found in rows),
        selected=len(chosen),
        without_answer=tuple(found.row for found in rows if mode == "replay" and not found.has_answer),
        results=len(every),
    )


def _unknown(conditions: Mapping[str, frozenset[Any]], every: Sequence[_Found]) -> Iterator[Problem]:
    """Values that no result of the run has: they are mistyped rather than meant."""
    for name, wanted in conditions.items():
        there = sorted(frozenset[Any]().union(*(found.values[name] for found in every)), key=str)
        for value in sorted(wanted.difference(there), key=str):
            if name == "unscored":
                yield Problem(name, f"no result has {value}")
                continue
            known = ", ".join(map(str, there[:MOST_VALUES])) or "none"
            what = f"no result has {value!r}{did_you_mean(str(value), map(str, there))}; available: {known}"
            yield Problem(name, what)


def begun_repair(
    folder: Path,
    plan: RepairPlan,
    configured: RunConfig | Callable[[Mapping[str, Any]], RunConfig],
    wanted: Wanted | None = None,
) -> Resumption:
    """Check everything, keep what is there in a folder of its own, and give what carries the repair out.

    From then on `resumption` continues it. Raises what `resumption` and `planned_repair` raise, and ConfigError where
    an answer that is to be judged again is not there.
    """
    asked_again = frozenset(row.answer for row in plan.rows) if plan.mode == "live" else frozenset()
    found = resumption(folder, configured, evolve(wanted or Wanted(), reuses=False, asked_again=asked_again))
    prepared = found.prepared
    if missing := plan.without_answer:
        have = "has" if len(missing) == 1 else "have"
        raise ConfigError(_named(f"{len(missing)} of these results {have} no answer; {LIVE}", missing))
    if plan.mode == "replay":
        rows = {row.result_id: row for row in plan.rows}
        items = (item for generation in prepared.generations() for item in generation.items)
        chosen = ((item, rows.get(item.task.result_id(prepared.run_name))) for item in items)
        if gone := [row for item, row in chosen if row is not None and judged_by_folder(prepared, item)]:
            answers = plural(len(gone), "answer")
            raise ConfigError(
                _named(f"agents investigate the folders in which {answers} were made, which are gone; {LIVE}", gone)
            )
    write_missing_results(folder)  # what is kept beside the run is what there is
    with RunLock(folder):
        _check_ended(folder)  # another process may have begun a repair meanwhile
        config = RunDirectory(folder, prepared).configured(prepared)["config"]
        repair = begin_repair(folder, plan.rows, plan.mode, config, {"selected": plan.selected})
    repair = evolve(repair.resumed(prepared, found.destination.continuation), again=frozenset(), begins=True)
    destination = evolve(found.destination, reuse=(), continuation=repair)
    done = found.items - len(plan.rows)
    return evolve(found, destination=destination, done=done, errors=0, completed=False)


def _check_ended(folder: Path) -> None:
    manifest, line = read_manifest(folder), f"karenina resume {shlex.quote(str(folder))}"
    if pending(folder, manifest) is not None:
        raise ConfigError(f"a repair of {folder} is not finished; continue it: {line}")
    if manifest.get("status") != "completed":
        raise ConfigError(
            f"the run in {folder} has not ended ({state_of(manifest, owner_of(folder))}), and only finished "
            f"runs are repaired; continue it: {line}"
        )


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
    """Make the results of a finished run that are selected again, in its own directory. The results are those of the
    whole run.

    `replay` keeps the answers and has them judged again; `live` asks the questions again, and has every judge of these
    answers read the new ones. Calls are really made again. What is not given is as the run's manifest says; see
    `aresume_run`, which also continues a repair that was interrupted. What was there before is kept in `repairs/`.
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


def undo_repair(run_dir: str | Path) -> Path:
    """Take a repair back: the one that has not ended, else the latest one that was not taken back already. Returns its
    folder.

    Journal, results and manifest are those of before it; what was asked and made in the run since is gone from them.
    The folder stays, with the record of the repair. When this is interrupted, call it again to finish it. Raises
    ConfigError where there is no repair, or a batch of it is at a provider that may still make more of it, and
    RunDirectoryError where another process writes to the run or what was kept is gone or cannot be read; nothing is
    changed then.
    """
    folder = Path(run_dir)
    read_manifest(folder)  # before anything is made there
    with RunLock(folder) as lock:
        manifest = read_manifest(folder)
        ended = reversed(manifest.get("repairs", ()))
        latest = (name for name in ended if _record(folder / name).get("status") != UNDONE)
        if not (name := str(manifest.get("repair") or next(latest, ""))):
            raise ConfigError(f"there is no repair of {folder} to undo")
        before = _kept(folder / name, manifest)
        known = _open_batches(folder / name)
        with suppress(RunDirectoryError):  # a journal that cannot be read names none
            if calls := sum(count for batch, count in _open_batches(folder).items() if batch not in known):
                where = shlex.quote(str(folder))
                raise ConfigError(
                    f"{plural(calls, 'call')} of the repair may still be made, in batches at providers, and would be "
                    f"lost with it; cancel them: karenina batches {where} --cancel (or continue the repair: "
                    f"karenina resume {where}), then run the same command again"
                )
        try:
            _restore(folder, name, before, lock)
        except (OSError, sqlite3.Error) as error:
            if isinstance(error, RunDirectoryError):
                raise
            raise RunDirectoryError(
                f"{folder / name} cannot be put back into {folder}: {error}; fix that and type: {undo_line(folder)}"
            ) from error
    return folder / name


def _record(own: Path) -> dict[str, Any]:
    """Empty where it cannot be read."""
    try:
        found = read_json(own / REPAIR)
    except (OSError, ValueError):
        return {}
    return found if isinstance(found, dict) else {}


def _kept(own: Path, manifest: Mapping[str, Any]) -> dict[str, Any]:
    """The manifest of before, when everything is there. Raises RunDirectoryError."""
    try:
        before = read_manifest(own)
        if not (own / RESULTS).is_file():
            raise ConfigError(f"it has no {RESULTS}")
        with JournalReader.open(own) as reader:
            ((sound,),) = reader.query("PRAGMA quick_check(1)")
            if sound != "ok" or reader.run_id != manifest["run_id"]:
                raise ConfigError(f"its {JOURNAL} is damaged or of another run")
    except (ConfigError, RunDirectoryError) as error:
        raise RunDirectoryError(
            f"the previous results cannot be read from {own}: {error}; nothing was changed. Put that "
            "folder back, and run the same command again"
        ) from error
    return before


def _open_batches(folder: Path) -> dict[str, int]:
    """How many calls there are in each batch that may still be made. Raises RunDirectoryError."""
    with JournalReader.open(folder) as reader:
        return {row.id: len(row.keys) for row in reader.batches() if row.status in OPEN and row.status != ENDING}


def _restore(folder: Path, name: str, before: Mapping[str, Any], lock: RunLock) -> None:
    """In an order in which everything between says that the repair is being taken back, until all of it is."""
    own, now = folder / name, datetime.now(UTC).isoformat()
    manifest, journal = read_manifest(folder), folder / JOURNAL
    listed = [other for other in manifest.get("repairs", ()) if other != name]
    write_json(own / REPAIR, {**_record(own), "status": UNDONE, "undone_at": now})
    change_manifest(folder, {"repair": name, "status": "interrupted", **continued(manifest, True)})
    lock.mark(marked(own))  # the journal is to hold less than it did
    # A log that a killed process has left would be read into whatever takes the place of its journal.
    damaged = (sqlite3.Error, UnicodeDecodeError)  # SQLite quotes what it cannot read
    with suppress(*damaged), closing(sqlite3.connect(journal)) as connection:
        connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
    for path in (log_of(journal), journal.with_name(f"{journal.name}-shm")):
        path.unlink(missing_ok=True)
    for file in (JOURNAL, RESULTS):
        with replacing(folder / file) as target, (own / file).open("rb") as source:
            shutil.copyfileobj(source, target)
    restored = {**before, "repair": None, "repairs": [*listed, name], "updated_at": now}
    write_json(folder / MANIFEST, restored, indent=2)
