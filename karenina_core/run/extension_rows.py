"""The results of a finished run in the run that extends it: taken over as they are, or with the scores of more traits.

While results are taken over, the finished run is read and never written to.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import Any

from attrs import define, evolve, field, frozen

from ..errors import RunDirectoryError
from ..model.result import VerificationResult
from .extension_plans import Scoring
from .items import Item, Prepared
from .journal_reader import Done, JournalReader, StoredResult
from .keeping import PASSING, Keeper, read_back, stands

__all__ = ["Extension", "Prior", "PriorRows", "is_scorable", "opened_rows", "prior_items"]

AT_A_TIME = 256


@frozen(kw_only=True)
class Prior:
    """What a finished run was about: its questions and models as they are named in results, and its replicates."""

    questions: frozenset[str]
    answering: frozenset[str]
    parsing: frozenset[str]
    replicates: int

    def has(self, item: Item) -> bool:
        """Whether the item is one of that run."""
        return (
            item.question.id in self.questions
            and str(item.answering.identity) in self.answering
            and str(item.parsing.identity) in self.parsing
            and item.replicate <= self.replicates
        )


@frozen(kw_only=True)
class Extension:
    """The finished run that a run extends."""

    folder: Path
    run_id: str
    prior: Prior | None = None
    """None: everything has been taken over, and the finished run is not needed any more."""
    scoring: Scoring = field(factory=Scoring)

    def told(self, *, taken_over: bool = False) -> dict[str, Any]:
        """As a manifest has it."""
        return {"run_dir": str(self.folder.absolute()), "run_id": self.run_id, "taken_over": taken_over}


@define(eq=False)
class PriorRows:
    """The results of the finished run, while they are taken over."""

    extension: Extension
    prior: Prior
    reader: JournalReader

    async def take_over(self, keeper: Keeper, prepared: Prepared) -> None:
        """Keep every result that gets no more scores, as it is. Raises RunDirectoryError."""
        rows = self._missing(keeper, prepared)
        while waiting := [self._kept(keeper, item, row) for item, row in islice(rows, AT_A_TIME)]:
            await asyncio.gather(*waiting)

    def to_score(self, keeper: Keeper, prepared: Prepared) -> Iterator[tuple[Item, VerificationResult]]:
        """Items as they are scored, with their traits and plan, and what is there of them; when all else is taken
        over. Raises RunDirectoryError."""
        rubrics = self.extension.scoring.rubrics
        for item, stored in self._missing(keeper, prepared, scored=True) if rubrics else ():
            rubric = rubrics[item.question.id]
            yield evolve(item, rubric=rubric, orchestrator=self.extension.scoring.plan(rubric)), read_back(stored)

    def _missing(
        self, keeper: Keeper, prepared: Prepared, *, scored: bool = False
    ) -> Iterator[tuple[Item, StoredResult]]:
        for item in prior_items(prepared, self.prior):
            task = keeper.task(item)
            if keeper.journal.done(task) is not None:
                continue
            if (stored := self.reader.result(task)) is None:
                raise RunDirectoryError(
                    f"{self.extension.folder} had a result of question {item.question.id} that cannot be read any more"
                    f"; look: karenina doctor {shlex.quote(str(self.extension.folder))}"
                )
            if scored == (item.question.id in self.extension.scoring.rubrics and is_scorable(stored)):
                yield item, stored

    async def _kept(self, keeper: Keeper, item: Item, row: StoredResult) -> None:
        done = Done(keeper.task(item), item.position, row.result_id, row.outcome, row.detail, row.final)
        await keeper.journal.put_result(done, row.line)


def is_scorable(stored: StoredResult) -> bool:
    """Whether a result gets the scores of more traits: where a whole run would have scored them.

    Not where there is no answer, where an error came before the rubric, and where the item is tried again as a whole.
    """
    if not stands(stored, PASSING):
        return False
    row = read_back(stored)
    return row.generation.has_answer and (stored.outcome != "error" or row.rubric is not None)


def prior_items(prepared: Prepared, prior: Prior) -> Iterator[Item]:
    """The items of a run that are those of the finished one, in the order of the plan."""
    config = prepared.config
    models = [place for place, model in enumerate(config.answering_models) if str(model.identity) in prior.answering]
    questions = [place for place, question in enumerate(prepared.questions) if question.id in prior.questions]
    for model in models:
        for question in questions:
            for replicate in range(1, prior.replicates + 1):
                yield from filter(prior.has, prepared.generation(model, question, replicate).items)


@contextmanager
def opened_rows(extension: Extension | None) -> Iterator[PriorRows | None]:
    """The results that are to be taken over, while the block runs; None where there are none.

    Raises RunDirectoryError.
    """
    if extension is None or extension.prior is None:
        yield None
        return
    with JournalReader.open(extension.folder) as reader:
        if reader.run_id != extension.run_id:
            raise RunDirectoryError(f"{extension.folder} holds another run than the one that is extended; put it back")
        yield PriorRows(extension, extension.prior, reader)
