"""The seccomp filter of a worker: the system calls that computing needs, and no others.

No timers are among them: a worker runs when it is asked, and not in between.

A filter is a program of the kernel's packet filter (seccomp(2)). Its numbers of system calls hold for one processor
architecture, so it looks at the architecture first and ends the process where a call comes from another one.
"""

from __future__ import annotations

import errno
import struct
from collections.abc import Mapping

from attrs import frozen

LOAD, AND, JUMP_IF_EQUAL, JUMP_IF_AT_LEAST, RETURN = 0x20, 0x54, 0x15, 0x35, 0x06
ALLOW, KILL, DENY = 0x7FFF0000, 0x80000000, 0x00050000 | errno.EPERM
NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT = 0, 4, 16
"""Where `struct seccomp_data` has the number, the architecture and the first argument, of 8 bytes each; the lower half
comes first, both architectures being little-endian."""
X32 = 0x40000000
"""Calls of the x32 interface have this bit, under the same architecture."""


@frozen
class Check:
    """Which values of an argument are allowed."""

    argument: int
    """Counted from 0. Its lower half is looked at: the kernel takes no more of these."""
    mask: int
    """The bits that are looked at."""
    allowed: tuple[int, ...]


CHECKS: Mapping[str, tuple[Check, ...]] = {
    # PROT_EXEC: no page becomes executable, so machine code that a template brings cannot run. MAP_HUGETLB: those
    # pages are the machine's, and few.
    "mmap": (Check(2, 4, (0,)), Check(3, 0x40000, (0,))),
    "mprotect": (Check(2, 4, (0,)),),
    # FUTEX_WAIT, WAKE, WAIT_BITSET and WAKE_BITSET: all that locks take. Others are for threads that there are not.
    "futex": (Check(1, 0x7F, (0, 1, 9, 10)),),
    # MADV_DONTNEED, FREE and HUGEPAGE, which allocators give. MADV_MERGEABLE would tell what others have in memory.
    "madvise": (Check(2, 0xFFFFFFFF, (4, 8, 14)),),
}
"""Calls that are allowed with some arguments only."""


@frozen
class Architecture:
    """One processor architecture: its audit number, and the numbers of the calls that are allowed."""

    audit: int
    calls: Mapping[str, int]


X86_64 = Architecture(
    0xC000003E,
    {
        **{"read": 0, "write": 1, "close": 3, "munmap": 11, "brk": 12, "rt_sigaction": 13, "rt_sigprocmask": 14},
        **{"rt_sigreturn": 15, "sched_yield": 24, "mremap": 25, "madvise": 28, "nanosleep": 35, "getpid": 39},
        **{"exit": 60, "gettimeofday": 96, "getrusage": 98, "times": 100},
        **{"getuid": 102, "getgid": 104, "geteuid": 107, "getegid": 108, "getppid": 110, "sigaltstack": 131},
        **{"gettid": 186, "time": 201, "futex": 202, "restart_syscall": 219, "clock_gettime": 228},
        **{"clock_getres": 229, "clock_nanosleep": 230, "exit_group": 231, "getrandom": 318},
        **{"mmap": 9, "mprotect": 10},
    },
)
AARCH64 = Architecture(
    0xC00000B7,
    {
        **{"close": 57, "read": 63, "write": 64, "exit": 93, "exit_group": 94, "futex": 98, "nanosleep": 101},
        **{"clock_gettime": 113, "clock_getres": 114, "clock_nanosleep": 115},
        **{"sched_yield": 124, "restart_syscall": 128, "sigaltstack": 132, "rt_sigaction": 134},
        **{"rt_sigprocmask": 135, "rt_sigreturn": 139, "times": 153, "getrusage": 165, "gettimeofday": 169},
        **{"getpid": 172, "getppid": 173, "getuid": 174, "geteuid": 175, "getgid": 176, "getegid": 177},
        **{"gettid": 178, "brk": 214, "munmap": 215, "mremap": 216, "madvise": 233, "getrandom": 278},
        **{"mmap": 222, "mprotect": 226},
    },
)
ARCHITECTURES: Mapping[str, Architecture] = {"x86_64": X86_64, "aarch64": AARCH64}
"""By `platform.machine()`."""


def seccomp_filter(architecture: Architecture) -> bytes:
    """The filter as an array of `struct sock_filter`: anything but the allowed calls fails with EPERM."""

    def instruction(code: int, value: int, if_true: int = 0, if_false: int = 0) -> bytes:
        return struct.pack("<HBBI", code, if_true, if_false, value)

    program = [
        instruction(LOAD, ARCHITECTURE_AT),
        instruction(JUMP_IF_EQUAL, architecture.audit, if_true=1),
        instruction(RETURN, KILL),
        instruction(LOAD, NUMBER_AT),
        instruction(JUMP_IF_AT_LEAST, X32, if_false=1),
        instruction(RETURN, DENY),
    ]
    for name, number in architecture.calls.items():
        body = []
        for check in CHECKS.get(name, ()):
            body += [instruction(LOAD, ARGUMENTS_AT + 8 * check.argument), instruction(AND, check.mask)]
            for place, value in enumerate(check.allowed):
                body.append(instruction(JUMP_IF_EQUAL, value, if_true=len(check.allowed) - place))
            body.append(instruction(RETURN, DENY))
        body.append(instruction(RETURN, ALLOW))
        program += [instruction(JUMP_IF_EQUAL, number, if_false=len(body)), *body]
    return b"".join([*program, instruction(RETURN, DENY)])
