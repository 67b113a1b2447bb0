"""Runs whose process ends right before or after any of its writes: nothing is lost, and every file is old or new.

All write points are listed here: one that is not is a write that nobody has thought about, and fails the test.
"""

from __future__ import annotations

import importlib.util
import random
import shutil
from collections.abc import Callable, Iterable, Iterator
from itertools import count
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from karenina_runs.journal.check import check

from karenina_core.testing import ScriptedServer


def loaded(name: str) -> Any:
    spec = importlib.util.spec_from_file_location(f"{name}_points", Path(__file__).with_name(f"{name}.py"))
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr] # a file that is there has a loader
    return module


world, invariants = loaded("run_world"), loaded("invariants")
WATCHING = f"""\
from importlib.util import module_from_spec, spec_from_file_location
spec = spec_from_file_location("write_points", {str(Path(__file__).with_name("write_points.py"))!r})
watching = module_from_spec(spec)
spec.loader.exec_module(watching)
watching.watch({{folder!r}}, {{point!r}}, {{nth}}, {{said!r}})
"""
RECORDING = """\
import sys
from pathlib import Path
from karenina_runs.folder.recording import write_recording
from karenina_runs.journal.reader import JournalReader
with JournalReader.open({run!r}) as reader:
    write_recording(reader, Path({file!r}))
sys.exit(0)
"""
QUESTIONS, CONCURRENCY, AT_ONCE = 3, 2, 3
REPLACING = ["open .{0}.*", "fsync .{0}.*", "rename .{0}.* to {0}"]
FOLDER = ["open run", "fsync run"]
PLACE = ["fsync a nameless file", "open run.lock", "pwrite run.lock"]
OPENING = [
    *("journal.sqlite: PRAGMA journal_mode = WAL", "journal.sqlite: PRAGMA trusted_schema = OFF"),
    *("journal.sqlite: PRAGMA synchronous = FULL", "journal.sqlite: PRAGMA wal_autocheckpoint"),
]
MAKING = [
    *(f".journal.sqlite.new: {what}" for what in ("PRAGMA page_size", "BEGIN", "PRAGMA application_id")),
    *(f".journal.sqlite.new: {what}" for what in ("PRAGMA user_version", "COMMIT", "PRAGMA journal_mode = WAL")),
    *(f".journal.sqlite.new: CREATE TABLE {name}" for name in ("calls", "failures", "results", "batches", "meta")),
    *(f".journal.sqlite.new: CREATE TABLE {name}" for name in ("copies", "call_places", "result_places")),
    *(f".journal.sqlite.new: INSERT OR REPLACE INTO {name}" for name in ("meta", "copies")),
]
WRITING = [
    *(f"journal.sqlite: {what}" for what in ("BEGIN", "INSERT INTO calls", "INSERT INTO results", "COMMIT")),
    *(f"journal.sqlite: INSERT OR IGNORE INTO {name}" for name in ("call_places", "result_places")),
    *("journal.sqlite: INSERT OR REPLACE INTO meta", "journal.sqlite: PRAGMA wal_checkpoint(TRUNCATE)"),
]


def replacing(*names: str) -> list[str]:
    return [point.format(name) for name in names for point in REPLACING] + FOLDER


BEGUN = ["mkdir run", *PLACE, *replacing("fingerprint.json", "manifest.json"), *MAKING]
ENDED = [*OPENING, *WRITING, *replacing("results.jsonl", "manifest.json")]
EXPORT = [
    *("open table.csv.*.partial", "fsync table.csv.*.partial"),
    *("rename table.csv.*.partial to table.csv", "fsync watched"),
]
SALVAGED = ".journal-salvaged.sqlite.new"
SAVING = [
    *(f"{SALVAGED}: PRAGMA {what}" for what in ("page_size", "journal_mode = OFF", "application_id", "user_version")),
    *(f"{SALVAGED}: {what}" for what in ("BEGIN", "COMMIT", "SELECT", "PRAGMA journal_mode = WAL")),
    *(f"{SALVAGED}: CREATE TABLE {name}" for name in ("calls", "failures", "results", "batches", "meta")),
    *(f"{SALVAGED}: CREATE TABLE {name}" for name in ("copies", "call_places", "result_places")),
    *(f"{SALVAGED}: DELETE FROM {name}" for name in ("calls", "failures", "results", "batches", "meta", "copies")),
    *(f"{SALVAGED}: INSERT OR REPLACE INTO {name}" for name in ("calls", "meta", "copies")),
    f"{SALVAGED}: INSERT INTO call_places",
    *(f"fsync {SALVAGED}", f"rename {SALVAGED} to journal-salvaged.sqlite"),
    *("open run.lock", "pwrite run.lock", "link journal.sqlite-wal to journal-damaged-*.sqlite-wal"),
    *("link journal.sqlite to journal-damaged-*.sqlite", "remove journal.sqlite-wal", "remove journal.sqlite-shm"),
    *("rename journal-salvaged.sqlite to journal.sqlite", "fsync run"),
]
NEW_NAME = ["rename .journal.sqlite.new to journal.sqlite"]
POINTS = {
    "verify": {*BEGUN, *NEW_NAME, *ENDED, *EXPORT},
    "doctor": set(SAVING),
    "recording": {*(point.format("calls.jsonl") for point in REPLACING), "fsync watched"},
    "resume": {*PLACE, *ENDED},
}


