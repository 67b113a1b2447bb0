"""Databases of results: tables and views that say what the columns say, in SQLite and in PostgreSQL alike."""

from __future__ import annotations

import asyncio
import json
import sqlite3
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve, frozen
from karenina_results.columns import RESULT, RUBRIC, TEMPLATE, USAGE
from karenina_results.sinks import schema, store
from karenina_results.sinks.postgres import Postgres, read_database
from karenina_results.sinks.sqlite import Sqlite, read_file
from karenina_runs.results.sinks import RunInfo, Sinks, make_sink, without_password
from karenina_testing import strategies
from karenina_testing.examples import every
from karenina_vocabulary.evaluation_parts import DeepJudgmentPart, TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.errors import BenchmarkError, PluginError
from karenina_core.values.result import GenerationPart, MetadataPart

LONG = "urn:uuid:question-" + "why-" * 3_000
STATE = {"state": "ok", "reason": ""}
SCORED = VerificationResult(
    metadata=MetadataPart(
        question_id=LONG,
        template_id="t",
        result_id="0" * 16,
        question_text="Why?\0",
        answering=ModelIdentity("x", "a"),
        parsing=ModelIdentity("x", "j"),
        outcome="passed",
        run_name="r",
        replicate=2,
    ),
    generation=GenerationPart(
        raw_llm_response="BCL2\0!",
        usage_metadata={
            "generation": {"calls": 1, "input_tokens": 7, "output_tokens": 3, "cost_usd": 0.25},
            "parsing": {"calls": 2, "input_tokens": 70, "output_tokens": 30, "cost_usd": None},
        },
    ),
    template=TemplatePart(
        parsed_gt_response={"target": "BCL2", "count": 2},
        parsed_llm_response={"target": "BCL2", "count": None},
        field_results={"target": True, "count": None},
        verify_result=True,
        regex_validation_results={"cites": False},
        regex_validation_details={"cites": {"pattern": r"\[\d\]", "match_count": 0}},
    ),
    rubric=RubricPart(
        rubric_evaluation_performed=True,
        llm_trait_scores={"clear": True, "depth": 4, "tone": 1},
        llm_trait_labels={"tone": "warm"},
        regex_trait_scores={"short": False},
        callable_trait_scores={"share": 0.5},
        metric_trait_scores={"terms": {"tp": 2, "fn": 1, "fp": 0, "f1": 0.8}},
        agentic_trait_scores={"checked": 3},
        agentic_trait_investigation_traces={"checked": "I looked it up."},
        extra_trait_scores={"citations": {"sources": [1, 2]}},
        trait_details={"checked": {"tools": 2}},
        trait_scales={
            "clear": {"type": "llm", "kind": "boolean"},
            "depth": {"type": "llm", "kind": "score", "min": 1, "max": 5},
            "tone": {"type": "llm", "kind": "literal", "classes": ["cold", "warm"]},
            "checked": {"type": "agentic", "kind": "score", "min": 1, "max": 5},
        },
        trait_states={"clear": STATE, "lost": {"state": "error", "reason": "timeout"}},
    ),
    deep_judgment=DeepJudgmentPart(
        deep_judgment_performed=True,
        extracted_excerpts={"target": [{"text": "BCL2", "confidence": "high", "similarity_score": 1.0}]},
    ),
    extensions={"plugin": {"mood": ["calm"]}},
)


@frozen
class Database:
    """One of the two, with what it takes to look into it."""

    make: Callable[[], Any]
    read: Callable[[], Iterator[VerificationResult]]
    connect: Callable[[], Any]

    def ask(self, question: str) -> list[tuple[Any, ...]]:
        with closing(self.connect()) as connection:
            return [tuple(row) for row in connection.execute(question).fetchall()]

    def write(self, *results: VerificationResult, secrets: frozenset[str] = frozenset()) -> None:
        async def through() -> None:
            sink = self.make()
            run = RunInfo(run_name="r", run_dir=None, benchmark="b", items=len(results), secrets=secrets)
            await sink.open(run)
            for one in results:
                await sink.write(one)
            await sink.close({"outcomes": {"passed": len(results)}})

        asyncio.run(through())


