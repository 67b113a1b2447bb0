"""Templates as data: fields, primitives and ground truth in JSON. Nothing in them is executed.

The text is one JSON object, `{"fields": [...], "verify_strategy": ..., "class_name": "Answer"}`. A field has `name`,
`type` (`bool`, `str`, `int`, `float`, `list_str`, `date` or `literal` with `literal_values`), `description`,
`ground_truth` (of a date: ISO 8601 text), `verify_with` (a primitive, such as `{"type": "ExactMatch"}`), and perhaps
`extraction_hint`, `weight` and `is_trace`, which is true for the primitives that look at the trace. A strategy is a
tree such as `{"type": "any_of", "conditions": [{"type": "field_check", "field": "drug"}]}`; without one every field
must be right.
"""

from __future__ import annotations

import json
import keyword
import types
from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from copy import copy
from functools import cache
from typing import Any, Literal

from attrs import field, frozen
from pydantic import ValidationError

from karenina_core.errors import ConfigError, Problem, TemplateError
from karenina_core.ports.threads import in_own_thread
from karenina_core.values.convert import structure

from .language.answer import BaseAnswer, VerifiedField, is_taken
from .language.coercions import careful_reader
from .language.extraction import any_field_names
from .language.primitives.base import VerificationPrimitive, derives, primitive_from_spec
from .language.primitives.text import SemanticMatch, TracePrimitive
from .language.specs import TYPES
from .language.strategies import Condition, condition_from_spec, condition_problems
from .pydantic_handle import THREAD, ModelHandle, open_class
from .shapes import Shapes

_TYPES: Mapping[str, Any] = {name: type_ for type_, name in TYPES.items()} | {"list_str": list[str]}
_shapes = Shapes()
SHORT = 4_000
"""Characters of a template that is loaded where it is asked for: it takes one to five milliseconds there, in which
a thread would not let others run either. With a longer one, or where patterns are read and tried, a thread holds up no
other item."""


@frozen(kw_only=True)
class _FieldSpec:
    name: str
    type: Literal["bool", "str", "int", "float", "list_str", "literal", "date"]
    description: str
    ground_truth: Any
    verify_with: Any
    extraction_hint: str | None = None
    literal_values: Sequence[str] | None = None
    weight: float = 1.0
    is_trace: bool = False


@frozen(kw_only=True)
class _TemplateSpec:
    fields: Sequence[_FieldSpec] = field()
    verify_strategy: Any = None
    class_name: str = "Answer"


@frozen
class DeclarativeRuntime:
    """Makes templates from data. No code that came with a benchmark ever runs."""

    name: str = "declarative"
    languages: frozenset[str] = frozenset({"karenina-template"})
    executes_code: bool = False
    isolation: str = "no-code"

    async def load(self, text: str, primitives: Mapping[str, type]) -> ModelHandle:
        """Check the description and make a template class of it. Raises TemplateError with every problem."""
        if len(text) <= SHORT and not [n for n, cls in primitives.items() if n in text and _may_take_long(cls)]:
            return self._loaded(text, primitives)
        return (await in_own_thread(lambda: self._loaded(text, primitives), THREAD)).result()

    def _loaded(self, text: str, primitives: Mapping[str, type]) -> ModelHandle:
        spec, declared, strategy, problems = _examined(text, primitives)
        if problems:
            raise _refusal(problems)
        shape = _shapes.get(_shape_key(spec), lambda: _template_class(spec.class_name, declared))
        fields = {name: info for name, (_, info) in declared.items()}
        lent = shape.template(fields, strategy)
        return open_class(lent.cls, self.isolation, keep=lent)


def template_problems(text: str, primitives: Mapping[str, type]) -> Sequence[Problem]:
    """What keeps a description from being loaded, each with its place, such as `fields[0].ground_truth`."""
    try:
        return _examined(text, primitives)[-1]
    except TemplateError as error:
        return [Problem("", str(error))]


def _examined(
    text: str, primitives: Mapping[str, type]
) -> tuple[_TemplateSpec, Mapping[str, Any], Condition | None, Sequence[Problem]]:
    """The description, what its fields and its strategy become, and what is wrong. Raises TemplateError."""
    described = _read(text)
    fields = described.get("fields")
    problems = [
        Problem(f"fields[{number}]", f"a field is a JSON object, not {item!r:.80}")
        for number, item in enumerate(fields if isinstance(fields, list) else ())
        if not isinstance(item, dict)
    ]
    if problems:
        raise _refusal(problems)
    try:
        spec = structure(described, _TemplateSpec)
    except ConfigError as error:
        raise _refusal(error.problems) from None
    if not spec.fields:
        problems.append(Problem("fields", "a template needs at least one field"))
    if not spec.class_name.isidentifier() or keyword.iskeyword(spec.class_name):
        problems.append(Problem("class_name", f"{spec.class_name!r} is not a class name"))
    strategy = None
    try:
        if spec.verify_strategy is not None:
            strategy = condition_from_spec(spec.verify_strategy)
            names = [item.name for item in spec.fields]
            found = condition_problems(strategy, names) if names else []
            problems += [Problem("verify_strategy", problem) for problem in found]
    except TemplateError as error:
        problems.append(Problem("verify_strategy", str(error)))
    declared: dict[str, Any] = {}
    for number, item in enumerate(spec.fields):
        wrong = [] if item.name not in declared else [Problem("name", f"{item.name!r} occurs twice")]
        declared[item.name] = _field(item, primitives, wrong)
        problems += [Problem(f"fields[{number}].{problem.path}".rstrip("."), problem.message) for problem in wrong]
    return spec, declared, strategy, problems


