"""What is there of a finished run: read before anything is paid for."""

from __future__ import annotations

import shlex
from collections.abc import Iterable, Mapping
from itertools import groupby
from pathlib import Path

from attrs import define, field
from karenina_vocabulary.rubric_part import read_traits

from karenina_core.errors import ConfigError, Problem, plural
from karenina_core.values.rubric import Rubric

from ..execute.run_writer import PASSING, is_final, read_back
from ..journal.reader import Done, JournalReader
from ..plan.items import Item, Prepared
from .extension_checks import Prior
from .extension_rows import is_scorable, prior_items

__all__ = ["Found", "scan"]


@define
class Found:
    """The results of a finished run, counted."""

    rows: int = 0
    again: int = 0
    """Those that are tried again."""
    scored: int = 0
    """Those that get the scores of more traits."""
    errors: int = 0
    """Errors among the others."""
    unanswered: int = 0
    """Answers that failed for good, and that judges which are added ask for again."""

    @property
    def done(self) -> int:
        """Those that are taken over as they are."""
        return self.rows - self.again - self.scored

    @property
    def notes(self) -> list[str]:
        if not self.unanswered:
            return []
        what = "failed for good in the run that is extended; they are asked for again, for the judges that are added"
        return [f"{plural(self.unanswered, 'answer')} {what}"]


@define(eq=False)
class _Scan:
    reader: JournalReader
    rubrics: Mapping[str, Rubric]
    more_judges: bool
    found: Found = field(factory=Found)
    missing: int = 0
    first_missing: str = ""
    clashes: dict[str, str] = field(factory=dict)
    """A question for every trait that a result has already."""

    def look(self, items: Iterable[Item], run_name: str) -> None:
        """At the results that share an answer."""
        ends = [(item, self.reader.done(item.task.result_id(run_name))) for item in items]
        for item, end in ends:
            if end is None:
                self.missing += 1
                self.first_missing = self.first_missing or item.question.id
            else:
                self._count(item, end)
        if self.more_judges and not any(end is not None and self._has_answer(end) for _, end in ends):
            self.found.unanswered += 1

    def _count(self, item: Item, end: Done) -> None:
        self.found.rows += 1
        if not is_final(end, PASSING):
            self.found.again += 1
        elif self._is_scored(item.question.id, end):
            self.found.scored += 1
        else:
            self.found.errors += end.outcome == "error"

    def _has_answer(self, end: Done) -> bool:
        """Whether there is an answer, or will be one."""
        if end.outcome != "error" or not is_final(end, PASSING):
            return True
        stored = self.reader.result(end.task)
        return stored is not None and read_back(stored).generation.has_answer

    def _is_scored(self, question: str, end: Done) -> bool:
        if question not in self.rubrics or (stored := self.reader.result(end.task)) is None:
            return False
        part = read_back(stored).rubric
        had = {trait.name for trait in read_traits(part)} if part is not None else set()
        for name in had.intersection(self.rubrics[question].names()):
            self.clashes.setdefault(name, question)
        return is_scorable(stored)


def scan(folder: Path, prepared: Prepared, prior: Prior, rubrics: Mapping[str, Rubric]) -> Found:
    """Look at every result of the finished run.

    Raises ConfigError where some are missing, are of another run, or have a score of one of these traits already.
    """
    more_judges = any(str(model.identity) not in prior.parsing for model in prepared.config.parsing_models)
    with JournalReader.open(folder) as reader:
        ((there,),) = reader.query("SELECT COUNT(*) FROM results")
        if not there:
            raise ConfigError(f"the run in {folder} has no results to extend; begin a new run")
        scanned = _Scan(reader, rubrics, more_judges)
        for _, items in groupby(prior_items(prepared, prior), _answer):
            scanned.look(items, prepared.run_name)
        _check(folder, prepared, scanned, there)
    return scanned.found


def _answer(item: Item) -> tuple[str, str, int]:
    return item.question.id, str(item.answering.identity), item.replicate


def _check(folder: Path, prepared: Prepared, scanned: _Scan, there: int) -> None:
    damaged = bool(scanned.reader.damaged["results"])
    if scanned.missing:
        command = "doctor" if damaged else "resume"
        what = f"of {plural(scanned.missing, 'item')} the run in {folder} has no result"
        line = f"karenina {command} {shlex.quote(str(folder))}"
        raise ConfigError(f"{what} (first: question {scanned.first_missing}); see to that first: {line}")
    if strange := there - scanned.found.rows:
        what = f"{plural(strange, 'result')} in {folder} are not of the run {prepared.run_name!r}"
        raise ConfigError(f"{what}; results of several runs cannot be extended together")
    if scanned.clashes:
        raise ConfigError(
            Problem(
                "rubric", f"results of question {question} have a trait {name!r} already; call the new one otherwise"
            )
            for name, question in scanned.clashes.items()
        )
