"""A sink with two tables of its own: one row for each result, and one for each field that a template compares."""

import json
import sqlite3
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any

from karenina_core import RunInfo, VerificationResult, hookimpl
from karenina_core.errors import PluginError

KARENINA_API = 1
TABLES = """
CREATE TABLE IF NOT EXISTS results (
    id TEXT PRIMARY KEY, question TEXT NOT NULL, model TEXT NOT NULL, outcome TEXT NOT NULL, answer TEXT
);
CREATE TABLE IF NOT EXISTS fields (
    id TEXT NOT NULL REFERENCES results, name TEXT NOT NULL, correct INTEGER, extracted TEXT, PRIMARY KEY (id, name)
);
"""


class Tables:
    """`--sink tables:FILE`. A file that is there gets the results of another run beside its own.

    A result may be written more than once, and in a resumed run another one may take its place: an id has one row.
    """

    name = "tables"

    def __init__(self, target: str) -> None:
        if not target:
            raise PluginError("say where the tables are: --sink tables:FILE")
        self._path = Path(target)
        self._connection: sqlite3.Connection | None = None
        self._secrets: frozenset[str] = frozenset()

    async def open(self, run: RunInfo) -> None:
        self._secrets = run.secrets
        self._connection = sqlite3.connect(self._path, isolation_level=None, check_same_thread=False)
        self._connection.executescript(TABLES)

    async def write(self, result: VerificationResult) -> None:
        assert self._connection is not None, "open comes before write"
        about = result.metadata
        row = (about.result_id, about.question_text, about.answering_model, str(result.outcome))
        self._connection.execute("BEGIN")  # all rows of a result, or none
        try:
            for table in ("results", "fields"):
                self._connection.execute(f"DELETE FROM {table} WHERE id = ?", row[:1])
            self._insert("results", (*row, result.generation.raw_llm_response))
            for name, correct, extracted in _fields(result):
                self._insert("fields", (about.result_id, name, correct, json.dumps(extracted, default=str)))
            self._connection.execute("COMMIT")
        except BaseException:
            self._connection.execute("ROLLBACK")
            raise

    async def close(self, summary: Mapping[str, Any]) -> None:
        """The summary of the run is not kept. Closing twice does no harm."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _insert(self, table: str, values: tuple[Any, ...]) -> None:
        assert self._connection is not None
        marks = ", ".join("?" * len(values))
        cleaned = [self._writable(value) if isinstance(value, str) else value for value in values]
        self._connection.execute(f"INSERT INTO {table} VALUES ({marks})", cleaned)

    def _writable(self, text: str) -> str:
        """Without secrets, and without what UTF-8 cannot hold."""
        for secret in self._secrets:
            text = text.replace(secret, "***").replace(json.dumps(secret)[1:-1], "***")
        return text.encode("utf-8", "replace").decode("utf-8")


def _fields(result: VerificationResult) -> Iterator[tuple[str, bool | None, Any]]:
    template = result.template
    extracted = dict(template.parsed_llm_response or {}) if template is not None else {}
    for name, correct in dict(template.field_results or {}).items() if template is not None else ():
        yield name, correct, extracted.get(name)


def result_ids(path: str) -> list[str]:
    """The ids of the results in a file, in the order in which they were written."""
    with closing(sqlite3.connect(path)) as connection:
        return [row[0] for row in connection.execute("SELECT id FROM results ORDER BY rowid")]


@hookimpl
def karenina_register_sinks(registry: Any) -> None:
    registry.add(Tables)
