"""Does a loader of benchmarks read its own files, and leave alone those of others?"""

from __future__ import annotations

import random
import re
import tempfile
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import fields, frozen

from karenina_core.errors import BenchmarkError
from karenina_core.plugin.application import Karenina
from karenina_core.values.benchmark import BenchmarkData

from .checks import Check, Fault, Promises, Raised, attempt, difference, expecting, promise_checks, shown
from .fakes import application
from .watch.audit import CANARY, watching
from .watch.source_lines import file_of, line_at, line_of_function

LOAD, SAVE = "karenina_load_benchmark", "karenina_save_benchmark"
JSONLD = b'{"@context": {"@vocab": "http://schema.org/"}, "@type": "DataFeed", "name": "b", "dataFeedElement": []}'
FOREIGN: Mapping[str, bytes] = {
    "benchmark.jsonld": JSONLD,
    "benchmark.foreign-format": JSONLD,
    "notes.foreign-format": b"What is the capital of France? Paris.\n",
    "results.foreign-format": b"question,answer\nWhat is the capital of France?,Paris\n",
    "empty.foreign-format": b"",
    "archive.foreign-format": b"PK\x03\x04\x00\x00\xff\xfe\x80",
}
PAYLOAD = f"__import__('sys').audit('{CANARY}')"
WORDS = re.compile(rb"[^\W\d_][\w ?.,]{5,}")
REFUSE = "raise BenchmarkError with what is wrong and where, or return None where the file is not yours"


@frozen
class Loader:
    """The hooks of a plugin that read and write benchmarks, and files that it reads."""

    plugin: Any
    files: Mapping[str, bytes]
    app: Karenina
    max_examples: int

    def load(self, name: str, data: bytes) -> Any:
        """What it makes of a file, which is in a folder of its own."""
        with tempfile.TemporaryDirectory(prefix="karenina-loader-") as folder:
            path = Path(folder) / name
            path.write_bytes(data)
            return self._called(LOAD, path=path, data=data, app=self.app, options={})

    def save(self, benchmark: BenchmarkData, name: str) -> Any:
        with tempfile.TemporaryDirectory(prefix="karenina-loader-") as folder:
            return self._called(SAVE, benchmark=benchmark, path=Path(folder) / name, app=self.app)

    def read(self) -> Iterator[tuple[str, BenchmarkData]]:
        """Its own files that it can read; what it cannot is reported by `reads`."""
        for name, data in self.files.items():
            found = attempt(self.load, name, data)
            if isinstance(found, BenchmarkData):
                yield name, found

    def _called(self, hook: str, **arguments: Any) -> Any:
        function = getattr(self.plugin, hook)
        wanted = function.__code__.co_varnames[: function.__code__.co_argcount]
        return function(**{name: value for name, value in arguments.items() if name in wanted})

    def fault(self, problem: str, remedy: str = "", hook: str = LOAD) -> Fault:
        return Fault(problem, line_of_function(getattr(self.plugin, hook)), remedy)

    def raised(self, error: BaseException, about: str) -> Fault:
        line = line_of_function(getattr(self.plugin, LOAD))
        return Fault.raised(error, REFUSE, by=f"for {about} it", line=line, file=file_of(getattr(self.plugin, LOAD)))


def loader_checks(
    plugin: Any,
    *,
    files: Mapping[str, bytes],
    app: Karenina | None = None,
    expected_failures: Mapping[str, str] | None = None,
    max_examples: int = 50,
) -> list[Check]:
    """One check for every promise of `karenina_load_benchmark`, and of `karenina_save_benchmark` where there is one.

    `plugin` is the module or object with the hooks; `files` are files that it reads, name and content. Raises
    ValueError where there are none.
    """
    if not files:
        raise ValueError("give the checks files that it reads: files={'a.name': b'...'}")
    loader = Loader(plugin, dict(files), app or application(plugin), max_examples)
    promises = {**PROMISES, **(SAVES if hasattr(plugin, SAVE) else {})}
    return expecting(promise_checks("loader of benchmarks", loader, promises, Fault.raised), expected_failures, SAVES)


PROMISES: Promises[Loader] = Promises()
SAVES: Promises[Loader] = Promises()


@PROMISES.add("reads", "It reads its own files.")
def _reads(loader: Loader) -> Iterator[Fault]:
    for name, data in loader.files.items():
        found = attempt(loader.load, name, data)
        if isinstance(found, Raised):
            yield loader.raised(found.error, name)
        elif not isinstance(found, BenchmarkData):
            remedy = "return a karenina_core.BenchmarkData, or give the checks a file of its own"
            yield loader.fault(f"for {name} it returned {shown(repr(found))}", remedy)
        elif not found.questions:
            yield loader.fault(f"in {name} it found no question", "give the checks a file with questions")


@PROMISES.add("others", "It returns None for the files of others.")
def _others(loader: Loader) -> Iterator[Fault]:
    for name, data in FOREIGN.items():
        suffixes = {Path(own).suffix for own in loader.files}
        if Path(name).suffix in suffixes or (data is JSONLD and ".jsonld" in suffixes):
            continue
        found = attempt(loader.load, name, data)
        if isinstance(found, Raised):
            yield loader.raised(found.error, name)
        elif found is not None:
            remedy = "look at the suffix, or at how the content begins, and return None for what is not yours"
            yield loader.fault(f"it took {name}, {shown(repr(data))}", remedy)