class End(NamedTuple):
    """When a process ends: when this point comes for the n-th time."""

    point: str
    """Empty: any point."""
    nth: int


NEVER = End("", 0)


class Ending:
    """A command that is ended at its write points, each time in a folder of its own."""

    def __init__(self, forking: Any, folder: Path, server: ScriptedServer, chance: random.Random) -> None:
        self.forking, self.folder, self.server, self.chance = forking, folder, server, chance
        self.benchmark = world.write_benchmark(folder / "capitals.jsonld", QUESTIONS)

    def there(self, name: object) -> Path:
        """Where the command with this name works."""
        return self.folder / str(name)

    def config(self, name: object) -> Path:
        """Requests of this command can be told from others."""
        url = self.server.url.removesuffix("/v1") + f"/of-{name}/v1"
        path: Path = world.write_config(self.there(name) / "config.toml", url, CONCURRENCY)
        return path

    def asked(self, name: object) -> int:
        return sum(request.path.startswith(f"/of-{name}/") for request in self.server.requests)

    def start(self, name: object, words: Iterable[object], end: End = NEVER, prelude: str = "") -> Any:
        there = self.there(name)
        about = {"point": end.point, "nth": end.nth, "said": str(there / "points")}
        watching = WATCHING.format(folder=str(there / "watched"), **about)
        telling = world.TELLING.format(path=str(there / "told"))
        return self.forking.start(*words, prelude=world.NAMED + telling + watching + prelude)

    def points(self, name: object) -> list[str]:
        return (self.there(name) / "points").read_text("utf-8").splitlines()

    def every(self, begin: Callable[[object, End], Any], known: set[str], *, long: bool) -> Iterator[list[str]]:
        """Names of commands that were ended: at any occurrence of every point, or at every one. Some at a time."""
        whole = begin("whole", NEVER)
        assert whole.wait() == 0, whole.stderr
        points = self.points("whole")
        assert set(points) == known, f"another write point: {sorted(set(points) ^ known)}; list it, once it is safe"
        ends = [End(point, self.chance.randint(1, points.count(point))) for point in sorted(known)]
        if long:
            ends += [End("", nth) for nth in range(1, len(points) + 1)]
        met: set[str] = set()
        numbers = count(1)
        while ends:
            now, ends = ends[:AT_ONCE], ends[AT_ONCE:]
            names = [f"run-{next(numbers)}" for _ in now]
            for name, end, started in [(name, end, begin(name, end)) for name, end in zip(names, now, strict=True)]:
                code = started.wait()
                assert code in (0, 9), (end, started.stderr)
                met.add(self.points(name)[-1])
                if code == 0 and end.nth > 1:  # more was committed at a time, and the point came less often
                    ends.append(End(end.point, end.nth - 1))
            yield names
        assert met == known

    def finish(self, names: Iterable[object]) -> None:
        """Go on with what there is until it is done: what was acknowledged is there, and little was asked again."""
        for name, started in [(name, self._going_on(name)) for name in names]:
            assert started.wait() == 0, (name, started.stderr)
            run, told = self.there(name) / "watched" / "run", self.there(name) / "told"
            invariants.assert_journal(run, *world.told(told))
            invariants.assert_run(run)
            kept = [line for line in told.read_text("utf-8").splitlines() if line.startswith("kept")]
            assert len(kept) == len(set(kept)), "what was acknowledged was asked again"
            assert self.asked(name) <= 2 * QUESTIONS + CONCURRENCY

    def _going_on(self, name: object) -> Any:
        run = self.there(name) / "watched" / "run"
        if (run / "manifest.json").exists():
            return self.start(name, ["resume", run])
        config = self.there(name) / "config.toml"
        return self.start(name, ["verify", self.benchmark, "--config", config, "--out", run])


@pytest.fixture
def ending(forking: Any, tmp_path: Path) -> Iterator[Ending]:
    seed = random.randrange(1 << 30)
    print("seed", seed)
    with ScriptedServer(world.answering(0.01)) as server:
        yield Ending(forking, tmp_path, server, random.Random(seed))


