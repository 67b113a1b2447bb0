"""What a template runtime promises, looked at on random templates."""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

from attrs import frozen

from .. import templates
from ..errors import FillError, TemplateError, one_line
from ..templates.handle import FieldVerdict, FilledTemplate, TemplateField, TemplateHandle, TemplateRuntime
from ..templates.primitives.base import VerificationPrimitive
from .checks import Fault
from .compare import difference
from .examples import every
from .lines import line_of_attribute, line_of_error
from .loops import in_loop
from .strategies import json_objects, template_specs
from .template_sources import Source, Spec, regilded, right_data, wrong_data

__all__ = ["LOOKS", "Loaded", "Looks", "told_by"]

PRIMITIVES: Mapping[str, type] = {
    name: thing
    for name in dir(templates)
    if inspect.isclass(thing := getattr(templates, name))
    and issubclass(thing, VerificationPrimitive)
    and not inspect.isabstract(thing)
}
BROKEN = ("", "\0", "{", "class Answer(", "[1, 2]", '{"fields": 7}', "name: yaml?", "\ufeff" + "é" * 50, "1" * 5000)


class Loaded:
    """A runtime and the templates that it is tried on."""

    def __init__(self, runtime: TemplateRuntime, write: Source, max_examples: int) -> None:
        self.runtime = runtime
        self.write = write
        self._max_examples = max_examples

    @cached_property
    def specs(self) -> list[Spec]:
        return list(every(template_specs(), self._max_examples))

    def load(self, spec: Spec) -> TemplateHandle:
        return self.load_text(self.write(spec))

    def load_text(self, text: str) -> TemplateHandle:
        return in_loop(self._loaded(text))

    async def _loaded(self, text: str) -> TemplateHandle:
        return await self.runtime.load(text, PRIMITIVES)

    def line(self, method: str, thing: object = None) -> str:
        """Where a method of the runtime, its handles or its filled templates begins."""
        return line_of_attribute(type(thing or self.runtime), method)


def _declared(loaded: Loaded) -> Fault | None:
    runtime: Any = loaded.runtime
    line = loaded.line("load")
    if not isinstance(runtime, TemplateRuntime):
        return Fault("it lacks a part of TemplateRuntime", line, "see karenina_core.templates.handle.TemplateRuntime")
    wanted: Mapping[str, type | tuple[type, ...]] = {
        "name": str,
        "languages": (set, frozenset),
        "executes_code": bool,
        "isolation": str,
    }
    for attribute, kind in wanted.items():
        if not isinstance(value := getattr(runtime, attribute), kind) or (value == "" or value == frozenset()):
            return Fault(f"its {attribute} is {value!r}", loaded.line(attribute), "say what it is")
    return None


def _gold_blind(loaded: Loaded) -> Fault | None:
    for spec in loaded.specs:
        handle, twin = loaded.load(spec), loaded.load(regilded(spec))
        for method in ("schema", "fields"):
            if differs := difference(getattr(handle, method)(), getattr(twin, method)()):
                return Fault(
                    f"two templates that differ in their ground truth alone have another {method}(): {differs}",
                    loaded.line(method, handle),
                    f"keep the ground truth out of {method}(): the judge reads it",
                )
    return None


def _closed(loaded: Loaded) -> Fault | None:
    for spec in loaded.specs:
        handle = loaded.load(spec)
        for path, node in _objects(handle.schema(), "schema"):
            if node.get("additionalProperties") is not False:
                remedy = "set additionalProperties to false: servers refuse open objects, and judges fill them"
                return Fault(f"{path} allows further properties", loaded.line("schema", handle), remedy)
    return None


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


def _fields(loaded: Loaded) -> Fault | None:
    for spec in loaded.specs:
        handle = loaded.load(spec)
        fields, line = handle.fields(), loaded.line("fields", handle)
        if not all(isinstance(field, TemplateField) for field in fields):
            return Fault(f"fields() returned {fields!r}", line, "return TemplateField values")
        wanted = [field["name"] for field in spec["fields"]]
        if [field.name for field in fields] != wanted:
            return Fault(f"fields() names {[f.name for f in fields]}, the template has {wanted}", line)
        if handle.trace_fields():
            return Fault("trace_fields() names fields that a judge extracts", loaded.line("trace_fields", handle))
        if set(handle.schema().get("properties", {})) != set(wanted):
            return Fault(f"the schema asks for {sorted(handle.schema().get('properties', {}))}, not {wanted}", line)
        if differs := difference(right_data(spec), dict(handle.ground_truth())):
            return Fault(
                f"ground_truth() is not what the template says: {differs}", loaded.line("ground_truth", handle)
            )
    return None


@frozen
class _Told:
    """Everything that a filled template says."""

    values: Mapping[str, Any]
    nulls: frozenset[str]
    verdict: FieldVerdict
    granular: float | None


async def told_by(handle: TemplateHandle, data: Mapping[str, Any]) -> _Told:
    """Fill a template and ask for everything. Raises AssertionError where it does not say the same twice."""
    return await _said(await handle.build(data))


async def _said(filled: FilledTemplate) -> _Told:
    verdict = await filled.verify("the trace")
    again = await filled.verify("the trace")
    if verdict != again:
        raise AssertionError(f"verify() said {verdict!r} and then {again!r}")
    return _Told(dict(filled.values()), filled.nulls, verdict, await filled.granular())


