"""The template handle over a `BaseAnswer` subclass, however the class came to be."""

from __future__ import annotations

import copy
import json
import sys
from collections.abc import Awaitable, Callable, Collection, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

from attrs import define, field, frozen
from karenina_vocabulary.handle import FieldVerdict, RegexVerdict, TemplateField

from karenina_core.errors import TemplateError, did_you_mean
from karenina_core.ports.threads import Ended, in_own_thread

from .language.answer import BaseAnswer, give_evidence, set_by_author, written_by_author
from .language.author_code import AUTHORS, author_code, blamed
from .language.extraction import copied, extraction_class, fill, judge_schema, keys_of
from .language.primitives.base import to_spec
from .language.strategies import AllOf, fields_of, strategy_name
from .language.to_json import plain
from .language.verification import Comparison, Evidence, Finding, check_evidence, check_values, conclude, remarks_on
from .lint.lint import lint_reading
from .lint.patterns import accepted_by
from .lint.positions import Reading, read_schema
from .rules import check_class, null_warnings
from .shapes import shape_of

DECODE = json.JSONDecoder().raw_decode
"""Of a text that is JSON: what `json.loads` does, in a third of the time for a short one."""
THREAD = "karenina-template"
"""What may take long (checks of a template, searches for its patterns) holds up no other item there."""
NOTHING_COMPARED = conclude({}, AllOf(), {})
"""What follows from no verified field: of every item of most templates with a `verify` of their own."""
Aside = Callable[[Callable[[], Any], str], Awaitable[Ended[Any]]]
"""How a call that may take long is made: as `in_own_thread` does it."""


def open_class(cls: type[BaseAnswer], isolation: str, keep: object = None, aside: Aside = in_own_thread) -> ModelHandle:
    """Check a template class and make its handle. `keep` is held as long as the handle, for what the class depends
    on; `aside` is for a process in which a template is alone, and has no threads.

    Raises TemplateError where the class breaks a rule of templates.
    """
    module = cls.__module__
    with author_code("preparing the template", module):
        extraction_class(cls)
        correct = check_class(cls)
        schema, reading = _schema_of(cls)
    expected = {name: verification.ground_truth for name, verification in cls.__verified__.items()} | correct
    keys = keys_of(cls)
    # A placeholder in place of a ground truth gives nothing away.
    judged = {name: value for name, value in expected.items() if name in keys or name not in cls.__verified__}
    accepted = accepted_by(cls.__verified__)
    hints = {name: found.hint for name, found in cls.__verified__.items() if found.hint and name in keys}
    findings = lint_reading(reading, judged, keys=keys, hints=hints, accepted=accepted)
    leaks = [str(finding) for finding in findings if finding.severity == "leak"]
    return ModelHandle(
        cls=cls,
        isolation=isolation,
        warnings=(*leaks, *_left_out(cls), *null_warnings(cls, correct)),
        fields=tuple([_field(cls, name) for name in keys]),
        trace_fields=tuple([_field(cls, name) for name in cls.__verified__ if name not in keys]),
        schema=json.dumps(schema),
        ground_truth=json.dumps(plain(expected)),
        keep=keep,
        aside=aside,
    )


def _schema_of(cls: type[BaseAnswer]) -> tuple[dict[str, Any], Reading]:
    if (shape := shape_of(cls)) is not None:
        return shape.described(cls)
    schema = plain(judge_schema(cls))
    return schema, read_schema(schema)


def _left_out(cls: type[BaseAnswer]) -> list[str]:
    if cls.__strategy__ is None:
        return []
    if written_by_author(cls, "verify"):
        return [
            "the class has both a verify_strategy and its own verify(): verify() alone decides, and the strategy "
            "counts only for the partial credit; remove one of them if that is not intended"
        ]
    names = [name for name in cls.__verified__ if name not in fields_of(cls.__strategy__)]
    what = "verdict and partial credit do not depend on it; add FieldCheck({0!r}) if that is not intended"
    return [f"verify_strategy leaves out {name!r}: {what.format(name)}" for name in names]


