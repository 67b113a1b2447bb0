"""Does a sink keep every result, once, whole, and without secrets?"""

from __future__ import annotations

import asyncio
import inspect
import json
import shutil
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cache
from pathlib import Path
from typing import Any

from attrs import evolve, frozen
from karenina_runs.results.sinks import RunInfo, Sinks

from karenina_core.errors import one_line
from karenina_core.values.convert import unstructure
from karenina_core.values.result import VerificationResult

from .checks import Check, Fault, Promises, Raised, attempt, difference, expecting, promise_checks
from .examples import every
from .strategies import results
from .watch.loops import in_loop
from .watch.source_lines import line_of_attribute

Factory = Callable[[str], Any]
ReadBack = Callable[[str], Iterable[VerificationResult | str]]
MANY = 12  # results: enough to be in each other's way
SECRETS = ("karenina-canary-secret-0123456789", 'quoted "canary" \\ caf\u00e9 0123456789')
WHOLE = "write a record in one piece, or take an asyncio.Lock"
FLUSH = "write it to disk in `write`, or at the latest in `close`"
REMEMBER = "look in `open` which ids are stored, and leave out results whose metadata.result_id is known"
REPLACE = "where run.resumed is set, let another result of the same metadata.result_id take the place of the first"
MEND = "in `open`, keep the complete part of what is stored, and remove what a crash cut off"
REDACT = (
    "replace run.secrets in every text, keys of mappings too, before it is encoded: karenina_calls.secrets.redaction"
)


@cache
def examples() -> tuple[VerificationResult, ...]:
    """Random results, no two of them with the same id."""
    found = every(results(), MANY)
    return tuple(evolve(r, metadata=evolve(r.metadata, result_id=f"{n:016x}")) for n, r in enumerate(found, 1))


def replied(result: VerificationResult, reply: str) -> VerificationResult:
    """The result with another reply of the answering model."""
    return evolve(result, generation=evolve(result.generation, raw_llm_response=reply))


@frozen
class SinkSubject:
    """A sink, and a place to write to."""

    factory: Factory
    reader: ReadBack | None
    path: Path = Path()
    secrets: frozenset[str] = frozenset()
    resumed: bool = False

    @contextmanager
    def target(self, *secrets: str) -> Iterator[SinkSubject]:
        """The same with a place of its own, which is removed afterwards."""
        with tempfile.TemporaryDirectory(prefix="karenina-sink-") as folder:
            yield evolve(self, path=Path(folder) / "results", secrets=frozenset(secrets))

    def fault(self, problem: str, method: str, remedy: str = "") -> Fault:
        """A fault of a method of the sink."""
        with self.target() as target:
            return Fault(problem, line_of_attribute(type(target.sink()), method), remedy)

    def sink(self) -> Any:
        return self.factory(str(self.path))

    def info(self) -> RunInfo:
        return RunInfo(
            run_name="conformance",
            run_dir=self.path.parent,
            benchmark="b",
            items=MANY,
            secrets=self.secrets,
            resumed=self.resumed,
        )

    def write(
        self, written: Sequence[VerificationResult], sink: Any = None, *, at_once: bool = False, closed: bool = True
    ) -> None:
        """Open a sink, write the results one after the other or at the same time, close it."""

        async def run() -> None:
            used = sink or self.sink()
            await used.open(self.info())
            if at_once:
                await asyncio.gather(*(used.write(result) for result in written))
            else:
                for result in written:
                    await used.write(result)
            if closed:
                await used.close({"outcomes": {"passed": len(written)}})

        in_loop(run())

    def stored(self) -> list[VerificationResult | str]:
        return list(self.reader(str(self.path))) if self.reader else []

    def count(self, result: VerificationResult) -> int:
        """How many records there are of a result."""
        return self.counts([result])[0]

    def counts(self, results: Sequence[VerificationResult]) -> list[int]:
        """How many records there are of each result: what is stored is read once."""
        names = [result.metadata.result_id for result in results]
        if self.reader is None:
            content = self.everything()
            return [content.count(name.encode()) for name in names]
        stored = Counter(map(id_of, self.stored()))
        return [stored[name] for name in names]

    def missing(self, results: Sequence[VerificationResult]) -> list[VerificationResult]:
        """Those of the results of which there is no record."""
        return [result for result, count in zip(results, self.counts(results), strict=True) if not count]

    def everything(self) -> bytes:
        """The content of every file."""
        return b"\n".join(file.read_bytes() for file in sorted(self.path.parent.rglob("*")) if file.is_file())


