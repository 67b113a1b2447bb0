"""The short table of results: one row for every item, with what people look at first."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from attrs import evolve
from karenina_runs.summaries.usage import tokens
from karenina_vocabulary.explanations import caveats_of
from karenina_vocabulary.rubric_part import read_traits

from karenina_core import VerificationResult
from karenina_core.errors import did_you_mean
from karenina_core.values.fields import is_number

from .item_columns import RESULT, more_columns
from .shared import KNOWN_ENDING
from .table import Column, Row, Table, at, stored

Choice = Literal["short", "full"]
CHOICES = get_args(Choice)


def _total(name: str, row: Row) -> int | None:
    return tokens(row.result)[name] or None


def _cost(row: Row) -> float | None:
    total = row.result.generation.usage_metadata.get("total")
    cost = total.get("cost_usd") if isinstance(total, Mapping) else None
    return cost if is_number(cost) else None


ALWAYS = (
    *stored("metadata", "text", "question_id", "question_text", "answering_model", "parsing_model"),
    *stored("metadata", "whole", "replicate", about="From 1."),
    Column("outcome", "text", at("metadata.outcome"), "`passed`, `failed`, `error` and the like."),
    KNOWN_ENDING["success"],
    KNOWN_ENDING["failure_reason"],
    Column("raw_llm_response", "text", at("generation.raw_llm_response"), "The answer."),
)
"""Columns that are there whatever the results are."""
OPTIONAL = (
    *stored("metadata", "text", "raw_answer", about="The reference answer."),
    *stored("template", "json", "parsed_gt_response", about="All expected fields."),
    *stored("template", "json", "parsed_llm_response", about="All extracted fields."),
    *stored("template", "number", "verify_granular_result", about="Partial credit, from 0 to 1."),
    Column("caveats", "texts", lambda row: caveats_of(row.result), "What to keep in mind."),
    *stored("metadata", "texts", "keywords"),
    Column("input_tokens", "whole", lambda row: _total("input", row), "Of all calls for the item."),
    Column("output_tokens", "whole", lambda row: _total("output", row)),
    Column("cost_usd", "number", _cost, "None where it is unknown."),
)
"""Columns that are left out where no result has anything in them."""
LAST = (
    *stored("metadata", "number", "execution_time", about="Seconds."),
    *stored("metadata", "text", "result_id"),
)
SHORT = Table(
    "short",
    (*ALWAYS, *OPTIONAL, *LAST),
    lambda result: [read_traits(result.rubric)],
    more_columns,
    more_after="verify_granular_result",
)
TABLES_BY_CHOICE: Mapping[str, Table] = {"short": SHORT, "full": RESULT}


def item_table(columns: str) -> Table:
    """Raises ValueError where there is no such choice."""
    if columns not in TABLES_BY_CHOICE:
        hint = did_you_mean(columns, CHOICES)
        raise ValueError(f"there are no columns {columns!r}{hint}; available: {', '.join(CHOICES)}")
    return TABLES_BY_CHOICE[columns]


def filled_columns(
    table: Table, results: Iterable[VerificationResult], always: Iterable[Column] = ALWAYS
) -> tuple[Column, ...]:
    """The columns of a table of these results without those that would be empty, other than `always`. The results are
    read twice."""
    columns = table.columns_for(results)
    kept = {column.name for column in always}
    open_ = [column for column in columns if column.name not in kept]
    for row in table.sources(results):
        if not open_:
            break
        filled = [column.name for column in open_ if column.cell(row) not in (None, [], "{}", "[]")]
        kept.update(filled)
        open_ = [column for column in open_ if column.name not in kept] if filled else open_
    return tuple(column for column in columns if column.name in kept)


def with_values(columns: Iterable[Column]) -> tuple[Column, ...]:
    """The same columns with lists and mappings as such, in place of JSON."""
    return tuple(evolve(c, type="value", read=_plain(c)) if c.type in ("json", "texts") else c for c in columns)


def _plain(column: Column) -> Any:
    def read(row: Row) -> Any:
        found = column.read(row)
        if isinstance(found, tuple | set | frozenset):
            return list(found)
        return dict(found) if isinstance(found, Mapping) else found

    return read