def _verdict(loaded: Loaded) -> Fault | None:
    for spec in loaded.specs:
        handle = loaded.load(spec)
        right, wrong = right_data(spec), wrong_data(spec)
        first = next(iter(right))
        for data, result, found in (
            (right, True, dict.fromkeys(right, True)),
            (wrong, False, dict.fromkeys(right, False)),
            (right | {first: None}, False, dict.fromkeys(right, True) | {first: None}),
        ):
            told = in_loop(told_by(handle, data))
            verdict = told.verdict
            if verdict.result is not result or dict(verdict.field_results) != found:
                return Fault(
                    f"for the fields {data!r} verify() said {verdict!r}, not {result} with {found!r}",
                    loaded.line("build", handle),
                    "compare each field with its ground truth; None is `not found`: no match, and no error",
                )
            if told.nulls != {name for name, value in data.items() if value is None}:
                return Fault(f"for the fields {data!r} nulls is {set(told.nulls)!r}", loaded.line("build", handle))
    return None


def _shared(loaded: Loaded) -> Fault | None:
    for spec in loaded.specs:
        handle, alone = loaded.load(spec), loaded.load(spec)
        replies = [right_data(spec), wrong_data(spec)] * 3
        expected = [in_loop(told_by(alone, reply)) for reply in replies]
        together = in_loop(_together(handle, replies))
        if differs := difference(expected, together):
            remedy = "keep nothing of an item on the handle; what belongs to it goes into the filled template"
            return Fault(
                f"filled several times at once it says something else: {differs}", loaded.line("build", handle), remedy
            )
        before = json.dumps(handle.schema(), sort_keys=True)
        handle.schema().clear()
        if json.dumps(handle.schema(), sort_keys=True) != before:
            return Fault("schema() gives out its own dictionary", loaded.line("schema", handle), "return a copy")
    return None


async def _together(handle: TemplateHandle, replies: Sequence[Mapping[str, Any]]) -> list[_Told]:
    """Fill all, and only then ask each of them."""
    filled = await asyncio.gather(*(handle.build(reply) for reply in replies))
    return list(await asyncio.gather(*(_said(one) for one in filled)))


def _junk(loaded: Loaded) -> Fault | None:
    for spec in loaded.specs:
        handle = loaded.load(spec)
        names = [field["name"] for field in spec["fields"]]
        useless: list[Any] = [{}, {"something_else": 1}, *({**right_data(spec), name: {"odd": [1]}} for name in names)]
        for data in useless:
            if (said := _built(handle, data)) is not FillError:
                return Fault(
                    f"build({data!r}) {f'raised {said.__name__}' if said else 'made a filled template'}",
                    loaded.line("build", handle),
                    "raise FillError with words that a judge can act on",
                )
        for data in every(json_objects(names), 5):
            if (said := _built(handle, data)) not in (None, FillError):
                return Fault(f"build({data!r}) raised {said.__name__}", loaded.line("build", handle), "raise FillError")
    return None


def _built(handle: TemplateHandle, data: Any) -> type[BaseException] | None:
    try:
        in_loop(told_by(handle, data))
    except FillError:
        return FillError
    except Exception as error:  # a runtime may raise anything; that is what is looked for
        return type(error)
    return None


def _writable(loaded: Loaded) -> Fault | None:
    for spec in loaded.specs:
        handle = loaded.load(spec)
        told = in_loop(told_by(handle, right_data(spec)))
        for what, data in (("values()", dict(told.values)), ("ground_truth()", dict(handle.ground_truth()))):
            try:
                read = json.loads(json.dumps(data, allow_nan=False))
            except (TypeError, ValueError) as error:
                return Fault(f"{what} is no JSON data: {error}", loaded.line("build", handle), "return JSON data")
            if differs := difference(data, read):
                return Fault(
                    f"{what} is read back changed: {differs}", loaded.line("build", handle), "return JSON data"
                )
        if set(told.values) != {field.name for field in handle.fields()}:
            return Fault(
                f"values() has the keys {sorted(told.values)}", loaded.line("build", handle), "give every field"
            )
    return None


def _refuses(loaded: Loaded) -> Fault | None:
    for text in BROKEN:
        try:
            loaded.load_text(text)
        except TemplateError as error:
            if not str(error).strip():
                return Fault(f"refusing {text[:20]!r} it says nothing", loaded.line("load"), "say what is wrong")
        except Exception as error:  # a runtime may raise anything; that is what is looked for
            return Fault(
                f"load({text[:20]!r}) raised {one_line(error)}", line_of_error(error, None), "raise TemplateError"
            )
        else:
            return Fault(f"load({text[:20]!r}) made a template of it", loaded.line("load"), "raise TemplateError")
    return None


Looks = Mapping[str, tuple[str, Callable[[Loaded], Fault | None]]]
LOOKS: Looks = {
    "declared": ("It says its name, its languages and what it does with code.", _declared),
    "gold_blind": ("The judge's schema and fields do not depend on the ground truth.", _gold_blind),
    "closed_schema": ("Every object of the schema is closed.", _closed),
    "fields": ("fields(), the schema and ground_truth() speak of the template's fields.", _fields),
    "verdict": ("Right fields are right, wrong ones wrong, missing ones not found.", _verdict),
    "shared": ("A handle keeps nothing of an item and can be used by many at once.", _shared),
    "junk": ("Data that does not fit is a FillError, and nothing else is raised.", _junk),
    "writable": ("values() and ground_truth() are JSON data.", _writable),
    "refuses": ("A text that is no template is a TemplateError with a reason.", _refuses),
}
