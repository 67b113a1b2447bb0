"""Templates and functions of traits in the sandbox, as the host holds them: facts, and how to ask for the rest."""

from __future__ import annotations

import itertools
import json
from collections.abc import Collection, Coroutine, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import define, field, frozen
from karenina_vocabulary.handle import FieldVerdict, RegexVerdict, TemplateField

from karenina_core.errors import TemplateError, did_you_mean

from . import replies
from .connection import Worker
from .frames import KEPT
from .pool import Pool, Program

_numbers = itertools.count(1)
Step = Sequence[Any]
"""A method of a filled template and its arguments."""


@frozen(eq=False, kw_only=True)
class SandboxHandle:
    """A template that was loaded in the sandbox. Shared by all items; nothing in it changes."""

    isolation: str
    _pool: Pool = field(repr=False)
    _program: Program = field(repr=False)
    _facts: replies.Facts = field(repr=False)
    _schema: str = field(init=False, repr=False)
    _ground_truth: str = field(init=False, repr=False)
    names: frozenset[str] = field(init=False, repr=False)
    """Of the fields that a judge extracts."""
    verified: frozenset[str] = field(init=False, repr=False)
    """Of all fields that are compared with a ground truth."""

    def __attrs_post_init__(self) -> None:
        every = (*self._facts.fields, *self._facts.trace_fields)
        for name, value in (
            ("_schema", json.dumps(self._facts.schema)),
            ("_ground_truth", json.dumps(self._facts.ground_truth)),
            ("names", frozenset(item.name for item in self._facts.fields)),
            ("verified", frozenset(item.name for item in every if item.verified)),
        ):
            object.__setattr__(self, name, value)

    @property
    def warnings(self) -> tuple[str, ...]:
        """What an author should look at, though the template can be used."""
        return self._facts.warnings

    def schema(self) -> dict[str, Any]:
        schema: dict[str, Any] = json.loads(self._schema)
        return schema

    def fields(self) -> tuple[TemplateField, ...]:
        return self._facts.fields

    def trace_fields(self) -> tuple[TemplateField, ...]:
        return self._facts.trace_fields

    def ground_truth(self) -> Mapping[str, Any]:
        expected: dict[str, Any] = json.loads(self._ground_truth)
        return expected

    def accepted(self) -> Mapping[str, tuple[Any, ...]]:
        """What fields accept that are decided without their ground truth."""
        return self._facts.accepted

    async def build(self, data: Mapping[str, Any] | None) -> SandboxFilled:
        # As JSON at once: it stays what it is, whatever becomes of the caller's.
        try:
            copied = json.loads(json.dumps(data, default=_as_text))
        except (TypeError, ValueError, RecursionError):
            copied = data
        filled = SandboxFilled(self, copied)
        values, refused = replies.values_of(await self.ask(filled, None), self.names)
        filled.extracted, filled.refused = values, refused
        return filled

    def ask(self, filled: SandboxFilled, step: Step | None) -> Coroutine[Any, Any, dict[str, Any]]:
        """What the worker replies to a step of a filled template. Raises FillError and TemplateError."""
        return self._pool.ask(self._program, partial(_request, filled, step))


def _as_text(value: Any) -> Any:
    return dict(value) if isinstance(value, Mapping) else repr(value)


def _request(filled: SandboxFilled, step: Step | None, worker: Worker) -> dict[str, Any]:
    request: dict[str, Any] = {"do": "use", "filled": filled.number, "step": step}
    if filled.number not in worker.filled:
        request["make"] = {"data": filled.data, "steps": list(filled.steps)}
        worker.filled[filled.number] = None
    worker.filled.move_to_end(filled.number)
    while len(worker.filled) > KEPT:
        worker.filled.popitem(last=False)
    return request


@define(eq=False, repr=False)
class SandboxFilled:
    """One item's filled template: what was extracted, and what a worker has to do to have it too."""

    _handle: SandboxHandle
    data: Any
    steps: tuple[Step, ...] = ()
    """What was done with it, in order."""
    extracted: Mapping[str, Any] = field(factory=dict)
    refused: Mapping[str, str] = field(factory=dict)
    number: int = field(init=False, factory=lambda: next(_numbers))

    def __repr__(self) -> str:
        return f"<filled in the sandbox {dict(self.extracted)!r}>"

    @property
    def nulls(self) -> frozenset[str]:
        verified = self._handle.verified
        return frozenset(name for name, value in self.extracted.items() if value is None and name in verified)

    def values(self) -> Mapping[str, Any]:
        return dict(self.extracted)

    def accepting(self, fields: Collection[str]) -> SandboxFilled:
        names = [*self._handle.names, *(item.name for item in self._handle.trace_fields())]
        for name in fields:
            if name not in names:
                raise TemplateError(f"the template has no field {name!r}{did_you_mean(name, names)}")
            if name in self.refused:
                raise TemplateError(self.refused[name])
        steps = (*self.steps, ("accepting", list(fields)))
        return SandboxFilled(self._handle, self.data, steps, self.extracted, self.refused)

    async def _done(self, *step: Any) -> dict[str, Any]:
        said = await self._handle.ask(self, step)
        self.steps = (*self.steps, step)
        return said

    async def verify(
        self, trace: str, *, said: str | None = None, similarities: Mapping[str, float] | None = None
    ) -> FieldVerdict:
        found = await self._done("verify", trace, said, dict(similarities or {}))
        return replies.verdict(found, self._handle.verified)

    async def granular(self) -> float | None:
        return replies.score(await self._done("granular"))

    async def regex(self, trace: str) -> RegexVerdict:
        return replies.regex_verdict(await self._done("regex", trace))


@frozen(eq=False)
class Returned:
    """What a function returned that is no score."""

    type: str
    shown: str


@frozen(eq=False, kw_only=True)
class SandboxFunction:
    """The function of a trait, in the sandbox."""

    isolation: str
    _pool: Pool = field(repr=False)
    _program: Program = field(repr=False)

    async def call(self, text: str) -> Any:
        """What the function returns for a text: None, bool, int, float, str, or else `Returned`.

        Raises TemplateError with what the function raised.
        """
        said = await self._pool.ask(self._program, lambda worker: {"do": "call", "text": text})
        if "other" in said:
            return Returned(str(said["other"])[:200], str(said.get("shown"))[:2000])
        value = said.get("value")
        if value is not None and not isinstance(value, bool | int | float | str):
            raise TemplateError("the process of the function sent something else than its value")
        return value
