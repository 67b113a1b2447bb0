"""What `karenina benchmark validate` does."""

from __future__ import annotations

import asyncio
import shlex
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from attrs import asdict, evolve, field, frozen
from karenina_calls.services.similarity import embedder_problem
from karenina_runs.benchmark import Benchmark
from karenina_runs.plan.rubrics import rubric_of
from karenina_runs.plan.templates import TemplateLoader
from karenina_template.lint.lint import Finding, lint_benchmark, lint_template
from karenina_vocabulary.handle import TemplateHandle

from karenina_core.errors import ConfigError, TemplateError, TemplateRefused, plural
from karenina_core.plugin.application import Karenina
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import CodePolicy, VerificationConfig
from karenina_core.values.question import Question

from .exits import COULD_NOT_RUN, GATE_FAILED, OK
from .options.selection import select_questions
from .output import Part, Table, inline, note, own_stdout, print_found
from .summary import listing

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
        found = asyncio.run(validated(app, benchmark, chosen, "trusted" if options["trust"] else "sandbox"))
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
        print_found(document, _parts(benchmark, found, trusting), out, as_json=options["as_json"])
        for problem in found.problems:
            note(f"Error: {problem}")
    if not found.usable:
        return COULD_NOT_RUN
    return GATE_FAILED if options["strict"] and not found.tight else OK


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
        problems=tuple(dict.fromkeys(problems)),
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


def _parts(benchmark: BenchmarkData, found: Validation, trusting: str | None) -> list[Part]:
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
