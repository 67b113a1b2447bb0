"""The journal as a store of calls and results: nothing is asked twice, and everything is there again."""

from __future__ import annotations

import asyncio
import gc
import json
import sqlite3
import sys
import threading
import weakref
from collections.abc import Callable, Coroutine
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from hypothesis import given, settings
from hypothesis import strategies as st
from karenina_calls.ports.stored_calls import CallFacts, StoredCall
from karenina_calls.records.requests import Request
from karenina_runs.folder.recording import recording_lines, write_recording
from karenina_runs.journal.check import check
from karenina_runs.journal.compression import DICTIONARY, Bodies
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.ledger import Ledger, Sums
from karenina_runs.journal.reader import Batch, Done, JournalReader
from karenina_runs.journal.rows import CALLS, FAILURES, META, PAGE, RESULTS

from karenina_core.errors import ConfigError, ParseError, PortError, RunDirectoryError
from karenina_core.values.message import Message, UsageMetadata

MODEL = {"interface": "scripted", "model_name": "m", "provider": "p", "tools": ["t"], "config_id": None}
FACTS = CallFacts(usage=UsageMetadata(10, 2, 12, 0.1, 3, None, "m-1"), seconds=0.5, attempts=3, retries={"timeout": 2})
ANSWER = {"reply": {"content": "BCL2"}}


def call(text: str = "Which?", nth: int = 0, task: str = "generation", **facts: str) -> StoredCall:
    request = Request("llm", MODEL, task, 1, (Message.user(text).to_dict(),))
    return StoredCall(request.key, nth, request, **facts)


def run(work: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(work, 20))


