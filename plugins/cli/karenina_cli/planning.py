"""What `karenina plan` and `karenina benchmark validate` say of a benchmark before any model is asked."""

from __future__ import annotations

import asyncio
import shlex
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from attrs import asdict, evolve, field, frozen
from karenina_calls.services.similarity import embedder_problem
from karenina_runs.benchmark import Benchmark
from karenina_runs.config.config_file import RunConfig
from karenina_runs.plan.prepare import default_mode, settings_problems, why_left_out
from karenina_runs.plan.rubrics import all_rubrics, check_names, check_types, rubric_of
from karenina_runs.plan.templates import TemplateLoader
from karenina_runs.plan.without_template import with_stand_ins
from karenina_runs.trust.store import trusted_digest
from karenina_template.lint.lint import Finding, lint_benchmark, lint_template
from karenina_vocabulary.handle import TemplateHandle

from karenina_core.errors import ConfigError, PluginError, TemplateError, TemplateRefused, plural
from karenina_core.pipeline.stage import PlanRequest
from karenina_core.pipeline.stage_plan import StageOrchestrator
from karenina_core.plugin.application import Karenina
from karenina_core.plugin.registry import Registry
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import CodePolicy, VerificationConfig
from karenina_core.values.question import Question
from karenina_core.values.rubric import Rubric

from .entries import every_section, merged, section_parts
from .exits import COULD_NOT_RUN, GATE_FAILED, OK
from .options.flags import configured, select_questions
from .output import Part, Table, inline, note, own_stdout, print_found
from .summary import listing


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
    notes: tuple[str, ...] = ()


def plan(path: Path | None, options: Mapping[str, Any]) -> int:
    """Print the plan. Returns the exit code; see `exits` for what errors become."""
    with own_stdout() as out:
        loaded = configured(options, models=False)
        benchmark = Benchmark.load(path, app=loaded.app) if path else None
        found = planned(loaded.app, loaded.config, benchmark)
        found = evolve(found, problems=(*_absent(loaded, options["sinks"]), *found.problems))
        document = {**next(iter(found.plans.values())).describe()}
        document |= {"problems": list(found.problems), "notes": list(found.notes)}
        unusable: list[tuple[str, str]] = []
        if benchmark is not None:
            document["questions"] = [asdict(row) for row in found.questions]
            document["warnings"] = list(benchmark.warnings)
            unusable = asyncio.run(_unusable(loaded.app, benchmark, found.questions))
            document["unusable_templates"] = dict(unusable)
        parts: list[Part] = []
        frequency = Counter(row.traits for row in found.questions if row.left_out is None)
        for traits, orchestrator in found.plans.items():
            parts += _plan_parts(orchestrator, traits, frequency[traits] if found.questions else None)
        left_out = [(row.id, row.left_out) for row in found.questions if row.left_out is not None]
        parts.append(Table(("question", "reason"), left_out, "Questions left out"))
        parts.append(Table(("question", "reason"), unusable, "Templates that cannot be used"))
        if benchmark is not None:
            parts.append(listing("Warnings of the benchmark", [(text,) for text in benchmark.warnings]))
        parts.append(listing("Notes", [(text,) for text in found.notes]))
        print_found(document, parts, out, as_json=options["as_json"])
        for problem in found.problems:
            note(f"Error: {problem}")
    return COULD_NOT_RUN if found.problems else OK


def _absent(loaded: RunConfig, sinks: Iterable[str]) -> Iterator[str]:
    """The adapters and sinks that a run would need and that no installed package brings."""
    wanted: list[tuple[str, Registry[Any], str]]
    wanted = [(place, loaded.app.adapters, name) for place, name in loaded.interfaces.items()]
    wanted += [("--sink", loaded.app.sinks, uri.partition(":")[0]) for uri in sinks]
    for place, registry, name in wanted:
        try:
            registry.load(name)
        except PluginError as error:
            yield f"{place}: {error}"


async def _unusable(
    app: Karenina, benchmark: BenchmarkData, questions: Iterable[PlannedQuestion]
) -> list[tuple[str, str]]:
    """`(id, reason)` of questions that would run and whose template cannot be used. Runs no code of the benchmark."""
    loader = TemplateLoader(app, "refuse")
    checked = [(await _checked(benchmark.question(row.id), loader))[0] for row in questions if row.left_out is None]
    return [(question.id, question.reason) for question in checked if question.state == "unusable"]


def planned(app: Karenina, config: VerificationConfig, benchmark: BenchmarkData | None = None) -> Planned:
    """The plans for a benchmark, or the plan for no benchmark in particular.

    Raises PlanError where there is none at all: a feature that no stage serves, stages that contradict each other.
    """
    if benchmark is not None:
        benchmark = with_stand_ins(app, config, benchmark)
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
            check_types(config, benchmark)
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
    asked = [] if benchmark is None else [benchmark.question(row.id) for row, _ in rows if row.left_out is None]
    found = settings_problems(list(plans.values()), config, app, mode, asked)
    problems += [str(problem) for problem in found if problem.fatal]
    return Planned(
        plans=plans,
        questions=tuple(row for row, _ in rows),
        problems=tuple(dict.fromkeys(problems)),
        notes=tuple(str(problem) for problem in found if not problem.fatal),
    )


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


