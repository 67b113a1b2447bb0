"""From a benchmark to the content of a file."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from karenina_core.errors import BenchmarkError
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.question import Question

from .nodes import (
    READ_ERRORS,
    Document,
    Findings,
    dump,
    encode,
    identical,
    merged,
    objects,
    parse,
    plain,
    property_value,
    with_list,
)
from .others import OtherTypes
from .questions import Entry, assign_ids, given_id, merged_item, new_item
from .ratings import encode_rating, merged_ratings, rated
from .reader import FEED, Content, load, read
from .splice import splice
from .traits import untouched_lists
from .values import without_secrets
from .vocabulary import CONTEXT, FORMAT_VERSION, LEGACY_LISTS, completed_context

if TYPE_CHECKING:
    from karenina_core.plugin.application import Karenina

Node = dict[str, Any]


def save(benchmark: BenchmarkData, path: Path, app: Karenina) -> bytes:
    """The content of the file. What was loaded and is unchanged keeps its form, apart from the root's dateModified.

    The result is read again before it is returned. Raises BenchmarkError when the benchmark cannot be written.
    """
    now = datetime.now(UTC).isoformat(timespec="seconds")
    try:
        content = _content(benchmark, app)
        others = OtherTypes(app)
        text = _new_text(benchmark, now, others) if content is None else _updated_text(content, benchmark, now, others)
        data = encode(text)
        load(path, data, app)
    except BenchmarkError as error:
        raise BenchmarkError(f"the benchmark cannot be written, because it could not be read again: {error}") from error
    except READ_ERRORS as error:
        raise BenchmarkError(f"{path}: the benchmark cannot be written: {error}") from error
    return data


def _content(benchmark: BenchmarkData, app: Karenina) -> Content | None:
    """The document that the benchmark came from, read again."""
    document = benchmark.document
    if not isinstance(document, Document):
        return None
    return read(parse(document.text), document.text, Findings(), OtherTypes(app, only=document.trait_types))


def _new_text(benchmark: BenchmarkData, now: str, others: OtherTypes) -> str:
    """A document in canonical form."""
    fields = _root_fields(benchmark, benchmark.date_created or now)
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
    root = merged(content.root, _root_fields(old, old.date_created), _root_fields(benchmark, benchmark.date_created))
    root = _with_rubrics(root, content, benchmark, others)
    root[FEED] = _items(content, benchmark, now, others)
    root["dateModified"] = now
    context = {"@context": completed_context(root.get("@context"))}
    root = root | context if "@context" in root else context | root
    return splice(content.text, content.root, without_secrets(root))


def _root_fields(benchmark: BenchmarkData, date_created: str | None) -> dict[str, Any]:
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
