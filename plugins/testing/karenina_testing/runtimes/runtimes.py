"""Does a template runtime hide the truth, share nothing and refuse what it cannot read?"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from karenina_vocabulary.handle import FieldVerdict, TemplateHandle

from karenina_core.errors import FillError, TemplateError

from ..checks import Check, Fault, Promises, Raised, attempt, difference, expecting, promise_checks
from ..watch.audit import CANARY, watching
from ..watch.loops import in_loop
from ..watch.source_lines import line_at
from .promises import PROMISES, SOURCES, Loaded, Source, Spec, Template, filled_outcome, right_data, wrong_data

PAYLOAD = f"__import__('sys').audit('{CANARY}')"


INERT: Promises[Loaded] = Promises()
MARK = "qx-mark"
FOLLOW = "decide by the strategy, for the verdict and for the partial credit; give every field's result"
ENOUGH = 8
"""Templates that each promise is looked at on; every one is loaded several times."""


@INERT.add("inert", "Nothing in a template's text is executed.")
def _inert(loaded: Loaded) -> Iterator[Fault]:
    """Load texts that would raise an audit event if anything in them were executed."""
    texts = [PAYLOAD, f"import sys\nsys.audit({CANARY!r})\nclass Answer(BaseAnswer):\n    x: int = {PAYLOAD}\n"]
    for spec in loaded.specs[:5]:
        texts += [loaded.write(hostile) for hostile in _hostile(spec)]
    for text in texts:
        with watching(threads=False) as seen, contextlib.suppress(TemplateError):
            handle = loaded.load_text(text)
            in_loop(filled_outcome(handle, dict.fromkeys((field.name for field in handle.fields()), PAYLOAD)))
        for what, where in seen.items():
            remedy = "read the text as data; or set executes_code to True: then it runs only where the user allows it"
            yield Fault(f"loading {text[:60]!r}... {what}", line_at(*where), remedy)


def _hostile(spec: Spec) -> Iterator[dict[str, Any]]:
    """The template with code in place of one of its texts."""
    yield {**spec, "class_name": PAYLOAD}
    first, *others = spec["fields"]
    for key in ("name", "type", "description", "ground_truth", "extraction_hint"):
        yield {**spec, "fields": [{**first, key: PAYLOAD}, *others]}
    yield {**spec, "fields": [{**first, "type": "literal", "literal_values": [PAYLOAD, "up"]}, *others]}
    yield {**spec, "fields": [{**first, "verify_with": {"type": PAYLOAD}}, *others]}


def runtime_checks(
    runtime: Any,
    *,
    sources: Source | None = None,
    expected_failures: Mapping[str, str] | None = None,
    max_examples: int = 15,
) -> list[Check]:
    """One check for every promise of a template runtime (a class or an instance).

    Templates are made by `strategies.template_specs()`, some with a strategy or a field of the trace added, and written
    in the runtime's language by `sources(spec)`; for the languages `python` and `karenina-template` it need not be
    given. Raises ValueError where it is missing.
    """
    made = runtime() if isinstance(runtime, type) else runtime
    name = str(getattr(made, "name", type(made).__name__))
    write = sources or next((SOURCES[known] for known in SOURCES if known in getattr(made, "languages", ())), None)
    if write is None:
        raise ValueError(f"runtime {name}: say with sources=function how a spec is written in its language")
    promises = {**PROMISES, **VERDICTS, **({} if getattr(made, "executes_code", True) else INERT)}
    raised = partial(Fault.raised, remedy="raise TemplateError or FillError")
    return expecting(
        promise_checks(f"runtime {name}", Loaded(made, write, max_examples), promises, raised), expected_failures
    )


async def _judged(
    handle: TemplateHandle, data: Mapping[str, Any], trace: str = "the trace", **more: Any
) -> tuple[FieldVerdict, float | None]:
    filled = await handle.build(data)
    return await filled.verify(trace, **more), await filled.granular()


def _field(name: str, kind: str, truth: Any, **primitive: Any) -> dict[str, Any]:
    """A field of a spec."""
    fixed = {"name": name, "type": kind, "description": f"what the response says about the {name}"}
    return {**fixed, "ground_truth": truth, "verify_with": primitive}


VERDICTS: Promises[Loaded] = Promises()


@VERDICTS.add("trace_fields", "Checks on the trace are run on it, and never asked of a judge.")
def _trace(loaded: Loaded) -> Iterator[Fault]:
    for spec in loaded.specs[:ENOUGH]:
        for truth, scope in ((True, "trace"), (False, "trace"), (True, "response"), (False, "response")):
            field = _field("marked", "bool", truth, type="TraceContains", substring=MARK, scope=scope)
            template = loaded.load({**spec, "fields": [*spec["fields"], {**field, "is_trace": True}]})
            yield from _trace_fault(template, spec, truth, scope)


def _trace_fault(template: Template, spec: Spec, truth: bool, scope: str) -> Iterator[Fault]:
    handle = template.handle
    asked = [field.name for field in handle.fields()] + list(handle.schema().get("properties", {}))
    if "marked" in asked or [field.name for field in handle.trace_fields()] != ["marked"]:
        remedy = "give fields that are decided on the trace in trace_fields() and nowhere else"
        yield template.fault("the judge is asked for a field of the trace", remedy, "trace_fields")
    for trace, said in ((f"--- Tool ---\n{MARK}", "nothing"), (f"it says {MARK}", None), ("nothing", None)):
        text = trace if scope == "trace" or said is None else said
        right = (MARK in text) is truth
        # What a judge claims about it must not count.
        verdict, _ = in_loop(_judged(handle, right_data(spec) | {"marked": not truth}, trace, said=said))
        if verdict.result is not right or verdict.field_results.get("marked") is not right:
            yield template.fault(
                f"with {MARK!r} to be {'found' if truth else 'absent'} in the {scope}, "
                f"verify({trace!r}, said={said!r}) returned {verdict!r}",
                "run checks of scope `trace` on the trace and those of scope `response` on what the model said",
            )


def _trees(names: list[str]) -> Iterator[tuple[dict[str, Any], str, int]]:
    """A strategy, its name in results, and how many of the fields, counted from the first, have to be right."""
    checks = [{"type": "field_check", "field": name} for name in names]
    yield {"type": "any_of", "conditions": checks}, "any_of", 1
    yield {"type": "all_of", "conditions": checks[:1]}, "all_of", 1
    yield {"type": "at_least_n", "n": len(names), "conditions": checks}, f"at_least_n({len(names)})", len(names)
    yield checks[0], "field_check", 1


@VERDICTS.add("strategy", "Verdict and partial credit follow the strategy.")
def _strategy(loaded: Loaded) -> Iterator[Fault]:
    for spec in loaded.specs[:ENOUGH]:
        right, wrong = right_data(spec), wrong_data(spec)
        names = list(right)
        for tree, name, due in _trees(names):
            template = loaded.load({**spec, "verify_strategy": tree})
            for correct in range(len(names) + 1):
                data = wrong | {found: right[found] for found in names[:correct]}
                verdict, granular = in_loop(_judged(template.handle, data))
                passed = correct >= due
                results = {found: found in names[:correct] for found in names}
                decided = (verdict.result, verdict.composition_strategy, dict(verdict.field_results))
                if decided != (passed, name, results) or (passed and granular != 1.0):
                    given = f"with the strategy {tree!r} and the fields {data!r}"
                    problem = f"{given} verify() returned {verdict!r} and granular() {granular!r}"
                    yield template.fault(problem, FOLLOW)


async def _accepted(handle: TemplateHandle, data: Mapping[str, Any]) -> tuple[Any, ...]:
    filled = await handle.build(data)
    before = await filled.verify("the trace")
    copied = filled.accepting(list(data))
    after = await copied.verify("the trace"), await copied.granular()
    unchanged = [dict(copied.values()) == dict(filled.values()), copied.nulls == filled.nulls]
    unknown = attempt(filled.accepting, ["no_such_field"])
    refuses = isinstance(unknown, Raised) and isinstance(unknown.error, TemplateError)
    return before, after, unchanged, await filled.verify("the trace"), refuses


@VERDICTS.add("accepting", "Accepted fields count as right in a copy, and what was extracted stays the same.")
def _accepting(loaded: Loaded) -> Iterator[Fault]:
    for spec in loaded.specs[:ENOUGH]:
        template, wrong = loaded.load(spec), wrong_data(spec)
        for data in (wrong, wrong | {next(iter(wrong)): None}):
            if all(value is None for value in data.values()):
                continue
            before, (verdict, granular), unchanged, again, refuses = in_loop(_accepted(template.handle, data))
            every = dict.fromkeys(wrong, True)
            if verdict.result is not True or dict(verdict.field_results) != every or granular != 1.0:
                what = f"with every field accepted verify() returned {verdict!r} and granular() {granular!r}"
            elif not all(unchanged):
                what = "accepting() changes values() or nulls"
            elif difference(before, again):
                what = "accepting() changes the filled template that it copies"
            elif not refuses:
                what = "accepting() takes a field that the template does not have"
            else:
                continue
            remedy = "make a copy that counts these fields as right, and raise TemplateError for those without a truth"
            yield template.fault(what, remedy)


SEMANTIC: Spec = {"fields": [_field("meaning", "str", "take an aspirin", type="SemanticMatch", threshold=0.8)]}


async def _similar(handle: TemplateHandle, value: str | None, similarities: dict[str, float] | None) -> Any:
    filled = await handle.build({"meaning": value})
    try:
        return dict((await filled.verify("the trace", similarities=similarities)).field_results)["meaning"]
    except TemplateError:
        return "TemplateError"


@VERDICTS.add("semantic", "Semantic fields are decided by their similarity, and not at all without one.")
def _semantic(loaded: Loaded) -> Iterator[Fault]:
    template = loaded.load(SEMANTIC)
    if [field.semantic for field in template.handle.fields()] != [True]:
        yield template.fault("fields() does not say that a field is semantic", method="fields")
    for value, similarities, wanted in (
        ("have some aspirin", {"meaning": 0.9}, True),
        ("have some aspirin", {"meaning": 0.5}, False),
        ("have some aspirin", None, "TemplateError"),
        (None, None, None),
    ):
        found = in_loop(_similar(template.handle, value, similarities))
        if found is not wanted and found != wanted:
            yield template.fault(
                f"for {value!r} with the similarities {similarities!r} the field is {found!r}, not {wanted!r}",
                "compare the similarity with the threshold; without one, there is no verdict",
            )


CAREFUL: Spec = {
    "fields": [_field("day", "date", "2016-04-11", type="DateMatch"), _field("count", "int", 1, type="NumericExact")]
}


@VERDICTS.add("careful", "Truth values are not read as numbers, nor numbers as dates.")
def _careful(loaded: Loaded) -> Iterator[Fault]:
    template = loaded.load(CAREFUL)
    for field, value in (("count", True), ("day", 0), ("day", 1460332800), ("day", "1460332800"), ("day", "2016")):
        data = {"day": "2016-04-11", "count": 1} | {field: value}
        try:
            verdict, _ = in_loop(_judged(template.handle, data))
        except FillError:
            continue
        yield template.fault(
            f"{value!r} for a field of type {'int' if field == 'count' else 'date'} was compared: {verdict!r}",
            "raise FillError: a truth value is no number, and a number is no date",
        )
