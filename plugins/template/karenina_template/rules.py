"""The rules that a template class must keep, checked before any model is called.

One is a rehearsal: would every verified field pass if a judge extracted what is expected? A judge's reply is JSON,
which has no sets, tuples or dates, so a ground truth of such a type comes back as something else, and the field's type
may turn it into something else again. A ground truth that can never be matched would make every answer wrong.
"""

from __future__ import annotations

import datetime
import inspect
import json
from collections.abc import Iterator, Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import AfterValidator, BaseModel, BeforeValidator, PlainValidator, ValidationError, WrapValidator

from karenina_core.errors import FillError, TemplateError, one_line

from .language import primitives
from .language.answer import BaseAnswer, verification_of, written_by_author
from .language.author_code import author_code
from .language.extraction import extraction_class, fill, keys_of
from .language.primitives.base import VerificationPrimitive, derives
from .language.primitives.dates import DateMatch, DateTolerance, read_moment
from .language.primitives.numeric import (
    NumericGraded,
    NumericMaximum,
    NumericMinimum,
    NumericThresholdGraded,
    NumericTolerance,
)
from .language.searches import pattern_problems
from .language.to_json import plain, shown
from .language.verification import Verification
from .shapes import shape_of

_NEAR = (DateTolerance, NumericGraded, NumericMaximum, NumericMinimum, NumericThresholdGraded, NumericTolerance)
"""What accepts more than the ground truth, so that this need not be a value which the field can hold."""
_THRESHOLDS = (NumericMaximum, NumericMinimum, NumericThresholdGraded)
_VALIDATORS = (AfterValidator, BeforeValidator, PlainValidator, WrapValidator)


def rehearsal_problems(cls: type[BaseAnswer]) -> list[str]:
    """The fields whose ground truth would not even be matched by itself, and what to write instead.

    Fields that do not use their ground truth, or whose primitive says that it need not match, exclusive thresholds and
    checks on the trace are left out. An author's validators take part; one that refuses the plain ground truth reads
    something else, and its field is left out too.
    """
    problems = []
    for name, verification in cls.__verified__.items():
        primitive: Any = verification.primitive
        if verification.kind == "trace" or not (primitive.uses_ground_truth and primitive.matches_ground_truth):
            continue
        if derives(type(verification.primitive), *_THRESHOLDS) and primitive.exclusive:
            continue
        if problem := _problem(cls, name, verification):
            problems.append(f"field {name!r}: {problem}")
    return problems


def judge_form(cls: type[BaseAnswer], name: str, verification: Verification) -> Any:
    """The ground truth as JSON that the field can have; in its plainest form where it cannot be read for itself."""
    try:
        return _read(cls, name, _judge_forms(verification))[0]
    except Exception:  # a validator may look at other fields, which are null here
        return plain(verification.ground_truth)


def _problem(cls: type[BaseAnswer], name: str, verification: Verification) -> str | None:
    primitive = type(verification.primitive).__name__
    try:
        form, value = _read(cls, name, _judge_forms(verification))
    except Exception as error:
        own = cls.__pydantic_decorators__
        validators = own.field_validators.values()
        on_field = any(name in found.info.fields or "*" in found.info.fields for found in validators)
        on_type = any(isinstance(item, _VALIDATORS) for item in cls.model_fields[name].metadata)
        if on_field or on_type or own.model_validators or own.root_validators or own.validators:
            return None
        if isinstance(verification.primitive, _NEAR):
            return None
        message = error.errors(include_url=False)[0]["msg"] if isinstance(error, ValidationError) else one_line(error)
        return (
            f"the ground truth {shown(verification.ground_truth)} is not a value that the field can have ({message}); "
            f"change one of them{_own_words(verification.primitive)}"
        )
    if verification.kind == "semantic":
        return None if isinstance(value, str) else "SemanticMatch compares texts, so declare the field as str"
    try:
        if verification.primitive.check(value, verification.expected()) is True:
            return None
        problem = f"{primitive} does not accept that"
    except Exception as error:  # primitives may come from anywhere
        problem = f"{primitive} raises {one_line(error)} for that"
    expected = verification.ground_truth
    if isinstance(expected, set | frozenset | tuple) and isinstance(value, list):
        declared = f"{type(expected).__name__}[...]"
        remedy = f"JSON has lists only: write the ground truth as a list, or declare the field as {declared}"
    elif type(expected) is not type(value):
        written = type(value).__name__
        remedy = f"write the ground truth as {written}, as the field has it, or use another primitive"
    else:
        remedy = "write the ground truth as the field has it, or use another primitive"
    return (
        f"not even a perfect extraction would pass. The ground truth {shown(verification.ground_truth)} is "
        f"{shown(form, write=json.dumps)} in a judge's reply, the field reads this as {shown(value)}, and {problem}; "
        f"{remedy}{_own_words(verification.primitive)}"
    )


