"""The work of a run that has passed every check: its items, their order, and which of them replay an answer."""

from __future__ import annotations

import random
from array import array
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from functools import cached_property
from itertools import product, starmap
from pathlib import Path

from attrs import define, field, frozen
from karenina_calls.models.models import has_tools
from karenina_calls.models.overrides import overrides
from karenina_calls.secrets.known_secrets import secrets_of

from karenina_core.errors import ConfigError, Problem, plural
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.pipeline.stage import PlanRequest
from karenina_core.pipeline.stage_plan import StageOrchestrator
from karenina_core.plugin.adapters import Resolution
from karenina_core.plugin.application import Karenina
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import EvaluationMode, ModelConfig, VerificationConfig
from karenina_core.values.identity import TaskIdentity
from karenina_core.values.question import Question
from karenina_core.values.rubric import Rubric

from ..answers.answers import ReplayStore
from ..execution_settings import TaskOrdering
from ..summaries.rates import LeftOut, Planned
from ..workspaces.workspace_sources import investigated_modes
from .templates import TemplateLoader

NO_TRAITS: frozenset[str] = frozenset()
MOST_NAMED = 5
"""Answers, or models, that a message names. Chosen: it stays readable."""
ASK = (
    "ask the models for the missing ones (--ask-missing; in Python a store with miss_policy fall_through, or "
    "ask_missing=True of extend_run), or judge only the questions that have all answers (--only-answered; in Python "
    "miss_policy leave_out)"
)
NO_ANSWER = "lacks an answer to be replayed from some model or replicate"


def trait_types(rubric: Rubric | None) -> frozenset[str]:
    """The types of the traits of a rubric: what its plan depends on."""
    return NO_TRAITS if rubric is None else PlanRequest(rubric=rubric).traits


@frozen
class Item:
    """One piece of work with one result."""

    question: Question
    answering: ModelConfig
    parsing: ModelConfig
    replicate: int
    rubric: Rubric | None
    orchestrator: StageOrchestrator = field(eq=False, repr=False)
    position: int = 0
    """Its place among all items of the run, from 0, as the plan counts them."""

    @cached_property
    def task(self) -> TaskIdentity:
        return TaskIdentity(
            self.question.id,
            self.question.template_id,
            self.answering.identity,
            self.parsing.identity,
            self.replicate,
        )


@frozen
class Generation:
    """Items that share one answer: the same question, answering model and replicate, one item per judge."""

    items: tuple[Item, ...]


