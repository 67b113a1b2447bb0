"""Putting a template to the proof, without a model: by cases that a judge's replies could be.

A template written in Python is judged in the same way as one of data: it is filled with values and asked for its
verdict, in the sandbox where the code is not trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from karenina_runs.plan.templates import TemplateLoader
from karenina_template.lint.lint import lint_template
from karenina_vocabulary.handle import FieldVerdict, TemplateHandle
from karenina_vocabulary.kinds import PrimitiveRegistry

from karenina_core.errors import FillError, PluginError, TemplateError, TemplateRefused, one_line
from karenina_core.plugin.application import Karenina
from karenina_core.values.question import Question

from .facts import Fact, Facts, facts_of
from .mutants import mutants
from .proof import Case, Failure, Proof, State, Tally
from .variants import variants

OWN = "own_values"
SWAPPED = "swapped_fields"
EVERYTHING = "everything_wrong"
REMEDIES: Mapping[str, str] = {
    **dict.fromkeys(("magnitude", "unit", "sign", "off_by_one"), "narrow its tolerance or bounds"),
    **dict.fromkeys(("month", "year", "decade"), "narrow its tolerance or bounds"),
    **dict.fromkeys(("negation", "neighbouring_entity", "partial", "empty"), "compare it as a whole, with AliasMatch"),
    **dict.fromkeys(("partial_list", "reordered"), "compare the whole list"),
    SWAPPED: "compare each field with its own expected value",
    EVERYTHING: "the strategy must require at least one field",
}
"""What may be done about a wrong value that is accepted, by its kind."""
ADVICE: Mapping[str, str] = {
    "case": "normalize with lowercase",
    **dict.fromkeys(("units", "thousands"), "compare it with QuantityMatch, or declare a number"),
    "dates": "compare it with DateMatch",
    "range": "ask for its two ends in two fields, or give these as aliases",
    "number": "declare a number",
    "typography": "compare it with ExactMatch",
    **dict.fromkeys(("reordered", "repetition"), "compare it with SetContainment"),
}
"""The same for a right value that is rejected."""


async def prove(question: Question, app: Karenina, *, loader: TemplateLoader | None = None) -> Proof:
    """Put the question's template to the proof. Calls no model, and raises nothing for what is wrong with a template.

    `loader` says which code may run, and where; without one only what a sandbox can hold. A `Proof` has in `failures`
    every case that ended as it must not, with the values to repeat it.
    """

    def ended(state: State, reason: str) -> Proof:
        return Proof(question=question.id, template=question.template_id, state=state, reasons=[reason])

    source = question.template
    if source is None:
        return ended("no_template", "there is no template to prove")
    loader = loader or TemplateLoader(app, "sandbox")
    try:
        handle: TemplateHandle = await loader.load(source)
    except TemplateRefused:
        return ended("not_checked", "its template is Python code, which may not run here; --trust runs it")
    except TemplateError as error:
        return ended("unusable", str(error))
    facts = facts_of(handle, question.question, primitives_of(app))
    cases = list(cases_of(facts))
    trial = _Trial(handle, facts, question.raw_answer)
    failures: list[Failure] = []
    for case in cases:
        if problem := await trial.problem(case):
            failures.append(Failure(case=case, problem=problem))
    leaks = [str(found) for found in lint_template(handle, question=question.question) if found.severity == "leak"]
    return _concluded(question, facts, cases, failures, leaks)


def primitives_of(app: Karenina) -> dict[str, type]:
    """The primitives that are installed and work, by name."""
    found = {}
    for name, entry in app.registry(PrimitiveRegistry).items():
        try:
            found[name] = entry.load()
        except PluginError:  # a template that needs it could not be loaded
            continue
    return found


def cases_of(facts: Facts) -> Iterator[Case]:
    """The template's own values; for each field wrong values and other forms of the right one; exchanged values."""
    if not facts.fields:
        return
    yield Case(kind=OWN, fields=(), values=facts.filled({}), passes=True)
    wrong: dict[str, Any] = {}
    for fact in facts.fields:
        for kind, value in mutants(fact):
            wrong.setdefault(fact.name, value)
            yield Case(kind=kind, fields=(fact.name,), values=facts.filled({fact.name: value}), passes=False)
        for kind, value in variants(fact):
            yield Case(kind=kind, fields=(fact.name,), values=facts.filled({fact.name: value}), passes=True)
    for one, other in _alike(facts.fields):
        changed = {one.name: other.value, other.name: one.value}
        yield Case(kind=SWAPPED, fields=(one.name, other.name), values=facts.filled(changed), passes=False)
    if len(wrong) > 1:
        yield Case(kind=EVERYTHING, fields=tuple(wrong), values=facts.filled(wrong), passes=False)


