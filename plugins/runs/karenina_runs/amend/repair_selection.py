"""Which results of a finished run are to be made anew."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import field, fields, frozen
from karenina_vocabulary.rubric_part import FAILED

from karenina_core.errors import ConfigError, Problem, did_you_mean
from karenina_core.values.identity import ModelIdentity
from karenina_core.values.result import EMPTY

from ..execute.run_writer import unreadable
from ..journal.reader import JournalReader, StoredResult
from .repairs import Mode, Row

__all__ = ["RepairPlan", "RepairSelection", "plan_repair"]

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
    """What stands behind an outcome: the kind of an error (`judge`, `timeout`), or the guard that failed the answer."""
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
    """What a repair would make anew. Nothing has been changed for it."""

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
            "selected_keys": [_key(row) for row in self.rows],
        }


@frozen
class _Found:
    """A result of the run, as far as a selection can ask about it."""

    row: Row
    values: Mapping[str, frozenset[Any]]
    """By the names of the conditions."""
    has_answer: bool


def plan_repair(folder: Path, selection: RepairSelection, mode: Mode = "replay") -> RepairPlan:
    """The results of a run that a selection chooses; in the mode `live` with all that share an answer with them: no two
    judges of a run read different answers.

    Raises ConfigError where nothing is chosen, and with every condition that fits no result; RunDirectoryError.
    """
    conditions = selection.conditions
    if not conditions and not selection.everything:
        raise ConfigError("say which results are to be repaired, or ask for all of them (--all)")
    seen: dict[str, set[Any]] = {name: set() for name in conditions}
    chosen: dict[str, _Found] = {}
    every: list[_Found] = []
    with JournalReader.open(folder) as reader:
        for stored in reader.results():
            found = _found(stored)
            every.append(found)
            for name in conditions:
                seen[name] |= found.values[name]
            if all(found.values[name] & wanted for name, wanted in conditions.items()):
                chosen[found.row.result_id] = found
    if problems := list(_unknown(conditions, seen)):
        raise ConfigError(problems)
    if not chosen:
        raise ConfigError("no result of the run fits all of that; leave a condition out")
    shared = {found.row.answer for found in chosen.values()} if mode == "live" else set()
    rows = [found for found in every if found.row.result_id in chosen or found.row.answer in shared]
    return RepairPlan(
        mode=mode,
        rows=tuple(found.row for found in rows),
        selected=len(chosen),
        without_answer=tuple(found.row for found in rows if mode == "replay" and not found.has_answer),
        results=len(every),
    )


def _found(stored: StoredResult) -> _Found:
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
    states = {told["state"] for told in ((data.get("rubric") or {}).get("trait_states") or {}).values()}
    values: dict[str, frozenset[Any]] = {
        "question_ids": frozenset([row.question_id]),
        "answering_models": _called(answering),
        "parsing_models": _called(parsing),
        "replicates": frozenset([row.replicate]),
        "outcomes": frozenset([row.outcome]),
        "details": frozenset([row.detail] if row.detail else []),
        "stages": frozenset(failed),
        "unscored": frozenset([UNSCORED] if states & set(FAILED) else []),
    }
    answer = data["generation"]
    return _Found(row, values, bool(answer["raw_llm_response"]) or EMPTY in answer.get("text_flags", ()))


def _called(model: ModelIdentity) -> frozenset[str]:
    return frozenset(name for name in (str(model), model.model_name, model.config_id) if name)


def _unknown(conditions: Mapping[str, frozenset[Any]], seen: Mapping[str, set[Any]]) -> Iterator[Problem]:
    """Values that no result of the run has: they are mistyped rather than meant."""
    for name, wanted in conditions.items():
        for value in sorted(wanted - seen[name], key=str):
            known = ", ".join(map(str, sorted(seen[name], key=str)[:8])) or "none"
            if name == "unscored":
                yield Problem(name, f"no result has {value}")
                continue
            what = f"no result has {value!r}{did_you_mean(str(value), map(str, seen[name]))}; there is: {known}"
            yield Problem(name, what)


def _key(row: Row) -> dict[str, Any]:
    return {a.name: getattr(row, a.name) for a in fields(Row)}
