"""A linter for templates: does what the judge reads reveal the right answer?

A judge that can read the expected value is drawn towards it, and then finds it in answers that do not say it.
Ground truth and primitives never enter a schema; descriptions, defaults, examples, bounds, patterns, names and hints
are the author's own words, and the author can give the value away in them without noticing. Lists of options
(`Literal`, enumerations) hold the expected value by design and are no finding.

Of a primitive that decides without a ground truth the texts that it accepts are what is looked for (`lint_accepted`).

Not seen: synonyms, limits of numbers and dates that a primitive keeps, numbers written as words, and everything that a
judge could infer.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen
from karenina_vocabulary.handle import TemplateHandle

from ..language.to_json import plain
from .patterns import Severity, Weighed, read_bounds, read_options, read_pattern
from .positions import Path, Place, Reading, Where, dotted, read_schema
from .references import Scalar, Targets, same
from .severity import Reach, Subject
from .spelling import number_of

LEAST_LISTS = 5
"""Fewer lists say nothing about an author's habit. Chosen: four of two options are all first by chance once in 16."""
RARE = 0.001
"""One fair benchmark in a thousand would be reported for each of the two ends. Chosen, not measured."""


def one_sided_positions(lists: Iterable[tuple[Sequence[Any], Any]]) -> Iterator[str]:
    """What is odd about the position of the expected value in `(options, expected value)`, in words.

    In a list of k options in any order the expected one is first with probability 1/k, and last likewise. Reported is
    an end where it is so often that this, or more, would happen with a probability below `RARE` (the upper tail
    of the sum of independent draws, computed exactly). Lists that are sorted by the alphabet or by number are left
    out: their order was not chosen, and leaving out by order alone does not change the probabilities of the others. So
    are lists that do not hold the expected value.
    """
    chosen = [
        (options, expected)
        for options, expected in lists
        if len(options) > 1 and not _is_sorted(options) and any(same(option, expected) for option in options)
    ]
    if len(chosen) < LEAST_LISTS:
        return
    chances = [1 / len(options) for options, _ in chosen]
    for position, end in ((0, "first"), (-1, "last")):
        count = sum(same(options[position], expected) for options, expected in chosen)
        if _tail(chances, count) < RARE:
            yield f"the expected value is the {end} option in {count} of {len(chosen)} lists that are in no other order"


def _is_sorted(options: Sequence[Any]) -> bool:
    numbers = [number for option in options if (number := number_of(option)) is not None]
    if len(numbers) == len(options):
        return numbers in (sorted(numbers), sorted(numbers, reverse=True))
    texts = [str(option).casefold() for option in options]
    return texts == sorted(texts)


def _tail(chances: Sequence[float], least: int) -> float:
    """The probability of at least `least` successes in independent draws with these chances."""
    exactly = [1.0]
    for chance in chances:
        stay = [p * (1 - chance) for p in exactly] + [0.0]
        rise = [0.0] + [p * chance for p in exactly]
        exactly = [a + b for a, b in zip(stay, rise, strict=True)]
    return sum(exactly[least:])


_REMEDY: Mapping[Where, str] = {
    "description": "say what to look for in a response, not what is right",
    "title": "remove the title or choose another",
    "default": "remove the default; what a response does not say is null",
    "examples": "give examples that are not the answer",
    "const": "add the options that a wrong answer would name",
    "enum": "add options that a wrong answer would name",
    "pattern": "let the pattern describe the form of any answer",
    "bounds": "take bounds that hold for any plausible answer, or none",
    "hint": "say where and how to look, not what is found",
    "name": "rename the field",
    "extra": "remove it from json_schema_extra",
    "enum_order": "shuffle the options, or sort them by the alphabet",
}


@frozen
class Finding:
    """One way in which a template reveals its expected value.

    Findings quote ground truth. They are for authors and must never become part of a prompt.
    """

    field: str | None
    """The field whose expected value is revealed, `dose.value` for nested ones; None for a finding on all templates."""
    where: Where
    severity: Severity
    """`leak`: a judge reads the value or cannot miss it. `hint`: part of it, or perhaps a coincidence. `note`: worth
    a look, perhaps unavoidable.
    """
    message: str
    """What was found and what to do."""

    def __str__(self) -> str:
        return f"{self.field}: {self.message}" if self.field else self.message


def lint_template(handle: TemplateHandle, *, question: str = "") -> tuple[Finding, ...]:
    """The findings on a loaded template. Nothing of it is executed. See `lint_schema` for their order and `question`.

    Fields that are checked on the trace are left out: no judge decides them. A handle may have a method `accepted()`
    with what `lint_schema` calls `accepted`.
    """
    schema, declared = handle.schema(), handle.fields()
    traced = {item.name for item in handle.trace_fields()}
    expected = {name: value for name, value in handle.ground_truth().items() if name not in traced}
    properties = schema.get("properties") or {}
    keys: dict[str, str] = {}
    if len(properties) == len(declared):  # the author's own keys are in the order of the fields
        keys = {item.name: key for item, key in zip(declared, properties, strict=True) if item.name not in properties}
    hints = {item.name: item.hint for item in declared if item.hint}
    accepted_by = getattr(handle, "accepted", None)
    accepted: Mapping[str, Sequence[Any]] = accepted_by() if callable(accepted_by) else {}
    return lint_schema(schema, expected, keys=keys, hints=hints, question=question, accepted=accepted)


