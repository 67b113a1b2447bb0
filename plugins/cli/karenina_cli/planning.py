"""What `karenina plan` does."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from attrs import asdict, field, frozen
from karenina_runs.benchmark import Benchmark
from karenina_runs.plan.prepare import default_mode, settings_problems, why_left_out
from karenina_runs.plan.rubrics import all_rubrics, check_names, rubric_of

from karenina_core.errors import ConfigError, plural
from karenina_core.pipeline.orchestrator import StageOrchestrator
from karenina_core.pipeline.stage import PlanRequest
from karenina_core.plugin.application import Karenina
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import VerificationConfig
from karenina_core.values.rubric import Rubric

from .exits import COULD_NOT_RUN, OK
from .options.flags import configured
from .output import Part, Table, inline, note, own_stdout, print_found


@frozen
class PlannedQuestion:
    """One question: the kinds of its traits, or why it would not run."""

    id: str
    traits: tuple[str, ...] = ()
    left_out: str | None = None


@frozen(kw_only=True)
class Planned:
    """One plan for every combination of trait kinds, the most frequent one first, and what is wrong with them."""

    plans: Mapping[tuple[str, ...], StageOrchestrator] = field(repr=False)
    questions: tuple[PlannedQuestion, ...] = ()
    problems: tuple[str, ...] = ()


def plan(path: Path | None, options: Mapping[str, Any]) -> int:
    """Print the plan. Returns the exit code; see `exits` for what errors become."""
    with own_stdout() as out:
        loaded = configured(options, models=False)
        benchmark = Benchmark.load(path, app=loaded.app) if path else None
        found = planned(loaded.app, loaded.config, benchmark)
        document = {**next(iter(found.plans.values())).describe(), "problems": list(found.problems)}
        if benchmark is not None:
            document["questions"] = [asdict(row) for row in found.questions]
        parts: list[Part] = []
        frequency = Counter(row.traits for row in found.questions if row.left_out is None)
        for traits, orchestrator in found.plans.items():
            parts += _plan_parts(orchestrator, traits, frequency[traits] if found.questions else None)
        left_out = [(row.id, row.left_out) for row in found.questions if row.left_out is not None]
        parts.append(Table(("question", "reason"), left_out, "Questions left out"))
        print_found(document, parts, out, as_json=options["as_json"])
        for problem in found.problems:
            note(f"Error: {problem}")
    return COULD_NOT_RUN if found.problems else OK


def planned(app: Karenina, config: VerificationConfig, benchmark: BenchmarkData | None = None) -> Planned:
    """The plans for a benchmark, or the plan for no benchmark in particular.

    Raises PlanError where there is none at all: a feature that no stage serves, stages that contradict each other.
    """
    mode = config.evaluation_mode or (default_mode(benchmark) if benchmark is not None else "template_only")
    rows: list[tuple[PlannedQuestion, Rubric | None]] = []
    problems: list[str] = []
    if benchmark is not None:
        names = config.rubric_trait_names
        for question in benchmark:
            rubric: Rubric | None = None
            traits: tuple[str, ...] = ()
            try:
                if not (reason := why_left_out(benchmark, question, mode, names)):
                    rubric = rubric_of(benchmark, question, mode, names)
                    traits = tuple(sorted(PlanRequest(rubric=rubric).traits))
            except ConfigError as error:
                problems.append(str(error))
                reason = "its traits clash with those of the benchmark"
            rows.append((PlannedQuestion(question.id, traits, reason or None), rubric))
        try:
            check_names(config, all_rubrics(benchmark), [question.id for question in benchmark])
        except ConfigError as error:
            problems += map(str, error.problems)
    rubrics: dict[tuple[str, ...], Rubric | None] = {}
    for row, rubric in rows:
        if row.left_out is None:
            rubrics.setdefault(row.traits, rubric)
    if benchmark is not None and not rubrics:
        problems.append("nothing to verify: every question is left out")
    frequency = Counter(row.traits for row, _ in rows if row.left_out is None)
    plans = {
        traits: StageOrchestrator.for_request(
            PlanRequest(mode=mode, features=config.features, rubric=rubrics.get(traits)), app=app
        )
        for traits in sorted(rubrics or {(): None}, key=lambda traits: (-frequency[traits], traits))
    }
    problems += [problem for orchestrator in plans.values() for problem in orchestrator.validate_dependencies()]
    problems += map(str, settings_problems(list(plans.values()), config, app, mode))
    return Planned(plans=plans, questions=tuple(row for row, _ in rows), problems=tuple(dict.fromkeys(problems)))


def _plan_parts(orchestrator: StageOrchestrator, traits: Sequence[str], questions: int | None) -> list[Part]:
    document = orchestrator.describe()
    about = [f"Mode {document['mode']}"]
    about += [f"features {', '.join(document['features'])}"] if document["features"] else []
    about += [f"traits {', '.join(traits)}"] if traits else []
    about += [plural(questions, "question")] if questions is not None else []
    parts: list[Part] = [", ".join(about), ""]
    for number, stage in enumerate(document["stages"], 1):
        parts.append(f"{number:3} {stage['name']}  ({stage['category']}, plugin {stage['plugin']})")
        parts += [
            f"      {verb:9} {', '.join(stage[verb])}" for verb in ("requires", "reads", "produces") if stage[verb]
        ]
    rows = [(row["name"], inline(row["reason"])) for row in document["left_out"]]
    return [*parts, "", Table(("stage", "why not"), rows, "Stages left out")]