@PROMISES.add("json_ld", "It leaves JSON-LD to the loader of JSON-LD.")
def _json_ld(loader: Loader) -> Iterator[Fault]:
    """Also where its own files are JSON of another form."""
    if any(Path(name).suffix == ".jsonld" for name in loader.files):
        return
    for name in ("benchmark.jsonld", "benchmark.json"):
        found = attempt(loader.load, name, JSONLD)
        if isinstance(found, BenchmarkData):
            yield loader.fault(f"it took {name}, which is JSON-LD", "return None where there is an '@context'")


@PROMISES.add("repeatable", "The same file gives the same benchmark, with the same ids of questions.")
def _repeatable(loader: Loader) -> Iterator[Fault]:
    """Each time in another folder: an id of a path would be another one on another machine."""
    for name, first in loader.read():
        second = loader.load(name, loader.files[name])
        for one, other in zip(first.questions, getattr(second, "questions", ()), strict=False):
            if one.id != other.id:
                problem = f"a question of {name} had the id {one.id!r}, and then {other.id!r}"
                yield loader.fault(problem, "let ids follow from the content: leave `id` out, or read it from the file")
        if differs := difference(_data(first), _data(second)):
            yield loader.fault(f"{name}, read twice, differs: {differs}", "depend on the content alone")


@PROMISES.add("inert", "Nothing in a file is executed, and no other file is requested.")
def _inert(loader: Loader) -> Iterator[Fault]:
    for name, data in loader.files.items():
        for text in (data, *_with_payload(data)):
            with watching(threads=False) as seen:
                attempt(loader.load, name, text)
            for what, where in seen.items():
                yield Fault(f"reading {name} {what}", line_at(*where), "read the file as data")


def _with_payload(data: bytes) -> Iterator[bytes]:
    """The file with code in place of one of its first texts."""
    for found in [*WORDS.finditer(data)][:20]:
        yield data[: found.start()] + PAYLOAD.encode() + data[found.end() :]


@PROMISES.add("broken", "Broken files are refused with BenchmarkError, or left to others; nothing else is raised.")
def _broken(loader: Loader) -> Iterator[Fault]:
    for name, data in loader.files.items():
        for number, broken in enumerate(_damaged(data, loader.max_examples)):
            found = attempt(loader.load, name, broken)
            if isinstance(found, Raised) and not isinstance(found.error, BenchmarkError):
                about = shown(repr(broken)) if len(broken) <= 200 else f"{name}, damaged in way {number},"
                yield loader.raised(found.error, about)
            elif not isinstance(found, Raised | BenchmarkData | None):
                yield loader.fault(f"for a damaged {name} it returned {shown(repr(found))}", REFUSE)


def _damaged(data: bytes, count: int) -> Iterator[bytes]:
    """A file that was cut off, that holds other bytes, or that is something else; the shortest first."""
    yield from (b"", b"\n", b"\x00", b"null", b"[]", b"{}", b'""', b"1e999", b"\xff\xfe", b"\xef\xbb\xbf" + data)
    yield from (b"[" * 100_000, b'{"a":' * 100_000)
    drawn = random.Random(0)
    for _ in range(count):
        yield data[: drawn.randrange(len(data) + 1)]
        place = drawn.randrange(len(data) + 1)
        junk = drawn.choice(
            (b"\xff", b"\x00", b'"', b"}", b"null", b"\\ud800", b"-1", b"\n", bytes([drawn.randrange(256)]))
        )
        yield data[:place] + junk + data[place + drawn.randrange(3) :]


@SAVES.add("round_trip", "What it writes, it reads back as it was.")
def _round_trip(loader: Loader) -> Iterator[Fault]:
    for name, benchmark in loader.read():
        data = loader.save(benchmark, name)
        if not isinstance(data, bytes):
            yield loader.fault(f"for {name} it returned {shown(repr(data))}", "return the content as bytes", SAVE)
            return
        again = attempt(loader.load, name, data)
        if isinstance(again, Raised):
            yield loader.raised(again.error, f"what it wrote as {name}")
        elif differs := difference(_data(benchmark), _data(again)):
            yield loader.fault(f"{name} was written and read back changed: {differs}", "write all that is read", SAVE)


@SAVES.add("other_suffixes", "It writes no file with the suffix of another format.")
def _other_suffixes(loader: Loader) -> Iterator[Fault]:
    for _, benchmark in loader.read():
        found = attempt(loader.save, benchmark, "benchmark.foreign-format")
        if isinstance(found, Raised):
            yield Fault.raised(found.error, "return None where the suffix is not yours")
        elif found is not None:
            yield loader.fault("it writes benchmark.foreign-format", "return None where the suffix is not yours", SAVE)


def _data(benchmark: Any) -> Any:
    """What a benchmark says; not the loader's own record of the file."""
    if not isinstance(benchmark, BenchmarkData):
        return benchmark
    names = [f.name for f in fields(BenchmarkData) if f.eq and f.name != "date_modified"]  # a writer may set that
    return {name: getattr(benchmark, name) for name in names}