@frozen(eq=False, kw_only=True)
class ModelHandle:
    """A loaded template class. Shared by all items; nothing in it changes."""

    cls: type[BaseAnswer] = field(repr=False)
    """The template's as long as the handle is there."""
    isolation: str
    warnings: tuple[str, ...] = ()
    """What an author should look at, though the template can be used."""
    strategy: str | None = None
    """See `karenina_judging.judgment.own_strategy`."""
    caveat: str | None = None
    """What every result of this template has among its caveats."""
    _fields: tuple[TemplateField, ...]
    _trace_fields: tuple[TemplateField, ...] = ()
    _schema: str = field(repr=False)
    _ground_truth: str = field(repr=False)
    _keep: object = field(default=None, repr=False)
    aside: Aside = field(default=in_own_thread, repr=False)

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = DECODE(self._schema)[0]
        return schema

    def fields(self) -> tuple[TemplateField, ...]:
        return self._fields

    def trace_fields(self) -> tuple[TemplateField, ...]:
        return self._trace_fields

    def ground_truth(self) -> Mapping[str, Any]:
        expected: dict[str, Any] = DECODE(self._ground_truth)[0]
        return expected

    def accepted(self) -> Mapping[str, tuple[Any, ...]]:
        """What fields accept beside their ground truth, or without one; see `accepted_by`."""
        return accepted_by(self.cls.__verified__)

    async def build(self, data: Mapping[str, Any] | None) -> ModelFilled:
        answer = fill(self.cls, data)
        with author_code("reading the extracted fields", self.cls.__module__):
            values = {item.name: plain(getattr(answer, item.name)) for item in self._fields}
        return ModelFilled(self, answer, values, copied(data))


@define(eq=False, repr=False)
class ModelFilled:
    """One item's filled template."""

    _handle: ModelHandle
    _answer: BaseAnswer
    _values: Mapping[str, Any]
    _data: Mapping[str, Any] | None
    _evidence: Evidence = field(factory=Evidence)
    _findings: dict[str, Finding] | None = field(init=False, default=None)
    _warnings: tuple[str, ...] = field(init=False, default=())
    _comparison: Comparison | None = field(init=False, default=None)
    """With the evidence that there is."""

    def __repr__(self) -> str:
        return f"<filled {type(self._answer).__name__} {dict(self._values)!r}>"

    @property
    def nulls(self) -> frozenset[str]:
        verified = self._handle.cls.__verified__
        return frozenset(name for name, value in self._values.items() if value is None and name in verified)

    def values(self) -> Mapping[str, Any]:
        return dict(self._values)

    def accepting(self, fields: Collection[str]) -> ModelFilled:
        known = self._evidence
        evidence = Evidence(known.trace, known.said, known.similarities, known.accepted | frozenset(fields))
        answer = self._filled_again(evidence.accepted)
        return ModelFilled(self._handle, answer, self._values, self._data, evidence)

    def _filled_again(self, accepted: Collection[str]) -> BaseAnswer:
        """From the same data: the author's code may have changed the answer that there is."""
        answer = fill(self._handle.cls, self._data)
        for name in accepted:
            answer.__dict__[name] = _expected(answer, name)
        return answer

    def not_acceptable(self) -> dict[str, str]:
        """The fields that `accepting` refuses, and why."""
        refused: dict[str, str] = {}
        for item in (*self._handle.fields(), *self._handle.trace_fields()):
            try:
                _expected(self._answer, item.name)
            except TemplateError as error:
                refused[item.name] = str(error)
        return refused

    def _compared(self) -> Comparison:
        if self._comparison is not None:
            return self._comparison
        verified = self._handle.cls.__verified__
        if not verified:
            return NOTHING_COMPARED
        # Once, before the author's code can change a field; texts and the trace cannot be changed.
        if self._findings is None:
            self._findings = check_values(verified, self._answer.__dict__, self._evidence)
            self._warnings = remarks_on(verified, self._answer.__dict__, self._findings)
        findings = self._findings
        if len(findings) < len(verified):
            findings = findings | check_evidence(verified, self._values, self._evidence)
        self._comparison = conclude(verified, self._handle.cls.__tree__, findings)
        return self._comparison

    def _asked(self, answer: BaseAnswer, method: str, compared: Comparison) -> Any:
        """What the author's code says that sees the trace fields, as what was found there."""
        for item in self._handle._trace_fields:
            expected = answer.__verified__[item.name].ground_truth
            answer.__dict__[item.name] = expected is compared.results[item.name]
        give_evidence(answer, self._evidence)
        return self._call(answer, method)

    def _call(self, answer: BaseAnswer, method: str, *arguments: Any) -> Any:
        try:
            return getattr(answer, method)(*arguments)
        except TemplateError:
            raise
        except AUTHORS as error:
            raise blamed(f"{method}()", self._handle.cls.__module__, error) from error

    async def verify(
        self, trace: str, *, said: str | None = None, similarities: Mapping[str, float] | None = None
    ) -> FieldVerdict:
        self._evidence = Evidence(trace, said, dict(similarities or {}), self._evidence.accepted)
        self._comparison = None
        verified = self._handle.cls.__verified__
        if verified and any(found.primitive.may_take_long for found in verified.values()):
            compared = (await self._handle.aside(self._compared, THREAD)).result()
        else:
            compared = self._compared()
        if not written_by_author(self._handle.cls, "verify"):
            strategy = strategy_name(self._handle.cls.__strategy__)
            return FieldVerdict(compared.passed, compared.results, compared.scores, strategy, self._warnings)
        result = self._asked(self._answer, "verify", compared)
        if result is not True and result is not False:
            raise TemplateError(
                f"verify() returned {result!r}; it must return True or False, so write return bool(...)"
            )
        try:  # a random number, or what an earlier call has left behind, would change the result
            again = self._filled_again(self._evidence.accepted)
            stable = self._asked(again, "verify", compared) is result
        except TemplateError:
            stable = False
        return FieldVerdict(result, compared.results, compared.scores, remarks=self._warnings, stable=stable)

    async def granular(self) -> float | None:
        if not written_by_author(self._handle.cls, "verify_granular"):
            return self._compared().granular if self._answer.__verified__ else None
        score = self._asked(self._answer, "verify_granular", self._compared())
        if isinstance(score, bool) or not isinstance(score, int | float) or not abs(score) <= sys.float_info.max:
            raise TemplateError(f"verify_granular() returned {score!r}; it must return a finite number")
        return float(score)

    async def regex(self, trace: str) -> RegexVerdict:
        plain_search = self._handle.cls.verify_regex is BaseAnswer.verify_regex
        patterns = set_by_author(self._answer, "regex")
        if plain_search and patterns is None:  # as in most templates
            return RegexVerdict(performed=False, success=True)
        if plain_search and patterns:
            found = (await self._handle.aside(lambda: self._call(self._answer, "verify_regex", trace), THREAD)).result()
        else:
            found = self._call(self._answer, "verify_regex", trace)
        is_table = type(found) is dict or isinstance(found, Mapping)
        if not is_table or not isinstance(found.get("success"), bool):
            raise TemplateError(
                f"verify_regex() returned {found!r}; it must return a dict with success, results and details"
            )
        results, details = dict(found.get("results") or {}), plain(found.get("details") or {})
        matched = {name: detail.get("matches_found", []) for name, detail in details.items()}
        stable = self._has_stable_patterns(trace, None if plain_search else found["success"])
        return RegexVerdict(bool(results), found["success"], results, details, matched, stable)

    def _has_stable_patterns(self, trace: str, success: bool | None) -> bool:
        """Whether its code gives the same patterns again or, where it searches itself, the same success."""
        patterns = set_by_author(self._answer, "regex")
        if success is None and patterns is None:
            return True
        try:
            again = self._filled_again(self._evidence.accepted)
            if success is None:
                return bool(set_by_author(again, "regex") == patterns)
            found = self._call(again, "verify_regex", trace)
            return isinstance(found, Mapping) and found.get("success") is success
        except TemplateError:
            return False