@pytest.fixture(params=["sqlite", "postgres"])
def database(request: pytest.FixtureRequest, tmp_path: Path) -> Database:
    if request.param == "sqlite":
        file = tmp_path / "results.db"
        return Database(lambda: Sqlite(str(file)), lambda: read_file(file), lambda: sqlite3.connect(file))
    address: str = request.getfixturevalue("postgres")
    import psycopg

    return Database(
        lambda: Postgres(address), lambda: read_database(address), lambda: psycopg.connect(address, autocommit=True)
    )


# What can be asked


def test_traits_of_every_type_have_rows(database: Database) -> None:
    database.write(SCORED)
    rows = database.ask("SELECT trait_name, trait_type, trait_score, metric_name, state FROM rubric_traits")
    assert sorted(rows, key=str) == [
        ("checked", "agentic", "3", None, "ok"),
        ("clear", "llm_binary", "true", None, "ok"),
        ("depth", "llm_score", "4", None, "ok"),
        ("lost", None, None, None, "error"),
        ("share", "callable", "0.5", None, "ok"),
        ("short", "regex", "false", None, "ok"),
        ("sources", "citations", "[1, 2]", None, "ok"),
        ("terms", "metric", "0.8", "f1", "ok"),
        ("tone", "llm_literal", "1", None, "ok"),
    ]
    (agentic,) = database.ask(
        "SELECT investigation_trace, details, replicate, outcome FROM rubric_traits WHERE trait_type = 'agentic'"
    )
    assert agentic == ("I looked it up.", '{"tools": 2}', 2, "passed")
    ((mean,),) = database.ask("SELECT avg(trait_number) FROM rubric_traits WHERE trait_type = 'llm_score'")
    assert mean == 4


def test_fields_patterns_usage_evidence_and_extensions_have_rows(database: Database) -> None:
    database.write(SCORED)
    wanted = {
        "SELECT field_name, gt_value, llm_value, field_match FROM template_fields ORDER BY position": [
            ("target", '"BCL2"', '"BCL2"', True),
            ("count", "2", None, None),
        ],
        "SELECT pattern_name, matched, match_count FROM template_patterns": [("cites", False, 0)],
        "SELECT usage_stage, input_tokens, cost_usd FROM model_usage ORDER BY position": [
            ("generation", 7, 0.25),
            ("parsing", 70, None),
        ],
        "SELECT plugin, name, value FROM extensions": [("plugin", "mood", '["calm"]')],
    }
    for question, rows in wanted.items():
        assert database.ask(question) == rows
    assert database.ask("SELECT outcome FROM field_evidence") == [("passed",)] * 2, "one field is without a quotation"


def test_items_have_the_columns_of_whole_results(database: Database) -> None:
    database.write(SCORED)
    (row,) = database.ask("SELECT question_id, verify_result, question_specific_rubrics, replicate FROM results")
    assert row == (LONG, True, "{}", 2)
    ((text,),) = database.ask("SELECT result FROM stored_results")
    assert json.loads(text)["metadata"]["question_text"] == "Why?\0"
    ((run, benchmark, items, summary),) = database.ask("SELECT run_name, benchmark, items, summary FROM runs")
    assert (run, benchmark, items, json.loads(summary)) == ("r", "b", 1, {"outcomes": {"passed": 1}})


def test_ids_of_any_length_and_texts_with_nul_are_kept(database: Database) -> None:
    """A database that cuts an id, or refuses a long or an odd one, loses the item."""
    database.write(SCORED)
    assert list(database.read()) == [SCORED]
    assert database.ask("SELECT raw_llm_response FROM results WHERE outcome = 'passed'") == [("BCL2\ufffd!",)]


@cache
def drawn() -> list[VerificationResult]:
    found = enumerate(every(strategies.results(), 20), 1)
    return [evolve(r, metadata=evolve(r.metadata, result_id=f"{n:016x}")) for n, r in found]


def test_every_view_can_be_asked(database: Database) -> None:
    database.write(SCORED, *drawn())
    for view in schema.VIEWS:
        assert database.ask(f"SELECT * FROM {view}"), f"nothing is in {view}"


def test_both_have_the_columns_of_the_one_definition() -> None:
    tables = {table.name: [column.name for column in table.columns] for table in schema.DERIVED}
    assert tables["results"] == [c.name for c in RESULT.columns if c.name not in ("result_index", "result_id")]
    for name, source in (("result_fields", TEMPLATE), ("result_usage", USAGE)):
        assert tables[name] == [column.name for column in source.columns if not column.per_result]
    assert tables["result_traits"] == [*(c.name for c in RUBRIC.columns if not c.per_result), "details"]