def test_what_was_put_is_taken_also_after_the_journal_was_opened_again(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        assert await journal.take(call()) is None
        await journal.put(call(), ANSWER, FACTS)
        for _ in range(2):
            found = await journal.take(call())
            assert found is not None
            assert (found.outcome, found.facts) == (ANSWER, FACTS)
            await journal.aclose()
            journal = Journal.open(tmp_path)
        assert await journal.take(call(nth=1)) is None
        assert await journal.take(call("What?")) is None
        await journal.aclose()

    run(work())


def test_a_judge_that_could_not_be_read_is_kept_as_such(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        await journal.take(call())
        await journal.put(call(), {"error": {"message": "no JSON", "kind": "judge"}}, FACTS)
        found = await journal.take(call())
        assert found is not None
        assert found.outcome == {"error": {"message": "no JSON", "kind": "judge"}}
        await journal.aclose()

    run(work())


@pytest.mark.parametrize("ending", ["put", "failed"])
def test_who_wants_what_is_being_asked_waits_for_it(tmp_path: Path, ending: str) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        asked = []

        async def one(number: int) -> None:
            found = await journal.take(call())
            if found is not None:
                return
            asked.append(number)
            await asyncio.sleep(0.01)
            if ending == "failed" and len(asked) < 4:
                journal.failed(call(), PortError("busy", kind="rate_limited", status=429), CallFacts())
                await one(number)
            else:
                await journal.put(call(), ANSWER, FACTS)

        await asyncio.gather(*(one(number) for number in range(20)))
        # After the first failure two ask, and after theirs four.
        assert len(asked) == (1 if ending == "put" else 7)
        await journal.aclose()
        with JournalReader.open(tmp_path) as reader:
            assert len(list(reader.rows(CALLS))) == (1 if ending == "put" else 4)
            failures = list(reader.rows(FAILURES))
        assert [row["error"] for row in failures] == ["rate_limited"] * (0 if ending == "put" else 3)
        assert {(row["status"], row["message"]) for row in failures} <= {(429, "PortError: busy")}

    run(work())


def test_nobody_waits_for_someone_who_was_cancelled(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        assert await journal.take(call()) is None
        waiting = [asyncio.create_task(journal.take(call())) for _ in range(4)]
        await asyncio.sleep(0)
        waiting[0].cancel()
        journal.failed(call(), asyncio.CancelledError(), CallFacts())
        assert [await waiting[number] for number in (1, 2)] == [None, None], "an attempt that came to nothing"
        putting = asyncio.create_task(journal.put(call(), ANSWER, FACTS))
        await asyncio.sleep(0)
        putting.cancel()  # it was paid for, and is kept
        found = await waiting[3]
        assert found is not None
        assert found.outcome == ANSWER
        assert journal.ledger.total.failed == 1
        await journal.aclose()
        with JournalReader.open(tmp_path) as reader:
            assert [row["error"] for row in reader.rows(FAILURES)] == ["cancelled"]

    run(work())


def test_a_call_that_was_made_again_is_served_as_it_was_last(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        for content in ("one", "two"):  # an agent that works in a folder is not served, and asked again
            await journal.put(call(), {"reply": {"content": content}}, FACTS)
        found = await journal.take(call())
        assert found is not None
        assert found.outcome["reply"]["content"] == "two"
        assert journal.ledger.total.calls == 2
        await journal.aclose()

    run(work())


def test_texts_and_numbers_that_no_database_holds(tmp_path: Path) -> None:
    odd = "\ud800 \0 \u202e 😀" * 500
    usage = UsageMetadata(10**30, -(10**30), 3, float("nan"), None, None, odd)

    async def work() -> None:
        journal = Journal.open(tmp_path)
        asked = call(odd, stage=odd, trait=odd, question_id=odd, result_id=odd)
        await journal.take(asked)
        await journal.put(asked, {"reply": {"content": odd, "object": object}}, CallFacts(usage=usage, seconds=1e308))
        journal.failed(asked, PortError(odd, status=10**30), CallFacts(usage=usage))
        await journal.put_result(Done(odd, 1, odd, "error", odd), json.dumps({"content": odd}))
        await journal.aclose()
        journal = Journal.open(tmp_path)
        found = await journal.take(asked)
        assert found is not None
        assert found.outcome["reply"]["content"] == odd
        assert found.facts.usage.input_tokens == 2**63 - 1
        assert found.facts.usage.cost_usd is None
        (result,) = journal.reader.results()
        assert json.loads(result.line) == {"content": odd}
        await journal.aclose()
        assert check(tmp_path).problems == ()

    run(work())


def test_results_come_in_the_order_of_the_plan_and_replace_each_other(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        await asyncio.gather(
            *(journal.put_result(Done(f"t{n}", n, f"r{n}", "error", "timeout"), f'"first {n}"') for n in (3, 1, 2, 0))
        )
        assert journal.done("t1") == Done("t1", 1, "r1", "error", "timeout")
        assert journal.done("t9") is None
        await asyncio.gather(
            *(journal.put_result(Done("t1", 1, "r1", name), f'"{name} 1"') for name in ("error", "failed", "passed"))
        )
        kept: list[Done] = []
        await journal.put_result(Done("t0", 7, "r0", "passed"), '"moved"', kept.append)
        assert kept == [Done("t0", 7, "r0", "passed")]
        assert journal.done("t1") == Done("t1", 1, "r1", "passed")
        assert [(result.task, result.line) for result in journal.reader.results()] == [
            ("t1", '"passed 1"'),
            ("t2", '"first 2"'),
            ("t3", '"first 3"'),
            ("t0", '"moved"'),
        ]
        assert journal.reader.outcomes() == {"error": 2, "passed": 2}
        await journal.aclose()
        journal = Journal.open(tmp_path)
        assert journal.notes == ()
        assert journal.done("t0") == Done("t0", 7, "r0", "passed")
        await journal.put_result(Done("t0", 0, "r0", "passed"), '"moved back"')
        await journal.aclose()
        assert check(tmp_path).problems == ()
        assert check(tmp_path).rows["results"] == 4

    run(work())


def test_a_result_counts_those_that_it_replaced(tmp_path: Path) -> None:
    async def work() -> None:
        for names in (["error"], ["failed", "error"], ["passed"]):
            journal = Journal.open(tmp_path)
            await asyncio.gather(*(journal.put_result(Done("t", 0, "r", name), "1") for name in names))
            await journal.put_result(Done("other", 1, "r2", "passed"), "2")
            await journal.aclose()

    run(work())
    with JournalReader.open(tmp_path) as reader:
        assert {row["task"]: row["revision"] for row in reader.rows(RESULTS)} == {"t": 3, "other": 2}


def test_the_number_of_the_last_reply_counts_on_when_it_is_opened_again(tmp_path: Path) -> None:
    async def work() -> None:
        for before in (0, 2):
            journal = Journal.open(tmp_path)
            assert journal.last_call == before
            await journal.put(call("a", nth=before), ANSWER, FACTS)
            await journal.put(call("b", nth=before), ANSWER, FACTS)
            assert journal.last_call == before + 2
            await journal.aclose()

    run(work())


def test_a_call_made_within_another_one_does_not_wait_for_who_asks_the_same(tmp_path: Path) -> None:
    """It might wait for itself: the one who asks waits for the call that it is made in."""

    async def work() -> None:
        journal = Journal.open(tmp_path)
        assert await journal.take(call()) is None
        assert await journal.take(evolve(call(), inside=True)) is None
        await journal.put(call(), ANSWER, FACTS)
        found = await journal.take(evolve(call(), inside=True))
        assert found is not None
        await journal.aclose()

    run(work())


def test_batches_are_kept_as_they_were_last(tmp_path: Path) -> None:
    first = Batch(id="b1", model="m", provider_id="batch_1", status="in_progress", keys=(("k1", 0), ("k2", 1)))
    second = Batch(id="b2", model="m", provider_id="batch_2", status="submitted")

    async def work() -> None:
        journal = Journal.open(tmp_path)
        await asyncio.gather(journal.put_batch(second), journal.put_batch(first))
        await journal.put_batch(Batch(id="b2", model="m", provider_id="batch_2", status="completed"))
        await journal.aclose()
        with JournalReader.open(tmp_path) as reader:
            assert reader.batches() == [first, Batch(id="b2", model="m", provider_id="batch_2", status="completed")]

    run(work())


def test_a_batch_is_in_the_database_and_not_in_its_log_when_it_is_acknowledged(tmp_path: Path) -> None:
    """Nothing follows it that would tell if the end of the log were lost."""

    async def work() -> None:
        journal = Journal.open(tmp_path)
        await journal.put(call(), ANSWER, FACTS)
        assert (tmp_path / "journal.sqlite-wal").stat().st_size > 0, "calls have numbers"
        await journal.put_batch(Batch(id="b1", model="m", provider_id="batch_1", status="sent"))
        assert (tmp_path / "journal.sqlite-wal").stat().st_size == 0
        await journal.aclose()

    run(work())


@pytest.mark.parametrize("what", ["take", "put", "put_result", "put_batch"])
def test_who_comes_after_the_end_is_refused_at_once(tmp_path: Path, what: str) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        await journal.aclose()
        asked: dict[str, Callable[[], Coroutine[Any, Any, Any]]] = {
            "take": lambda: journal.take(call()),
            "put": lambda: journal.put(call(), ANSWER, FACTS),
            "put_result": lambda: journal.put_result(Done("t", 0, "r", "passed"), '"x"'),
            "put_batch": lambda: journal.put_batch(Batch(id="b", model="m", provider_id="p", status="sent")),
        }
        with pytest.raises(RunDirectoryError, match="is closed; open it again"):
            await asyncio.wait_for(asked[what](), 5)

    run(work())


def test_what_judges_said_for_some_results_is_asked_for_once_more(tmp_path: Path) -> None:
    """Of this run, or of one whose replies are taken over; what answers were given stays, unless they were errors."""
    judged, other = call("judged", task="parsing", result_id="r1"), call("other", task="parsing", result_id="r2")
    answered, broken = call("answered", result_id="r1"), call("broken", result_id="r1")
    error = {"error": {"message": "no JSON", "kind": "judge"}}

    async def taken(journal: Journal) -> list[bool]:
        found = [await journal.take(each) for each in (judged, other, answered, broken)]
        for each in (judged, broken):
            journal.failed(each, asyncio.CancelledError(), CallFacts(made=False))
        return [each is not None for each in found]

    async def work() -> None:
        first = Journal.open(tmp_path / "first", run_id="first")
        for each in (judged, other, answered):
            await first.put(each, ANSWER, FACTS)
        await first.put(broken, error, FACTS)
        assert await taken(first) == [True] * 4
        first.ask_again(["r1"])
        assert await taken(first) == [False, True, True, False]
        await first.put(judged, {"reply": {"content": "TP53"}}, FACTS)
        first.ask_again(["r1"], run_id="another")
        found = await first.take(judged)
        assert found is not None
        assert found.outcome["reply"]["content"] == "TP53", "what is said then is kept"
        await first.aclose()
        for again, run_id, expected in (
            (["r1"], "first", [False, True, True, False]),
            (["r1"], None, [True] * 4),
            (["r2"], "first", [True, False, True, True]),
        ):
            with JournalReader.open(tmp_path / "first") as source:
                folder = tmp_path / f"{again}{run_id}"
                folder.mkdir()
                second = Journal.open(folder, run_id="second", sources=[source])
                second.ask_again(again, run_id)
                assert await taken(second) == expected
                await second.aclose()

    (tmp_path / "first").mkdir()
    run(work())


def test_calls_are_asked_for_afresh_up_to_the_row_that_is_named(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        for text in ("one", "two", "three"):
            await journal.put(call(text), ANSWER, FACTS)
        journal.repeat_calls(lambda asked: asked.key != call("one").key, 2)
        found = [await journal.take(call(text)) for text in ("one", "two", "three")]
        assert [each is not None for each in found] == [True, False, True]
        await journal.put(call("two"), {"reply": {"content": "TP53"}}, FACTS)
        again = await journal.take(call("two"))
        assert again is not None
        assert again.outcome["reply"]["content"] == "TP53"
        await journal.aclose()

    run(work())


def test_who_waits_for_a_call_is_told_when_nothing_can_be_kept_any_more(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        assert await journal.take(call()) is None
        waiting = [asyncio.create_task(journal.take(call())) for _ in range(3)]
        await asyncio.sleep(0)
        (tmp_path / "journal.sqlite").unlink()
        with pytest.raises(RunDirectoryError):
            await journal.put(call(), ANSWER, FACTS)
        for each in waiting:
            with pytest.raises(RunDirectoryError, match="is gone"):
                await each
        with pytest.raises(RunDirectoryError):
            await journal.aclose()

    run(work())


def test_a_reply_that_cannot_be_written_down_leaves_the_call_to_others(tmp_path: Path) -> None:
    endless: list[Any] = []
    endless.append(endless)

    async def work() -> None:
        journal = Journal.open(tmp_path)
        assert await journal.take(call()) is None
        waiting = asyncio.create_task(journal.take(call()))
        await asyncio.sleep(0)
        with pytest.raises((ValueError, RecursionError)):
            await journal.put(call(), {"reply": {"content": endless}}, FACTS)
        assert await asyncio.wait_for(waiting, 5) is None
        await journal.put(call(), ANSWER, FACTS)
        journal.failed(call("What?"), PortError("no budget", kind="budget"), CallFacts(made=False))
        await journal.aclose()
        with JournalReader.open(tmp_path) as reader:
            assert not list(reader.rows(FAILURES)), "what was not asked has not failed"

    run(work())


def test_how_long_threads_compute_at_a_time_is_set_again_when_the_last_journal_is_closed(tmp_path: Path) -> None:
    before = sys.getswitchinterval()
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
    one, two = Journal.open(tmp_path / "one"), Journal.open(tmp_path / "two")
    one.close()
    assert sys.getswitchinterval() < before
    two.close()
    assert sys.getswitchinterval() == before


QUARTERS = st.integers(0, 40).map(lambda count: count / 4)  # which add up exactly in any order
FACTS_OF_ROWS = st.fixed_dictionaries(
    {
        **dict.fromkeys(("stage", "trait", "model"), st.sampled_from(["", "a", "b"])),
        "task": st.sampled_from(["parsing", "search"]),
        **dict.fromkeys(("input_tokens", "output_tokens", "total_tokens"), st.integers(0, 50)),
        "usage_unavailable": st.booleans(),
        "seconds": QUARTERS,
        "cost_usd": st.none() | QUARTERS,
        "estimated_tokens": st.none() | st.integers(0, 50),
        "estimated_usd": st.none() | QUARTERS,
        "reused_from": st.none() | st.just("other"),
    }
)


@given(st.lists(st.tuples(st.booleans(), FACTS_OF_ROWS), max_size=12))
@settings(max_examples=100, deadline=None)
def test_a_ledger_adds_up_what_its_rows_say(rows: list[tuple[bool, dict[str, Any]]]) -> None:
    ledger = Ledger()
    for replied, facts in rows:
        ledger.add("calls" if replied else "failures", facts)
    taken = [facts for replied, facts in rows if replied and facts["reused_from"] is not None]
    calls = [facts for replied, facts in rows if replied and facts["reused_from"] is None]
    failed = [facts for replied, facts in rows if not replied]
    silent = [f for f in failed if not f["total_tokens"] and f["cost_usd"] is None]

    def added(name: str, *among: list[dict[str, Any]]) -> Any:
        return sum(facts[name] or 0 for each in among for facts in each)

    unpriced = [f for f in calls if f["cost_usd"] is None and f["task"] != "search"]
    unpriced += [f for f in failed if f["cost_usd"] is None and f["total_tokens"]]
    total = {
        "calls": len(calls),
        "reused": len(taken),
        "reused_cost_usd": added("cost_usd", taken),
        "failed": len(failed),
        **{name: added(name, calls, failed) for name in ("input_tokens", "output_tokens", "total_tokens")},
        "unknown_usage": added("usage_unavailable", calls, failed),
        "cost_usd": None if unpriced else added("cost_usd", calls, failed),
        "known_cost_usd": added("cost_usd", calls, failed),
        "unknown_costs": len(unpriced),
        "unknown_cost_attempts": len([f for f in silent if f["estimated_tokens"] is not None]),
    }
    if any(f["cost_usd"] is None and f["task"] != "search" for f in taken):
        total["reused_cost_usd"] = None
    told, sums = ledger.to_dict(), ledger.total
    assert told["total"] == total
    assert sums.estimated_tokens == added("estimated_tokens", calls, failed)
    assert sums.counted_usd == added("cost_usd", calls, failed) + added("estimated_usd", calls, failed)
    assert sums.counted == len(calls) + len(failed) - len([f for f in silent if f["estimated_tokens"] is None])
    assert sums.seconds == added("seconds", calls, failed)
    for dimension in ("stage", "trait", "task", "model"):
        groups = told[f"by_{dimension}"]
        names = {facts[dimension] for _, facts in rows} - {""}
        assert set(groups) == names
        for name in names:
            part = Ledger()
            for replied, facts in rows:
                if facts[dimension] == name:
                    part.add("calls" if replied else "failures", facts)
            assert groups[name] == part.to_dict()["total"]


def test_a_recording_of_a_journal_that_cannot_be_read_says_so(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path)
    journal.close()
    path = tmp_path / "journal.sqlite"
    with closing(sqlite3.connect(path)) as connection:
        ((root,),) = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = 'calls'")
    with path.open("r+b") as file:
        file.seek((root - 1) * PAGE)
        file.write(b"\xff" * PAGE)
    with JournalReader.open(tmp_path) as reader, pytest.raises(RunDirectoryError, match="is damaged"):
        write_recording(reader, tmp_path / "recording.jsonl")
    assert not (tmp_path / "recording.jsonl").exists()


def test_a_journal_can_be_closed_where_no_loop_runs(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path)
    run(journal.put(call(), ANSWER, FACTS))
    journal.close()
    with closing(sqlite3.connect(tmp_path / "journal.sqlite")) as connection:
        assert connection.execute("SELECT count(*) FROM call_places").fetchone() == (1,)
    with pytest.raises(RunDirectoryError, match="is closed"):
        run(journal.put_batch(Batch(id="b", model="m", provider_id="p", status="sent")))


def test_who_waits_outside_is_told_when_nothing_can_be_kept_any_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karenina_runs.journal.journal.CROWD", 0)

    async def work() -> None:
        journal = Journal.open(tmp_path)
        (tmp_path / "journal.sqlite").unlink()
        journal.failed(call("other"), PortError("busy", kind="timeout"), FACTS)
        with pytest.raises(RunDirectoryError, match="is gone"):
            await journal.take(call())
        with pytest.raises(RunDirectoryError):
            await journal.aclose()

    run(work())


def test_rows_that_wait_are_counted_until_they_are_written(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        for number in range(1, 4):
            journal.failed(call(str(number)), PortError("busy", kind="timeout"), FACTS)
            assert journal._commits.waiting == number
        await journal.put(call(), ANSWER, FACTS)
        assert journal._commits.waiting == 0
        await journal.aclose()  # which writes where the rows are, too
        assert journal._commits.waiting == 0

    run(work())


class Name(str):
    """A text of which can be seen whether it is still held."""


def test_a_result_that_is_written_is_no_longer_held(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        tasks = [Name(f"t{number}") for number in range(3)]
        held = [weakref.ref(task) for task in tasks]
        for number in range(2):
            await asyncio.gather(*(journal.put_result(Done(task, 0, "r", "passed"), f'"{number}"') for task in tasks))
        del tasks[:]
        others = (journal.put_result(Done(f"o{number}", 0, "r", "passed"), '"x"') for number in range(300))
        await asyncio.gather(*others)  # what the latest rows say is kept at hand
        gc.collect()
        assert [task() for task in held] == [None] * 3
        await journal.aclose()

    run(work())


def test_places_of_rows_are_found_wherever_they_are(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karenina_runs.journal.writer.AT_MOST", 10)

    async def work() -> None:
        journal = Journal.open(tmp_path)
        for number in range(3):
            await asyncio.gather(
                *(journal.put(call(f"{number}.{n}"), {"reply": f"{number}.{n}"}, FACTS) for n in range(17))
            )
            await journal.put_result(Done(f"t{number}", number, "r", "passed"), '"x"')
        with JournalReader.open(tmp_path) as reader:  # while it is written
            assert reader.call(call("1.3").key, 0) is not None
            assert reader.call(call("9.9").key, 0) is None
            await journal.put(call("9.9"), ANSWER, FACTS)
            assert reader.call(call("9.9").key, 0) is not None
            assert reader.done("t2") is not None
        for number in range(3):
            for n in range(17):
                found = await journal.take(call(f"{number}.{n}"))
                assert found is not None
                assert found.outcome == {"reply": f"{number}.{n}"}
        await journal.aclose()
        with JournalReader.open(tmp_path) as reader:
            assert reader.query("SELECT count(*) FROM call_places") == [(52,)]
            assert reader.call(call("2.16").key, 0) is not None

    run(work())


def test_where_places_are_missing_all_are_written_again_and_wrong_ones_go(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("karenina_runs.journal.writer.AT_MOST", 10)

    def places(*changes: str) -> list[Any]:
        with closing(sqlite3.connect(tmp_path / "journal.sqlite", isolation_level=None)) as connection:
            for change in changes:
                connection.execute(change)
            return connection.execute("SELECT prefix, id FROM call_places ORDER BY id").fetchall()

    async def fill(*texts: str) -> None:
        journal = Journal.open(tmp_path)
        await asyncio.gather(*(journal.put(call(text), ANSWER, FACTS) for text in texts))
        await journal.put(call("then"), ANSWER, FACTS)
        assert len(places()) >= 10, "they are not all in memory"
        await journal.aclose()

    run(fill(*map(str, range(25))))
    before = places()
    assert len(before) >= 10
    lost = places(
        f"DELETE FROM call_places WHERE id = {before[3][1]}", "UPDATE call_places SET prefix = 7 WHERE id = 2"
    )
    assert lost != before
    Journal.open(tmp_path).close()
    assert places() == before


def test_who_is_cancelled_while_the_disk_is_slow_leaves_the_call_to_others(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        with monkeypatch.context() as patch:
            patch.setattr("karenina_runs.journal.journal.CROWD", -1)
            waiting = asyncio.ensure_future(journal.take(call()))
            await asyncio.sleep(0.05)
            assert waiting.cancel()
            assert isinstance((await asyncio.gather(waiting, return_exceptions=True))[0], asyncio.CancelledError)
        assert await journal.take(call()) is None, "its turn"
        await journal.aclose()

    run(work())


def test_a_finished_journal_that_is_being_read_may_be_gone_on_with(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        await journal.put(call("0"), ANSWER, FACTS)
        await journal.aclose()
        with JournalReader.open(tmp_path) as reader:
            assert reader.call(call("0").key, 0) is not None
            journal = Journal.open(tmp_path)
            for number in range(1, 300):
                await journal.put(call(f"{number}"), ANSWER, FACTS)
                if number % 100 == 0:
                    assert reader.call(call(f"{number}").key, 0) is not None
            await journal.aclose()
            assert reader.call(call("299").key, 0) is not None
            assert len(list(reader.rows(CALLS))) == 300
            assert not reader.damaged
        Journal.open(tmp_path).close()

    run(work())


def test_replies_are_taken_over_from_another_run(tmp_path: Path) -> None:
    async def work() -> None:
        one, other = tmp_path / "one", tmp_path / "other"
        one.mkdir()
        other.mkdir()
        journal = Journal.open(one, run_id="the first")
        await journal.put(call(question_id="q1"), ANSWER, FACTS)
        await journal.aclose()
        before = (one / "journal.sqlite").read_bytes()
        with JournalReader.open(one) as source:
            journal = Journal.open(other, sources=[source])
            found = await asyncio.gather(*(journal.take(call(question_id="q2")) for _ in range(3)))
            assert [reply.outcome if reply else None for reply in found] == [ANSWER] * 3
            assert await journal.take(call("What?")) is None
            await journal.aclose()
        assert (one / "journal.sqlite").read_bytes() == before
        assert sorted(path.name for path in one.iterdir()) == ["journal.sqlite", "run.lock"]
        journal = Journal.open(other)
        found = [await journal.take(call())]
        assert found[0] is not None
        (row,) = journal.reader.rows(CALLS)
        assert (row["reused_from"], row["question_id"]) == ("the first", "q2")
        total = journal.ledger.total
        assert (total.calls, total.reused, total.cost_usd, total.total_tokens) == (0, 1, 0.0, 0)
        await journal.aclose()

    run(work())


def test_what_calls_counted_as_is_known_when_a_journal_is_opened_again(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        untold = CallFacts(usage_unavailable=True, estimated_tokens=1001, estimated_usd=0.25)
        await journal.put(call("a"), ANSWER, CallFacts(usage=UsageMetadata(10, 5, 15, 0.1)))
        await journal.put(call("b"), ANSWER, untold)
        journal.failed(call("c"), PortError("late", kind="timeout"), CallFacts(estimated_tokens=100, estimated_usd=0.5))
        journal.failed(call("c"), PortError("no", kind="rate_limited"), CallFacts())
        journal.failed(call("d"), PortError("broken", kind="agent"), CallFacts(usage=UsageMetadata(2, 1, 3, 5.0)))
        await journal.aclose()
        journal = Journal.open(tmp_path)
        total = journal.ledger.total
        assert (total.calls, total.failed, total.counted) == (2, 3, 4)
        assert (total.counted_tokens, total.counted_usd) == (15 + 1001 + 100 + 3, pytest.approx(0.1 + 0.25 + 0.5 + 5.0))
        assert (total.known_cost_usd, total.unknown_costs, total.unknown_cost_attempts) == (5.1, 1, 1)
        (found,) = [await journal.take(call("b"))]
        assert found is not None
        assert found.facts == untold
        await journal.aclose()

    run(work())


def test_nothing_is_counted_before_the_first_call() -> None:
    assert set(Sums().to_dict().values()) == {0}
    assert Ledger().total == Sums()


def test_a_recording_has_a_line_for_every_call(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        await asyncio.gather(*(journal.put(call(text), ANSWER, FACTS) for text in "abc"))
        await journal.aclose()
        with JournalReader.open(tmp_path) as reader:
            assert write_recording(reader, tmp_path / "calls.jsonl") == 3
            lines = (tmp_path / "calls.jsonl").read_text("utf-8").splitlines()
            assert lines == list(recording_lines(reader))
            assert {json.loads(line)["key"] for line in lines} == {call(text).key for text in "abc"}
            assert lines == [json.dumps(json.loads(line), separators=(",", ":")) for line in lines], "without spaces"
            with pytest.raises(ConfigError, match="cannot be written"):
                write_recording(reader, tmp_path / "nowhere" / "calls.jsonl")

    run(work())


def test_the_ledger_adds_up_what_is_known_and_says_what_is_not(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        priced, free = CallFacts(usage=UsageMetadata(10, 5, 15, 0.1)), CallFacts(usage=UsageMetadata(10, 5, 15, None))
        for number in range(3):
            await journal.put(call(f"{number}", stage="answer"), ANSWER, priced)
            await journal.put(call(f"{number}", task="parsing", stage="judge", trait=f"t{number}"), ANSWER, priced)
        journal.failed(call("x", stage="answer"), PortError("gone", kind="timeout"), CallFacts())
        journal.failed(call("x", stage="answer"), ParseError("odd"), priced)
        assert await journal.take(call("y")) is None
        assert journal.ledger.total.cost_usd == pytest.approx(0.6)
        await journal.put(call("y", stage="answer"), ANSWER, free)
        total = journal.ledger.total
        assert (total.calls, total.failed, total.total_tokens) == (7, 2, 8 * 15)
        assert (total.cost_usd, total.known_cost_usd, total.unknown_costs) == (None, 0.7, 1)
        assert {names: sums.calls for names, sums in journal.ledger.by("stage").items()} == {
            ("answer",): 4,
            ("judge",): 3,
        }
        assert journal.ledger.by("stage", "task")["judge", "parsing"].cost_usd == 0.3
        told = journal.ledger.to_dict()
        assert told["total"] == total.to_dict()
        assert set(told["by_trait"]) == {"t0", "t1", "t2"}
        assert set(told["by_model"]) == {"scripted:p/m +[t]"}
        assert told["by_stage"]["judge"]["cost_usd"] == 0.3
        await journal.aclose()
        with JournalReader.open(tmp_path) as reader:
            assert reader.ledger().to_dict() == told

    run(work())


def test_rows_that_wait_do_not_pile_up(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("karenina_runs.journal.journal.CROWD", 50)

    async def work() -> None:
        journal = Journal.open(tmp_path)
        most = 0
        for number in range(1000):
            assert await journal.take(call(f"{number}")) is None
            journal.failed(call(f"{number}"), PortError("busy"), CallFacts())
            most = max(most, journal._commits.waiting)
        assert most <= 52
        await journal.aclose()
        with JournalReader.open(tmp_path) as reader:
            assert len(list(reader.rows(FAILURES))) == 1000

    run(work())


def test_bodies_are_packed_with_the_last_dictionary_that_was_learnt() -> None:
    bodies, reader = Bodies(), Bodies()
    text = json.dumps({"content": "venetoclax inhibits BCL-2 " * 90})
    bodies.learn("calls", "another one")
    assert bodies.unpacked(bodies.packed("calls", text)) == text
    for each in (bodies, reader):
        each.learn("calls", "venetoclax inhibits BCL-2 ")
    packed = bodies.packed("calls", text)
    assert reader.can_unpack(packed)
    assert reader.unpacked(packed) == text


def test_a_body_that_cannot_be_decompressed_says_so() -> None:
    with pytest.raises(ValueError, match="a body cannot be decompressed"):
        Bodies().unpacked(b"x is how compressed data begin")


def test_bodies_are_packed_beside_the_event_loop(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To compress takes as long as all else that is done for a reply, and other threads can run meanwhile."""
    threads = set()
    packed = Bodies.packed

    def watched(self: Bodies, kind: str, text: str) -> bytes:
        threads.add(threading.current_thread())
        return packed(self, kind, text)

    monkeypatch.setattr(Bodies, "packed", watched)

    async def work() -> None:
        journal = Journal.open(tmp_path)
        for number in range(40):
            text = f"{number} {'word ' * 200}"
            await journal.take(call(text))
            await journal.put(call(text), ANSWER, FACTS)
            journal.failed(call("Why?"), PortError("busy"), CallFacts())
        await journal.put_result(Done("t", 1, "r", "passed", None), json.dumps({"text": "word " * 900}))
        await journal.aclose()

    run(work())
    assert threads
    assert threading.main_thread() not in threads
    with JournalReader.open(tmp_path) as reader:
        kinds = {str(row.id) for row in reader.rows(META) if str(row.id).startswith(DICTIONARY)}
        assert kinds == {f"{DICTIONARY}generation"}
        assert len(list(recording_lines(reader))) == 40


def test_a_journal_that_nobody_closes_keeps_no_process_alive(tmp_path: Path) -> None:
    journal = Journal.open(tmp_path)
    writers = [thread for thread in threading.enumerate() if thread.name == "karenina-journal"]
    assert writers
    assert all(thread.daemon for thread in writers)
    journal.close()


def test_a_closed_journal_says_so(tmp_path: Path) -> None:
    async def work() -> None:
        journal = Journal.open(tmp_path)
        await journal.aclose()
        with pytest.raises(RunDirectoryError, match="is closed"):
            await journal.take(call())
        with pytest.raises(RunDirectoryError, match="is closed"):
            await journal.put(call(), ANSWER, FACTS)
        with pytest.raises(RunDirectoryError, match="is closed"):
            await journal.put_result(Done("t", 0, "r", "passed"), "1")
        with pytest.raises(RunDirectoryError, match="is closed"):
            await journal.put_batch(Batch(id="b", model="m", provider_id="p", status="sent"))

    run(work())


def test_the_journal_of_another_run_is_refused(tmp_path: Path) -> None:
    Journal.open(tmp_path, run_id="mine").close()
    with pytest.raises(RunDirectoryError, match="belongs to the run mine, not to the run yours"):
        Journal.open(tmp_path, run_id="yours")
    Journal.open(tmp_path, run_id="mine").close()
    with pytest.raises(RunDirectoryError, match="there is no journal"):
        JournalReader.open(tmp_path / "elsewhere")