def _expected(answer: BaseAnswer, name: str) -> Any:
    """What the template expects of a field. Raises TemplateError where it expects nothing, or nothing extracted."""
    keys, verification = keys_of(type(answer)), answer.__verified__.get(name)
    if verification is not None and name not in keys:
        raise TemplateError(f"field {name!r} is decided on the trace, where no extracted value can be replaced")
    if name not in keys:
        raise TemplateError(f"the template has no field {name!r}{did_you_mean(name, keys)}")
    if verification is not None and not verification.primitive.uses_ground_truth:
        primitive = type(verification.primitive).__name__
        raise TemplateError(f"field {name!r} has no expected value: {primitive} decides without one")
    if verification is not None and not verification.primitive.matches_ground_truth:
        primitive = type(verification.primitive).__name__
        raise TemplateError(f"field {name!r} has no expected value: the ground truth of {primitive} need not be right")
    correct = set_by_author(answer, "correct")
    if isinstance(correct, Mapping) and name in correct:
        return copy.deepcopy(correct[name])
    if verification is None:
        raise TemplateError(f"field {name!r} has no expected value; set self.correct[{name!r}] in the hook")
    return verification.expected()


def _field(cls: type[BaseAnswer], name: str) -> TemplateField:
    info, verification = cls.model_fields[name], cls.__verified__.get(name)
    kind, description = type_text(info.annotation), info.description or ""
    if verification is None:
        return TemplateField(name, kind, description, verified=False)
    try:
        primitive = to_spec(verification.primitive)
    except TemplateError:  # it cannot be written as data
        primitive = None
    semantic = verification.kind == "semantic"
    return TemplateField(name, kind, description, True, verification.hint, verification.weight, semantic, primitive)


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
