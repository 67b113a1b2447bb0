"""What holds for every run directory, whatever was done to the run. Loaded by path; no test is in here.

    invariants.assert_journal(folder, kept=[(key, nth), ...], done=[task, ...])
    invariants.assert_run(folder, told=[result_id, ...], judged=[question_id, ...])
    invariants.assert_replayed(folder, tmp_path / "again", lambda: server.count)

Nobody may write to the folder meanwhile.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, get_args

from karenina_runs.journal.reader import JournalReader
from karenina_runs.summaries.rates import DECIDED

from karenina_core import resume_run
from karenina_core.values.outcome import OutcomeName

TIMES = {"timestamp", "execution_time", "seconds", "created_at", "updated_at", "run_dir"}
OF_THE_RUN = {"run_name", "result_id"}
OUTCOMES = frozenset(get_args(OutcomeName))
NAMES = ("question_id", "answering", "parsing", "replicate")
SUMS = ("input_tokens", "output_tokens", "total_tokens")


def without(value: Any, names: set[str] = TIMES) -> Any:
    """A document without what differs from run to run."""
    if isinstance(value, dict):
        return {name: without(item, names) for name, item in value.items() if name not in names}
    return [without(item, names) for item in value] if isinstance(value, list) else value


def item_of(record: dict[str, Any]) -> str:
    """What names an item within a run."""
    return json.dumps([record["metadata"][name] for name in NAMES], sort_keys=True)


def assert_journal(folder: Path, kept: Iterable[tuple[str, int]] = (), done: Iterable[str] = ()) -> None:
    """What was acknowledged is stored: calls by key and number, results by task. Nothing is there twice, and what the
    ledger says is what the rows add up to."""
    with JournalReader.open(folder) as reader:
        calls = reader.query("SELECT key, nth FROM calls")
        tasks = [task for (task,) in reader.query("SELECT task FROM results")]
        assert set(kept) <= set(calls), "a reply that was acknowledged is lost"
        assert set(done) <= set(tasks), "a result that was acknowledged is lost"
        assert len(calls) == len(set(calls)), "a call is there twice"
        assert len(tasks) == len(set(tasks)), "a result is there twice"
        assert_sums(reader)
        assert not reader.damaged, "rows cannot be read"


def assert_sums(reader: JournalReader) -> dict[str, Any]:
    """The ledger, which is the sum of the rows."""
    ledger: dict[str, Any] = reader.ledger().to_dict()
    paid = reader.query(f"SELECT count(*), {_summed()}, {_summed_unknown()} FROM calls WHERE reused_from IS NULL")
    failed = reader.query(f"SELECT count(*), {_summed()} FROM failures")
    ((reused,),) = reader.query("SELECT count(*) FROM calls WHERE reused_from IS NOT NULL")
    (calls, *tokens, cost, unknown), (failures, *more_tokens, more_cost) = *paid, *failed
    ((untold,),) = reader.query("SELECT count(*) FROM failures WHERE cost_usd IS NULL AND total_tokens > 0")
    total = ledger["total"]
    assert (total["calls"], total["reused"], total["failed"]) == (calls, reused, failures)
    assert [total[name] for name in SUMS] == [one + other for one, other in zip(tokens, more_tokens, strict=True)]
    assert abs(total["known_cost_usd"] - cost - more_cost) < 1e-9
    assert total["unknown_costs"] == unknown + untold
    for dimension in ("stage", "trait", "task", "model"):
        assert_parts(reader, dimension, ledger[f"by_{dimension}"])
    return ledger


def assert_parts(reader: JournalReader, dimension: str, parts: dict[str, Any]) -> None:
    """The ledger by stage, trait, task or model: sums over the rows that say the same. What belongs to no trait is in
    no row of `by_trait`; every call has all the others."""
    names = ("calls", "reused", "failed", *SUMS, "known_cost_usd")
    found: dict[str, dict[str, Any]] = {}
    for what, source in (
        ("calls", "calls WHERE reused_from IS NULL"),
        ("reused", "calls WHERE reused_from IS NOT NULL"),
        ("failed", "failures WHERE 1"),
    ):
        paid = _summed() if what != "reused" else ", ".join("0" for _ in (*SUMS, "cost"))
        query = f"SELECT {dimension}, count(*), {paid} FROM {source} GROUP BY 1"
        for value, count, *tokens, cost in reader.query(query):
            row = found.setdefault(value, dict.fromkeys(names, 0))
            row[what] += count
            row["known_cost_usd"] += cost
            for name, number in zip(SUMS, tokens, strict=True):
                row[name] += number
    if dimension == "trait":
        found.pop("", None)
    assert found.keys() == parts.keys(), f"the ledger by {dimension}"
    for value, row in found.items():
        for name in names:
            assert abs(parts[value][name] - row[name]) < 1e-9, f"{name} by {dimension}"


def _summed_unknown() -> str:
    """Nobody tells what a search costs, and no cost includes it."""
    return "coalesce(sum(cost_usd IS NULL AND task <> 'search'), 0)"


def _summed() -> str:
    return ", ".join(f"coalesce(sum({name}), 0)" for name in (*SUMS, "cost_usd"))


def assert_run(
    folder: Path,
    *,
    told: Iterable[str] = (),
    judged: Iterable[str] = (),
    complete: bool = True,
    written: bool = True,
    alone: bool = False,
    shared: bool = False,
) -> list[dict[str, Any]]:
    """Everything about a run directory but what a replay shows. Returns its results, without times.

    `told` are ids of results that somebody was told of (a sink, an observer), `judged` ids of questions whose answer a
    judge was asked about: it was paid for, and given to the judge's stage. `complete`: the run is done. Otherwise it
    may have been killed: then only the journal says what there is. `written`: there was room for results.jsonl.
    `alone`: one process has made the whole run, and nothing was asked in vain that is in no result. `shared`: items
    share replies.
    """
    manifest = json.loads((folder / "manifest.json").read_text("utf-8"))
    with JournalReader.open(folder) as reader:
        ledger = assert_sums(reader)
        found = list(reader.results())
        made_anew = reader.query("SELECT count(*) FROM results WHERE revision > 0") != [(0,)]
        answered = {question for (question,) in reader.query("SELECT question_id FROM calls WHERE task = 'generation'")}
        assert not reader.damaged, "rows cannot be read"
        assert reader.run_id == manifest["run_id"]
    assert_journal(folder)
    records = [json.loads(stored.line) for stored in found]
    assert set(told) <= {stored.result_id for stored in found}, "a result that was told of is lost"
    assert set(judged) <= answered, "an answer that a judge has read is lost"
    assert len({item_of(record) for record in records}) == len(records), "an item has two results"
    assert len({stored.position for stored in found}) == len({stored.result_id for stored in found}) == len(records)
    assert len(records) <= manifest["items"]
    for stored, record in zip(found, records, strict=True):
        assert_one_outcome(stored, record)
    if complete:
        assert manifest["status"] == "completed"
        assert len(records) == manifest["items"]
    if manifest["status"] != "running":
        assert without(manifest["ledger"]) == without(ledger), "the manifest's ledger is not the journal's"
        if written or manifest["status"] == "completed":
            assert (folder / "results.jsonl").read_bytes().decode() == "".join(f"{stored.line}\n" for stored in found)
        assert_counted(manifest["summary"], records)
        assert_costs(manifest["summary"], records)
        assert_paid(manifest["summary"], ledger)
        if len(records) == manifest["items"] and not (made_anew or ledger["total"]["reused"] or shared):
            assert_headline(manifest["summary"], ledger, failures=alone)
    return [without(record) for record in records]


def assert_one_outcome(stored: Any, record: dict[str, Any]) -> None:
    """The item ended in one way, and everything that tells of it says the same."""
    about = record["metadata"]
    assert stored.outcome in OUTCOMES
    assert (stored.outcome, stored.detail) == (about["outcome"], about["outcome_detail"])
    assert stored.result_id == about["result_id"]
    is_error = stored.outcome == "error"
    assert is_error == (not about["completed_without_errors"]) == (about["error"] is not None)
    if is_error:
        assert stored.detail, "an error says of which kind it is"
    elif stored.outcome in ("passed", "failed"):
        assert record["template"]["verify_result"] is (stored.outcome == "passed")


def assert_counted(summary: dict[str, Any], records: list[dict[str, Any]]) -> None:
    """Outcomes are those of the results, and errors are in the denominator of no rate."""
    outcomes = Counter(record["metadata"]["outcome"] for record in records)
    assert summary["outcomes"] == dict(outcomes)
    counted: Counter[str] = Counter()
    for row in summary["models"]:
        counted.update(row["outcomes"])
        assert_rates(row)
        assert sum(row["errors"].values()) == row["outcomes"].get("error", 0)
    assert counted == outcomes
    for row in summary["replicate_stats"]:
        assert_rates(row)


def assert_costs(summary: dict[str, Any], records: list[dict[str, Any]]) -> None:
    """The headline is what the results took, reply by reply; a cost that nobody knows is not 0."""
    usages = [record["generation"]["usage_metadata"] for record in records]
    rows = [row for usage in usages for task, row in usage.items() if task != "total" and not row.get("cached")]
    assert summary["calls"] == sum(row["replies"] for row in rows)
    assert summary["failed_attempts"] == sum(row["attempts"] - row["replies"] for row in rows)
    assert summary["unknown_cost_attempts"] == sum(row["unknown_cost_attempts"] for row in rows)
    unknown = any(row["cost_usd"] is None and row["replies"] for row in rows)
    assert (summary["cost_usd"] is None) == unknown
    if not unknown:
        assert abs(summary["cost_usd"] - sum(row["cost_usd"] or 0.0 for row in rows)) < 1e-9
    for row in rows:
        if row["cost_usd"] == 0 and row["unknown_cost_attempts"]:
            assert row["replies"], "nobody knows what this cost"


def assert_paid(summary: dict[str, Any], ledger: dict[str, Any]) -> None:
    """What the summary says of this run is what the ledger says."""
    paid, total = summary["paid"], ledger["total"]
    assert (paid["calls"], paid["failed_attempts"]) == (total["calls"], total["failed"])
    assert (paid["cost_usd"], summary["reused_calls"]) == (total["cost_usd"], total["reused"])
    assert paid["unknown_cost_attempts"] == total["unknown_cost_attempts"]


def assert_headline(summary: dict[str, Any], ledger: dict[str, Any], *, failures: bool) -> None:
    """Where every reply is in one result, what the results took is what the run paid for. Searches are in none."""
    total, searches = ledger["total"], ledger["by_task"].get("search", {"calls": 0, "failed": 0})
    assert summary["calls"] == total["calls"] - searches["calls"], "the headline's calls are not the ledger's"
    if failures:
        assert summary["failed_attempts"] == total["failed"] - searches["failed"]
        assert summary["unknown_cost_attempts"] == total["unknown_cost_attempts"]
    assert (summary["cost_usd"] is None) == (total["cost_usd"] is None), "one of two costs is known"
    if summary["cost_usd"] is not None:
        assert abs(summary["cost_usd"] - total["cost_usd"]) < 1e-9, "the headline's cost is not the ledger's"


def assert_rates(row: dict[str, Any]) -> None:
    outcomes = Counter(row["outcomes"])
    decided, answered = sum(outcomes[name] for name in DECIDED), outcomes["passed"] + outcomes["failed"]
    assert "error" not in DECIDED
    assert row["pass_rate"] == (outcomes["passed"] / decided if decided else None)
    assert row["answered_accuracy"] == (outcomes["passed"] / answered if answered else None)


def assert_replayed(
    folder: Path, again: Path, asked: Callable[[], int], *, but: Iterable[str] = (), **facts: Any
) -> None:
    """Another run that takes its replies from the journal of this one comes to the same verdicts, and asks nobody.

    `asked` counts requests. `facts` (`benchmark`, `app`, `config`) are for runs that are not all in files. Failures are
    in no journal: items that ended in an error are left out, and only for their questions anybody may be asked. `but`
    names what is not compared.
    """
    before = asked()
    resume_run(folder, fork=again, **facts)
    errors: set[str] = set()
    verdicts = []
    for name in (folder, again):
        with JournalReader.open(name) as reader:
            records = [json.loads(stored.line) for stored in reader.results()]
        errors |= {item_of(record) for record in records if record["metadata"]["outcome"] == "error"}
        verdicts.append({item_of(record): without(record, TIMES | OF_THE_RUN | set(but)) for record in records})
    first, second = verdicts
    assert {name for name in first if name not in errors} == {name for name in second if name not in errors}
    for name in first.keys() - errors:
        assert first[name] == second[name], "a replay comes to another result"
    questions = {json.loads(name)[0] for name in errors}
    assert set(_asked_there(again)) <= questions, "something was asked that the journal holds"
    if not errors:
        assert asked() == before, "somebody was asked"
    assert_run(again, complete=False)


def _asked_there(folder: Path) -> Iterator[str]:
    """Questions for which the run has asked somebody itself."""
    with JournalReader.open(folder) as reader:
        for table in ("calls WHERE reused_from IS NULL", "failures"):
            for (question,) in reader.query(f"SELECT question_id FROM {table}"):
                yield question
