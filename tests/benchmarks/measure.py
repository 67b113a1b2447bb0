"""Measuring CPU time: of fresh processes, and of items inside this one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from statistics import median

from attrs import frozen

from .workload import REPOSITORY, Workload

__all__ = ["Row", "cpu_of", "item_rows", "peak_memory", "process_rows"]

Run = Callable[[int], None]


@frozen
class Row:
    """One measured thing. Times are CPU milliseconds, user and system together, unless `detail` says wall."""

    name: str
    value: float
    budget: float | None = None
    ratio: float | None = None
    """Of this to the bare thing beside it, both measured in turns in the same run."""
    detail: str = ""
    unit: str = "ms"

    @property
    def verdict(self) -> str:
        if self.budget is None:
            return ""
        return "within" if self.value <= self.budget else "OVER"


def peak_memory() -> float:
    """The most memory that this process has had resident, in MB. What the parent had is no part of it."""
    status = Path("/proc/self/status").read_text("ascii")
    return int(status.partition("VmHWM:")[2].split()[0]) / 1024


def cpu_of(command: Sequence[str]) -> float:
    """CPU milliseconds of one run of a command, its children included. Raises CalledProcessError."""
    with subprocess.Popen(
        command, cwd=REPOSITORY, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    ) as process:
        assert process.stderr is not None
        complaint = process.stderr.read()
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise subprocess.CalledProcessError(process.returncode, command, stderr=complaint)
    return (usage.ru_utime + usage.ru_stime) * 1000


def process_rows(rounds: int) -> list[Row]:
    """A bare interpreter, the import of the core, and the help of the command line; the median of `rounds` each.

    The three take turns, so that whatever else the machine does meets all of them alike.
    """
    call = "import sys; sys.argv = ['karenina', '--help']; from karenina_core.cli import main; main()"
    commands = {
        "python -c pass": [sys.executable, "-c", "pass"],
        "import karenina_core": [sys.executable, "-c", "import karenina_core"],
        "karenina --help": [sys.executable, "-c", call],
    }
    budgets = {"import karenina_core": 60.0, "karenina --help": 120.0}
    for command in commands.values():
        cpu_of(command)  # byte code is compiled and files are in the cache from here on
    times: dict[str, list[float]] = {name: [] for name in commands}
    for _ in range(rounds):
        for name, command in commands.items():
            times[name].append(cpu_of(command))
    bare = median(times["python -c pass"])
    return [
        Row(name, median(seen), budgets.get(name), median(seen) / bare, f"min {min(seen):.1f}, max {max(seen):.1f}")
        for name, seen in times.items()
    ]


def item_rows(items: int, rounds: int) -> list[Row]:
    """CPU per item that is verified in this process, without and with a run directory; the median of `rounds`."""
    workload = Workload()
    runs: dict[str, Run] = {"one item, template_only": workload, "one item, run directory": workload.in_directory}
    seen: dict[str, list[float]] = {name: [] for name in runs}
    for run in runs.values():
        run(max(1, items // 10))  # imports and first uses are not an item's cost
    for _ in range(rounds):
        for name, run in runs.items():
            began = time.process_time()
            run(items)
            seen[name].append((time.process_time() - began) * 1000 / items)
    bare = median(seen["one item, template_only"])
    return [
        Row(
            name,
            median(times),
            None if run == workload.in_directory else 0.5,
            median(times) / bare,
            f"min {min(times):.2f}, max {max(times):.2f}; {items} items, no HTTP",
        )
        for (name, run), times in zip(runs.items(), seen.values(), strict=True)
    ]
