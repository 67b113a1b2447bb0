"""The work of a run: its items, and a run that has passed every check."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from pathlib import Path

from attrs import field, frozen
from karenina_calls.models.models import has_tools
from karenina_calls.models.overrides import overrides

from karenina_core.pipeline.orchestrator import StageOrchestrator
from karenina_core.pipeline.stage import PlanRequest
from karenina_core.plugin.adapters import Resolution
from karenina_core.plugin.application import Karenina
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import EvaluationMode, ModelConfig, VerificationConfig
from karenina_core.values.identity import TaskIdentity
from karenina_core.values.question import Question
from karenina_core.values.rubric import Rubric

from ..answers.answers import ReplayStore
from ..summaries.rates import Planned
from .templates import TemplateLoader

NO_TRAITS: frozenset[str] = frozenset()


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

    @property
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


@frozen
class LeftOut:
    """A question that is not run, and why."""

    question_id: str
    reason: str


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
        for place in product(range(len(self.config.answering_models)), questions, replicates):
            yield self.generation(*place)

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