def test_a_run_that_ends_at_any_write_loses_nothing(ending: Ending, long: bool) -> None:
    def begin(name: object, end: End) -> Any:
        there = ending.there(name)
        (there / "watched").mkdir(parents=True)
        (there / "watched" / "table.csv").write_text("of before\n")
        words = ["verify", ending.benchmark, "--config", ending.config(name), "--out", there / "watched" / "run"]
        return ending.start(name, [*words, "--export", there / "watched" / "table.csv"], end)

    expected = None
    whole = ending.there("whole") / "watched"
    for names in ending.every(begin, POINTS["verify"], long=long):
        for name in names:
            watched = ending.there(name) / "watched"
            assert_is_whole(watched / "run")
            expected = expected or (whole / "table.csv").read_bytes().count(b"\n")
            assert (watched / "table.csv").read_bytes().count(b"\n") in (1, expected)
        ending.finish(names)
        for name in names:
            assert world.results(ending.there(name) / "watched" / "run") == world.results(whole / "run")


def killed_run(ending: Ending) -> Path:
    """A run whose process has ended when something was in the log alone."""
    (ending.there("killed") / "watched").mkdir(parents=True)
    run = ending.there("killed") / "watched" / "run"
    words = ["verify", ending.benchmark, "--config", ending.config("killed"), "--out", run]
    assert ending.start("killed", words, End("journal.sqlite: INSERT INTO results", 1)).wait() == 9
    assert (run / "journal.sqlite-wal").stat().st_size
    (ending.there("killed") / "points").unlink()
    return run


def test_going_on_with_a_run_that_ends_at_any_write_loses_nothing(ending: Ending, long: bool) -> None:
    killed_run(ending)

    def begin(name: object, end: End) -> Any:
        shutil.copytree(ending.there("killed"), ending.there(name))
        return ending.start(name, ["resume", ending.there(name) / "watched" / "run"], end)

    whole = world.results
    for names in ending.every(begin, POINTS["resume"], long=long):
        for name in names:
            assert_is_whole(ending.there(name) / "watched" / "run")
        ending.finish(names)
        for name in names:
            assert whole(ending.there(name) / "watched" / "run") == whole(ending.there("whole") / "watched" / "run")


def test_saving_a_damaged_journal_that_ends_at_any_write_leaves_the_old_one_or_the_new(
    ending: Ending, long: bool
) -> None:
    log = killed_run(ending) / "journal.sqlite-wal"
    data = bytearray(log.read_bytes())
    data[len(data) * 2 // 3] ^= 1
    log.write_bytes(data)

    def begin(name: object, end: End) -> Any:
        shutil.copytree(ending.there("killed"), ending.there(name))
        return ending.start(name, ["doctor", ending.there(name) / "watched" / "run", "--replace"], end)

    def saved(name: str) -> set[Any]:
        calls: set[Any] = world.stored(ending.there(name) / "watched" / "run")[0]
        return calls

    for names in ending.every(begin, POINTS["doctor"], long=long):
        for name in names:
            run = ending.there(name) / "watched" / "run"
            assert (run / "journal.sqlite").exists()
            if not check(run).sound:
                again = ending.start(name, ["doctor", run, "--replace"])
                assert again.wait() == 0, again.stderr
            assert check(run).sound
            assert saved(name) == saved("whole")
        (ending.there(names[0]) / "told").unlink()  # the damage may have cost a row
        ending.finish(names[:1])


def test_a_recording_that_ends_at_any_write_is_the_old_one_or_the_new(ending: Ending, long: bool) -> None:
    run = ending.there("run") / "watched" / "run"
    run.parent.mkdir(parents=True)
    words = ["verify", ending.benchmark, "--config", ending.config("run"), "--out", run]
    assert ending.start("run", words).wait() == 0

    def begin(name: object, end: End) -> Any:
        file = ending.there(name) / "watched" / "calls.jsonl"
        file.parent.mkdir(parents=True)
        file.write_text("of before\n")
        return ending.start(name, [], end, RECORDING.format(run=str(run), file=str(file)))

    for names in ending.every(begin, POINTS["recording"], long=long):
        for name in names:
            lines = (ending.there(name) / "watched" / "calls.jsonl").read_text("utf-8").splitlines()
            assert len(lines) == 2 * QUESTIONS or lines == ["of before"]


def assert_is_whole(run: Path) -> None:
    """Every file that has a name of its own is complete, the journal is sound, and the run can be looked at."""
    if not run.exists():
        return
    for path in run.iterdir():
        if path.suffix == ".json" and not path.name.startswith("."):
            assert path.read_text("utf-8").rstrip().endswith("}")
    if (run / "journal.sqlite").exists():
        assert check(run).problems == ()
        invariants.assert_run(run, complete=False)
