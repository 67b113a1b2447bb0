"""The rules that a template class must keep, checked before any model is called."""

from __future__ import annotations

import datetime
import inspect
from collections.abc import Iterator, Mapping
from enum import Enum
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from pydantic import BaseModel

from karenina_core.errors import FillError, TemplateError

from .language.answer import BaseAnswer, verification_of, written_by_author
from .language.author_code import author_code
from .language.extraction import fill, keys_of
from .language.patterns import pattern_problems
from .language.to_json import plain
from .rehearsal import judge_form, rehearsal_problems


def check_class(cls: type[BaseAnswer]) -> dict[str, Any]:
    """What the class's hook puts into `self.correct`, once the class is known to keep every rule.

    Raises TemplateError naming everything that is wrong.
    """
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
