"""The results of a finished run in the run that extends it: taken over as they are, or with the scores of more traits.

While results are taken over, the finished run is read and never written to.
"""

from __future__ import annotations

import asyncio
import shlex
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any, ClassVar, TypeVar

from attrs import evolve, field, fields, frozen
from karenina_calls.usage_totals import usage_sum
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core.errors import ConfigError, RunDirectoryError
from karenina_core.pipeline.declaration import Category
from karenina_core.pipeline.stage import PlanRequest, Stage
from karenina_core.pipeline.stage_plan import StageOrchestrator
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import EvaluationMode
from karenina_core.values.outcome import Effect, fold, nothing_scored, outcome_of
from karenina_core.values.result import LedgerEntry, TrailEntry, VerificationResult
from karenina_core.values.result_parts import result_parts
from karenina_core.values.rubric import Rubric

from ..answers.answers import answer_of
from ..execute.continuation import CONTINUATIONS, RETRYABLE, Continuation, Rest, RunWriter, is_final, read_back
from ..folder.directory import read_manifest
from ..journal.reader import Done, JournalReader, StoredResult
from ..plan.items import Item, Prepared
from .extension_checks import Prior, added_traits, fingerprints, prior_of

P = TypeVar("P")
ERROR = "error"
AT_A_TIME = 256
"""Results that are written together; chosen."""
KEPT = (Category.GUARD, Category.RUBRIC, Category.FINALIZATION)


@frozen(kw_only=True)
class Scoring:
    """The traits that rows of before are to get, and the stages that score them."""

    rubrics: Mapping[str, Rubric] = field(factory=dict, repr=False)
    """By question; those of the other questions get none."""
    plans: Mapping[frozenset[str], StageOrchestrator] = field(factory=dict, repr=False)
    """By types of traits."""
    stages: frozenset[str] = frozenset()
    """Names of the stages of rubrics in them."""

    @property
    def traits(self) -> list[str]:
        """Names of all of them, each once."""
        return list(dict.fromkeys(name for rubric in self.rubrics.values() for name in rubric.names()))


def scoring_of(app: Karenina, rubrics: Mapping[str, Rubric]) -> Scoring:
    """Raises PlanError where stages that score such traits need what only the stages of templates make."""
    plans = {}
    for kind, rubric in {PlanRequest(rubric=rubric).traits: rubric for rubric in rubrics.values()}.items():
        request = PlanRequest(mode="rubric_only", rubric=rubric)
        whole = StageOrchestrator.for_request(request, app=app)
        chosen = _needed(whole.stages)
        aliases = {str(entry.replaces): name for name, entry in app.stages.items() if entry.replaces}
        owners = {stage.name: whole.owner(stage.name) for stage in chosen}
        plans[kind] = StageOrchestrator(chosen, request=request, owners=owners, aliases=aliases, app=app)
        plans[kind].ready()
    stages = frozenset(s.name for plan in plans.values() for s in plan.stages if s.category is Category.RUBRIC)
    return Scoring(rubrics=rubrics, plans=plans, stages=stages)