@frozen(kw_only=True)
class Prepared:
    """A run that has passed every check."""

    app: Karenina = field(repr=False)
    benchmark: BenchmarkData = field(repr=False)
    config: VerificationConfig
    mode: EvaluationMode
    run_name: str
    questions: tuple[Question, ...] = field(repr=False)
    left_out: tuple[LeftOut, ...]
    rubrics: Mapping[str, Rubric | None] = field(repr=False)
    plans: Mapping[frozenset[str], StageOrchestrator] = field(repr=False)
    resolutions: Mapping[str, Resolution]
    templates: TemplateLoader = field(repr=False)
    notes: tuple[str, ...] = ()
    workspace_root: Path | None = None
    answers: ReplayStore | None = field(default=None, repr=False)
    """Answers that were captured in other runs and take the place of asking the answering models."""
    trusted_code: str | None = None
    """The digest of the benchmark's code where the user trusts it (`karenina trust`)."""

    def has_tools(self, item: Item) -> bool:
        """Whether the answering model of an item can use a workspace."""
        return has_tools(item.answering, self.resolutions[str(item.answering.identity)])

    @property
    def uses_tools(self) -> bool:
        """Whether some answering model can use a workspace."""
        return any(has_tools(model, self.resolutions[str(model.identity)]) for model in self.config.answering_models)

    @property
    def overrides(self) -> list[ModelConfig]:
        """The models that traits name in place of the judges."""
        return [model for _, model in overrides(self.rubrics.values())]

    @property
    def secrets(self) -> dict[str, str]:
        """What no text and no file of this run may hold; see `secrets_of`."""
        return secrets_of(self.app, (*self.config.answering_models, *self.config.parsing_models, *self.overrides))

    @property
    def planned(self) -> Planned:
        """The items, without a list of them."""
        config = self.config
        pairs = product(config.answering_models, config.parsing_models)
        names = tuple((str(answering.identity), str(parsing.identity)) for answering, parsing in pairs)
        return Planned(self.rubrics, range(1, config.replicate_count + 1), names)

    def __len__(self) -> int:
        models = len(self.config.answering_models) * len(self.config.parsing_models)
        return len(self.questions) * models * self.config.replicate_count

    def generations(self) -> Iterator[Generation]:
        """The work, lazily, as the plan counts it: question by question within each answering model."""
        questions, replicates = range(len(self.questions)), range(1, self.config.replicate_count + 1)
        return starmap(self.generation, product(range(len(self.config.answering_models)), questions, replicates))

    def generation(self, answering: int, question: int, replicate: int) -> Generation:
        """The items of one answer: the model and the question by their places from 0, the replicate counted from 1."""
        config, asked = self.config, self.questions[question]
        rubric, judges = self.rubrics[asked.id], config.parsing_models
        plan = self.plans[trait_types(rubric)]
        number = (answering * len(self.questions) + question) * config.replicate_count + replicate - 1
        return Generation(
            tuple(
                Item(asked, config.answering_models[answering], judge, replicate, rubric, plan, position)
                for position, judge in enumerate(judges, number * len(judges))
            )
        )


@define(eq=False)
class Schedule:
    """The generations that are still to be made, each given out once, when it can begin. Nothing is kept of those that
    are over: memory follows the number of questions, and that of all generations only where they are shuffled: eight
    bytes for each."""

    prepared: Prepared
    ordering: TaskOrdering = "auto"
    is_done: Callable[[Generation], bool] = lambda generation: False
    """Those that have all their results already are not given out."""
    may_continue: Callable[[], bool] = lambda: True
    """Where it is False, nothing more is given out."""
    _waiting: dict[int, Iterator[Generation]] = field(factory=dict)
    """What is left of each answering model, by its place among them."""
    _under_way: dict[int, int] = field(factory=dict)

    def __attrs_post_init__(self) -> None:
        config = self.prepared.config
        models, questions = range(len(config.answering_models)), range(len(self.prepared.questions))
        replicates = range(1, config.replicate_count + 1)
        ordering = self.ordering
        if ordering == "auto":
            ordering = "distribute_answerers" if len(models) > 1 else "prefix_cache"
        lines: dict[int, Iterable[tuple[int, int, int]]]
        if ordering == "random":
            lines = {0: self._shuffled(len(models), len(questions), len(replicates))}
        elif ordering == "distribute_answerers":
            lines = {place: product((place,), questions, replicates) for place in models}
        elif ordering == "generation_order":
            by_question = product(questions, models, replicates)
            lines = {0: ((model, question, replicate) for question, model, replicate in by_question)}
        else:  # questions of a model come together, and so do replicates of a question: their prompts are equal
            lines = {0: product(models, questions, replicates)}
        self._waiting = {place: starmap(self.prepared.generation, line) for place, line in lines.items()}
        self._under_way = dict.fromkeys(lines, 0)

    def __iter__(self) -> Iterator[Generation]:
        return self

    def __next__(self) -> Generation:
        """The next of the model of which the fewest are under way: one that is slow does not hold up the others."""
        while self._waiting and self.may_continue():
            place = min(self._waiting, key=lambda place: (self._under_way[place], place))
            for generation in self._waiting[place]:
                if not self.is_done(generation):
                    self._under_way[place] += 1
                    return generation
            del self._waiting[place]
        raise StopIteration

    def over(self, generation: Generation) -> None:
        """All items of a generation that was given out have their results, or will have none."""
        place = self.prepared.config.answering_models.index(generation.items[0].answering)
        self._under_way[place if place in self._under_way else 0] -= 1

    def _shuffled(self, models: int, questions: int, replicates: int) -> Iterator[tuple[int, int, int]]:
        order = array("q", range(models * questions * replicates))
        random.Random(self.prepared.run_name).shuffle(order)
        for number in order:
            rest, replicate = divmod(number, replicates)
            yield *divmod(rest, questions), replicate + 1


