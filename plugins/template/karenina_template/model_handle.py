"""The template handle over a `BaseAnswer` subclass, however the class came to be."""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from attrs import evolve, field, frozen

from karenina_core.errors import TemplateError
from karenina_core.templates.answer import AUTOMATIC, BaseAnswer
from karenina_core.templates.author_code import author_code
from karenina_core.templates.extraction import extraction_class, fill, keys_of
from karenina_core.templates.handle import FieldVerdict, RegexVerdict, TemplateField
from karenina_core.templates.judge_schema import judge_schema, revealed_fields
from karenina_core.templates.plain import plain
from karenina_core.templates.verification import Comparison, compare

from .rules import check_class

__all__ = ["ModelFilled", "ModelHandle", "open_class"]


def open_class(cls: type[BaseAnswer], isolation: str, keep: object = None) -> ModelHandle:
    """Check a template class and make its handle. `keep` is held as long as the handle, for what the class depends
    on.

    Raises TemplateError where the class breaks a rule of templates.
    """
    module = cls.__module__
    with author_code("preparing the template", module):
        extraction_class(cls)
        correct = check_class(cls)
        schema = judge_schema(cls)
    expected = {name: verification.ground_truth for name, verification in cls.__verified__.items()} | correct
    revealed = revealed_fields(schema, expected)
    return ModelHandle(
        cls=cls,
        isolation=isolation,
        warnings=tuple(f"the judge can read the expected value of {name!r} in the schema" for name in revealed),
        fields=_fields(cls),
        schema=json.dumps(plain(schema)),
        ground_truth=json.dumps(plain(expected)),
        keep=keep,
    )


@frozen(eq=False, kw_only=True)
class ModelHandle:
    """A loaded template class. Shared by all items; nothing in it changes."""

    cls: type[BaseAnswer] = field(repr=False)
    isolation: str
    warnings: tuple[str, ...] = ()
    """What an author should look at, though the template can be used."""
    _fields: tuple[TemplateField, ...]
    _schema: str = field(repr=False)
    _ground_truth: str = field(repr=False)
    _keep: object = field(default=None, repr=False)

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = json.loads(self._schema)
        return schema

    def fields(self) -> tuple[TemplateField, ...]:
        return self._fields

    def ground_truth(self) -> Mapping[str, Any]:
        expected: dict[str, Any] = json.loads(self._ground_truth)
        return expected

    async def build(self, data: Mapping[str, Any] | None) -> ModelFilled:
        answer = fill(self.cls, data)
        with author_code("reading the extracted fields", self.cls.__module__):
            values = {item.name: plain(getattr(answer, item.name)) for item in self._fields}
        nulls = frozenset(name for name in self.cls.__verified__ if values[name] is None)
        return ModelFilled(self, answer, values, nulls)


class ModelFilled:
    """One item's filled template."""

    def __init__(
        self, handle: ModelHandle, answer: BaseAnswer, values: Mapping[str, Any], nulls: frozenset[str]
    ) -> None:
        self.nulls = nulls
        self._handle = handle
        self._answer = answer
        self._values = values
        self._compared: Comparison | None = None

    def __repr__(self) -> str:
        return f"<filled {type(self._answer).__name__} {dict(self._values)!r}>"

    def values(self) -> Mapping[str, Any]:
        return dict(self._values)

    def _comparison(self) -> Comparison:
        # Once, before the author's code can change a field.
        if self._compared is None:
            self._compared = compare(self._answer.__verified__, self._answer.__dict__)
        return self._compared

    def _call(self, method: str, *arguments: Any) -> Any:
        with author_code(f"{method}()", self._handle.cls.__module__):
            return getattr(self._answer, method)(*arguments)

    async def verify(self, trace: str) -> FieldVerdict:
        """Decide. `trace` is for checks that read the trace; no primitive of this version does."""
        compared = self._comparison()
        if not _is_written_by_author(self._handle.cls, "verify"):
            return FieldVerdict(compared.passed, compared.results, compared.scores)
        result = self._call("verify")
        if result is not True and result is not False:
            raise TemplateError(
                f"verify() returned {result!r}; it must return True or False, so write return bool(...)"
            )
        return FieldVerdict(result, compared.results, compared.scores)

    async def granular(self) -> float | None:
        if not _is_written_by_author(self._handle.cls, "verify_granular"):
            return self._comparison().granular if self._answer.__verified__ else None
        score = self._call("verify_granular")
        if isinstance(score, bool) or not isinstance(score, int | float) or not abs(score) < float("inf"):
            raise TemplateError(f"verify_granular() returned {score!r}; it must return a finite number")
        return float(score)

    async def regex(self, trace: str) -> RegexVerdict:
        found = self._call("verify_regex", trace)
        if not isinstance(found, Mapping) or not isinstance(found.get("success"), bool):
            raise TemplateError(
                f"verify_regex() returned {found!r}; it must return a dict with success, results and details"
            )
        results, details = dict(found.get("results") or {}), plain(found.get("details") or {})
        matched = {name: detail.get("matches_found", []) for name, detail in details.items()}
        return RegexVerdict(bool(results), found["success"], results, details, matched)


def _is_written_by_author(cls: type[BaseAnswer], method: str) -> bool:
    return getattr(cls, method, None) not in (None, AUTOMATIC[method])


def _fields(cls: type[BaseAnswer]) -> tuple[TemplateField, ...]:
    found = []
    for name in keys_of(cls):
        info, verification = cls.model_fields[name], cls.__verified__.get(name)
        field_ = TemplateField(name, type_text(info.annotation), info.description or "", verification is not None)
        if verification:
            field_ = evolve(field_, hint=verification.hint, weight=verification.weight)
        found.append(field_)
    return tuple(found)


def type_text(annotation: Any) -> str:
    """A type as an author writes it: `list[str] | None`, `Literal['a', 'b']`."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if annotation is None or annotation is type(None):
        return "None"
    if origin in (Union, UnionType):
        return " | ".join(map(type_text, arguments))
    if origin is Literal:
        return f"Literal[{', '.join(map(repr, arguments))}]"
    if origin is Annotated:
        return type_text(arguments[0])
    if annotation is Ellipsis:
        return "..."
    name = getattr(origin or annotation, "__name__", None) or str(annotation)
    return f"{name}[{', '.join(map(type_text, arguments))}]" if arguments else name
