"""What a template runtime promises, looked at on random templates in its language."""

from __future__ import annotations

import asyncio
import datetime
import inspect
import json
from collections.abc import Callable, Iterator, Mapping
from functools import cached_property
from typing import Any

from attrs import frozen
from karenina_template.language.primitives.base import VerificationPrimitive
from karenina_vocabulary.handle import FieldVerdict, FilledTemplate, TemplateField, TemplateHandle, TemplateRuntime

from karenina_core import templates
from karenina_core.errors import FillError, TemplateError

from ..checks import Fault, FindFaults, Promises, Raised, attempt, difference
from ..examples import every
from ..strategies.benchmarks import template_specs
from ..strategies.values import json_objects
from ..watch.loops import in_loop
from ..watch.source_lines import line_of_attribute

Spec = Mapping[str, Any]
Source = Callable[[Spec], str]
"""Writes a spec as the text of a template."""
TYPES = {"list_str": "list[str]", "literal": "Literal['up', 'down']", "date": "datetime.date"}
NODES = {"all_of": "AllOf", "any_of": "AnyOf", "at_least_n": "AtLeastN"}
OTHER: Mapping[str, Callable[[Any], Any]] = {
    "bool": lambda truth: not truth,
    "int": lambda truth: truth + 7,
    "float": lambda truth: truth + 7.0,
    "literal": lambda truth: "down" if truth == "up" else "up",
    "list_str": lambda truth: [*truth, "another"],
    "date": lambda truth: str(datetime.date.fromisoformat(truth) + datetime.timedelta(7)),
    "str": lambda truth: f"{truth}another",
}
"""Type of a field -> a value of it that is not the ground truth, nor near it."""
BROKEN = ("", "\0", "{", "class Answer(", "[1, 2]", '{"fields": 7}', "name: yaml?", "\ufeff" + "é" * 50, "1" * 5000)


def python_source(spec: Spec) -> str:
    """The template as a Python class."""
    lines = ["import datetime", "class Answer(BaseAnswer):"]
    for field in spec["fields"]:
        primitive = dict(field["verify_with"])
        arguments = ", ".join(f"{key}={value!r}" for key, value in primitive.items() if key != "type")
        options = {"weight": field.get("weight", 1.0), "extraction_hint": field.get("extraction_hint")}
        given = ", ".join(f"{key}={value!r}" for key, value in options.items() if value is not None)
        truth = field["ground_truth"]
        expected = f"datetime.date.fromisoformat({truth!r})" if field["type"] == "date" else repr(truth)
        lines.append(
            f"    {field['name']}: {TYPES.get(field['type'], field['type'])} = VerifiedField("
            f"{field['description']!r}, {expected}, {primitive['type']}({arguments}), {given})"
        )
    if spec.get("verify_strategy") is not None:
        lines += ["    class VerificationStrategy:", f"        verify_strategy = {_node(spec['verify_strategy'])}"]
    return "\n".join(lines) + "\n"


def _node(node: Mapping[str, Any]) -> str:
    if node["type"] == "field_check":
        return f"FieldCheck({node['field']!r})"
    number = f"{node['n']}, " if "n" in node else ""
    return f"{NODES[node['type']]}({number}[{', '.join(map(_node, node['conditions']))}])"


SOURCES: Mapping[str, Source] = {"karenina-template": json.dumps, "python": python_source}
"""Language -> how a spec is written in it."""


def _other(field: Mapping[str, Any]) -> Any:
    return OTHER[field["type"]](field["ground_truth"])


def regilded(spec: Spec) -> dict[str, Any]:
    """The same template with another ground truth in every field."""
    return {**spec, "fields": [{**field, "ground_truth": _other(field)} for field in spec["fields"]]}


def right_data(spec: Spec) -> dict[str, Any]:
    """A reply in which every field is right. Fields that are decided on the trace are no part of a reply."""
    return {field["name"]: field["ground_truth"] for field in spec["fields"] if not field.get("is_trace")}


def wrong_data(spec: Spec) -> dict[str, Any]:
    """A reply that fits, and in which every field is wrong."""
    return {field["name"]: _other(field) for field in spec["fields"] if not field.get("is_trace")}


@frozen
class Template:
    """One template, as its spec and as it was loaded."""

    spec: Spec
    handle: TemplateHandle

    def fault(self, problem: str, remedy: str = "", method: str = "build") -> Fault:
        """A fault of a method of the handle."""
        return Fault(problem, line_of_attribute(type(self.handle), method), remedy)