def _may_take_long(primitive: type) -> bool:
    return getattr(primitive, "may_take_long", True)


def _shape_key(spec: _TemplateSpec) -> Hashable:
    """What pydantic's part of a template depends on: its names and types."""
    rows = [(item.name, item.type, tuple(item.literal_values or ()), item.is_trace) for item in spec.fields]
    return spec.class_name, *rows


def _template_class(name: str, fields: Mapping[str, tuple[Any, Any]]) -> type[BaseAnswer]:
    body: dict[str, Any] = {
        "__module__": __name__,
        "__qualname__": name,
        "__annotations__": {field_name: annotation for field_name, (annotation, _) in fields.items()},
        **{field_name: copy(declared) for field_name, (_, declared) in fields.items()},
    }
    with any_field_names():  # pydantic's methods of those names are not used here
        return types.new_class(name, (BaseAnswer,), exec_body=lambda namespace: namespace.update(body))


def _refusal(problems: Sequence[Problem]) -> TemplateError:
    return TemplateError("\n".join(str(problem) for problem in problems))


def _read_object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice in one object")
    return found


def _refuse_constant(word: str) -> None:
    raise ValueError(f"{word} is not JSON; write a finite number")


_DECODER = json.JSONDecoder(object_pairs_hook=_read_object, parse_constant=_refuse_constant)


def _read(text: str) -> dict[str, Any]:
    try:
        described = _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise TemplateError(f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise TemplateError(f"the template cannot be read: {error}") from None
    if not isinstance(described, dict):
        problem = f'a template is one JSON object {{"fields": [...]}}, not {described!r:.80}'
        raise _refusal([Problem("", problem)])
    return described


def _field(spec: _FieldSpec, primitives: Mapping[str, type], problems: list[Problem]) -> Any:
    """The pydantic field, or None; whatever is wrong is added to `problems`."""
    try:
        primitive = primitive_from_spec(spec.verify_with, primitives)
        problems += _field_problems(spec, primitive)
    except TemplateError as error:
        problems += [*_field_problems(spec, None), Problem("verify_with", str(error))]
        return None
    if problems:
        return None
    annotation = Literal[tuple(spec.literal_values or ())] if spec.type == "literal" else _TYPES[spec.type]
    expected = spec.ground_truth
    try:
        # In the field's own type, so that "5" for an int means 5; a primitive of the trace reads it itself.
        if primitive.uses_ground_truth and expected is not None and not derives(type(primitive), TracePrimitive):
            read = careful_reader(annotation) if spec.type == "literal" else _reader(spec.type)
            expected = read(expected)
        return annotation, VerifiedField(spec.description, expected, primitive, spec.weight, spec.extraction_hint)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        problems.append(Problem("ground_truth", f"{first['msg']} (got {first['input']!r})"))
    except (TypeError, ValueError) as error:
        problems.append(Problem("", str(error)))
    return None


@cache
def _reader(type_: str) -> Callable[[Any], Any]:
    return careful_reader(float | int if type_ == "int" else _TYPES[type_])


def _field_problems(spec: _FieldSpec, primitive: VerificationPrimitive | None) -> Iterator[Problem]:
    name, values = spec.name, spec.literal_values or ()
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        yield Problem("name", f"{name!r} is not a field name: use letters, digits and _, and begin with a letter")
    elif is_taken(name):
        yield Problem("name", f"{name!r} is taken by the class that templates are made of; choose another name")
    if spec.is_trace and spec.type != "bool":
        yield Problem("type", f"a check on the trace holds or does not: write bool, not {spec.type}")
    if spec.type == "literal" and (not values or len(set(values)) < len(values)):
        yield Problem("literal_values", "a literal needs at least one value, and no value twice")
    if spec.type != "literal" and values:
        yield Problem("literal_values", f"only a literal has values; {spec.type!r} has none")
    if primitive is None:
        return
    used, reads_trace = type(primitive).__name__, derives(type(primitive), TracePrimitive)
    if spec.is_trace and not reads_trace:
        what = f"{used} looks at an extracted value; use a primitive for the trace, or leave is_trace false"
        yield Problem("verify_with", what)
    elif reads_trace and not spec.is_trace:
        yield Problem("is_trace", f"{used} looks at the trace: write true, and the judge is not asked for the field")
    elif spec.type not in ("str", "literal") and derives(type(primitive), SemanticMatch):
        yield Problem("type", f"{used} compares texts: write str, not {spec.type}")
