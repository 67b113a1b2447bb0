"""`karenina repair`: what is made anew, what is printed, and what is left when it is killed."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from attrs import define, field
from click.testing import Result
from karenina_runs.folder.status import read_status

from karenina_core.testing import Reply, ScriptedServer

Run = Callable[..., Result]
Files = Callable[..., Path]
INTERFACE = "openai_endpoint"
IDS = [f"q{number}" for number in range(6)]


@define(eq=False)
class Replies:
    """A server whose answers and judgments can be changed. It counts both."""

    city: str = "Paris"
    answer: str | Reply = "Paris."
    answered: int = 0
    judged: int = 0
    down: bool = False
    """Whether judges get no more than an error of the server."""
    silent: set[str] = field(factory=set)
    """Questions whose judgments cannot be read."""

    def __call__(self, request: Any) -> Any:
        if not request.schema:
            self.answered += 1
            return self.answer
        self.judged += 1
        if self.down:
            return Reply(status=503)
        if any(f"({name})" in request.text for name in self.silent):
            return Reply("no JSON at all")
        return {"capital": self.city}


@pytest.fixture
def replies() -> Replies:
    return Replies()


@pytest.fixture
def server(replies: Replies) -> Iterator[ScriptedServer]:
    with ScriptedServer(replies) as found:
        yield found


@pytest.fixture
def done(
    run: Run, write_benchmark: Files, served: Any, server: ScriptedServer, replies: Replies
) -> Callable[..., None]:
    """`done(...)`: a finished run of six items in `out`. Afterwards the counts are 0."""

    def make(*flags: str, code: int = 0) -> None:
        result = run("verify", write_benchmark(*IDS), *served(server.url), "--out", "out", "--quiet", *flags)
        assert result.exit_code == code, result.output
        replies.answered = replies.judged = 0

    return make


def outcomes() -> dict[str, str]:
    lines = Path("out/results.jsonl").read_text("utf-8").splitlines()
    return {row["metadata"]["question_id"]: row["metadata"]["outcome"] for row in map(json.loads, lines)}


def files() -> dict[Path, bytes]:
    return {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}


# What is made anew


def test_judgments_that_failed_are_made_again_with_the_answers_that_are_there(
    run: Run, done: Any, replies: Replies
) -> None:
    replies.silent = {"q1", "q4"}
    done(code=3)
    replies.silent = set()
    result = run("repair", "out", "--outcome", "error", "--kind", "judge", "--json")
    assert result.exit_code == 0, result.output
    assert (replies.answered, replies.judged) == (0, 2)
    assert set(outcomes().values()) == {"passed"}
    printed = json.loads(result.stdout)
    assert printed["outcomes"] == {"passed": 6}
    assert printed["repair"] | {"kept_in": ""} == {
        "kept_in": "",
        "mode": "replay",
        "status": "completed",
        "rows": 2,
        "selected": 2,
        "outcomes_before": {"error": 2},
        "outcomes_after": {"passed": 2},
        "changed": 2,
    }
    kept = Path(printed["repair"]["kept_in"])
    assert sorted(path.name for path in kept.iterdir()) == [
        *("journal.sqlite", "manifest.json", "repair.json", "results.jsonl", "run.lock")
    ]
    assert kept.name in result.stderr


def test_answers_are_asked_for_again_where_that_is_wanted(run: Run, done: Any, replies: Replies) -> None:
    done()
    replies.answer = "It is Lyon."
    result = run("repair", "out", "--mode", "live", "--questions", "2,q3", "--quiet")
    assert result.exit_code == 0, result.output
    assert (replies.answered, replies.judged) == (2, 2)
    lines = Path("out/results.jsonl").read_text("utf-8").splitlines()
    assert [json.loads(line)["generation"]["raw_llm_response"] for line in lines] == [
        *("Paris.", "Paris.", "It is Lyon.", "It is Lyon.", "Paris.", "Paris.")
    ]
    assert "Repaired: 2 results, 0 with another outcome" in result.stdout


def test_results_with_traits_without_a_score_can_be_chosen(run: Run, done: Any, replies: Replies) -> None:
    done()
    result = run("repair", "out", "--unscored")
    assert result.exit_code == 1
    assert "no result has a trait without a score" in result.stderr
    assert replies.judged == 0


def test_everything_can_be_judged_again(run: Run, done: Any, replies: Replies) -> None:
    done()
    replies.city = "Lyon"
    result = run("repair", "out", "--all")
    assert result.exit_code == 0, result.output
    assert (replies.answered, replies.judged) == (0, 6)
    assert set(outcomes().values()) == {"failed"}
    assert "Repaired: 6 results, 6 with another outcome" in result.stdout


@pytest.mark.parametrize(
    ("flags", "count"),
    [
        (["--all"], 6),
        (["--questions", "0-2"], 3),
        (["--answering-model", "the-answering-model"], 6),
        (["--parsing-model", "openai_endpoint:the-parsing-model", "--questions", "q5"], 1),
        (["--replicate", "1"], 6),
        (["--outcome", "error"], 2),
        (["--stage", "ParseTemplate"], 2),
        (["--kind", "judge", "--questions", "q1"], 1),
    ],
)
def test_a_dry_run_says_what_would_be_made_anew_and_changes_nothing(
    run: Run, done: Any, replies: Replies, flags: list[str], count: int
) -> None:
    replies.silent = {"q1", "q4"}
    done(code=3)
    before = files()
    result = run("repair", "out", "--dry-run", "--json", *flags)
    assert result.exit_code == 0, result.output
    printed = json.loads(result.stdout)
    assert (printed["rows"], printed["results"], printed["mode"], printed["run_dir"]) == (count, 6, "replay", "out")
    assert len(printed["selected_keys"]) == count
    assert printed["models"] == [
        {
            "answering": "openai_endpoint:the-answering-model",
            "parsing": "openai_endpoint:the-parsing-model",
            "rows": count,
        }
    ]
    shown = run("repair", "out", "--dry-run", *flags)
    assert f"Mode replay: {count} of 6 results" in shown.stdout
    assert "Nothing was changed." in shown.stdout
    assert (replies.answered, replies.judged) == (0, 0)
    assert files() == before


def test_a_dry_run_says_which_results_share_an_answer_with_others(
    run: Run, write_benchmark: Files, served: Any, server: ScriptedServer
) -> None:
    more = ["--parsing-model", "another", "--replicates", "2", "--out", "out"]
    assert run("verify", write_benchmark("q0", "q1"), *served(server.url), *more).exit_code == 0
    result = run("repair", "out", "--dry-run", "--mode", "live", "--parsing-model", "another", "--questions", "q0")
    assert "4 of 8 results, 2 of them because they share an answer with others" in result.stdout


# What is refused


def test_nothing_chosen_is_said(run: Run, done: Any) -> None:
    done()
    result = run("repair", "out")
    assert result.exit_code == 1
    assert "--all" in result.stderr
    assert run("repair", "out", "--questions", "q9").exit_code == 1
    assert "available: passed" in run("repair", "out", "--outcome", "failed").stderr
    assert run("repair", "out", "--mode", "again", "--all").exit_code == 2


@pytest.mark.parametrize(
    ("option", "value"),
    [
        ("--kind", "judge"),
        ("--outcome", "eror"),
        ("--stage", "Foo"),
        ("--replicate", "3"),
        ("--answering-model", "nobody"),
        ("--parsing-model", "nobody"),
    ],
)
def test_an_option_that_chooses_nothing_is_named_as_it_was_typed(run: Run, done: Any, option: str, value: str) -> None:
    done()
    result = run("repair", "out", option, value)
    assert result.exit_code == 1
    shown = value if value.isdigit() else repr(value)
    assert f"Error: {option}: no result has {shown}" in result.stderr
    assert "available: " in result.stderr


def test_what_is_no_run_directory_is_named(run: Run, tmp_path: Path) -> None:
    result = run("repair", tmp_path, "--all")
    assert result.exit_code == 1
    assert "is not a run directory" in result.stderr


def test_a_benchmark_that_was_changed_is_named_and_nothing_is_repaired(run: Run, done: Any, replies: Replies) -> None:
    done()
    path = Path("capitals.jsonld")
    path.write_text(path.read_text("utf-8").replace("of France? (q5)", "of Italy? (q5)"), "utf-8")
    before = files()
    result = run("repair", "out", "--all")
    assert result.exit_code == 1
    assert "the question 'q5' has another text" in result.stderr
    assert "karenina resume out --fork NEWDIR" in result.stderr
    assert (replies.judged, files()) == (0, before)


def test_answers_that_are_missing_need_the_other_mode(run: Run, done: Any, replies: Replies, served: Any) -> None:
    replies.answer = Reply.error(400)
    done(code=3)
    result = run("repair", "out", "--all")
    assert result.exit_code == 1
    assert "Error: 6 of these results have no answer" in result.stderr, "one problem, printed as one"
    replies.answer = "Paris."
    assert "they need --mode live" in run("repair", "out", "--all", "--dry-run").stdout
    assert run("repair", "out", "--all", "--mode", "live").exit_code == 0
    assert set(outcomes().values()) == {"passed"}


def test_empty_answers_are_there_to_be_judged_again(run: Run, done: Any, replies: Replies) -> None:
    replies.answer = ""
    done()
    result = run("repair", "out", "--all")
    assert result.exit_code == 0, result.output
    assert (set(outcomes().values()), replies.judged) == ({"failed"}, 0)


# Killed


@pytest.fixture
def begun(forking: Any) -> Callable[..., Any]:
    """`begun("--mode", "live")`: a process that repairs all of `out`."""

    def start(*flags: str) -> Any:
        words = ("repair", "out", "--all", "--concurrency", "2", *flags)
        return forking.start(*words, prelude=f"import os; os.chdir({str(Path.cwd())!r})")

    return start


@pytest.mark.parametrize(("mode", "calls"), [("replay", 1), ("replay", 4), ("live", 5)])
def test_a_repair_that_is_killed_is_gone_on_with(
    run: Run, write_benchmark: Files, served: Any, begun: Any, mode: str, calls: int
) -> None:
    """Results that were made anew stay so, the others are those of before, and what was asked is not asked again."""
    replies, asked, held = Replies(), itertools.count(1), threading.Event()
    killing = False

    async def slow(request: Any) -> Any:
        if killing and next(asked) > calls:
            await asyncio.to_thread(held.wait, 120)
        return replies(request)

    with ScriptedServer(slow) as server:
        assert run("verify", write_benchmark(*IDS), *served(server.url), "--out", "out", "--quiet").exit_code == 0
        replies.city, replies.answered, replies.judged, killing = "Lyon", 0, 0, True
        process = begun("--mode", mode)
        before = server.count
        server.wait_for(before + calls + 1, timeout=120)
        process.kill()
        held.set()
        found = read_status(Path("out"))
        assert (found.state, found.done) == ("killed", 6)
        assert [(row.kind, row.facts["rows"]) for row in found.progress] == [("repair", 6)]
        left = str(found.unrepaired)
        assert int(left) > 0
        assert f"{left} of 6 results still to be made again" in run("status", "out").stdout
        refused = run("repair", "out", "--all")
        assert refused.exit_code == 1
        assert "karenina resume out" in refused.stderr
        result = run("resume", "out", "--quiet", "--json")
        assert result.exit_code == 0, result.output
        per_item = 1 if mode == "replay" else 2
        assert server.count - before <= 6 * per_item + 2  # at most those that were under way are asked once more
    assert json.loads(result.stdout)["outcomes"] == {"failed": 6}
    assert set(outcomes().values()) == {"failed"}
    printed = json.loads(Path("out/manifest.json").read_text("utf-8"))
    assert (printed["status"], printed["repair"], len(printed["repairs"])) == ("completed", None, 1)
    record = json.loads((Path("out") / printed["repairs"][0] / "repair.json").read_text("utf-8"))
    assert (record["status"], record["outcomes_after"], record["changed"]) == ("completed", {"failed": 6}, 6)


@pytest.mark.parametrize("moment", ["repairs", "repairs/2*", "repairs/2*/repair.json"])
def test_a_repair_that_is_killed_while_it_begins_is_none_or_is_gone_on_with(
    run: Run, write_benchmark: Files, served: Any, begun: Any, moment: str
) -> None:
    replies, held = Replies(), threading.Event()
    killing = False

    async def slow(request: Any) -> Any:
        if killing:
            await asyncio.to_thread(held.wait, 120)
        return replies(request)

    with ScriptedServer(slow) as server:
        assert run("verify", write_benchmark(*IDS), *served(server.url), "--out", "out", "--quiet").exit_code == 0
        replies.city, killing, before = "Lyon", True, Path("out/results.jsonl").read_bytes()
        process = begun()
        deadline = time.monotonic() + 120
        while not list(Path("out").glob(moment)):
            assert process.poll() is None, process.stderr
            assert time.monotonic() < deadline
        process.kill()
        held.set()
        assert Path("out/results.jsonl").read_bytes() == before
        printed = json.loads(Path("out/manifest.json").read_text("utf-8"))
        result = run("resume", "out", "--quiet")
        assert result.exit_code == 0, result.output
        assert set(outcomes().values()) == ({"failed"} if printed.get("repair") else {"passed"})
        assert run("repair", "out", "--all", "--quiet").exit_code == 0
    assert set(outcomes().values()) == {"failed"}


# Budgets


def printed(run: Run) -> Any:
    """What `status` says; `spent` is added: tokens."""
    document = json.loads(run("status", "out", "--json").stdout)
    total = document["ledger"]["total"]
    return {**document, "spent": total["input_tokens"] + total["output_tokens"]}


def test_a_repair_that_its_budget_has_stopped_says_so_and_is_gone_on_with_by_a_higher_one(
    run: Run, done: Any, replies: Replies
) -> None:
    done()
    replies.city, before = "Lyon", printed(run)
    assert (before["repair"], before["next"]) == (None, "karenina show out")
    limit = str(before["spent"] + 1)
    result = run("repair", "out", "--all", "--quiet", "--concurrency", "1", "--budget-tokens", limit)
    assert result.exit_code == 3, result.output
    assert "5 results still to be made again" in result.stderr
    assert "karenina resume out --budget-tokens MORE" in result.stderr
    assert "The repair is not finished." in result.stdout
    stopped = printed(run)
    assert stopped["repair"] == {"mode": "replay", "rows": 6, "remaining": 5}
    assert (stopped["state"], stopped["done"]) == ("interrupted", 6)
    assert stopped["next"] == "karenina resume out --budget-tokens MORE"
    assert "5 of 6 results still to be made again" in run("status", "out").stdout
    result = run("resume", "out", "--quiet")  # as the line was before somebody gave it a higher budget
    assert result.exit_code == 3, result.output
    assert "karenina resume out --budget-tokens MORE" in result.stderr
    assert (replies.judged, printed(run)["repair"]["remaining"]) == (1, 5)
    result = run("resume", "out", "--quiet", "--budget-tokens", str(stopped["spent"] + 1))
    assert result.exit_code == 3, result.output
    assert printed(run)["next"] == "karenina resume out --budget-tokens MORE"
    own = Path("out") / json.loads(Path("out/manifest.json").read_text("utf-8"))["repair"]
    settings = json.loads((own / "repair.json").read_text("utf-8"))["config"]
    assert settings["budget_tokens"] == stopped["spent"] + 1  # from now on this one holds
    assert (replies.judged, printed(run)["repair"]["remaining"]) == (2, 4)
    result = run("resume", "out", "--quiet", "--budget-tokens", "100000")
    assert result.exit_code == 0, result.output
    assert (replies.judged, printed(run)["repair"]) == (6, None)
    assert json.loads(Path("out/manifest.json").read_text("utf-8"))["config"]["budget_tokens"] is None


def test_a_budget_of_the_beginning_holds_for_a_repair_that_has_none_of_its_own(
    run: Run, done: Any, replies: Replies
) -> None:
    done("--budget-tokens", "100000")
    replies.city, limit = "Lyon", str(printed(run)["spent"] + 1)
    assert run("repair", "out", "--all", "--quiet", "--concurrency", "1", "--budget-tokens", limit).exit_code == 3
    assert run("repair", "out", "--undo").exit_code == 0
    assert run("repair", "out", "--all", "--quiet").exit_code == 0
    assert set(outcomes().values()) == {"failed"}


# Outages, and the way back


def test_a_repair_that_met_an_outage_says_how_to_continue_and_really_asks(
    run: Run, done: Any, replies: Replies
) -> None:
    done()
    replies.city, replies.down = "Lyon", True
    result = run("repair", "out", "--all", "--set", "run.retry_policy.server.max_attempts=1")
    assert result.exit_code == 3, result.output
    assert "karenina resume out" in result.stdout
    assert "The repair is not finished." in result.stdout
    assert set(outcomes().values()) == {"error"}
    replies.down, replies.judged = False, 0
    result = run("resume", "out", "--quiet")
    assert result.exit_code == 0, result.output
    assert (replies.answered, replies.judged) == (0, 6)
    assert set(outcomes().values()) == {"failed"}


def test_a_repair_is_taken_back(run: Run, done: Any, replies: Replies) -> None:
    done()
    before = Path("out/results.jsonl").read_bytes()
    replies.city = "Lyon"
    assert run("repair", "out", "--all", "--quiet").exit_code == 0
    refused = run("repair", "out", "--undo", "--all", "--mode", "live", "--set", "run.concurrency=1")
    assert refused.exit_code == 2
    assert "leave out --mode, --all, --set" in refused.stderr
    result = run("repair", "out", "--undo", "--json")
    assert result.exit_code == 0, result.output
    own = Path(json.loads(result.stdout)["undone"])
    assert json.loads((own / "repair.json").read_text("utf-8"))["status"] == "undone"
    assert Path("out/results.jsonl").read_bytes() == before
    again = run("repair", "out", "--undo")
    assert again.exit_code == 1
    assert "no repair" in again.stderr


def test_a_sink_that_does_not_exist_leaves_no_repair(run: Run, done: Any, replies: Replies) -> None:
    done()
    before = files()
    result = run("repair", "out", "--all", "--sink", "nosuch:there")
    assert result.exit_code != 0
    assert "no sink is called 'nosuch'" in result.stderr
    changed = {path for path, data in files().items() if before.get(path) != data}
    assert changed <= {Path("out/run.lock")}
    assert run("repair", "out", "--all", "--quiet").exit_code == 0
    assert replies.judged == 6


@pytest.mark.parametrize("mode", ["replay", "live"])
def test_a_repair_that_was_killed_is_taken_back_with_all_that_it_left(
    run: Run, write_benchmark: Files, served: Any, begun: Any, mode: str
) -> None:
    """SQLite would read the log of the killed process into the journal that takes the place of the other one."""
    replies, asked, held = Replies(), itertools.count(1), threading.Event()
    killing = False

    async def slow(request: Any) -> Any:
        if killing and next(asked) > 5:
            await asyncio.to_thread(held.wait, 120)
        return replies(request)

    with ScriptedServer(slow) as server:
        assert run("verify", write_benchmark(*IDS), *served(server.url), "--out", "out", "--quiet").exit_code == 0
        before = Path("out/results.jsonl").read_bytes()
        printed = json.loads(Path("out/manifest.json").read_text("utf-8"))
        replies.city, replies.answer, killing, count = "Lyon", "It is Lyon.", True, server.count
        process = begun("--mode", mode)
        server.wait_for(count + 6, timeout=120)
        process.kill()
        held.set()
        assert Path("out/journal.sqlite-wal").stat().st_size > 0
        assert run("repair", "out", "--undo").exit_code == 0
        assert list(Path("out").glob("journal.sqlite-*")) == []
        count = server.count
        result = run("resume", "out", "--quiet", "--json")
        assert result.exit_code == 0, result.output
        assert server.count == count
        summary = json.loads(result.stdout)
        assert (summary["outcomes"], summary["paid"]["calls"]) == ({"passed": 6}, printed["summary"]["paid"]["calls"])
        assert Path("out/results.jsonl").read_bytes() == before
        assert run("doctor", "out").exit_code == 0
        assert run("repair", "out", "--all", "--quiet").exit_code == 0
    assert set(outcomes().values()) == {"failed"}