def _needed(stages: Iterable[Stage]) -> list[Stage]:
    """Guards, the stages of rubrics and the last one, with those that make what one of them requires."""
    stages = list(stages)
    chosen = {stage.name for stage in stages if stage.category in KEPT or stage.final}
    while True:
        wanted = {str(key) for stage in stages if stage.name in chosen for key in stage.requires}
        more = {stage.name for stage in stages if stage.name not in chosen and wanted & set(map(str, stage.produces))}
        if not more:
            return [stage for stage in stages if stage.name in chosen]
        chosen |= more


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
            raise ConfigError(f"{error}; results of that run still have to be taken over, so put it back") from error
        if extended["run_id"] != self.run_id:
            raise ConfigError(f"{self.folder} holds another run than the extended one; put that one back")
        scoring = scoring_of(prepared.app, added_traits(fingerprint, now, prepared))
        return evolve(found, prior=prior_of(extended, fingerprint), scoring=scoring)

    def facts(self, *, done: bool = False) -> dict[str, Any]:
        extends = {"run_dir": str(self.folder.absolute()), "run_id": self.run_id, "taken_over": done}
        return {"extends": extends} if done else {CONTINUATIONS: [self.kind], "extends": extends}

    async def take_over(self, writer: RunWriter, prepared: Prepared) -> None:
        """Keep every result that gets no more scores, as it is."""
        rows = self._missing(writer, prepared)
        put = writer.journal.put_result
        while waiting := [
            put(Done(row.task, item.position, row.result_id, row.outcome, row.detail, row.final), row.line)
            for item, row in islice(rows, AT_A_TIME)
        ]:
            await asyncio.gather(*waiting)

    def rest(self, writer: RunWriter, prepared: Prepared) -> Generator[Rest] | None:
        """Items that get the scores of more traits, with these traits and their plan; when all else is taken over."""
        return None if self.prior is None else self._to_score(writer, prepared)

    def _to_score(self, writer: RunWriter, prepared: Prepared) -> Generator[Rest]:
        rubrics, stages = self.scoring.rubrics, self.scoring.stages
        for item, stored in self._missing(writer, prepared, scored=True) if rubrics else ():
            rubric, row = rubrics[item.question.id], read_back(stored)
            completed = partial(merged, row, traits=rubric.names(), stages=stages, mode=prepared.mode)
            plan = self.scoring.plans[PlanRequest(rubric=rubric).traits]
            part = evolve(item, rubric=rubric, orchestrator=plan)
            yield Rest(part, answer_of(row), completed)

    def _missing(
        self, writer: RunWriter, prepared: Prepared, *, scored: bool = False
    ) -> Iterator[tuple[Item, StoredResult]]:
        if self.prior is None:
            return
        with JournalReader.open(self.folder) as reader:
            if reader.run_id != self.run_id:
                raise RunDirectoryError(f"{self.folder} holds another run than the extended one; put it back")
            for item in prior_items(prepared, self.prior):
                task = writer.task(item)
                if writer.journal.done(task) is not None:
                    continue
                if (stored := reader.result(task)) is None:
                    raise RunDirectoryError(
                        f"{self.folder} had a result of question {item.question.id} that can no longer be read"
                        f"; check: karenina doctor {shlex.quote(str(self.folder))}"
                    )
                if scored == (item.question.id in self.scoring.rubrics and is_scorable(stored)):
                    yield item, stored


def begun(folder: Path, manifest: Mapping[str, Any]) -> Extension:
    """The extension that the run in `folder` was begun as."""
    extends = manifest["extends"]
    return Extension(folder=Path(extends["run_dir"]), run_id=extends["run_id"], taken_over=extends["taken_over"])


def is_scorable(stored: StoredResult) -> bool:
    """Whether a result gets the scores of more traits: where a whole run would have scored them.

    Not where there is no answer, where an error came before the rubric, and where the item is tried again as a whole.
    """
    if not is_final(stored, RETRYABLE):
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


def merged(
    row: VerificationResult,
    scored: VerificationResult,
    traits: Collection[str],
    stages: Collection[str],
    mode: EvaluationMode,
) -> VerificationResult:
    """The row with what the stages of rubrics, of these names, say about more traits in `scored`.

    Identity, times, answer, checks, template and the scores that were there stay as they are. What the traits took is
    added to `usage_metadata`, `retry_counts` and `execution_time`; their warnings, trail and effects follow those of
    the row. The mode becomes that of the run.
    """
    about, more = row.metadata, scored.metadata
    failed = _failed(scored, traits)
    rubric = scored.rubric if failed is None else _joined(scored.rubric, failed)
    counts = (about.retry_counts, more.retry_counts)
    error = [] if more.error is None else [f"the traits that were added: {more.error}"]
    usage = usage_sum(row.generation.usage_metadata, scored.generation.usage_metadata)
    known = result_parts()
    more_parts = {  # those that only their own packages know, and that the row does not have
        name: part
        for name, part in scored.parts.items()
        if row.parts.get(name) is None and not (name in known and known[name].has_columns)
    }
    result = evolve(
        row,
        metadata=evolve(
            about,
            evaluation_mode=mode,
            execution_time=about.execution_time + more.execution_time,
            retry_counts={name: sum(c.get(name, 0) for c in counts) for name in (*counts[0], *counts[1])},
            warnings=(*about.warnings, *error, *(line for line in more.warnings if line not in about.warnings)),
            caveats=tuple(dict.fromkeys((*about.caveats, *more.caveats))),
        ),
        generation=evolve(row.generation, usage_metadata=usage),
        rubric=_joined(row.rubric, rubric),
        deep_judgment_rubric=_joined(row.deep_judgment_rubric, scored.deep_judgment_rubric),
        trail=_trail(row.trail, [entry for entry in scored.trail if entry.stage in stages]),
        parts={**row.parts, **more_parts},
        extensions=_tables(scored.extensions, row.extensions),
    )
    declined = row.checks.abstention_detected is True
    effects = [] if declined else [entry for entry in scored.ledger if entry.stage in stages]
    if mode == "rubric_only" and (about.outcome != ERROR or _nothing_scored(row) is not None):
        return _decided(result, effects, mode, _nothing_scored(result))
    kept = (about.outcome_detail or "", about.error) if about.outcome == ERROR else None
    return _decided(result, effects, mode, kept) if effects else result


