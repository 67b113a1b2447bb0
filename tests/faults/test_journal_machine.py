"""Any sequence of calls, failures, results, crashes and openings: the journal holds exactly what was acknowledged."""

from __future__ import annotations

import asyncio
import importlib.util
import json
import shutil
import tempfile
from pathlib import Path
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule
from karenina_calls.ports.stored_calls import CallFacts
from karenina_runs.journal.check import check
from karenina_runs.journal.journal import Journal
from karenina_runs.journal.reader import JournalReader
from karenina_runs.journal.rows import CALLS

from karenina_core.errors import PortError

SPEC = importlib.util.spec_from_file_location("journal_world_machine", Path(__file__).with_name("journal_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader
ITEMS = st.integers(0, 5)
PARTS = st.integers(0, 1)
NUMBERS = st.integers(0, 1)
TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=5)


class JournalMachine(RuleBasedStateMachine):
    """`calls` and `results` are what was acknowledged; crashes happen by copying the files as they are."""

    def __init__(self) -> None:
        super().__init__()
        self.folder = Path(tempfile.mkdtemp())
        self.loop = asyncio.new_event_loop()
        self.calls: dict[tuple[int, int, int], dict[str, Any]] = {}
        self.results: dict[int, tuple[str, str]] = {}
        self.failures = 0
        self.puts = 0
        self.crashes = 0

    def teardown(self) -> None:
        self.journal.close()
        self.loop.close()
        shutil.rmtree(self.folder)

    def does(self, work: Any) -> Any:
        return self.loop.run_until_complete(asyncio.wait_for(work, 10))

    @initialize()
    def begin(self) -> None:
        (self.folder / "0").mkdir()
        self.open()

    @property
    def here(self) -> Path:
        return self.folder / str(self.crashes)

    def open(self) -> None:
        self.journal = Journal.open(self.here, run_id="the run")
        assert self.journal.notes == ()

    @rule(item=ITEMS, part=PARTS, nth=NUMBERS)
    def ask(self, item: int, part: int, nth: int) -> None:
        async def asked() -> Any:
            wanted = world.call(item, part, nth)
            found = await self.journal.take(wanted)
            if found is not None:
                return found.outcome
            reply = {"reply": {"content": f"{item}.{part}.{nth} {self.puts}"}}
            await self.journal.put(wanted, reply, world.FACTS)
            self.calls[item, part, nth] = reply
            self.puts += 1
            return reply

        async def twice() -> Any:
            return await asyncio.gather(asked(), asked())

        first, second = self.does(twice())
        assert first == second == self.calls[item, part, nth]

    @rule(item=ITEMS, part=PARTS)
    def fail(self, item: int, part: int) -> None:
        async def failing() -> None:
            wanted = world.call(item, part)
            if await self.journal.take(wanted) is None:
                self.journal.failed(wanted, PortError("busy"), CallFacts())
                self.failures += 1
                await self.journal.put_result(world.done(99), "{}")  # committed with it, or after it
                self.results[99] = ("passed", "{}")

        self.does(failing())

    @rule(item=ITEMS, name=st.sampled_from(["passed", "error"]), text=TEXTS)
    def end(self, item: int, name: str, text: str) -> None:
        self.does(self.journal.put_result(world.done(item, name), json.dumps(text)))
        self.results[item] = (name, json.dumps(text))

    @rule()
    def index(self) -> None:
        self.journal._commits.leave(1)

    @precondition(lambda self: self.crashes < 5)
    @rule()
    def crash(self) -> None:
        """The process ends: what it had acknowledged is in the files as they are now."""
        here = self.here
        self.crashes += 1
        self.here.mkdir()
        for path in here.iterdir():
            if not path.name.endswith("-shm"):
                shutil.copyfile(path, self.here / path.name)
        self.journal.close()
        self.open()

    @rule()
    def close(self) -> None:
        self.does(self.journal.aclose())
        assert check(self.here).problems == ()
        self.open()

    @invariant()
    def everything_is_there(self) -> None:
        if not hasattr(self, "journal"):
            return
        with JournalReader.open(self.here) as reader:
            kept = {(row["key"], row["nth"]) for row in reader.rows(CALLS)}
            assert kept == {(world.call(item, part).key, nth) for item, part, nth in self.calls}
            found = {result.position: (result.outcome, result.line) for result in reader.results()}
            assert found == self.results
            assert [result.position for result in reader.results()] == sorted(self.results)
            assert not reader.damaged
        total = self.journal.ledger.total
        assert (total.calls, total.failed) == (self.puts, self.failures)
        for item in range(6):
            done = self.journal.done(f"task {item}")
            assert (done and done.outcome) == self.results.get(item, (None,))[0]


JournalMachine.TestCase.settings = settings(max_examples=25, stateful_step_count=20, deadline=None)
TestJournal = JournalMachine.TestCase
