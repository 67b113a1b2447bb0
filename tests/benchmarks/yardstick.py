"""How fast this machine is now: a fixed piece of work, measured in turns with what has a budget in milliseconds.

Budgets were set on one machine. Others are half or twice as fast, and one machine differs from minute to minute. So a
budget in milliseconds is kept as what it is a multiple of: `REFERENCE`, what the piece takes where budgets were set. A
row is over its budget where it takes more pieces of the same run than the budget has pieces of `REFERENCE`.

`python -m tests.benchmarks.yardstick` measures what `REFERENCE` is derived from.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from collections.abc import Callable
from statistics import quantiles

from attrs import frozen

__all__ = ["REFERENCE", "Took", "took", "yardstick"]

BARE = 12.7
"""CPU milliseconds of `python -c pass` where the budgets were set; a median, with nothing else going on. The piece was
not measured there."""
REFERENCE = 20.1
"""Milliseconds of the piece there: 1.584 x BARE, for that is the ratio of the two on a machine with two CPUs at a load
of 1 to 2, measured in turns by `python -m tests.benchmarks.yardstick`, three times. Of 72 processes with 60 turns each,
half had ratios from 1.543 to 1.647, all from 1.400 to 1.802; the three medians were 1.614, 1.546 and 1.579, and the
median of all is known to within 1.57 and 1.61 (95 % of 2000 resamplings). A verdict within 3 % of a budget says little;
on a busier machine the ratio is smaller, for a process that starts is disturbed more than the piece."""
WORDS = ("Mars", "has", "two", "moons", "Phobos", "and", "Deimos", "which", "are", "small")
TIMES = 17_000


@frozen
class Took:
    """Milliseconds: of the CPU, user and system together, and by the clock."""

    cpu: float
    wall: float


class Named:
    """Something that is made and asked, as most of the work is."""

    __slots__ = ("name", "number")

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.number = number

    def told(self) -> str:
        return f"{self.name}={self.number}"


def piece() -> int:
    """Pure Python, as the work of an item is: objects are made and called, texts put together and taken apart, dicts
    filled and asked. Always the same, about 20 ms; no input or output, and hardly any memory."""
    seen: dict[str, int] = {}
    for number in range(TIMES):
        words = f"{WORDS[number % 10]} {number % 97} {WORDS[number % 7]}".split()
        for word in words:
            seen[word] = seen.get(word, 0) + 1
        told = Named(words[0], number % 113).told()
        seen[told] = len(",".join(sorted(words)))
    return len(seen)


def took(work: Callable[[], object]) -> Took:
    """What some work takes in this process."""
    began, used = time.perf_counter(), time.process_time()
    work()
    return Took((time.process_time() - used) * 1000, (time.perf_counter() - began) * 1000)


def yardstick() -> Took:
    """What the piece takes now."""
    return took(piece)


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.yardstick", description=__doc__)
    parser.add_argument("--processes", metavar="N", type=int, default=24, help="processes (24), one after the other")
    parser.add_argument("--turns", metavar="N", type=int, default=60, help="turns in each of them (60)")
    options = parser.parse_args()
    if options.processes:
        _derived(options.processes, options.turns)
    else:  # one of them
        print(json.dumps(_quiet(options.turns)))


def _quiet(turns: int) -> list[float]:
    """Milliseconds of the piece and of `python -c pass` in turns in this process: of each the lowest tenth, for what
    else the machine does only adds."""
    from .measure import process

    seen = [(yardstick().cpu, process([sys.executable, "-c", "pass"]).cpu) for _ in range(turns)]
    return [quantiles(column, n=10)[0] for column in zip(*seen, strict=True)]


def _derived(processes: int, turns: int) -> None:
    command = [sys.executable, "-m", "tests.benchmarks.yardstick", "--processes", "0", "--turns", str(turns)]
    ratios = []
    for _ in range(processes):
        ours, bare = json.loads(subprocess.run(command, check=True, capture_output=True).stdout)
        ratios.append(ours / bare)
        print(f"piece {ours:.2f} ms, python -c pass {bare:.2f} ms: {ours / bare:.3f} x", file=sys.stderr)
    low, middle, high = quantiles(ratios, n=4)
    print(f"{middle:.3f} x (half of {processes} processes: {low:.3f} to {high:.3f}; ", end="")
    print(f"all: {min(ratios):.3f} to {max(ratios):.3f}); {middle:.3f} x {BARE} ms = {middle * BARE:.1f} ms")


if __name__ == "__main__":
    main()