def _judge_forms(verification: Verification) -> list[Any]:
    """The ground truth as a judge may put it into its reply, the plainest form first."""
    expected, primitive = verification.ground_truth, verification.primitive
    forms = [plain(expected)]
    if isinstance(expected, bool | int | float):
        forms.append(json.dumps(forms[0]))  # for a field of text
    if derives(type(primitive), DateMatch, DateTolerance):
        format_ = getattr(primitive, "format", None)
        if format_ and isinstance(expected, str):
            return [*forms, datetime.datetime.strptime(expected.strip(), format_).date().isoformat()]
        forms.append(read_moment(expected).day.isoformat())
        if format_:
            forms.insert(0, expected.strftime(format_))
    return forms


def _read(cls: type[BaseAnswer], name: str, forms: list[Any]) -> tuple[Any, Any]:
    """The first of these forms that the field can have, and what it makes of it. Raises what the first raises."""
    failure: Exception | None = None
    relaxed = extraction_class(cls)
    for form in forms:
        answer = _unfilled(relaxed)
        try:
            # The form is JSON, and a strict template reads JSON less strictly than Python's own values.
            relaxed.__pydantic_validator__.validate_assignment(answer, name, form, strict=False)
            return form, answer.__dict__[name]
        except Exception as error:  # validators are the author's code
            failure = failure or error
    raise failure or ValueError("there is no form to read")


def _unfilled(cls: type[BaseAnswer]) -> BaseAnswer:
    """An instance without values, on which the author's hook has not run: it may be written for values."""
    answer = cls.__new__(cls)
    kept = {name: private.get_default() for name, private in cls.__private_attributes__.items()}
    state: dict[str, Any] = {
        "__dict__": dict.fromkeys(cls.model_fields),
        "__pydantic_fields_set__": set(),
        "__pydantic_extra__": {},
        "__pydantic_private__": kept or None,
    }
    for name, value in state.items():
        object.__setattr__(answer, name, value)
    return answer


def _own_words(primitive: VerificationPrimitive) -> str:
    """What the author of another primitive can do beside that."""
    if type(primitive).__module__.startswith(primitives.__name__):
        return ""
    return (
        f"; where the ground truth of {type(primitive).__name__} is not an example of a right value, write "
        "matches_ground_truth = False in its class"
    )


def check_class(cls: type[BaseAnswer]) -> dict[str, Any]:
    """What the class's hook puts into `self.correct`, once the class is known to keep every rule.

    Of a template that shares its shape with another one only what is its own is looked at: it has no hook, and no
    method of an author's. Raises TemplateError naming everything that is wrong.
    """
    if shape_of(cls) is not None:
        if problems := rehearsal_problems(cls):
            raise TemplateError(f"class {cls.__name__}: " + "; ".join(problems))
        return {}
    with author_code("the hook that sets self.correct", cls.__module__):
        trial = _trial(cls)
        correct, regex = getattr(trial, "correct", None), getattr(trial, "regex", None)
    problems = [*_method_problems(cls, bool(regex)), *_field_problems(cls)]
    with author_code("reading the ground truth", cls.__module__):
        problems += rehearsal_problems(cls)
    if correct is not None and not isinstance(correct, dict):
        problems.append(f"self.correct must be a dict of expected values by field, not {type(correct).__name__}")
    elif correct and not written_by_author(cls, "verify"):
        problems += [
            f"self.correct[{name!r}] is {correct[name]!r:.80}, but the field's own ground_truth decides, and that is "
            f"{found.ground_truth!r:.80}; remove one of them"
            for name, found in cls.__verified__.items()
            if name in correct and plain(correct[name]) != plain(found.ground_truth)
        ]
    if regex is not None:
        problems += pattern_problems(regex)
    if problems:
        raise TemplateError(f"class {cls.__name__}: " + "; ".join(problems))
    return dict(correct or {})


def _method_problems(cls: type[BaseAnswer], has_patterns: bool) -> list[str]:
    fields = [name for name in cls.model_fields if name != "id"]
    if not fields and not has_patterns:
        return ["there is nothing to check: add fields, or set self.regex in the ground_truth hook"]
    verify = getattr(cls, "verify", None)
    if fields and not callable(verify):
        return ["there is no verify(): write `def verify(self) -> bool`, or declare the fields with VerifiedField"]
    methods = {name: getattr(cls, name, None) for name in ("verify", "verify_granular", "verify_regex", "ground_truth")}
    return [
        f"{name} must be a plain method: write `def`, not `async def`"
        for name, method in methods.items()
        if inspect.iscoroutinefunction(method)
    ]


