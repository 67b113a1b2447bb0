"""A rehearsal of answers that do not say: can the template be filled where one verified field is null?

The author's hook and validators see the null. One that compares two fields, or calls a method of one, fails there, and
then an answer that is merely silent about a field ends as an error.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from karenina_core.errors import FillError, TemplateError

from .language.answer import BaseAnswer
from .language.extraction import fill, keys_of
from .language.to_json import plain
from .rehearsal import judge_form
from .rules import placeholder

__all__ = ["null_warnings"]


def null_warnings(cls: type[BaseAnswer], correct: Mapping[str, Any]) -> list[str]:
    """The verified fields without which the template cannot be filled, though it can with all of them."""
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