def id_of(record: VerificationResult | str) -> str:
    return record if isinstance(record, str) else record.metadata.result_id


def sink_checks(
    factory: Factory, read_back: ReadBack | None = None, *, expected_failures: Mapping[str, str] | None = None
) -> list[Check]:
    """One check for every promise of a sink.

    `factory` makes a sink for a target, the path of a file that does not exist yet in a folder of its own; it may
    ignore it. `read_back` gives what is stored at a target: the results, or the `result_id` of each record where whole
    results are not kept. Without it, records are counted by looking for their ids in the files of the folder.
    """
    name = getattr(factory, "name", None) or getattr(factory, "__name__", "sink")
    subject = SinkSubject(factory, read_back)
    return expecting(promise_checks(f"sink {name}", subject, PROMISES, Fault.raised), expected_failures)


PROMISES: Promises[SinkSubject] = Promises()


@PROMISES.add("methods", "It has open, write and close as coroutine functions.")
def _methods(subject: SinkSubject) -> Iterator[Fault]:
    with subject.target() as target:
        sink = target.sink()
    for method in ("open", "write", "close"):
        if not inspect.iscoroutinefunction(getattr(sink, method, None)):
            yield subject.fault(
                f"it has no `async def {method}`", method, "add it; see karenina_runs.results.sinks.Sink"
            )


@PROMISES.add("keeps", "What is written is stored after close.")
def _keeps(subject: SinkSubject) -> Iterator[Fault]:
    with subject.target() as target:
        target.write(examples())
        for result in target.missing(examples()):
            yield subject.fault(f"result {result.metadata.result_id} was written and is not there", "write", FLUSH)


@PROMISES.add("idempotent", "Writing a result again changes nothing, also after a new start.")
def _idempotent(subject: SinkSubject) -> Iterator[Fault]:
    first, *others = examples()
    with subject.target() as once, subject.target() as twice:
        once.write([first, *others])
        twice.write([first, first, *others])
        if (counted := twice.count(first)) != once.count(first):
            problem = f"a result was written twice in a row, and there are {counted} records of it"
            yield subject.fault(problem, "write", REMEMBER)
        twice.write([first])
        if (counted := twice.count(first)) != once.count(first):
            problem = f"a result was written again after a new start, and there are {counted} records of it"
            yield subject.fault(problem, "open", REMEMBER)
        if lost := twice.missing(others):
            problem = f"after a new start result {lost[0].metadata.result_id} was gone"
            yield subject.fault(problem, "open", "append to what is stored")


@PROMISES.add("replaces", "In a resumed run another result of an item takes the place of the first.")
def _replaces(subject: SinkSubject) -> Iterator[Fault]:
    """What had failed in an interrupted run has another result when the run goes on."""
    first, *others = examples()
    again = replied(first, "what came of the second attempt")
    with subject.target() as once, subject.target() as target:
        once.write([again, *others])
        target.write([first, *others[:-1]])
        evolve(target, resumed=True).write([*others, again, others[0], again])
        if (counted := target.count(first)) != once.count(first):
            problem = f"a resumed run replaced a result, and there are {counted} records of it"
            yield subject.fault(problem, "write", REPLACE)
        for record in target.stored():
            replaced = isinstance(record, VerificationResult) and id_of(record) == first.metadata.result_id
            if replaced and (differs := difference(again, record)):
                problem = f"a resumed run replaced a result, and the previous one is still stored: {differs}"
                yield subject.fault(problem, "write", REPLACE)
        counts = zip(others, target.counts(others), once.counts(others), strict=True)
        if lost := [other for other, found, wanted in counts if found != wanted]:
            problem = f"a resumed run replaced a result, and result {lost[0].metadata.result_id} is not there once"
            yield subject.fault(problem, "write", REPLACE)


@PROMISES.add("odd_text", "Odd text is stored, and read back as it was.")
def _odd_text(subject: SinkSubject) -> Iterator[Fault]:
    broken = replied(examples()[0], "a\ud800b")
    with subject.target() as target:
        target.write([broken])
        if not target.count(broken):
            yield subject.fault("a result with a lone surrogate is not there", "write", FLUSH)
    with subject.target() as target:
        target.write(examples())
        stored = {id_of(record): record for record in target.stored()}
    for result in examples():
        record = stored.get(result.metadata.result_id)
        if isinstance(record, VerificationResult) and (differs := difference(result, record)):
            yield subject.fault(f"a result was read back changed: {differs}", "write", "store text as it is")


