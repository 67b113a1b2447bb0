"""The results of a finished run in the run that extends it: taken over as they are, or with the scores of more traits.

While results are taken over, the finished run is read and never written to.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Generator, Iterator, Mapping
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar

from attrs import evolve, field, frozen

from karenina_core.errors import ConfigError, RunDirectoryError

from ..answers.answers import answer_of
from ..execute.continuation import CONTINUATIONS, Continuation, Rest
from ..execute.run_writer import PASSING, Keeper, is_final, read_back
from ..folder.directory import read_manifest
from ..journal.reader import Done, JournalReader, StoredResult
from ..plan.items import Item, Prepared
from .extension_checks import Prior, added_traits, fingerprints, prior_of
from .extension_merge import merged
from .extension_plans import Scoring, scoring_of

__all__ = ["Extension", "begun", "is_scorable", "prior_items"]

AT_A_TIME = 256


@frozen(kw_only=True)
class Extension(Continuation):
    """The finished run that a run extends."""

    kind: ClassVar[str] = "extends"
    folder: Path
    run_id: str
    taken_over: bool = False
    """Whether the finished run is not needed any more."""
    prior: Prior | None = None
    """None: nothing is to be taken over."""
    scoring: Scoring = field(factory=Scoring)
    shares_answers: bool = True

    @property
    def has_results(self) -> bool:
        return True

    def resumed(self, prepared: Prepared, before: Continuation) -> Extension:
        """Raises ConfigError where the finished run is needed and is not there any more."""
        found = evolve(self, reopens=True, again=before.again)
        if self.taken_over:
            return found
        try:
            extended = read_manifest(self.folder)
            fingerprint, now = fingerprints(self.folder, prepared)
        except ConfigError as error:
            raise ConfigError(f"{error}; results of the run there are still to be taken over, put it back") from error
        if extended["run_id"] != self.run_id:
            raise ConfigError(f"{self.folder} holds another run than the one that is extended; put that one back")
        scoring = scoring_of(prepared.app, added_traits(fingerprint, now, prepared))
        return evolve(found, prior=prior_of(extended, fingerprint), scoring=scoring)

    def facts(self, *, done: bool = False) -> dict[str, Any]:
        extends = {"run_dir": str(self.folder.absolute()), "run_id": self.run_id, "taken_over": done}
        return {"extends": extends} if done else {CONTINUATIONS: [self.kind], "extends": extends}

    async def take_over(self, keeper: Keeper, prepared: Prepared) -> None:
        """Keep every result that gets no more scores, as it is."""
        rows = self._missing(keeper, prepared)
        while waiting := [self._kept(keeper, item, row) for item, row in islice(rows, AT_A_TIME)]:
            await asyncio.gather(*waiting)

    def rest(self, keeper: Keeper, prepared: Prepared) -> Generator[Rest] | None:
        """Items that get the scores of more traits, with these traits and their plan; when all else is taken over."""
        return None if self.prior is None else self._to_score(keeper, prepared)

    def _to_score(self, keeper: Keeper, prepared: Prepared) -> Generator[Rest]:
        rubrics, stages = self.scoring.rubrics, self.scoring.stages
        for item, stored in self._missing(keeper, prepared, scored=True) if rubrics else ():
            rubric, row = rubrics[item.question.id], read_back(stored)
            completed = partial(merged, row, traits=rubric.names(), stages=stages, mode=prepared.mode)
            part = evolve(item, rubric=rubric, orchestrator=self.scoring.plan(rubric))
            yield Rest(part, answer_of(row), completed)

    def _missing(
        self, keeper: Keeper, prepared: Prepared, *, scored: bool = False
    ) -> Iterator[tuple[Item, StoredResult]]:
        if self.prior is None:
            return
        with JournalReader.open(self.folder) as reader:
            if reader.run_id != self.run_id:
                raise RunDirectoryError(f"{self.folder} holds another run than the one that is extended; put it back")
            for item in prior_items(prepared, self.prior):
                task = keeper.task(item)
                if keeper.journal.done(task) is not None:
                    continue
                if (stored := reader.result(task)) is None:
                    raise RunDirectoryError(
                        f"{self.folder} had a result of question {item.question.id} that cannot be read any more"
                        f"; look: karenina doctor {shlex.quote(str(self.folder))}"
                    )
                if scored == (item.question.id in self.scoring.rubrics and is_scorable(stored)):
                    yield item, stored

    async def _kept(self, keeper: Keeper, item: Item, row: StoredResult) -> None:
        done = Done(keeper.task(item), item.position, row.result_id, row.outcome, row.detail, row.final)
        await keeper.journal.put_result(done, row.line)


def begun(folder: Path, manifest: Mapping[str, Any]) -> Extension:
    """The extension that the run in `folder` was begun as."""
    extends = manifest["extends"]
    return Extension(folder=Path(extends["run_dir"]), run_id=extends["run_id"], taken_over=extends["taken_over"])


def is_scorable(stored: StoredResult) -> bool:
    """Whether a result gets the scores of more traits: where a whole run would have scored them.

    Not where there is no answer, where an error came before the rubric, and where the item is tried again as a whole.
    """
    if not is_final(stored, PASSING):
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
