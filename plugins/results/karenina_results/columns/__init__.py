"""The one definition of columns: what DataFrames, CSV and Parquet files of results have in common.

A `Table` says which columns there are and what of a result its rows are about. `RESULT` has one row for every item, and
so has `SHORT`, with what people look at first; the others go into it: `TEMPLATE` field by field, `REGEX` pattern by
pattern, `USAGE` task by task, `RUBRIC` trait by trait, `JUDGMENT` and `RUBRIC_JUDGMENT` quotation by quotation.
"""

from __future__ import annotations

from collections.abc import Mapping

from .item_columns import RESULT
from .judgment import JUDGMENT, RUBRIC_JUDGMENT
from .rubric import RUBRIC, RUBRIC_WITH_EVIDENCE
from .short import SHORT
from .table import CellType, Column, Row, Table, as_json, cell, written
from .template import REGEX, TEMPLATE, USAGE, USAGE_TOTALS

__all__ = [
    "JUDGMENT",
    "REGEX",
    "RESULT",
    "RUBRIC",
    "RUBRIC_JUDGMENT",
    "RUBRIC_WITH_EVIDENCE",
    "SHORT",
    "TABLES",
    "TEMPLATE",
    "USAGE",
    "USAGE_TOTALS",
    "CellType",
    "Column",
    "Row",
    "Table",
    "as_json",
    "cell",
    "written",
]

EVERY = (SHORT, RESULT, TEMPLATE, REGEX, USAGE, USAGE_TOTALS, RUBRIC, RUBRIC_WITH_EVIDENCE, JUDGMENT, RUBRIC_JUDGMENT)
TABLES: Mapping[str, Table] = {table.name: table for table in EVERY}