@PROMISES.add("closes_twice", "Closing it twice is harmless.")
def _closes_twice(subject: SinkSubject) -> Iterator[Fault]:
    with subject.target() as once, subject.target() as twice:
        once.write(examples()[:1])
        sink = twice.sink()
        twice.write(examples()[:1], sink)
        in_loop(sink.close({}))
        if twice.count(examples()[0]) != once.count(examples()[0]):
            yield subject.fault("closing it twice changed what is stored", "close", "do nothing the second time")


@PROMISES.add("nothing_written", "A run without results leaves no record.")
def _nothing_written(subject: SinkSubject) -> Iterator[Fault]:
    with subject.target() as target:
        target.write([])
        if records := target.stored():
            yield subject.fault(f"nothing was written, and {records[0]!r} is there", "close")


@PROMISES.add("secrets", "No secret of the run is written.")
def _secrets(subject: SinkSubject) -> Iterator[Fault]:
    first, second = examples()[:2]
    leaking = [replied(first, f"the key is {secret}.") for secret in SECRETS]
    leaking[1] = evolve(
        leaking[1], metadata=evolve(second.metadata, error=SECRETS[0]), extensions={"p": {SECRETS[1]: 1}}
    )
    with subject.target(*SECRETS) as target:
        target.write(leaking)
        content = target.everything() + json.dumps([unstructure(record) for record in target.stored()]).encode()
    for secret in SECRETS:
        written = (secret, *(json.dumps(secret, ensure_ascii=ascii)[1:-1] for ascii in (True, False)))
        if any(form.encode() in content for form in written):
            yield subject.fault(f"the secret {secret!r} was written", "write", REDACT)


@PROMISES.add("concurrent", "Results written at the same time stay whole.")
def _concurrent(subject: SinkSubject) -> Iterator[Fault]:
    with subject.target() as alone, subject.target() as together:
        alone.write(examples())
        together.write(examples(), at_once=True)
        stored = attempt(together.stored)
        if isinstance(stored, Raised):  # a torn record is unreadable in any way
            problem = f"results written at the same time cannot be read back: {one_line(stored.error)}"
            yield subject.fault(problem, "write", WHOLE)
            return
        counts = zip(examples(), together.counts(examples()), alone.counts(examples()), strict=True)
        for result, found, wanted in counts:
            if found != wanted:
                problem = f"of {MANY} results written at the same time, {result.metadata.result_id} was not stored once"
                yield subject.fault(problem, "write", WHOLE)
        if len(stored) != len(alone.stored()):
            yield subject.fault("results written at the same time are not the same records", "write")


@PROMISES.add("crash", "After a crash before `close` it can be used again, and what is written then is stored.")
def _crash(subject: SinkSubject) -> Iterator[Fault]:
    """What lies in the folder before `close` is what a crash leaves; the same target is then used again."""
    first, others = examples()[: MANY // 2], examples()[MANY // 2 :]

    def again() -> list[VerificationResult]:
        after.write([*first, *others])
        return after.missing(examples())

    with subject.target() as crashed, subject.target() as after:
        sink = crashed.sink()
        crashed.write(first, sink, closed=False)
        shutil.copytree(crashed.path.parent, after.path.parent, dirs_exist_ok=True)
        in_loop(sink.close({}))
        lost = attempt(again)
        if isinstance(lost, Raised):
            problem = f"after a crash in the middle of a run, a new start failed: {one_line(lost.error)}"
            yield subject.fault(problem, "open", MEND)
        elif lost:
            problem = f"a run crashed and was started again, and {lost[0].metadata.result_id} is missing"
            yield subject.fault(problem, "open", MEND)


class _Failing:
    """A sink that fails at every write."""

    async def open(self, run: RunInfo) -> None: ...

    async def write(self, result: VerificationResult) -> None:
        raise OSError("no space left on device")

    async def close(self, summary: Mapping[str, Any]) -> None: ...


@PROMISES.add("beside_another", "The failure of another sink does not touch it.")
def _beside_another(subject: SinkSubject) -> Iterator[Fault]:
    with subject.target() as target:
        sinks = Sinks({"failing": _Failing(), "subject": target.sink()})
        target.write(examples(), sinks)
        if "subject" in sinks.failures:
            yield subject.fault(f"another sink failed, and so did this one: {sinks.failures['subject']}", "write")
        if lost := target.missing(examples()):
            yield subject.fault(f"another sink failed, and {lost[0].metadata.result_id} is missing", "write")
