"""Templates as data: fields, primitives and ground truth in JSON. Nothing in them is executed.

The text is one JSON object, `{"fields": [...], "verify_strategy": ..., "class_name": "Answer"}`. A field has `name`,
`type` (`bool`, `str`, `int`, `float`, `list_str`, `date` or `literal` with `literal_values`), `description`,
`ground_truth` (of a date: ISO 8601 text), `verify_with` (a primitive, such as `{"type": "ExactMatch"}`), and perhaps
`extraction_hint`, `weight` and `is_trace`, which is true for the primitives that look at the trace. A strategy is a
tree such as `{"type": "any_of", "conditions": [{"type": "field_check", "field": "drug"}]}`; without one every field
must be right.
"""

from __future__ import annotations

import datetime
import json
import keyword
import types
from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import field, frozen
from pydantic import ValidationError

from karenina_core.errors import ConfigError, Problem, TemplateError
from karenina_core.ports.threads import in_own_thread
from karenina_core.values.convert import structure

from .language.answer import BaseAnswer, VerifiedField, is_taken
from .language.coercions import careful_reader
from .language.extraction import any_field_names
from .language.primitives.base import VerificationPrimitive
from .language.primitives.semantic import SemanticMatch
from .language.primitives.trace import TracePrimitive
from .language.specs import primitive_from_spec
from .language.strategies import Condition, condition_from_spec, condition_problems
from .model_handle import THREAD, ModelHandle, open_class

__all__ = ["DeclarativeRuntime"]

_TYPES: Mapping[str, Any] = {
    "bool": bool,
    "str": str,
    "int": int,
    "float": float,
    "list_str": list[str],
    "date": datetime.date,
}


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
        return (await in_own_thread(lambda: self._loaded(text, primitives), THREAD)).result()

    def _loaded(self, text: str, primitives: Mapping[str, type]) -> ModelHandle:
        described = _read(text)
        if problems := _shape_problems(described):
            raise _refusal(problems)
        try:
            spec = structure(described, _TemplateSpec)
        except ConfigError as error:
            raise _refusal(error.problems) from None
        problems = _overall_problems(spec)
        strategy = _strategy(spec, problems)
        fields: dict[str, Any] = {}
        for number, item in enumerate(spec.fields):
            found = [] if item.name not in fields else [Problem("name", f"{item.name!r} occurs twice")]
            fields[item.name] = _field(item, primitives, found)
            problems += [Problem(f"fields[{number}].{problem.path}".rstrip("."), problem.message) for problem in found]
        if problems:
            raise _refusal(problems)
        return open_class(_template_class(spec.class_name, fields, strategy), self.isolation)


def _template_class(name: str, fields: Mapping[str, tuple[Any, Any]], strategy: Condition | None) -> type[BaseAnswer]:
    body: dict[str, Any] = {
        "__module__": __name__,
        "__qualname__": name,
        "__annotations__": {field_name: annotation for field_name, (annotation, _) in fields.items()},
        **{field_name: declared for field_name, (_, declared) in fields.items()},
    }
    if strategy is not None:
        inner = {"__module__": __name__, "__qualname__": f"{name}.VerificationStrategy", "verify_strategy": strategy}
        body["VerificationStrategy"] = type("VerificationStrategy", (), inner)
    with any_field_names():  # pydantic's methods of those names are not used here
        return types.new_class(name, (BaseAnswer,), exec_body=lambda namespace: namespace.update(body))


def _refusal(problems: Sequence[Problem]) -> TemplateError:
    return TemplateError("\n".join(str(problem) for problem in problems))


def _read(text: str) -> Any:
    try:
        return json.loads(text, object_pairs_hook=_object, parse_constant=_no_constant)
    except json.JSONDecodeError as error:
        raise TemplateError(f"line {error.lineno}, column {error.colno}: not JSON: {error.msg}") from None
    except (ValueError, RecursionError) as error:
        raise TemplateError(f"the template cannot be read: {error}") from None


def _shape_problems(described: Any) -> list[Problem]:
    if not isinstance(described, dict):
        return [Problem("", f'a template is one JSON object {{"fields": [...]}}, not {described!r:.80}')]
    fields = described.get("fields")
    return [
        Problem(f"fields[{number}]", f"a field is a JSON object, not {item!r:.80}")
        for number, item in enumerate(fields if isinstance(fields, list) else ())
        if not isinstance(item, dict)
    ]


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} occurs twice in one object")
    return found


