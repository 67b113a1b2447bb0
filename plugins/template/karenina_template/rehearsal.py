"""A rehearsal before anything is paid for: would every verified field pass if a judge extracted what is expected?

A judge's reply is JSON. JSON has no sets, tuples or dates, so a ground truth of such a type comes back as something
else, and the field's type may turn it into something else again. A ground truth that can never be matched would make
every answer wrong.
"""

from __future__ import annotations

import datetime
import json
from typing import Any

from pydantic import AfterValidator, BeforeValidator, PlainValidator, ValidationError, WrapValidator

from karenina_core.errors import one_line

from .language import primitives
from .language.answer import BaseAnswer
from .language.extraction import extraction_class
from .language.primitives.base import VerificationPrimitive
from .language.primitives.dates import DateMatch, DateTolerance, read_moment
from .language.primitives.graded import NumericGraded, NumericThresholdGraded
from .language.primitives.numeric import NumericMaximum, NumericMinimum, NumericTolerance
from .language.to_json import plain, shown
from .language.verification import Verification

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
        primitive = verification.primitive
        if verification.kind == "trace" or not (primitive.uses_ground_truth and primitive.matches_ground_truth):
            continue
        if isinstance(primitive, _THRESHOLDS) and primitive.exclusive:
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
            f"the ground truth {shown(verification.ground_truth)} is no value that the field can have ({message}); "
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
    if isinstance(primitive, DateMatch | DateTolerance):
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
        f"; where the ground truth of {type(primitive).__name__} is no example of a right value, write "
        "matches_ground_truth = False in its class"
    )