def replayed(prepared: Prepared, generation: Generation) -> CachedAnswer | None:
    """The answer that was captured for these items; None where their answering model is to be asked.

    Not where a repair has it generated again, nor where agents look into the folder that an answer was worked out in:
    it is gone.
    """
    store, item = prepared.answers, generation.items[0]
    if store is None or _asked_again(store, item) or judged_by_folder(prepared, item):
        return None
    found = store.lookup(item.question.id, str(item.answering.identity), item.replicate)
    return None if found is None else found.replayed(strict=store.miss_policy != "fall_through")


def judged_by_folder(prepared: Prepared, item: Item) -> bool:
    """Whether agents that judge an item look into the folder that its answer was worked out in."""
    return prepared.workspace_root is not None and bool(investigated_modes(prepared.config, item.rubric))


def unanswered(prepared: Prepared) -> frozenset[str]:
    """The questions of which an answer is missing, where the answers say that they are left out (`leave_out`).

    Raises ConfigError where no question is left.
    """
    store = prepared.answers
    if store is None or store.miss_policy != "leave_out":
        return frozenset()
    without = frozenset(
        generation.items[0].question.id
        for generation in prepared.generations()
        if not _asked_again(store, generation.items[0]) and replayed(prepared, generation) is None
    )
    if len(without) == len(prepared.questions):
        raise ConfigError([Problem("answers", f"no question has all of its answers; {_there(store)}")])
    return without


def _there(store: ReplayStore) -> str:
    """Whose answers there are: the models' names have to be those of the configuration."""
    counts = Counter(key.answering_model or "any model" for key, _ in store)
    named = [f"{count} of {model}" for model, count in counts.most_common(MOST_NAMED)]
    more = f", and of {plural(len(counts) - MOST_NAMED, 'other model')}" if len(counts) > MOST_NAMED else ""
    return f"the answers that were given: {', '.join(named) or 'none'}{more}"


def check_answers(prepared: Prepared) -> list[str]:
    """Notes on the answers that the run was given. Raises ConfigError where some are missing and must not be."""
    store = prepared.answers
    if store is None:
        return []
    missing, again, total = 0, 0, 0
    named: list[str] = []
    for generation in prepared.generations():
        total += 1
        if _asked_again(store, generation.items[0]):
            again += 1
        elif replayed(prepared, generation) is None:
            missing += 1
            if len(named) < MOST_NAMED:
                item = generation.items[0]
                gone = "agents investigate the folder in which the answer was made, which is gone"
                why = f": {gone}" if judged_by_folder(prepared, item) else ""
                named.append(f"{item.question.id}, {item.answering.identity}, replicate {item.replicate}{why}")
    if missing and store.miss_policy == "strict":
        if missing > len(named):
            named.append(f"and {missing - len(named)} more")
        what = f"{missing} of {plural(total, 'answer')} are missing; add them, {ASK}"
        raise ConfigError([Problem("answers", "\n  ".join([what, *named, _there(store)]))])
    notes = [f"{total - missing - again} of {plural(total, 'answer')} are replayed; their models are not called"]
    if again:
        notes.append(f"{plural(again, 'answer')} not replayed, although given: a repair generates them again")
    if store.overwritten:
        differing = plural(store.overwritten, "answer")
        notes.append(f"{differing} to be replayed: given twice and differ; the last one counts")
    return notes


def _asked_again(store: ReplayStore, item: Item) -> bool:
    return (item.question.id, str(item.answering.identity), item.replicate) in store.asked_again