State = Literal["ok", "unusable", "not_checked", "no_template"]


@frozen(kw_only=True)
class CheckedQuestion:
    """One question and its template."""

    id: str
    state: State
    """`not_checked`: the template is code that may not run here."""
    reason: str = ""
    """Why the state is not `ok`."""
    finished: bool
    language: str | None = None
    isolation: str | None = None
    """How far the template's code was kept from this process; None where it was not loaded."""
    findings: tuple[Finding, ...] = ()
    warnings: tuple[str, ...] = ()
    """What else the author should look at, though the template can be used."""


@frozen(kw_only=True)
class Validation:
    """Everything that was found."""

    questions: tuple[CheckedQuestion, ...]
    findings: tuple[Finding, ...] = ()
    """Those that only the templates together show."""
    problems: tuple[str, ...] = ()
    """Traits that clash."""
    warnings: tuple[str, ...] = field(default=())
    """What the loader could not use."""

    @property
    def usable(self) -> bool:
        """Whether every template that was checked can be used, and all traits too."""
        return not self.problems and not any(question.state == "unusable" for question in self.questions)

    @property
    def tight(self) -> bool:
        """Whether every template was checked and none gives its answer away."""
        leaks = any(finding.severity == "leak" for question in self.questions for finding in question.findings)
        return not leaks and not any(question.state == "not_checked" for question in self.questions)

    def counts(self) -> Counter[str]:
        """Findings by severity; a warning counts as a note."""
        found = [*self.findings, *(finding for question in self.questions for finding in question.findings)]
        warned = sum(len(question.warnings) for question in self.questions)
        return Counter(finding.severity for finding in found) + Counter(note=warned)


def validate(path: Path, options: Mapping[str, Any], arguments: Sequence[str]) -> int:
    """Print what was found. Returns the exit code; see `exits` for what errors become."""
    with own_stdout() as out:
        app = Karenina.installed()
        for warning in app.warnings:
            note(f"Warning: {warning}")
        benchmark = Benchmark.load(path, app=app)
        ids = [question.id for question in benchmark]
        chosen = ids if options["questions"] is None else select_questions(options["questions"], ids)
        policy = code_policy(benchmark, trusted=options["trust"])
        found = asyncio.run(validated(app, benchmark, chosen, policy))
        sections = every_section("karenina.validate", lambda section: section(app, benchmark, chosen, policy))
        trusting = None
        if any(question.state == "not_checked" for question in found.questions):
            group, command, *rest = arguments
            trusting = shlex.join(["karenina", group, command, "--trust", *rest])
        document = {
            "name": benchmark.name,
            "usable": found.usable,
            "questions": [asdict(question) for question in found.questions],
            "findings": [asdict(finding) for finding in found.findings],
            "counts": {severity: found.counts()[severity] for severity in ("leak", "hint", "note")},
            "problems": list(found.problems),
            "warnings": list(found.warnings),
            "trust": trusting,
        }
        parts = _validation_parts(benchmark, found, trusting)
        parts += [part for section in sections for part in section_parts(section)]
        nothing = default_mode(benchmark) == "template_only" and not any(q.state == "ok" for q in found.questions)
        sound = found.tight and all(section.usable for section in sections)
        if found.usable and sound and (lines := _next(path, benchmark, found)):
            parts += ["", *lines]
        print_found(merged(document, sections), parts, out, as_json=options["as_json"])
        for problem in (*found.problems, *(problem for section in sections for problem in section.problems)):
            note(f"Error: {problem}")
    if not found.usable:
        return COULD_NOT_RUN
    return GATE_FAILED if options["strict"] and (nothing or not sound) else OK


def code_policy(benchmark: BenchmarkData, *, trusted: bool) -> CodePolicy:
    """How far the code of a benchmark may run in a command that checks it."""
    return "trusted" if trusted or trusted_digest(benchmark, "sandbox") else "sandbox"


