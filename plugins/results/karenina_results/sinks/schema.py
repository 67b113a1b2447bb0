"""The tables and views of a database of results: one definition for SQLite and PostgreSQL.

`stored_results` is the truth: every result as JSON. All other tables are made of it, and remade when their columns
change; views join them with what identifies an item.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from karenina_core import VerificationResult

from ..columns.item_columns import RESULT
from ..columns.judgment import JUDGMENT, RUBRIC_JUDGMENT
from ..columns.rubric import RUBRIC
from ..columns.table import CellType, Column, Table
from ..columns.template import REGEX, TEMPLATE, USAGE

SCHEMA_VERSION = 1
"""Of the tables that are not remade: `stored_results`, `runs` and `schema_version`."""
OF_THE_ITEM = (
    *("question_id", "answering_model", "parsing_model", "replicate", "run_name"),
    *("outcome", "outcome_detail", "verify_result"),
)
"""What views show of the item beside what their rows are about."""


@frozen
class Dialect:
    """What the two databases say differently."""

    types: Mapping[CellType, str]
    mark: str
    """Where a parameter goes."""
    any_length: str
    """How an index is made over texts that may be of any length."""
    begin: str
    """Begins a transaction that writes."""


SQLITE = Dialect(
    types={"text": "TEXT", "json": "TEXT", "value": "TEXT", "whole": "INTEGER", "number": "REAL", "boolean": "BOOLEAN"},
    mark="?",
    any_length="",
    begin="BEGIN IMMEDIATE",
)
POSTGRES = Dialect(
    types={
        **{"text": "TEXT", "json": "TEXT", "value": "TEXT"},
        **{"whole": "BIGINT", "number": "DOUBLE PRECISION", "boolean": "BOOLEAN"},
    },
    mark="%s",
    any_length="USING hash",
    begin="BEGIN",
)


@frozen
class Derived:
    """A table with what some rows of one of the tables of columns say; `result_id` and `position` come before it."""

    name: str
    view: str | None
    source: Table
    columns: tuple[Column, ...]
    wanted: str | None = None
    """The column without which a row says nothing."""

    def rows(self, result: VerificationResult) -> Iterator[tuple[Any, ...]]:
        identifier = result.metadata.result_id
        needed = None if self.wanted is None else self.source.column(self.wanted)
        for position, row in enumerate(self.source.sources([result])):
            if needed is None or needed.written(row) is not None:
                yield identifier, position, *(column.written(row) for column in self.columns)


def _own(table: Table) -> tuple[Column, ...]:
    """What rows of a table say that is not the same for all rows of an item."""
    return tuple(column for column in table.columns if not column.per_result)


EXTENSIONS = Table(
    "extensions",
    (
        Column("plugin", "text", lambda row: row.item[0], per_result=False),
        Column("name", "text", lambda row: row.item[1], per_result=False),
        Column("value", "value", lambda row: row.item[2], "Added by a stage of another package.", per_result=False),
    ),
    lambda result: [(plugin, key, value) for plugin, values in result.added.items() for key, value in values.items()],
)
SKIPPED = ("result_index", "result_id")
"""Columns of items that a database has no use for, or has anyway."""
DETAILS = Column(
    "details",
    "json",
    lambda row: dict(row.item.trait.details) or None,
    "What the evaluator says beside the score.",
    False,
)
DERIVED: tuple[Derived, ...] = (
    Derived("results", None, RESULT, tuple(column for column in RESULT.columns if column.name not in SKIPPED)),
    Derived("result_fields", "template_fields", TEMPLATE, _own(TEMPLATE), "field_name"),
    Derived("result_patterns", "template_patterns", REGEX, _own(REGEX)),
    Derived("result_traits", "rubric_traits", RUBRIC, (*_own(RUBRIC), DETAILS)),
    Derived("result_usage", "model_usage", USAGE, _own(USAGE)),
    Derived("result_field_evidence", "field_evidence", JUDGMENT, _own(JUDGMENT)),
    Derived("result_trait_evidence", "trait_evidence", RUBRIC_JUDGMENT, _own(RUBRIC_JUDGMENT), "trait_name"),
    Derived("result_extensions", "extensions", EXTENSIONS, EXTENSIONS.columns),
)
VIEWS = tuple(table.view for table in DERIVED if table.view)


def rows_of(result: VerificationResult) -> dict[str, list[tuple[Any, ...]]]:
    """The rows that a result has in each of the tables that are made of results, by the table's name."""
    return {table.name: list(table.rows(result)) for table in DERIVED}


# Statements. Names are those of this module and of columns, never those of results.


def kept_tables(dialect: Dialect) -> Iterator[str]:
    """Makes the tables that stay."""
    text, whole = dialect.types["text"], dialect.types["whole"]
    yield f"CREATE TABLE IF NOT EXISTS schema_version (version {whole} NOT NULL, layout {text} NOT NULL)"
    yield (
        f"CREATE TABLE IF NOT EXISTS stored_results (result_id {text} PRIMARY KEY, position {whole} NOT NULL, "
        f"result {text} NOT NULL)"
    )
    yield "CREATE INDEX IF NOT EXISTS stored_results_position ON stored_results (position)"
    yield (
        f"CREATE TABLE IF NOT EXISTS runs (run_name {text} NOT NULL, benchmark {text}, items {whole}, "
        f"opened_at {text}, closed_at {text}, summary {text})"
    )


def derived_tables(dialect: Dialect) -> Iterator[str]:
    """Makes the tables and views that follow from the results."""
    for table in DERIVED:
        columns = ", ".join(f"{_name(column.name)} {dialect.types[column.type]}" for column in table.columns)
        text, whole = dialect.types["text"], dialect.types["whole"]
        yield (
            f"CREATE TABLE {table.name} (result_id {text} NOT NULL, position {whole} NOT NULL, {columns}, "
            "PRIMARY KEY (result_id, position))"
        )
    for name in ("question_id", "run_name"):
        yield f"CREATE INDEX results_{name} ON results {dialect.any_length} ({name})"
    for table in DERIVED:
        if table.view:
            own = [column.name for column in table.columns]
            item = ", ".join(f"results.{name}" for name in OF_THE_ITEM if name not in own)
            named = ", ".join(f"{table.name}.{_name(name)}" for name in own)
            yield (
                f"CREATE VIEW {table.view} AS SELECT {table.name}.result_id, {item}, {table.name}.position, {named} "
                f"FROM {table.name} JOIN results ON results.result_id = {table.name}.result_id"
            )


def dropped_tables() -> Iterator[str]:
    """Removes what follows from the results."""
    yield from (f"DROP VIEW IF EXISTS {view}" for view in VIEWS)
    yield from (f"DROP TABLE IF EXISTS {table.name}" for table in DERIVED)


def inserted(dialect: Dialect, table: Derived) -> str:
    marks = ", ".join([dialect.mark] * (len(table.columns) + 2))
    names = ", ".join(["result_id", "position", *(_name(column.name) for column in table.columns)])
    return f"INSERT INTO {table.name} ({names}) VALUES ({marks})"


def layout() -> str:
    """Changes when a derived table or a view does."""
    return hashlib.sha256("\n".join(derived_tables(SQLITE)).encode()).hexdigest()[:16]


def _name(column: str) -> str:
    return '"{}"'.format(column.replace('"', '""'))
