"""Trials of a judge: answers whose contents are known, to questions of a benchmark, judged in a run of their own.

Such a run is one like any other: it has a directory and a journal, keeps to budgets, and is resumed in the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from attrs import evolve, field, frozen
from karenina_authoring.proof.facts import Facts, facts_of
from karenina_runs.answers.answers import ReplayEntry, ReplayKey, ReplayStore
from karenina_runs.benchmark import Benchmark
from karenina_runs.plan.items import Prepared
from karenina_runs.plan.prepare import prepare
from karenina_runs.plan.templates import TemplateLoader
from karenina_vocabulary.handle import FieldVerdict, TemplateHandle

from karenina_core.errors import TemplateError
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import VerificationConfig
from karenina_core.values.message import Message, TextBlock, trace_dicts
from karenina_core.values.question import Question

WHOLE = "(verdict)"
"""In place of a field, where a template decides with code of its own and says nothing of its fields."""
WITH_WORKSPACE = frozenset({"agentic_parsing"})
"""Features that look into an answer's folder: these answers have none."""


@frozen(kw_only=True)
class Trial:
    """An answer that a judge reads, and what it has to find in it."""

    question: Question = field(repr=False)
    """With the template that is filled in from the answer."""
    name: str
    """What sets it apart from other trials of the question."""
    kind: str
    """What it is counted under."""
    answer: str
    expected: Mapping[str, bool] = field(factory=dict)
    """Whether the answer is right, by field, as the template itself says of what the answer states; see `WHOLE`."""

    @property
    def id(self) -> str:
        """Of the question of the run that judges it."""
        return f"{self.question.id} / {self.name}"


@frozen
class Subject:
    """A question of the benchmark, its loaded template, and the values that the template accepts."""

    question: Question
    handle: TemplateHandle = field(repr=False)
    facts: Facts = field(repr=False)

    def values(self, changed: Mapping[str, Any]) -> dict[str, Any]:
        """Of the fields whose right values are known, but for these."""
        return {fact.name: fact.value for fact in self.facts.fields} | dict(changed)

    async def expected(self, changed: Mapping[str, Any]) -> dict[str, bool]:
        """What the template says of these values, field by field; nothing where they do not fit it."""
        verdict = await self._verified(changed)
        if verdict is None:
            return {}
        known = {fact.name for fact in self.facts.fields}
        found = {name: right is True for name, right in verdict.field_results.items() if name in known}
        return found or ({} if verdict.field_results else {WHOLE: verdict.result})

    async def verdict(self, changed: Mapping[str, Any]) -> bool | None:
        """What the template says of these values as a whole; None where they do not fit it."""
        verdict = await self._verified(changed)
        return None if verdict is None else verdict.result

    async def _verified(self, changed: Mapping[str, Any]) -> FieldVerdict | None:
        values = self.facts.filled(changed)
        try:
            built = await self.handle.build({self.facts.keys.get(name, name): v for name, v in values.items()})
            return await built.verify("")
        except TemplateError:
            return None


async def subjects(
    questions: Iterable[Question], loader: TemplateLoader, primitives: Mapping[str, type]
) -> tuple[list[Subject], dict[str, str]]:
    """Those whose templates can be used, and why the others cannot, by the questions' ids."""
    found: list[Subject] = []
    left_out: dict[str, str] = {}
    for question in questions:
        if question.finished is False or question.template is None:
            left_out[question.id] = "not finished" if question.template is not None else "has no answer template"
            continue
        try:
            handle = await loader.load(question.template)
        except TemplateError as error:
            left_out[question.id] = str(error)
            continue
        subject = Subject(question, handle, facts_of(handle, question.question, primitives))
        own = await subject.expected({})
        if own and all(own.values()):
            found.append(subject)
        else:
            why = "its template does not accept its own values" if own else "it has no field whose right value is known"
            left_out[question.id] = f"{why}; type: karenina benchmark prove"
    return found, left_out


def trial_config(config: VerificationConfig, *, repeats: int = 1, judge_with: str | None = None) -> VerificationConfig:
    """The settings that trials are judged with: those of a run, for templates alone. Answers are given, so the
    answering model is asked nothing. `judge_with` is for trials of questions without a template."""
    return evolve(
        config,
        answering_models=config.parsing_models[:1],
        evaluation_mode="template_only",
        features=config.features - WITH_WORKSPACE,
        replicate_count=repeats,
        canaries=False,
        judge_with=judge_with,
    )


@frozen
class TrialRun:
    """The run that judges trials."""

    benchmark: Benchmark = field(repr=False)
    """Whose questions are the trials, as a file can hold it."""
    prepared: Prepared
    answers: Mapping[str, str] = field(repr=False)
    """By the ids of the questions."""


def trial_run(trials: Sequence[Trial], benchmark: Benchmark, config: VerificationConfig, app: Karenina) -> TrialRun:
    """The run that judges these trials, after every check that comes before a run. Raises
    what `prepare` raises."""
    store = ReplayStore()
    questions = []
    for trial in trials:
        question = evolve(trial.question, id=trial.id, custom_metadata={}, workspace_path=None, keywords=())
        questions.append(evolve(question, question_rubric=None, question_dynamic_rubric=None))
        trace = tuple(trace_dicts([Message("assistant", (TextBlock(trial.answer),))]))
        answer = CachedAnswer(raw_llm_response=trial.answer, trace_messages=trace)
        store.register(ReplayKey(trial.id), ReplayEntry(answer=answer))
    tried = Benchmark.create(f"Trials of {benchmark.name}").with_questions(questions)
    prepared = prepare(tried, config, app=app, answers=store)
    return TrialRun(tried, prepared, {trial.id: trial.answer for trial in trials})