async def validated(
    app: Karenina, benchmark: BenchmarkData, ids: Iterable[str], policy: CodePolicy = "sandbox"
) -> Validation:
    """Check the questions of these ids. Runs code of the benchmark only as far as the policy allows."""
    loader = TemplateLoader(app, policy)
    questions: list[CheckedQuestion] = []
    handles: list[TemplateHandle] = []
    problems: list[str] = []
    for question in map(benchmark.question, ids):
        checked, handle = await _checked(question, loader)
        if handle is not None and (problem := embedder_problem(app, handle, VerificationConfig())):
            checked = evolve(checked, warnings=(*checked.warnings, problem))
        questions.append(checked)
        handles += [handle] if handle is not None else []
        try:
            rubric_of(benchmark, question, "template_and_rubric")
        except ConfigError as error:
            problems.append(str(error))
    return Validation(
        questions=tuple(questions),
        findings=lint_benchmark(handles),
        problems=tuple(dict.fromkeys([*problems, *(trait.reason for trait in benchmark.missing_traits)])),
        warnings=tuple(benchmark.warnings),
    )


async def _checked(question: Question, loader: TemplateLoader) -> tuple[CheckedQuestion, TemplateHandle | None]:
    def row(state: State, reason: str = "", **facts: Any) -> CheckedQuestion:
        return CheckedQuestion(
            id=question.id, state=state, reason=reason, finished=question.finished is not False, **facts
        )

    source = question.template
    if source is None:
        placeholder = "its template is a placeholder" if question.placeholder_template else "has no answer template"
        return row("no_template", placeholder), None
    try:
        handle: TemplateHandle = await loader.load(source)
    except TemplateRefused:
        return row("not_checked", "Python code; needs --trust", language=source.language), None
    except TemplateError as error:
        return row("unusable", str(error), language=source.language), None
    findings = lint_template(handle, question=question.question)
    known = set(map(str, lint_template(handle)))  # as they are without the question, which the handle does not know
    warnings = tuple(warning for warning in getattr(handle, "warnings", ()) if warning not in known)
    facts: dict[str, Any] = {"findings": findings, "warnings": warnings, "isolation": handle.isolation}
    return row("ok", language=source.language, **facts), handle


def _validation_parts(benchmark: BenchmarkData, found: Validation, trusting: str | None) -> list[Part]:
    states = Counter(question.state for question in found.questions)
    states_text = [f"{plural(states['ok'], 'template')} can be used"]
    states_text += [f"{states['unusable']} cannot"] if states["unusable"] else []
    states_text += [f"{states['not_checked']} not checked"] if states["not_checked"] else []
    unfinished = [(question.id,) for question in found.questions if not question.finished]
    return [
        f"{benchmark.name}: {plural(len(found.questions), 'question')}, {', '.join(states_text)}",
        "",
        _in_state("Templates that cannot be used", found, "unusable"),
        _in_state("Templates not checked", found, "not_checked"),
        *([f"If you trust the author, type:\n{trusting}", ""] if trusting else []),
        _in_state("Questions without a template", found, "no_template"),
        Table(("question",), unfinished, "Questions that are not finished"),
        listing("Warnings of the benchmark", [(text,) for text in found.warnings]),
        *_finding_parts(found),
    ]


def _next(path: Path, benchmark: BenchmarkData, found: Validation) -> list[Part]:
    """What to type next, of templates that can be used and give nothing away."""
    file, missing = shlex.quote(str(path)), [row.id for row in found.questions if row.state == "no_template"]
    lines: list[Part] = []
    if any(question.raw_answer.strip() for question in benchmark.questions if question.id in missing):
        lines.append(
            f"To draft templates with a model: karenina benchmark draft {file} -o drafted.jsonld --model PROVIDER/NAME"
        )
    if any(row.state == "ok" for row in found.questions):
        lines.append(f"Next: karenina verify {file} --model PROVIDER/NAME")
    return lines


def _in_state(title: str, found: Validation, state: State) -> Table:
    rows = [(question.id, inline(question.reason, 500)) for question in found.questions if question.state == state]
    return Table(("question", "why"), rows, title)


def _finding_parts(found: Validation) -> list[Part]:
    """A table for every severity, the worst first, and how many findings there are."""
    both = [(question.id, finding) for question in found.questions for finding in question.findings]
    both += [("(all)", finding) for finding in found.findings]
    parts: list[Part] = []
    for severity, title in (
        ("leak", "Leaks: the judge can read the expected answer"),
        ("hint", "Hints: part of it, or a coincidence"),
        ("note", "Notes"),
    ):
        rows: list[tuple[str, str, str, str]] = [
            (question, finding.field or "", finding.where, inline(finding.message, 500))
            for question, finding in both
            if finding.severity == severity
        ]
        if severity == "note":
            rows += [(row.id, "", "", inline(text, 500)) for row in found.questions for text in row.warnings]
        parts.append(Table(("question", "field", "where", "what"), rows, title))
    counts, states = found.counts(), {question.state for question in found.questions}
    if counts:
        listed = [plural(counts[name], name) for name in ("leak", "hint", "note") if counts[name]]
        return [*parts, f"Findings: {', '.join(listed)}"]
    if "ok" not in states:
        return [*parts, "No template was checked."]
    return [*parts, f"No {'checked ' * ('not_checked' in states)}template gives its answer away."]