@frozen(slots=False, eq=False)
class Loaded:
    """A runtime and the templates that it is tried on."""

    runtime: TemplateRuntime
    write: Source
    max_examples: int

    @cached_property
    def specs(self) -> list[Spec]:
        return list(every(template_specs(), self.max_examples))

    def load(self, spec: Spec) -> Template:
        return Template(spec, self.load_text(self.write(spec)))

    def load_text(self, text: str) -> TemplateHandle:
        async def load() -> TemplateHandle:
            return await self.runtime.load(text, self.primitives)

        return in_loop(load())

    @cached_property
    def primitives(self) -> Mapping[str, type]:
        named = {name: getattr(templates, name) for name in dir(templates)}
        return {
            name: thing
            for name, thing in named.items()
            if inspect.isclass(thing) and issubclass(thing, VerificationPrimitive) and not inspect.isabstract(thing)
        }

    def line(self, method: str) -> str:
        """Where a method of the runtime begins."""
        return line_of_attribute(type(self.runtime), method)


def each_template(find_faults: FindFaults[Template]) -> FindFaults[Loaded]:
    """Examine the random templates one after the other."""

    def of_all(loaded: Loaded) -> Iterator[Fault]:
        for spec in loaded.specs:
            yield from find_faults(loaded.load(spec))

    return of_all


PROMISES: Promises[Loaded] = Promises()


@PROMISES.add("declared", "It says its name, its languages and what it does with code.")
def _declared(loaded: Loaded) -> Iterator[Fault]:
    runtime: Any = loaded.runtime
    line = loaded.line("load")
    if not isinstance(runtime, TemplateRuntime):
        yield Fault("it lacks a part of TemplateRuntime", line, "see karenina_vocabulary.handle.TemplateRuntime")
    wanted = {"name": str, "languages": set | frozenset, "executes_code": bool, "isolation": str}
    for attribute, kind in wanted.items():
        if not isinstance(value := getattr(runtime, attribute), kind) or value in ("", set()):
            yield Fault(f"its {attribute} is {value!r}", loaded.line(attribute), "say what it is")


@PROMISES.add("gold_blind", "The judge's schema and fields do not depend on the ground truth.")
def _gold_blind(loaded: Loaded) -> Iterator[Fault]:
    for spec in loaded.specs:
        template, twin = loaded.load(spec), loaded.load(regilded(spec))
        for method in ("schema", "fields"):
            if differs := difference(getattr(template.handle, method)(), getattr(twin.handle, method)()):
                problem = f"two templates that differ in their ground truth alone have another {method}(): {differs}"
                yield template.fault(problem, f"keep the ground truth out of {method}(): the judge reads it", method)


@PROMISES.add("closed_schema", "Every object of the schema is closed.")
@each_template
def _closed(template: Template) -> Iterator[Fault]:
    for path, node in _objects(template.handle.schema(), "schema"):
        if node.get("additionalProperties") is not False:
            remedy = "set additionalProperties to false: servers refuse open objects, and judges fill them"
            yield template.fault(f"{path} allows further properties", remedy, "schema")


def _objects(node: Any, path: str) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """Every schema of an object with named properties."""
    if isinstance(node, Mapping):
        if isinstance(node.get("properties"), Mapping):
            yield path, node
        for key, value in node.items():
            yield from _objects(value, f"{path}.{key}")
    elif isinstance(node, list):
        for number, value in enumerate(node):
            yield from _objects(value, f"{path}[{number}]")


@PROMISES.add("fields", "fields(), the schema and ground_truth() speak of the template's fields.")
@each_template
def _fields(template: Template) -> Iterator[Fault]:
    fields = template.handle.fields()
    if not all(isinstance(field, TemplateField) for field in fields):
        yield template.fault(f"fields() returned {fields!r}", "return TemplateField values", "fields")
    wanted = [field["name"] for field in template.spec["fields"]]
    if [field.name for field in fields] != wanted:
        yield template.fault(f"fields() names {[f.name for f in fields]}, the template has {wanted}", method="fields")
    if template.handle.trace_fields():
        yield template.fault("trace_fields() names fields that a judge extracts", method="trace_fields")
    if (asked := set(template.handle.schema().get("properties", {}))) != set(wanted):
        yield template.fault(f"the schema asks for {sorted(asked)}, not {wanted}", method="fields")
    if differs := difference(right_data(template.spec), dict(template.handle.ground_truth())):
        yield template.fault(f"ground_truth() is not what the template says: {differs}", method="ground_truth")


@frozen
class _Outcome:
    """Everything that a filled template says."""

    values: Mapping[str, Any]
    nulls: frozenset[str]
    verdict: FieldVerdict
    granular: float | None


async def filled_outcome(handle: TemplateHandle, data: Mapping[str, Any]) -> _Outcome:
    """Fill a template and ask for everything. Raises AssertionError where it does not say the same twice."""
    return await _outcome(await handle.build(data))


async def _outcome(filled: FilledTemplate) -> _Outcome:
    verdict = await filled.verify("the trace")
    again = await filled.verify("the trace")
    if verdict != again:
        raise AssertionError(f"verify() returned {verdict!r} and then {again!r}")
    return _Outcome(dict(filled.values()), filled.nulls, verdict, await filled.granular())


