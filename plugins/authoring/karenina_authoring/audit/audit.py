"""The audit of a benchmark: every check on every item, and the items in the order in which to look at them."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import frozen
from karenina_runs.plan.templates import TemplateLoader

from karenina_core.errors import TemplateError, TemplateRefused, plural
from karenina_core.plugin.application import Karenina
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.config import CodePolicy
from karenina_core.values.result import VerificationResult

from .answers import Answers, answer_findings
from .duplicates import duplicates
from .findings import AuditedItem, Finding, ranked
from .probes import Probe
from .references import contradictions
from .templates import template_findings, without_template


@frozen(kw_only=True)
class Audit:
    """What was found."""

    questions: int
    items: tuple[AuditedItem, ...] = ()
    """Those with findings, the worst first."""
    notes: tuple[str, ...] = ()
    """What was not looked at, and why."""

    @property
    def alarms(self) -> tuple[AuditedItem, ...]:
        """The items with more than notes."""
        return tuple(item for item in self.items if item.severity != "note")


async def audit(
    benchmark: BenchmarkData,
    results: Iterable[VerificationResult] = (),
    *,
    app: Karenina,
    policy: CodePolicy = "sandbox",
) -> Audit:
    """Audit every item. No model is called; code of the benchmark runs only as far as the policy allows.

    `results` are of runs of this benchmark, of any models; those of items that have changed since are left out.
    """
    loader = TemplateLoader(app, policy)
    found: list[Finding] = []
    expected: dict[str, dict[str, Any]] = {}
    unread: dict[str, list[str]] = {}
    for question in benchmark:
        if (source := question.template) is None:
            found += without_template(question)
            continue
        try:
            probe = Probe.of(await loader.load(source))
        except TemplateRefused as error:
            unread.setdefault(str(error), []).append(question.id)
            continue
        except TemplateError as error:
            message = f"the template cannot be used: {error}"
            found.append(Finding(question_id=question.id, check="unreachable", severity="fault", message=message))
            continue
        expected[question.id] = {**probe.expected}
        found += await template_findings(question, probe)
        found += await contradictions(question, probe)
    found += duplicates(benchmark.questions, expected)
    answers = Answers.of(benchmark, results)
    found += answer_findings(answers)
    notes = [f"{plural(len(ids), 'template')} not checked: {reason}" for reason, ids in unread.items()]
    if answers.other:
        notes.append(f"{plural(answers.other, 'result')} left out: the benchmark does not have their items")
    return Audit(questions=len(benchmark), items=ranked(found), notes=tuple(notes))