def test_a_position_is_the_place_in_which_a_result_came_also_among_several_runs(database: Database) -> None:
    one, two, three = (evolve(SCORED, metadata=evolve(SCORED.metadata, result_id=f"{n:016x}")) for n in (3, 2, 1))

    async def through() -> None:
        sinks = [database.make(), database.make()]
        for number, sink in enumerate(sinks):
            await sink.open(RunInfo(run_name=f"r{number}", run_dir=None, benchmark="b", items=2))
        await sinks[0].write(one)
        await sinks[1].write(two)
        await sinks[0].write(three)
        for sink in sinks:
            await sink.close({"done": True})

    asyncio.run(through())
    assert database.ask("SELECT position FROM stored_results ORDER BY position") == [(1,), (2,), (3,)]
    assert list(database.read()) == [one, two, three]


def test_a_run_that_did_not_end_is_distinct_from_one_that_did(database: Database) -> None:
    async def through() -> None:
        sink = database.make()
        await sink.open(RunInfo(run_name="broken", run_dir=None, benchmark="b", items=2))
        await sink.close({})

    asyncio.run(through())
    database.write(SCORED)
    rows = database.ask("SELECT run_name, closed_at IS NULL, summary IS NULL FROM runs ORDER BY run_name")
    assert [(name, bool(opened), bool(ended)) for name, opened, ended in rows] == [
        ("broken", True, True),
        ("r", False, False),
    ]


def test_results_of_a_later_version_can_be_read_and_what_it_added_is_kept(database: Database) -> None:
    database.write(SCORED)
    with closing(database.connect()) as connection:
        connection.execute(
            """UPDATE stored_results SET result = replace(result, '{"question_id"', '{"mood":"calm","question_id"')"""
        )
        connection.commit()
    (read,) = database.read()
    assert read.extensions == {**SCORED.extensions, "unread": {"metadata.mood": "calm"}}


# Versions


