"""Measuring CPU time: of fresh processes, and of items inside this one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from statistics import median

from attrs import frozen

from .workload import REPOSITORY, Workload
from .yardstick import REFERENCE, Took, took, yardstick

__all__ = ["Row", "item_rows", "peak_memory", "process", "process_rows"]

Run = Callable[[int], None]
ITEM = {"template_only": 0.5, "run directory": 1.6}
"""Milliseconds per item. The first is what nobody should be slower than; the second is our own, a little above what was
measured, so that keeping does not become dearer unnoticed. All threads count: also the one that writes the journal."""


@frozen
class Row:
    """One measured thing. Times are CPU milliseconds, user and system together, unless `detail` says wall."""

    name: str
    value: float
    budget: float | None = None
    """As it was set; where there is a yardstick, for the machine on which it was set."""
    ratio: float | None = None
    """Of this to the bare thing beside it, both measured in turns in the same run."""
    detail: str = ""
    unit: str = "ms"
    yardstick: float | None = None
    """What the yardstick took in turns with this, on the same clock. None: the budget is the same on every machine."""
    waited: float = 0.0
    """Milliseconds in which nothing is computed, of the value and of its budget: no machine is faster at that."""

    @property
    def pieces(self) -> float | None:
        """The value as a multiple of the yardstick."""
        return None if self.yardstick is None else (self.value - self.waited) / self.yardstick

    @property
    def here(self) -> float | None:
        """The budget on this machine, as fast as it was meanwhile: a slower one may take longer, and a faster one may
        take what was set."""
        if self.budget is None or self.yardstick is None:
            return self.budget
        return max(self.budget, self.waited + (self.budget - self.waited) * self.yardstick / REFERENCE)

    @property
    def verdict(self) -> str:
        if self.here is None:
            return ""
        return "within" if self.value <= self.here else "OVER"


def peak_memory() -> float:
    """The most memory that this process has had resident, in MB. What the parent had is no part of it."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def process(command: Sequence[str]) -> Took:
    """What one run of a command takes, its children included. Raises CalledProcessError."""
    began = time.perf_counter()
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as started:
        assert started.stderr is not None
        complaint = started.stderr.read()
        _, status, usage = os.wait4(started.pid, 0)
        wall = time.perf_counter() - began
        started.returncode = os.waitstatus_to_exitcode(status)
    if started.returncode:
        raise subprocess.CalledProcessError(started.returncode, command, stderr=complaint)
    return Took((usage.ru_utime + usage.ru_stime) * 1000, wall * 1000)


def process_rows(rounds: int) -> list[Row]:
    """A bare interpreter, the import of the core, and the help of the command line; the median of `rounds` each.

    They and the yardstick take turns, so that whatever else the machine does meets all of them alike. The help is what
    somebody waits for: it has a budget by the clock.
    """
    commands = {
        "python -c pass": "pass",
        "import karenina_core": "import karenina_core",
        "karenina --help": "import sys; sys.argv = ['karenina', '--help']; from karenina_cli import main; main()",
    }
    for code in commands.values():
        process([sys.executable, "-c", code])  # byte code is compiled and files are in the cache from here on
    turns: list[Took] = []
    seen: dict[str, list[Took]] = {name: [] for name in commands}
    for _ in range(rounds):
        turns.append(yardstick())
        for name, code in commands.items():
            seen[name].append(process([sys.executable, "-c", code]))
    bare, imported, helped = seen.values()
    return [
        _cpu_row("python -c pass", bare, bare, turns),
        _cpu_row("import karenina_core", imported, bare, turns, 60.0),
        Row(
            "karenina --help",
            median(took.wall for took in helped),
            120.0,
            median(took.wall for took in helped) / median(took.wall for took in bare),
            f"wall; CPU {median(took.cpu for took in helped):.1f}; {_span([took.wall for took in helped])}",
            yardstick=median(took.wall for took in turns),
        ),
    ]


def _cpu_row(
    name: str, seen: Sequence[Took], bare: Sequence[Took], turns: Sequence[Took], budget: float | None = None
) -> Row:
    times = [took.cpu for took in seen]
    ratio = median(times) / median(took.cpu for took in bare)
    return Row(name, median(times), budget, ratio, _span(times), yardstick=median(took.cpu for took in turns))


def _span(times: Sequence[float]) -> str:
    return f"min {min(times):.1f}, max {max(times):.1f}"


def item_rows(items: int, rounds: int) -> list[Row]:
    """CPU per item that is verified in this process, and CPU of a run beside its items, without and with a run
    directory.

    Runs of two sizes take turns: what the larger one takes more is that of its items, what is left of the smaller one
    is that of every run, however few items it has: its checks, and opening and closing what it uses. What else the
    machine does only adds to both, and much to their difference: so the fastest of `rounds` count, here alone.
    """
    workload = Workload()
    few = max(1, items // 10)
    runs: dict[str, Run] = {"template_only": workload, "run directory": workload.in_directory}
    for run in runs.values():
        run(few)  # imports and first uses are not an item's cost
    turns: list[float] = []
    seen: dict[tuple[str, int], list[float]] = {(name, size): [] for name in runs for size in (few, few + items)}
    for _ in range(rounds):
        for (name, size), times in seen.items():
            turns.append(yardstick().cpu)
            times.append(took(partial(runs[name], size)).cpu)
    quiet = {of: min(times) for of, times in seen.items()}
    of_items = {name: (quiet[name, few + items] - quiet[name, few]) / items for name in runs}
    bare, piece = of_items["template_only"], min(turns)
    rows = []
    for name, value in of_items.items():
        about = f"fastest; {few + items} items less {few}, no HTTP"
        rows.append(Row(f"one item, {name}", value, ITEM[name], value / bare, about, yardstick=piece))
    for name, value in of_items.items():
        about = f"fastest; beside its items; {quiet[name, few]:.1f} with {few} of them"
        rows.append(Row(f"a run, {name}", quiet[name, few] - few * value, detail=about, yardstick=piece))
    return rows
