"""From the content of a file to a benchmark. Nothing in it is executed."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attrs import field, frozen
from karenina_vocabulary.traits import Trait

from karenina_core.errors import BenchmarkError
from karenina_core.values.benchmark import BenchmarkData
from karenina_core.values.rubric import DynamicRubric, Rubric

from . import values
from .nodes import Document, Findings, decode, parse, properties
from .others import OtherTypes
from .questions import Entry, assign_ids, given_id, read_item
from .ratings import Rated, read_ratings, rubric_of
from .traits import legacy_traits
from .values import stored_secrets
from .vocabulary import LEGACY_LISTS

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
                f"{FEED}[{index}]: the id {own!r} occurs before; this question is called {question_id!r}"
            )
        entry = read_item(node, question_id, where, findings, others)
        if entry is not None:
            entries.append(entry)
    return entries