def _failed(scored: VerificationResult, traits: Collection[str]) -> RubricPart | None:
    """A part that says of traits which were not scored because of an error that this is so."""
    known = (scored.rubric or RubricPart()).trait_states
    missing = [name for name in traits if name not in known]
    if scored.metadata.error is None or not missing:
        return None
    failed = {"state": ERROR, "reason": scored.metadata.error, "kind": scored.metadata.outcome_detail or "stage"}
    return RubricPart(trait_states=dict.fromkeys(missing, failed))


def _joined(there: P | None, more: P | None) -> P | None:
    """Both parts in one: tables and lists together, numbers added up, and what one of them says where one says
    something; that which was there first."""
    if there is None or more is None:
        return more if there is None else there
    values: dict[str, Any] = {}
    for name in (attribute.name for attribute in fields(type(there))):  # type: ignore[arg-type]  # an attrs class
        one, other = getattr(there, name), getattr(more, name)
        if isinstance(one, Mapping) and isinstance(other, Mapping):
            nested = all(isinstance(value, Mapping) for value in (*one.values(), *other.values()))
            values[name] = _tables(one, other) if nested else {**one, **other}
        elif isinstance(one, tuple) and isinstance(other, tuple):
            values[name] = (*one, *(item for item in other if item not in one))
        elif isinstance(one, int) and isinstance(other, int) and not isinstance(one, bool):
            values[name] = one + other
        else:
            values[name] = other if one is None or one is False else one
    return type(there)(**values)


def _tables(there: Mapping[str, Any], more: Mapping[str, Any]) -> dict[str, Any]:
    """Tables of tables: an entry that both have holds what both say of it."""
    return {**there, **{name: {**there.get(name, {}), **table} for name, table in more.items()}}


def _trail(trail: Sequence[TrailEntry], more: Sequence[TrailEntry]) -> tuple[TrailEntry, ...]:
    """With what the stages of rubrics did: in their place, or before the stage that ends every item."""
    rows = {entry.stage: entry for entry in trail}
    for entry in more:
        before = rows.get(entry.stage)
        if before is None or before.status == "skipped":
            rows[entry.stage] = entry
        elif entry.status != "skipped":
            reason = "; then ".join(text for text in (before.reason, entry.reason) if text)
            rows[entry.stage] = TrailEntry(before.stage, before.status, reason, before.seconds + entry.seconds)
    last = list(rows)[len(trail) - 1 : len(trail)]
    order = [*(name for name in rows if name not in last), *last]
    return tuple(rows[name] for name in order)


def _nothing_scored(result: VerificationResult) -> tuple[str, str] | None:
    return nothing_scored(result.rubric.trait_states) if result.rubric is not None else None


def _decided(
    result: VerificationResult, more: Sequence[LedgerEntry], mode: EvaluationMode, error: tuple[str, str | None] | None
) -> VerificationResult:
    """The verdict with the effects of more traits: some of them fail an answer. `error` is its kind and message."""
    about, ledger = result.metadata, (*result.ledger, *more)
    verdict = fold(
        Effect(row.stage, effect.get("field"), effect.get("verdict"), row.reason, effect.get("outcome", "failed"))
        for row in ledger
        for effect in (row.effect,)
    )
    kind, message = error or (None, None)
    outcome = outcome_of(verdict, error_kind=kind, evaluates_template=mode != "rubric_only")
    return evolve(
        result,
        ledger=ledger,
        metadata=evolve(
            about,
            outcome=outcome.name,
            outcome_detail=outcome.detail,
            completed_without_errors=error is None,
            error=message,
        ),
        template=None if result.template is None else evolve(result.template, verify_result=verdict.verdict),
    )