def _no_constant(word: str) -> Any:
    raise ValueError(f"{word} is not JSON; write a finite number")


def _overall_problems(spec: _TemplateSpec) -> list[Problem]:
    problems = []
    if not spec.fields:
        problems.append(Problem("fields", "a template needs at least one field"))
    if not spec.class_name.isidentifier() or keyword.iskeyword(spec.class_name):
        problems.append(Problem("class_name", f"{spec.class_name!r} is no name for a class"))
    return problems


def _strategy(spec: _TemplateSpec, problems: list[Problem]) -> Condition | None:
    if spec.verify_strategy is None:
        return None
    try:
        condition = condition_from_spec(spec.verify_strategy)
    except TemplateError as error:
        problems.append(Problem("verify_strategy", str(error)))
        return None
    if spec.fields:
        names = [item.name for item in spec.fields]
        problems += [Problem("verify_strategy", problem) for problem in condition_problems(condition, names)]
    return condition


def _field(spec: _FieldSpec, primitives: Mapping[str, type], problems: list[Problem]) -> Any:
    """The pydantic field, or None; whatever is wrong is added to `problems`."""
    problems += _name_problems(spec) + _kind_problems(spec)
    primitive = None
    try:
        primitive = primitive_from_spec(spec.verify_with, primitives)
    except TemplateError as error:
        problems.append(Problem("verify_with", str(error)))
    if primitive is not None:
        problems += _primitive_problems(spec, primitive)
    if problems or primitive is None:
        return None
    annotation = Literal[tuple(spec.literal_values or ())] if spec.type == "literal" else _TYPES[spec.type]
    try:
        expected = _ground_truth(spec, annotation, primitive)
        declared = VerifiedField(spec.description, expected, primitive, spec.weight, spec.extraction_hint)
    except (TypeError, ValueError) as error:
        problems.append(Problem("ground_truth" if isinstance(error, ValidationError) else "", _message(error)))
        return None
    return annotation, declared


def _name_problems(spec: _FieldSpec) -> list[Problem]:
    name = spec.name
    if not name.isidentifier() or keyword.iskeyword(name) or name.startswith("_"):
        return [Problem("name", f"{name!r} is no field name: use letters, digits and _, and begin with a letter")]
    if is_taken(name):
        return [Problem("name", f"{name!r} is taken by the class that templates are made of; choose another name")]
    return []


def _kind_problems(spec: _FieldSpec) -> list[Problem]:
    problems = []
    if spec.is_trace and spec.type != "bool":
        problems.append(Problem("type", f"a check on the trace holds or does not: write bool, not {spec.type}"))
    values = spec.literal_values or ()
    if spec.type == "literal" and (not values or len(set(values)) < len(values)):
        problems.append(Problem("literal_values", "a literal needs at least one value, and no value twice"))
    if spec.type != "literal" and values:
        problems.append(Problem("literal_values", f"only a literal has values; {spec.type!r} has none"))
    return problems


def _primitive_problems(spec: _FieldSpec, primitive: VerificationPrimitive) -> list[Problem]:
    name = type(primitive).__name__
    if isinstance(primitive, TracePrimitive) is not spec.is_trace:
        if spec.is_trace:
            what = f"{name} looks at an extracted value; use a primitive for the trace, or leave is_trace false"
            return [Problem("verify_with", what)]
        return [Problem("is_trace", f"{name} looks at the trace: write true, and the judge is not asked for the field")]
    if isinstance(primitive, SemanticMatch) and spec.type not in ("str", "literal"):
        return [Problem("type", f"{name} compares texts: write str, not {spec.type}")]
    return []


def _ground_truth(spec: _FieldSpec, annotation: Any, primitive: VerificationPrimitive) -> Any:
    """The expected value in the field's own type, so that "5" for an int means 5. Raises ValidationError."""
    if not primitive.uses_ground_truth or spec.ground_truth is None:
        return spec.ground_truth
    if isinstance(primitive, TracePrimitive):
        return spec.ground_truth  # it says itself what is wrong with any but true and false
    expected: Any = float | int if spec.type == "int" else annotation
    return careful_reader(expected)(spec.ground_truth)


def _message(error: TypeError | ValueError) -> str:
    if isinstance(error, ValidationError):
        first = error.errors(include_url=False)[0]
        return f"{first['msg']} (got {first['input']!r})"
    return str(error)
