"""From the content of a file to a benchmark, and back. Nothing in it is executed."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen
from karenina_vocabulary.traits import Trait

from karenina_core.errors import BenchmarkError
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.question import Question
from karenina_core.values.rubric import DynamicRubric, Rubric

from . import values
from .nodes import (
    READ_ERRORS,
    Document,
    Findings,
    decode,
    dump,
    encode,
    identical,
    merged,
    objects,
    parse,
    plain,
    properties,
    property_value,
    with_list,
)
from .others import OtherTypes
from .questions import Entry, assign_ids, given_id, merged_item, new_item, read_item
from .ratings import Rated, encode_rating, merged_ratings, rated, read_ratings, rubric_of
from .splice import splice
from .traits import legacy_traits, untouched_lists
from .values import stored_secrets, without_secrets
from .vocabulary import CONTEXT, FORMAT_VERSION, LEGACY_LISTS, completed_context

if TYPE_CHECKING:
    from karenina_core.plugin.application import Karenina

FEED = "dataFeedElement"


@frozen
class Content:
    """A document that was read: what the writer compares a benchmark with."""

    root: dict[str, Any]
    text: str = field(repr=False)
    benchmark: BenchmarkData
    entries: tuple[Entry, ...]
    traits: tuple[Rated | None, ...]
    """The trait of each global rating."""
    legacy: Mapping[str, list[Trait | None]]
    """The global traits of each legacy property."""


def load(path: Path, data: bytes, app: Karenina) -> BenchmarkData | None:
    """The benchmark in a file's content; None when it is another kind of JSON.

    Raises BenchmarkError with every problem of the file.
    """
    try:
        text = decode(data)
        root = parse(text)
    except ValueError as error:
        if path.suffix.lower() not in (".jsonld", ".json"):
            return None
        raise BenchmarkError(f"{path}: cannot be read: {error}") from error
    if not _is_feed(root):
        if path.suffix.lower() != ".jsonld":
            return None
        raise BenchmarkError(
            f'{path}: not a benchmark: the outermost object needs "@type": "DataFeed" and "{FEED}": [...]'
        )
    findings = Findings()
    content = read(root, text, findings, OtherTypes(app))
    if content is None:
        count = len(findings.problems)
        intro = "cannot be used" if count == 1 else f"cannot be used, {count} problems"
        raise BenchmarkError(f"{path}: {intro}:\n" + "\n".join(f"- {problem}" for problem in findings.problems))
    return content.benchmark


def _is_feed(root: Any) -> bool:
    if not isinstance(root, dict):
        return False
    types = root.get("@type")
    names = types if isinstance(types, list) else [types]
    is_feed = any(isinstance(name, str) and name.rpartition("/")[2].rpartition(":")[2] == "DataFeed" for name in names)
    return is_feed or (types is None and FEED in root)


def read(root: dict[str, Any], text: str, findings: Findings, others: OtherTypes) -> Content | None:
    """Take a document apart. None, and problems in `findings`, when it is no valid benchmark."""
    fields = _root_fields(root, findings)
    found = findings.attempt("the benchmark", properties, root) or {}
    traits = read_ratings(root, "Global", "the benchmark", findings, others)
    taken = {one.trait.name for one in traits if one is not None and not one.dynamic}
    legacy = legacy_traits(found, taken, findings)
    older = [Rated(trait) for listed in legacy.values() for trait in listed if trait is not None]
    rubric = findings.attempt("the benchmark", rubric_of, Rubric, [*traits, *older])
    dynamic_rubric = findings.attempt("the benchmark", rubric_of, DynamicRubric, traits)
    entries = _entries(root, findings, others)
    if scenarios := root.get("hasPart"):
        count = len(scenarios) if isinstance(scenarios, list) else 1
        findings.warnings.append(f"{count} scenario(s) are kept in the file but cannot be run; only questions are used")
    if secrets := stored_secrets(root, text):
        findings.warnings.append(
            f"{secrets} API key(s) are in the file in the clear and will be left out when it is saved; "
            "put the key into an environment variable and name it in api_key_env"
        )
    if findings.problems:
        return None
    benchmark = findings.attempt(
        "the benchmark",
        lambda: BenchmarkData(
            **fields,
            questions=[entry.question for entry in entries],
            rubric=rubric,
            dynamic_rubric=dynamic_rubric,
            metadata={name: value for name, value in found.items() if name not in LEGACY_LISTS},
            document=Document(text, frozenset(others.used)),
            warnings=findings.warnings,
            missing_traits=findings.missing,
        ),
    )
    return None if benchmark is None else Content(root, text, benchmark, tuple(entries), tuple(traits), legacy)


def _root_fields(root: Mapping[str, Any], findings: Findings) -> dict[str, Any]:
    names = {
        "name": "name",
        "description": "description",
        "version": "version",
        "@id": "id",
        "dateCreated": "date_created",
        "dateModified": "date_modified",
    }
    fields = {
        name: findings.attempt("the benchmark", values.text, key, root[key])
        for key, name in names.items()
        if root.get(key) is not None
    }
    if not str(root.get("name") or "").strip():
        findings.problems.append('the benchmark has no name: add "name": "..." to the outermost object')
    if root.get("creator") is not None:
        fields["creator"] = root["creator"]
    return fields


def _entries(root: Mapping[str, Any], findings: Findings, others: OtherTypes) -> list[Entry]:
    nodes = root.get(FEED)
    if not isinstance(nodes, list):
        findings.problems.append(f'the list of questions is missing: add "{FEED}": [...] to the outermost object')
        return []
    given = [given_id(node) for node in nodes]
    entries = []
    for index, (node, own, question_id) in enumerate(zip(nodes, given, assign_ids(given), strict=True)):
        where = f"{FEED}[{index}] ({question_id})" if question_id else f"{FEED}[{index}]"
        if own is not None and own != question_id:
            findings.warnings.append(
                f"{FEED}[{index}]: the id {own!r} is already used; this question is called {question_id!r}"
            )
        entry = read_item(node, question_id, where, findings, others)
        if entry is not None:
            entries.append(entry)
    return entries


def save(benchmark: BenchmarkData, path: Path, app: Karenina) -> bytes:
    """The content of the file. What was loaded and is unchanged keeps its form, apart from the root's dateModified.

    The result is read again before it is returned. Raises BenchmarkError when the benchmark cannot be written.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        content = None
        if isinstance(document := benchmark.document, Document):  # it came from a file, which is read again
            before = OtherTypes(app, only=document.trait_types)
            content = read(parse(document.text), document.text, Findings(), before)
        others = OtherTypes(app)
        text = _new_text(benchmark, now, others) if content is None else _updated_text(content, benchmark, now, others)
        data = encode(text)
        load(path, data, app)
    except BenchmarkError as error:
        raise BenchmarkError(f"the benchmark cannot be written, because it could not be read again: {error}") from error
    except READ_ERRORS as error:
        raise BenchmarkError(f"{path}: the benchmark cannot be written: {error}") from error
    return data


