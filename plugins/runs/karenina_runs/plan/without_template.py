"""Questions without a template, judged in a way that a template runtime brings (`run.judge_with`)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, TypeVar

from attrs import evolve
from karenina_judging.asking import unable_judges
from karenina_vocabulary.kinds import TemplateRuntimeRegistry, runtime_of

from karenina_core.errors import ConfigError, PluginError, Problem, did_you_mean, plural
from karenina_core.plugin.application import Karenina
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import VerificationConfig
from karenina_core.values.question import Question

B = TypeVar("B", bound=BenchmarkData)


def with_stand_ins(app: Karenina, config: VerificationConfig, benchmark: B) -> B:
    """The benchmark with what the chosen runtime makes for questions without a template.

    A runtime that can do so has a method `template_for(question)`, which gives a `TemplateSource` or None, perhaps
    an attribute `judge_task`, the task that its judges are asked for. Raises ConfigError.
    """
    if config.judge_with is None:
        return benchmark
    able = dict(_able(app))
    if (runtime := able.get(config.judge_with)) is None:
        hint = did_you_mean(config.judge_with, able)
        what = f"nothing that judges without a template has the name {config.judge_with!r}{hint}; available: "
        raise ConfigError([Problem("judge_with", f"{what}{', '.join(able) or 'nothing'}.{app.inactive()}")])
    questions = tuple(_with_stand_in(question, runtime) for question in benchmark.questions)
    if any(one is not other for one, other in zip(questions, benchmark.questions, strict=True)):
        task = getattr(runtime, "judge_task", None)
        remedy = "leave out --judge-with"
        if task and (unable := unable_judges(app, config.parsing_models, task, remedy)):
            raise ConfigError(unable)
    return evolve(benchmark, questions=questions)


def note_on_stand_ins(config: VerificationConfig, ids: Sequence[str], mode: str) -> list[str]:
    """That these questions have no template of their own, or that the setting has no effect."""
    if config.judge_with is None:
        return []
    if mode == "rubric_only" or not ids:
        return ["judge_with has no effect: no question of this run is verified without a template"]
    return [f"{plural(len(ids), 'question')} without a template: judged by {config.judge_with} (weaker evidence)"]


def _able(app: Karenina) -> Iterator[tuple[str, Any]]:
    for name in app.registry(TemplateRuntimeRegistry):
        try:
            runtime = runtime_of(app, name)
        except PluginError:  # one that cannot be made is no choice
            continue
        if callable(getattr(runtime, "template_for", None)):
            yield name, runtime


def _with_stand_in(question: Question, runtime: Any) -> Question:
    source = None if question.template is not None else runtime.template_for(question)
    if source is None:
        return question
    return evolve(question, answer_template=source.text, template_language=source.language, placeholder_template=False)
