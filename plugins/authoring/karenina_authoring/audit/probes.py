"""What a template accepts, asked of the template itself: values are filled in and its own code decides."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import combinations
from typing import Any

from attrs import field, frozen
from karenina_template.lint.positions import read_schema
from karenina_vocabulary.handle import FilledTemplate, TemplateField, TemplateHandle

from karenina_core.errors import TemplateError

MOST_FIELDS = 6
"""Fields up to which every combination of right and missing ones is tried: 64 verdicts. Chosen."""
ABSURD: Mapping[str, tuple[Any, ...]] = {
    "int": (-987_654_321, 0, 987_654_321),
    "float": (-987_654_321.5, 0.0, 987_654_321.5),
    "str": ("zzqx", "an unrelated remark", "0"),
    "date": ("0001-01-01", "1600-02-29", "9999-12-31"),
    "bool": (True, False),
    "list[str]": ([], ["zzqx"], ["an unrelated remark", "0"]),
}
"""By type, values of which a field that can fail refuses at least one."""


@frozen
class Probe:
    """A loaded template and what it expects of the judge's fields."""

    handle: TemplateHandle = field(repr=False)
    fields: tuple[TemplateField, ...]
    """Those that decide, and are decided on what a judge extracts."""
    expected: Mapping[str, Any]
    keys: Mapping[str, str] = field(repr=False)
    """What each field is called in a judge's reply."""

    @classmethod
    def of(cls, handle: TemplateHandle) -> Probe:
        expected, declared = dict(handle.ground_truth()), handle.fields()
        own = [one for one in declared if one.verified or one.name in expected]
        keys = list(handle.schema().get("properties") or ())
        named = keys if len(keys) == len(declared) else [one.name for one in declared]  # in the order of the fields
        return cls(
            handle,
            tuple(own),
            {one.name: expected[one.name] for one in own if one.name in expected},
            {one.name: key for one, key in zip(declared, named, strict=True)},
        )

    async def filled(self, values: Mapping[str, Any]) -> FilledTemplate:
        """The template with these values. Raises TemplateError where they do not fit."""
        return await self.handle.build({self.keys[name]: value for name, value in values.items()})

    @property
    def alternatives(self) -> Mapping[str, tuple[Any, ...]]:
        """What fields accept that are decided without an expected value, as far as it is known."""
        accepted_by = getattr(self.handle, "accepted", None)
        return accepted_by() if callable(accepted_by) else {}

    def options(self, name: str) -> tuple[Any, ...]:
        """What the schema lets the judge choose from; empty where it is free."""
        return tuple(read_schema(self.handle.schema()).options((self.keys[name],)))

    async def accepts(self, one: TemplateField, value: Any) -> bool | None:
        """Whether a field is right with this value; None where that cannot be said without a model.

        Of a class with code of its own it is the verdict with every other field as it is expected.
        """
        if one.semantic:
            return None
        data = {one.name: value} if one.verified else {**self.expected, one.name: value}
        try:
            found = await (await self.filled(data)).verify("")
        except TemplateError:
            return False  # it cannot even be filled in
        return found.field_results.get(one.name) is True if one.verified else found.result

    async def accepts_any(self, one: TemplateField, values: Iterable[Any]) -> bool:
        for value in values:
            if await self.accepts(one, value):
                return True
        return False

    async def has_own_value(self, one: TemplateField) -> bool:
        """Whether the template itself takes the expected value of a field for one: some primitives need none, and
        others have bounds or alternatives in its place."""
        if one.name not in self.expected:
            return False
        try:
            (await self.filled({one.name: self.expected[one.name]})).accepting([one.name])
        except TemplateError:
            return False
        return True

    async def cannot_fail(self, one: TemplateField) -> bool:
        """Whether a field accepts values that have nothing to do with each other."""
        absurd = self.options(one.name) or ABSURD.get(one.type.removesuffix(" | None"), ())
        if len(absurd) < 2 or one.semantic:
            return False
        for value in absurd:
            if not await self.accepts(one, value):
                return False
        return True

    async def idle(self) -> tuple[str, ...]:
        """The fields on which the verdict never depends; none where there are too many to say, or where it is not
        decided by extracted fields alone."""
        names = [one.name for one in self.fields]
        if not 2 <= len(names) <= MOST_FIELDS or self.handle.trace_fields() or set(names) != set(self.expected):
            return ()
        if any(one.semantic for one in self.fields):
            return ()
        verdicts: dict[frozenset[str], bool] = {}
        for size in range(len(names) + 1):
            for chosen in map(frozenset, combinations(names, size)):
                try:
                    filled = await self.filled({name: self.expected[name] for name in chosen})
                    verdicts[chosen] = (await filled.verify("")).result
                except TemplateError:
                    verdicts[chosen] = False
        if not verdicts[frozenset(names)]:
            return ()
        return tuple(
            name for name in names if all(passed == verdicts[chosen ^ {name}] for chosen, passed in verdicts.items())
        )