def _new_text(benchmark: BenchmarkData, now: str, others: OtherTypes) -> str:
    """A document in canonical form."""
    fields = _written_fields(benchmark, benchmark.date_created or now)
    found = fields.pop("additionalProperty")
    root: dict[str, Any] = {"@context": dict(CONTEXT), "@type": "DataFeed", **fields, "dateModified": now}
    if ratings := [encode_rating(one, "Global", others) for one in rated(benchmark.rubric, benchmark.dynamic_rubric)]:
        root["rating"] = ratings
    root[FEED] = [_named(question, lambda q: new_item(q, now, others)) for question in benchmark.questions]
    name, version = FORMAT_VERSION
    root["additionalProperty"] = [] if name in benchmark.metadata else [property_value(name, version)]
    root["additionalProperty"] += found
    return dump(without_secrets(root), "  ") + "\n"


def _updated_text(content: Content, benchmark: BenchmarkData, now: str, others: OtherTypes) -> str:
    """The document that the benchmark came from, with its changes."""
    old = content.benchmark
    root = merged(
        content.root, _written_fields(old, old.date_created), _written_fields(benchmark, benchmark.date_created)
    )
    root = _with_rubrics(root, content, benchmark, others)
    root[FEED] = _items(content, benchmark, now, others)
    root["dateModified"] = now
    context = {"@context": completed_context(root.get("@context"))}
    root = root | context if "@context" in root else context | root
    return splice(content.text, content.root, without_secrets(root))


def _written_fields(benchmark: BenchmarkData, date_created: str | None) -> dict[str, Any]:
    if clash := sorted(set(LEGACY_LISTS) & set(benchmark.metadata)):
        raise ValueError(
            f"metadata may not be called {clash[0]!r}: older files keep traits there; put them into the rubric"
        )
    fields = {
        "@id": benchmark.id,
        "name": benchmark.name,
        "description": benchmark.description or None,
        "version": benchmark.version,
        "creator": plain(benchmark.creator),
        "dateCreated": date_created,
    }
    written = [property_value(name, plain(value)) for name, value in benchmark.metadata.items()]
    return {key: value for key, value in fields.items() if value is not None} | {"additionalProperty": written}


def _with_rubrics(
    root: dict[str, Any], content: Content, benchmark: BenchmarkData, others: OtherTypes
) -> dict[str, Any]:
    """Traits of legacy properties stay there as long as they do not change, else all of a property become ratings."""
    old, rubric = content.benchmark, benchmark.rubric
    if identical(old.rubric, rubric) and identical(old.dynamic_rubric, benchmark.dynamic_rubric):
        return root
    kept = untouched_lists(content.legacy, rubric)
    elsewhere = {trait.name for name in kept for trait in content.legacy[name] if trait is not None}
    own = [trait for trait in rubric or () if trait.name not in elsewhere]
    left = [
        entry for entry in objects(root, "additionalProperty") if entry["name"] not in set(LEGACY_LISTS) - set(kept)
    ]
    encode_global = partial(encode_rating, scope="Global", others=others)
    wanted = rated(own, benchmark.dynamic_rubric)
    ratings = merged_ratings(objects(root, "rating"), content.traits, wanted, encode_global)
    return with_list(with_list(root, "additionalProperty", left), "rating", ratings)


def _items(content: Content, benchmark: BenchmarkData, now: str, others: OtherTypes) -> list[dict[str, Any]]:
    """One item for every question; whatever ids reading would give them, they get those that they have now."""
    known = {entry.question.id: entry for entry in content.entries}
    items = [_named(question, lambda q: _item(known.get(q.id), q, now, others)) for question in benchmark.questions]
    ids = [question.id for question in benchmark.questions]
    given = [given_id(item) for item in items]
    if assign_ids(given) == ids:
        return items
    return [
        item if own == wanted else {**item, "@id": wanted} for item, own, wanted in zip(items, given, ids, strict=True)
    ]


def _item(entry: Entry | None, question: Question, now: str, others: OtherTypes) -> dict[str, Any]:
    if entry is None:
        return new_item(question, now, others)
    return entry.node if identical(entry.question, question) else merged_item(entry, question, others)


def _named(question: Question, build: Callable[[Question], dict[str, Any]]) -> dict[str, Any]:
    try:
        return build(question)
    except READ_ERRORS as error:
        raise ValueError(f"question {question.id!r}: {error}") from error