@PROMISES.add("verdict", "Right fields are right, wrong ones wrong, missing ones not found.")
@each_template
def _verdict(template: Template) -> Iterator[Fault]:
    right, wrong = right_data(template.spec), wrong_data(template.spec)
    first = next(iter(right))
    for data, result, found in (
        (right, True, dict.fromkeys(right, True)),
        (wrong, False, dict.fromkeys(right, False)),
        (right | {first: None}, False, dict.fromkeys(right, True) | {first: None}),
    ):
        outcome = in_loop(filled_outcome(template.handle, data))
        verdict = outcome.verdict
        if verdict.result is not result or dict(verdict.field_results) != found:
            problem = f"for the fields {data!r} verify() returned {verdict!r}, not {result} with {found!r}"
            remedy = "compare each field with its ground truth; None is `not found`: no match, and no error"
            yield template.fault(problem, remedy)
        if outcome.nulls != {name for name, value in data.items() if value is None}:
            yield template.fault(f"for the fields {data!r} nulls is {set(outcome.nulls)!r}")


@PROMISES.add("shared", "A handle keeps nothing of an item and can be used by many at once.")
def _shared(loaded: Loaded) -> Iterator[Fault]:
    for spec in loaded.specs:
        template, alone = loaded.load(spec), loaded.load(spec).handle
        handle = template.handle
        replies = [right_data(spec), wrong_data(spec)] * 3
        expected = [in_loop(filled_outcome(alone, reply)) for reply in replies]

        async def fill_all() -> list[_Outcome]:
            """Fill all, and only then ask each of them."""
            filled = await asyncio.gather(*(handle.build(reply) for reply in replies))  # noqa: B023  # runs at once
            return list(await asyncio.gather(*map(_outcome, filled)))

        together = in_loop(fill_all())
        if differs := difference(expected, together):
            remedy = "keep nothing of an item on the handle; what belongs to it goes into the filled template"
            yield template.fault(f"filled several times at once it says something else: {differs}", remedy)
        before = json.dumps(handle.schema(), sort_keys=True)
        handle.schema().clear()
        if json.dumps(handle.schema(), sort_keys=True) != before:
            yield template.fault("schema() gives out its own dictionary", "return a copy", "schema")


@PROMISES.add("junk", "Data that does not fit is a FillError, and nothing else is raised.")
@each_template
def _junk(template: Template) -> Iterator[Fault]:
    names = [field["name"] for field in template.spec["fields"]]
    right = right_data(template.spec)
    useless: list[Any] = [{}, {"something_else": 1}, *({**right, name: {"odd": [1]}} for name in names)]
    for data in useless:
        if (raised := _built(template.handle, data)) is not FillError:
            did = f"raised {raised.__name__}" if raised else "made a filled template"
            yield template.fault(f"build({data!r}) {did}", "raise FillError with words that a judge can act on")
    for data in every(json_objects(names), 5):
        if (raised := _built(template.handle, data)) not in (None, FillError):
            yield template.fault(f"build({data!r}) raised {raised.__name__}", "raise FillError")


def _built(handle: TemplateHandle, data: Any) -> type[BaseException] | None:
    outcome = attempt(lambda: in_loop(filled_outcome(handle, data)))
    if not isinstance(outcome, Raised):
        return None
    return FillError if isinstance(outcome.error, FillError) else type(outcome.error)


@PROMISES.add("writable", "values() and ground_truth() are JSON data.")
@each_template
def _writable(template: Template) -> Iterator[Fault]:
    outcome = in_loop(filled_outcome(template.handle, right_data(template.spec)))
    for what, data in (("values()", dict(outcome.values)), ("ground_truth()", dict(template.handle.ground_truth()))):
        try:
            read = json.loads(json.dumps(data, allow_nan=False))
        except (TypeError, ValueError) as error:
            yield template.fault(f"{what} is no JSON data: {error}", "return JSON data")
        if differs := difference(data, read):
            yield template.fault(f"{what} is read back changed: {differs}", "return JSON data")
    if set(outcome.values) != {field.name for field in template.handle.fields()}:
        yield template.fault(f"values() has the keys {sorted(outcome.values)}", "give every field")


@PROMISES.add("refuses", "A text that is no template is a TemplateError with a reason.")
def _refuses(loaded: Loaded) -> Iterator[Fault]:
    line = loaded.line("load")
    for text in BROKEN:
        outcome = attempt(loaded.load_text, text)
        if not isinstance(outcome, Raised):
            yield Fault(f"load({text[:20]!r}) made a template of it", line, "raise TemplateError")
        elif not isinstance(outcome.error, TemplateError):
            yield Fault.raised(outcome.error, "raise TemplateError", by=f"load({text[:20]!r})")
        elif not str(outcome.error).strip():
            yield Fault(f"refusing {text[:20]!r} it gives no reason", line, "say what is wrong")