def _alike(fields: Sequence[Fact]) -> Iterator[tuple[Fact, Fact]]:
    """Each field and the next one that its value could be taken for."""
    for position, one in enumerate(fields):
        if one.options or isinstance(one.value, bool):
            continue
        for other in fields[position + 1 :]:
            if (one.type, one.primitive) == (other.type, other.primitive) and one.value != other.value:
                yield one, other
                break


class _Trial:
    """A loaded template, asked for its verdict on cases."""

    def __init__(self, handle: TemplateHandle, facts: Facts, trace: str) -> None:
        self._handle, self._facts, self._trace = handle, facts, trace

    async def problem(self, case: Case) -> str:
        """How the outcome differs from what it has to be, or nothing."""
        data = {self._facts.keys.get(name, name): value for name, value in case.values.items()}
        try:
            filled = await self._handle.build(data)
            verdict = await filled.verify(self._trace)
        except FillError as error:
            return f"the value does not fit the field: {one_line(error)}" if case.passes else ""
        except TemplateError as error:
            return f"it ends in an error: {one_line(error)}" if case.passes else ""
        passed, wrong = self._decided(verdict, case)
        if passed is case.passes:
            return ""
        if passed:
            return f"it accepts {case.shown}, which is wrong ({case.kind}): {REMEDIES.get(case.kind, 'compare it')}"
        advice = f": {ADVICE[case.kind]}" if case.kind in ADVICE else f" (wrong: {', '.join(wrong)})" if wrong else ""
        return f"it rejects {case.shown}, which is right{advice}"

    def _decided(self, verdict: FieldVerdict, case: Case) -> tuple[bool, list[str]]:
        """Whether the case passes, and the fields that are wrong.

        A strategy may accept an answer with a wrong field, and a check on the text of an answer fails without one: then
        the results of the case's fields decide.
        """
        names = [fact.name for fact in self._facts.fields if fact.name in verdict.field_results]
        wrong = [name for name in names if verdict.field_results[name] is not True]
        by_fields = names and (verdict.composition_strategy is not None or self._handle.trace_fields())
        if not by_fields or (case.kind == EVERYTHING and not self._facts.left_out):
            return verdict.result, wrong
        return (not wrong if case.passes else not set(case.fields) & set(wrong)), wrong


def _concluded(
    question: Question, facts: Facts, cases: Sequence[Case], failures: Sequence[Failure], leaks: Sequence[str]
) -> Proof:
    failed = [found.case for found in failures]
    made_mutants = [case for case in cases if not case.passes]
    made_variants = [case for case in cases if case.passes and case.kind != OWN]
    own = OWN not in [case.kind for case in failed] if cases else None
    faults = [f"it gives its answer away: {leak}" for leak in leaks]
    faults += [found.problem for found in failures if found.case.kind == OWN]
    faults += [f"{name} cannot fail: every wrong value is accepted" for name in _unfailing(made_mutants, failed)]
    # Where its own values are rejected, other forms of them say nothing more.
    others = [found for found in failures if found.case.kind != OWN and (own or not found.case.passes)]
    reasons = [*faults, *(found.problem for found in others)]
    if not made_mutants:
        why = "; ".join(f"{name}: {reason}" for name, reason in facts.left_out.items()) or "it compares no field"
        reasons.append(f"no wrong value could be made that it has to reject ({why})")
    return Proof(
        question=question.id,
        template=question.template_id,
        state="not_proven" if reasons else "proven",
        own_values=own,
        mutants=Tally(len(made_mutants), len(made_mutants) - sum(not case.passes for case in failed)),
        variants=Tally(
            len(made_variants), len(made_variants) - sum(case.passes and case.kind != OWN for case in failed)
        ),
        leaks=leaks,
        left_out=facts.left_out,
        failures=failures,
        faults=faults,
        reasons=reasons,
    )


def _unfailing(made: Sequence[Case], failed: Sequence[Case]) -> list[str]:
    """The fields of which no wrong value was rejected, and all of them together."""
    by_field: Mapping[str, list[Case]] = {name: [] for case in made for name in case.fields}
    for case in made:
        if len(case.fields) == 1:
            by_field[case.fields[0]].append(case)
    names = [name for name, cases in by_field.items() if cases and all(case in failed for case in cases)]
    whole = [case for case in failed if case.kind == EVERYTHING]
    return [*names, *(["the template"] if whole else [])]
