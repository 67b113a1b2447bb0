"""Which questions belong together, so that they are not taken as independent: by function, by table, or by keyword."""

from __future__ import annotations

import csv
import json
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

from karenina_core.errors import ConfigError
from karenina_core.values.result import VerificationResult

Cluster: TypeAlias = Callable[[VerificationResult], Hashable | None] | Mapping[str, Hashable]
"""The group of an item's question, or a table `{question id: group}`. Without a group, a question is independent."""

Groups: TypeAlias = Mapping[str, Hashable]
"""The group of each question that has one, by question id."""

KEYWORD = "keyword"


Named: TypeAlias = Mapping[str, set[Hashable]]
"""Every group that the items of a question name, by question; nothing where no questions belong together."""


def groups_of(results: Iterable[VerificationResult], cluster: Cluster | None) -> Groups:
    """`{question id: group}`. Where the items of a question say different things, the first group by name is taken."""
    return first_groups(groups_named(results, cluster))


def groups_named(results: Iterable[VerificationResult], cluster: Cluster | None) -> Named:
    """What `first_groups` and `group_notes` are about."""
    found: dict[str, set[Hashable]] = {}
    for result in results if cluster is not None else ():
        name_group(found, result, cluster)
    return found


def name_group(found: dict[str, set[Hashable]], result: VerificationResult, cluster: Cluster | None) -> None:
    """Add what one result names."""
    if cluster is not None:
        question = result.metadata.question_id
        group = cluster.get(question) if isinstance(cluster, Mapping) else cluster(result)
        found.setdefault(question, set()).update(() if group is None else (group,))


def first_groups(named: Named) -> Groups:
    """The first group by name of each question that has one."""
    return {question: min(groups, key=repr) for question, groups in named.items() if groups}


def group_notes(named: Named) -> tuple[str, ...]:
    """What a reader must know of missing or ambiguous groups: independence that is assumed."""
    alone = sorted(question for question, groups in named.items() if not groups)
    several = sorted(question for question, groups in named.items() if len(groups) > 1)
    notes = []
    if alone:
        notes.append(f"{len(alone)} of {len(named)} questions have no group and count as independent: {some_of(alone)}")
    if several:
        notes.append(f"questions in several groups, of which the first by name is taken: {some_of(several)}")
    return tuple(notes)


def some_of(questions: Sequence[str]) -> str:
    """The first five."""
    more = f" and {len(questions) - 5} more" if len(questions) > 5 else ""
    return ", ".join(questions[:5]) + more


def group_of(question: str, groups: Groups) -> Hashable:
    """The group, or the question itself: no question without a group shares one with another."""
    return ("group", groups[question]) if question in groups else ("question", question)


def by_keyword(prefix: str = "") -> Callable[[VerificationResult], str | None]:
    """The first keyword of the question that begins with `prefix`."""

    def group(result: VerificationResult) -> str | None:
        return next((word for word in result.metadata.keywords if word.startswith(prefix)), None)

    return group


def grouping(name: str) -> Cluster:
    """What `--cluster-by` means: `keyword`, `keyword:PREFIX`, or a file.

    A JSON file holds one object `{question id: group}`; any other is read as CSV, two columns without a header.
    Raises ConfigError where there is no such file, or where it holds something else.
    """
    name, _, prefix = name.partition(":")
    if name == KEYWORD:
        return by_keyword(prefix)
    path = Path(name)
    try:
        text = path.read_text("utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(
            f"the groups of questions {name!r} cannot be read: {error}; "
            "give keyword, keyword:PREFIX, or a JSON or CSV file"
        ) from error
    if path.suffix.lower() != ".json":
        groups: dict[str, Hashable] = {}
        for number, row in enumerate(csv.reader(text.splitlines()), 1):
            if row and (len(row) != 2 or not row[1]):
                raise ConfigError(f"{name}, line {number}: give two columns, a question id and its group")
            if row and groups.setdefault(row[0], row[1]) != row[1]:
                raise ConfigError(f"{name}, line {number}: {row[0]!r} has two groups; give it one")
        return groups
    try:
        table = json.loads(text)
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{name}: no JSON ({error}); give one object of question ids and groups") from error
    wrong = not isinstance(table, dict) or any(not isinstance(group, str | int) for group in table.values())
    if wrong:
        raise ConfigError(f"{name}: give one JSON object of question ids and groups, each group a text or a number")
    return dict(table)