def _field_problems(cls: type[BaseAnswer]) -> Iterator[str]:
    nested = sorted(_nested_models(cls, set()), key=lambda model: not issubclass(model, BaseAnswer))
    for model in nested:
        if issubclass(model, BaseAnswer):
            yield f"{model.__name__} is a template inside a template; derive the nested model from pydantic's BaseModel"
            continue
        for name, info in model.model_fields.items():
            if verification_of(info) is not None:
                yield (
                    f"{model.__name__}.{name} is a VerifiedField inside a nested model, where nothing would check it; "
                    f"use Field there and verify it in {cls.__name__}"
                )
    for name, found in cls.__verified__.items():
        if found.kind == "trace" and cls.model_fields[name].annotation not in (bool, bool | None):
            yield f"{name}: {type(found.primitive).__name__} holds or does not, so declare the field as bool"


def _nested_models(model: type[BaseModel], seen: set[type]) -> Iterator[type[BaseModel]]:
    waiting: list[Any] = [info.annotation for info in model.model_fields.values()]
    while waiting:
        annotation = waiting.pop()
        waiting += get_args(annotation)
        if isinstance(annotation, type) and issubclass(annotation, BaseModel) and annotation not in seen:
            seen.add(annotation)
            yield annotation
            yield from _nested_models(annotation, seen)


def _trial(cls: type[BaseModel]) -> Any:
    """An instance for the hook to run on. Nothing is validated, so bounds and formats cannot be in the way."""
    keys = keys_of(cls) if issubclass(cls, BaseAnswer) else {}  # fields of the trace are never required
    required = {name: info for name, info in cls.model_fields.items() if info.is_required()}
    return cls.model_construct(
        **{keys.get(name, name): placeholder(info.annotation) for name, info in required.items()}
    )


_EMPTY: tuple[tuple[type, Any], ...] = (
    (bool, False),
    (int, 0),
    (float, 0.0),
    (str, ""),
    (datetime.datetime, datetime.datetime(2000, 1, 1)),
    (datetime.date, datetime.date(2000, 1, 1)),
)


def placeholder(annotation: Any) -> Any:
    """Something of the declared kind; None where nothing obvious is."""
    origin = get_origin(annotation)
    if origin is Annotated or origin is Literal:
        first = get_args(annotation)[0]
        return first if origin is Literal else placeholder(first)
    if origin in (Union, UnionType):
        members = [member for member in get_args(annotation) if member is not NoneType]
        simple = [member for member in members if not (isinstance(member, type) and issubclass(member, BaseModel))]
        return placeholder((simple or members)[0]) if simple or len(members) == len(get_args(annotation)) else None
    kind = origin or annotation
    if not isinstance(kind, type):
        return None
    if issubclass(kind, BaseModel):
        return _trial(kind)
    if issubclass(kind, Enum):
        return next(iter(kind), None)
    if kind in (list, set, frozenset, tuple, dict):
        return kind()
    return next((empty for known, empty in _EMPTY if issubclass(kind, known)), None)


def null_warnings(cls: type[BaseAnswer], correct: Mapping[str, Any]) -> list[str]:
    """The verified fields without which the template cannot be filled, though it can with all of them.

    The author's hook and validators see the null. One that compares two fields, or calls a method of one, fails there,
    and then an answer that is merely silent about a field ends as an error.
    """
    # A hook or a validator of the author's alone could stumble over a null.
    decorators = cls.__pydantic_decorators__
    has_hook = hasattr(cls, "ground_truth") or cls.model_post_init is not BaseAnswer.model_post_init
    if not (has_hook or decorators.validators or decorators.field_validators or decorators.model_validators):
        return []
    keys = keys_of(cls)
    data: dict[str, Any] = {}
    for name, key in keys.items():
        verification = cls.__verified__.get(name)
        if verification is not None and verification.primitive.uses_ground_truth:
            data[key] = judge_form(cls, name, verification)
        else:
            data[key] = plain(correct[name] if name in correct else placeholder(cls.model_fields[name].annotation))
    if _failure(cls, data) is not None:
        return []  # the examples do not suit the author's validators, and nothing can be concluded
    return [
        f"where the answer does not say {name!r} the template cannot be filled: {failure}; "
        "let hooks and validators expect None there"
        for name, key in keys.items()
        if name in cls.__verified__ and (failure := _failure(cls, data | {key: None})) is not None
    ]


def _failure(cls: type[BaseAnswer], data: Mapping[str, Any]) -> str | None:
    try:
        fill(cls, data)
    except (FillError, TemplateError) as error:
        return " ".join(str(error).split())
    return None
