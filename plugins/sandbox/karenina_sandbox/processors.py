"""Where a quick call is answered: on the processor of its caller, who waits and does not need it.

Left to itself the kernel wakes the worker on another processor that has nothing to do, and then the caller on yet
another. To wake an idle processor takes as long as what either computes for a call, on a virtual machine longer; to go
on with another process on the same one takes a few microseconds. So both are kept on one for as long as the caller
waits in place. Where a call takes longer, its caller has other things to do, and the worker may run anywhere.
"""

from __future__ import annotations

import ctypes
from functools import cache
from typing import Any

SET = 128
"""Bytes of a set of processors, as the C library has them: 1,024 bits."""
_Set = ctypes.c_char * SET
ANYWHERE = -1
HELD = 32
"""Calls that hold their caller before one does not, which shows whether that is of use. Chosen: to hold it takes a
tenth of a call, and not to hold it, where a processor is idle, as long as another call."""


class Processors:
    """Those that this process may use. Sets of them are those of the C library: Python makes and reads one of all
    processors each time."""

    def __init__(self) -> None:
        """Raises OSError where there is nothing to choose, or no way to."""
        try:
            library: Any = ctypes.PyDLL(None)  # which keeps the interpreter: none of these calls waits
            self._here, self._get, self._set = (
                library.sched_getcpu,
                library.sched_getaffinity,
                library.sched_setaffinity,
            )
        except (AttributeError, TypeError) as error:
            raise OSError("this system does not say where a process runs") from error
        self._here.argtypes = ()
        self._get.argtypes = self._set.argtypes = (ctypes.c_int, ctypes.c_size_t, ctypes.c_char_p)
        self._every = self._allowed()
        if self._here() < 0 or int.from_bytes(self._every, "little").bit_count() < 2:
            raise OSError("there is no other processor")
        self._left = HELD

    def hold(self, pid: int, place: int) -> tuple[int, bytes | None]:
        """Keep the process, which is kept on processor `place`, on that of the caller, and mostly the caller, too.

        Returns the number of that processor, and where the caller was allowed to run, for `release`. Raises OSError
        where this is not permitted; then the caller is not held.
        """
        here = self._here()
        if place != here:
            self._allow(pid, _only(here))
        if not self._left:
            return here, None
        self._left -= 1
        before = self._allowed()
        self._allow(0, _only(here))
        return here, before

    def release(self, here: int, before: bytes | None) -> None:
        """Let the calling thread run where it could before."""
        if before is not None:
            self._set(0, SET, before)
        elif self._here() != here:
            self._left = HELD  # it was woken on another one, which was idle

    def let_go(self, pid: int) -> None:
        """Let a process run anywhere."""
        self._set(pid, SET, self._every)

    def _allowed(self) -> bytes:
        found = _Set()
        if self._get(0, SET, found) < 0:
            raise OSError("there are more processors than a set has")
        return found.raw

    def _allow(self, pid: int, which: bytes) -> None:
        if self._set(pid, SET, which) < 0:
            raise OSError("this process may not be moved")


@cache
def _only(number: int) -> bytes:
    return (1 << number).to_bytes(SET, "little")