def test_tables_of_another_version_are_remade_from_the_results(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as older:
        fewer = tuple(table for table in schema.DERIVED if table.name != "result_usage")
        fewer = tuple(evolve(t, columns=t.columns[:4]) if t.name == "result_traits" else t for t in fewer)
        for module in (schema, store):
            older.setattr(module, "DERIVED", fewer)
        older.setattr(schema, "VIEWS", tuple(table.view for table in fewer if table.view))
        database.write(SCORED)
        assert database.ask("SELECT count(*) FROM rubric_traits") == [(9,)]
    database.write(second := evolve(SCORED, metadata=evolve(SCORED.metadata, result_id="1" * 16)))
    assert list(database.read()) == [SCORED, second]
    assert database.ask("SELECT count(*) FROM rubric_traits WHERE state = 'ok'") == [(16,)]
    assert database.ask("SELECT count(*) FROM model_usage") == [(4,)]


def test_a_database_of_a_later_version_is_left_alone(database: Database) -> None:
    database.write(SCORED)
    with closing(database.connect()) as connection:
        connection.execute("UPDATE schema_version SET version = 9")
        connection.commit()
    with pytest.raises(PluginError, match="later than 1; update karenina-results"):
        database.write(SCORED)
    with pytest.raises((PluginError, BenchmarkError), match="later than 1; update karenina-results"):
        list(database.read())


# Secrets


def test_no_table_has_a_secret(database: Database) -> None:
    secret = "canary-0123456789"
    result = evolve(SCORED, extensions={secret: {secret: [secret]}}, evaluation_input=f"the key is {secret}")
    database.write(result, secrets=frozenset({secret}))
    for table in ("stored_results", "runs", *(t.name for t in schema.DERIVED)):
        assert secret not in str(database.ask(f"SELECT * FROM {table}")), table


def test_the_password_of_a_database_is_not_written_into_it(new_schema: Callable[[], str]) -> None:
    address = new_schema()
    password = "canary-password-0123456789"
    assert password in address

    async def through() -> None:
        sink = Postgres(address)
        await sink.open(RunInfo(run_name=password, run_dir=None, benchmark=password, items=1))
        await sink.write(evolve(SCORED, evaluation_input=address))
        await sink.close({"said": password})

    asyncio.run(through())
    (read,) = read_database(address)
    assert password not in str(read)
    import psycopg

    with closing(psycopg.connect(address)) as connection:
        for table in ("stored_results", "runs"):
            assert password not in str(connection.execute(f"SELECT * FROM {table}").fetchall())


WRONG = [
    "postgresql://karenina:canary-secret@/postgres?host={server}",
    "host={server} user=karenina password=canary-secret dbname=postgres",
    "host={server} user=karenina password='canary-secret' dbname=nowhere",
    "postgresql://karenina:canary-secret@127.0.0.1:1/x",
    "host={server} user=karenina password=right canary-secret",
    "postgresql://karenina:canary-secret@[::1/x",
    "//karenina:canary-secret@127.0.0.1:1/x?connect_timeout=2",
]


@pytest.mark.parametrize("address", WRONG)
def test_no_error_contains_a_password(postgres_server: str, address: str) -> None:
    uri = f"postgres:{address.format(server=postgres_server)}"

    async def through() -> None:
        sinks = Sinks({without_password(uri): make_sink(_app(), uri)})
        await sinks.open(RunInfo(run_name="r", run_dir=None, benchmark="b", items=1))

    with pytest.raises(PluginError) as failed:
        asyncio.run(through())
    error: BaseException | None = failed.value
    while error is not None:
        assert "canary-secret" not in str(error)
        error = error.__cause__


def _app() -> Any:
    import karenina_results.sinks

    from karenina_core import Karenina

    return Karenina({"sinks": karenina_results.sinks})


def test_a_connection_that_is_lost_in_mid_run_is_opened_again(new_schema: Callable[[], str]) -> None:
    """Every backend is ended by the server before each write and before the end, as a restart does it."""
    import psycopg

    address = new_schema()
    results = [evolve(SCORED, metadata=evolve(SCORED.metadata, result_id=f"{n:016x}")) for n in range(3)]

    def end_all() -> None:
        with psycopg.connect(address, autocommit=True) as connection:
            connection.execute(
                "SELECT pg_terminate_backend(pid, 5000) FROM pg_stat_activity "
                "WHERE application_name = 'karenina' AND pid <> pg_backend_pid()"
            )

    async def through() -> Mapping[str, str]:
        sinks = Sinks({"postgres": Postgres(address)})
        await sinks.open(RunInfo(run_name="r", run_dir=None, benchmark="b", items=3))
        for one in results:
            end_all()
            await sinks.write(one)
        end_all()
        await sinks.close({"said": "done"})
        return sinks.failures

    assert asyncio.run(through()) == {}
    assert list(read_database(address)) == results
    with closing(psycopg.connect(address)) as connection:
        assert connection.execute("SELECT run_name, summary FROM runs").fetchall() == [("r", '{"said": "done"}')]


def test_a_server_that_goes_away_fails_the_write_and_shows_no_password(
    new_schema: Callable[[], str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(Postgres, "waits", (0.0, 0.01))
    address = new_schema()
    seen: Mapping[str, str] = {}

    async def through() -> None:
        nonlocal seen
        sink = Postgres(address)
        sinks = Sinks({without_password(f"postgres:{address}"): sink})
        await sinks.open(RunInfo(run_name="r", run_dir=None, benchmark="b", items=1))
        assert sink._store is not None
        sink._store.connection.close()
        sink._address = evolve(sink._address, conninfo=f"{sink._address.conninfo} host=/nowhere")
        await sinks.write(SCORED)
        await sinks.close({})
        seen = sinks.failures

    asyncio.run(through())
    ((name, failure),) = seen.items()
    assert "/nowhere" in failure
    assert "canary-password" not in f"{name} {failure}"


def test_without_psycopg_the_sink_says_how_to_get_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karenina_results.sinks.postgres.is_installed", lambda name: False)
    with pytest.raises(PluginError, match=r"pip install 'karenina-results\[postgres\]'"):
        make_sink(_app(), "postgres:postgresql://user:canary-secret@host/db")


def test_the_reference_lists_every_table_and_every_view() -> None:
    page = (Path(__file__).parents[3] / "docs" / "reference" / "results-files.md").read_text("utf-8")
    names = {table.name for table in schema.DERIVED} | set(schema.VIEWS) | {"stored_results", "runs", "schema_version"}
    assert {name for name in names if f"`{name}`" not in page} == set()
