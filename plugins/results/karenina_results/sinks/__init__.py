"""The sinks sqlite, postgres, csv and parquet."""

from __future__ import annotations

from typing import Any

from karenina_core import hookimpl

__all__ = ["karenina_register_sinks"]


@hookimpl
def karenina_register_sinks(registry: Any) -> None:
    registry.add("karenina_results.sinks.sqlite:Sqlite", name="sqlite")
    registry.add("karenina_results.sinks.postgres:Postgres", name="postgres")
    registry.add("karenina_results.sinks.files:csv_sink", name="csv")
    registry.add("karenina_results.sinks.files:parquet_sink", name="parquet")