def lint_schema(
    schema: Mapping[str, Any],
    expected: Mapping[str, Any],
    *,
    keys: Mapping[str, str] | None = None,
    hints: Mapping[str, str] | None = None,
    question: str = "",
    accepted: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[Finding, ...]:
    """The findings on a judge's JSON Schema and the expected values per field, in any type.

    `keys` are the names of fields in the schema where they differ (aliases), `hints` the extraction hints per field.
    A value that `question` names is known to the judge anyway; then what merely names it weighs one step less.
    `accepted` are values of which each alone is right, for fields that are not compared with their expected value.

    The order is that of the fields in `expected`, and for each of them that of the places in the schema. One place
    gives at most one finding per field, and none for a field while it belongs to another one that expects the same.
    Raises nothing for any JSON Schema.
    """
    return lint_reading(read_schema(schema), expected, keys=keys, hints=hints, question=question, accepted=accepted)


def lint_reading(
    reading: Reading,
    expected: Mapping[str, Any],
    *,
    keys: Mapping[str, str] | None = None,
    hints: Mapping[str, str] | None = None,
    question: str = "",
    accepted: Mapping[str, Sequence[Any]] | None = None,
) -> tuple[Finding, ...]:
    """The same of a schema that has been taken apart already."""
    keys, accepted = keys or {}, accepted or {}
    top = {path[0] for path in reading.nodes if path}
    subjects = [
        Subject(
            name=dotted((name, *path)),
            path=(keys.get(name, name), *path),
            targets=Targets(values),
            many=many,
            options=reading.options((keys.get(name, name), *path)),
            in_schema=keys.get(name, name) in top,
            question=question,
        )
        for name, value in expected.items()
        for right in accepted.get(name, (value,))
        for path, values, many in _leaves((), plain(right))
    ]
    hinted = [
        Place((keys.get(name, name),), "hint", f"the extraction hint of {name!r}", text)
        for name, text in (hints or {}).items()
    ]
    reach = Reach([*reading.places, *hinted], subjects)
    findings: dict[Finding, None] = {}
    for subject in subjects:
        for place, (severity, text) in reach.weighed(subject):
            message = f"{place.label} {text}: {_REMEDY[place.where]}"
            findings[Finding(subject.name, place.where, severity, message)] = None
        for where, (severity, text) in _limits(subject, reading):
            message = f"in the schema of {dotted(subject.path)!r} {text}: {_REMEDY[where]}"
            findings[Finding(subject.name, where, severity, message)] = None
    return tuple(findings)


def lint_benchmark(templates: Iterable[TemplateHandle]) -> tuple[Finding, ...]:
    """The findings that only many templates together show: options that are always in the same order.

    A single list of options with the expected value first is no finding: it has to be somewhere. See
    `lint_order.one_sided_positions` for when it happens too often to be chance.
    """
    lists = []
    for handle in templates:
        reading, expected = read_schema(handle.schema()), handle.ground_truth()
        lists += [(reading.options((name,)), value) for name, value in expected.items()]
    return tuple(
        Finding(None, "enum_order", "hint", f"{text}: {_REMEDY['enum_order']}") for text in one_sided_positions(lists)
    )


def _leaves(path: Path, value: Any) -> Iterator[tuple[Path, tuple[Scalar, ...], bool]]:
    """`(path, values, whether they are a collection)` for every text, number, truth value or collection of them."""
    if isinstance(value, str | int | float):
        if value != "":
            yield path, (value,), False
    elif isinstance(value, list):
        items = list(_flat(value))
        single = [item for item in items if isinstance(item, str | int | float) and item != ""]
        if single:
            yield path, tuple(dict.fromkeys(single)), True
        if len(single) == len(items):
            return
        objects = [item for item in items if isinstance(item, Mapping)]
        for key in dict.fromkeys(key for item in objects for key in item):
            yield from _leaves((*path, str(key)), [item[key] for item in objects if key in item])
    elif isinstance(value, Mapping):
        for key, part in value.items():
            yield from _leaves((*path, str(key)), part)


def _flat(value: list[Any]) -> Iterator[Any]:
    for item in value:
        if isinstance(item, list):
            yield from _flat(item)
        else:
            yield item


def _limits(subject: Subject, reading: Reading) -> Iterator[tuple[Where, Weighed]]:
    if reading.is_open or subject.discriminates(reading.nodes.get(subject.path[:-1], ())):
        return
    if found := read_options(subject.options, subject.targets, subject.many):
        yield ("const" if len(subject.options) == 1 else "enum"), found
    for node in reading.nodes.get(subject.path, ()):
        if isinstance(pattern := node.get("pattern"), str) and (found := read_pattern(pattern, subject.targets)):
            yield "pattern", found
        if not subject.many and (found := read_bounds(node, subject.values[0])):
            yield "bounds", found
        if subject.many and node.get("minItems") == node.get("maxItems") == len(subject.values):
            yield "bounds", ("note", f"the number of members is fixed to the {len(subject.values)} expected ones")
