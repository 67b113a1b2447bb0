"""Pages of memory that workers have before they are asked: a template is loaded without waiting for them."""

from __future__ import annotations

import asyncio
import ctypes
import mmap
import os
import platform
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from karenina_sandbox.lockdown import Libc
from karenina_sandbox.pages import MOST_RANGES, PAGE, RANGE, copy_pages, pages_written
from karenina_sandbox.runtime import SandboxRuntime

sys.path.append(str(Path(__file__).parent))
from sandboxed import PRIMITIVES, source

COPIES = tuple(int(part) for part in platform.release().split("-")[0].split(".")[:2]) >= (6, 13)
"""Whether this kernel copies pages when it is asked to."""
PAGES = 400


@pytest.fixture
def memory() -> Iterator[mmap.mmap]:
    """Pages that are written to, each once."""
    made = mmap.mmap(-1, PAGES * PAGE, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
    write(made, range(PAGES))
    yield made
    made.close()


def write(memory: mmap.mmap, pages: range) -> None:
    for page in pages:
        memory[page * PAGE] = 1


def faults_of_a_fork(memory: mmap.mmap, ranges: bytes) -> int:
    """How many page faults it takes a fork to write to all of the memory, once it has its copies of some of it."""
    libc = Libc()
    reading, writing = os.pipe()
    if os.fork() == 0:
        copy_pages(libc, ranges)
        before = faults("self")
        write(memory, range(PAGES))
        os.write(writing, str(faults("self") - before).encode())
        os._exit(0)
    os.close(writing)
    try:
        return int(os.read(reading, 99))
    finally:
        os.wait()
        os.close(reading)


def faults(pid: int | str) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[7])


def test_what_is_written_to_is_found_and_copied_beforehand(memory: mmap.mmap) -> None:
    begin = ctypes.addressof(ctypes.c_char.from_buffer(memory))
    ranges = pages_written(lambda: write(memory, range(0, PAGES, 2)))
    every = list(RANGE.iter_unpack(ranges))
    assert 0 < len(every) <= MOST_RANGES
    inside = [(start, length) for start, length in every if begin <= start < begin + PAGES * PAGE]
    assert sum(length for _, length in inside) >= PAGES // 2 * PAGE
    assert faults_of_a_fork(memory, b"") >= PAGES
    assert faults_of_a_fork(memory, ranges) <= (PAGES * 3 // 4 if COPIES else 2 * PAGES)


def test_work_that_fails_finds_nothing(memory: mmap.mmap) -> None:
    assert pages_written(lambda: os._exit(1)) == b""


def test_a_template_is_loaded_without_most_page_faults(runtime: SandboxRuntime) -> None:
    asyncio.run(runtime.load(source("return True"), PRIMITIVES))
    worker = runtime.pool.server.fork()
    before = faults(worker.pid)
    worker.send({"do": "template", "text": source("return self.said == 'x'")})
    assert "schema" in worker.result(60, 60)
    taken = faults(worker.pid) - before
    worker.server.end(worker)
    assert taken < (600 if COPIES else 5000), "of some 1,400 where it has no pages of its own"
