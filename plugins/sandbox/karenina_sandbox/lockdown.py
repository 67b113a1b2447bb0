"""What locks a process: namespaces for all workers, then limits, Landlock and seccomp for each of them.

Everything goes through the C library by ctypes; nothing is compiled. Only `forecast` is called in the host.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import platform
import signal
import struct
import sys
from collections.abc import Callable

from .syscalls import ARCHITECTURES, seccomp_filter

FULL, NO_NAMESPACES, SECCOMP_ONLY, NONE = "full", "no-userns", "seccomp-only", "none"
"""How far a worker is locked: everything; without namespaces; without Landlock; not at all."""
PR_SET_PDEATHSIG, PR_SET_DUMPABLE, PR_SET_SECCOMP, PR_SET_NO_NEW_PRIVS = 1, 4, 22, 38
SECCOMP_MODE_FILTER = 2
NEW_NS, NEW_UTS, NEW_IPC, NEW_USER, NEW_NET = 0x20000, 0x4000000, 0x8000000, 0x10000000, 0x40000000
KERNEL = NEW_NS | NEW_UTS | NEW_IPC | NEW_NET
"""Not the namespace of processes: its first process would have to be kept for ever, and a worker can signal none."""
MS_RDONLY, MS_NOSUID, MS_NODEV, MS_NOEXEC, MS_REC, MS_PRIVATE = 1, 2, 4, 8, 0x4000, 0x40000
MNT_DETACH = 2
PIVOT_ROOT = {"x86_64": 155, "aarch64": 41}
CAPSET = {"x86_64": 126, "aarch64": 91}
CAPABILITIES_3 = 0x20080522
LANDLOCK_CREATE, LANDLOCK_RESTRICT, ASK_VERSION = 444, 446, 1
FILE_RIGHTS = {1: 13, 2: 14, 3: 15, 4: 15}
"""Bits of the rights to files that a version of Landlock knows; 16 since version 5."""
NOBODY = 65534
CPU_SECONDS = 3600
"""Of a whole worker, should no host be left to end it."""
OPEN_FILES = 16  # chosen: a worker has its pipes, and the interpreter opens some


class Libc:
    """The C library, with failures as OSError."""

    def __init__(self) -> None:
        self._library = ctypes.CDLL(None, use_errno=True)
        self.syscall = self._checked(self._library.syscall)
        self.prctl = self._checked(self._library.prctl)
        self.unshare = self._checked(self._library.unshare)
        self.mount = self._checked(self._library.mount)
        self.umount2 = self._checked(self._library.umount2)

    @staticmethod
    def _checked(function: Callable[..., int]) -> Callable[..., int]:
        def call(*arguments: object) -> int:
            given = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
            result = function(*given)
            if result < 0:
                number = ctypes.get_errno()
                raise OSError(number, os.strerror(number))
            return result

        return call


def forecast() -> str:
    """Why no process can be locked here, or nothing. Asks the kernel, and changes nothing."""
    elsewhere = "which there is on Linux for x86-64 and aarch64 only"
    if sys.platform != "linux" or platform.machine() not in ARCHITECTURES or sys.maxsize < 2**32:
        return f"a sandbox needs seccomp, {elsewhere}; this is {platform.system()} for {platform.machine()}"
    if not sys.executable:
        return "a sandbox starts Python, and this program does not know where that is"
    try:  # without a filter: a kernel that knows filters cannot read it, and says so
        Libc().prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, 0, 0, 0)
    except OSError as error:
        return "" if error.errno == errno.EFAULT else f"this kernel has no seccomp filters ({error.strerror})"
    return ""


def enter_namespaces(libc: Libc) -> tuple[bool, tuple[str, ...]]:
    """Leave the machine's network, file systems and names, and root's rights. Whether that worked, and why not.

    Done once, for this process and all that it starts.
    """
    with contextlib.suppress(OSError), open("/proc/self/oom_score_adj", "w") as file:
        file.write("1000")  # where memory runs out, workers go first
    missing: list[str] = []
    entered = False
    if os.geteuid() == 0:
        entered = _entered(libc, KERNEL, [])
        _give_up_root(missing)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    entered = entered or _entered(libc, NEW_USER | KERNEL, missing)
    with contextlib.suppress(OSError):  # whoever makes a namespace has every right in it
        libc.syscall(CAPSET[platform.machine()], struct.pack("Ii", CAPABILITIES_3, 0), bytes(24))
    return entered, tuple(missing)


def _entered(libc: Libc, which: int, missing: list[str]) -> bool:
    try:
        libc.unshare(which)
    except OSError as error:
        missing.append(f"namespaces: {error.strerror}")
        return False
    try:
        _empty_root(libc)
    except OSError as error:
        missing.append(f"an empty root: {error.strerror}")
    return True


def _give_up_root(missing: list[str]) -> None:
    """Become nobody. The root of a container may have no other user to be."""
    try:
        os.setgroups([])
        os.setresgid(NOBODY, NOBODY, NOBODY)
        os.setresuid(NOBODY, NOBODY, NOBODY)
    except OSError as error:
        missing.append(f"another user: {error.strerror}")


def _empty_root(libc: Libc) -> None:
    """Have an empty folder in place of all file systems."""
    libc.mount(b"none", b"/", None, MS_REC | MS_PRIVATE, None)
    libc.mount(b"none", b"/proc", b"tmpfs", MS_RDONLY | MS_NOSUID | MS_NODEV | MS_NOEXEC, b"size=4k,mode=555")
    os.chdir("/proc")
    libc.syscall(PIVOT_ROOT[platform.machine()], b".", b".")
    libc.umount2(b".", MNT_DETACH)
    os.chdir("/")


def lock(libc: Libc, parent: int, memory: int, namespaces: bool) -> tuple[str, tuple[str, ...]]:
    """Lock this process for good. Returns how far, and what was not possible."""
    libc.prctl(PR_SET_PDEATHSIG, int(signal.SIGKILL), 0, 0, 0)
    if os.getppid() != parent:
        os._exit(0)
    libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0)
    _limit(memory)
    missing = []
    landlock, seccomp = True, True
    try:
        _landlock(libc)
    except OSError as error:
        landlock = False
        missing.append(f"Landlock: {error.strerror}")
    try:
        _seccomp(libc)
    except OSError as error:
        seccomp = False
        missing.append(f"seccomp: {error.strerror}")
    level = NONE if not seccomp else SECCOMP_ONLY if not landlock else FULL if namespaces else NO_NAMESPACES
    return level, tuple(missing)


def _limit(memory: int) -> None:
    import resource  # Windows has none, and only asks for the forecast

    limits = {
        resource.RLIMIT_AS: memory,
        resource.RLIMIT_CORE: 0,
        resource.RLIMIT_FSIZE: 0,
        resource.RLIMIT_NOFILE: OPEN_FILES,
        resource.RLIMIT_NPROC: 0,
        resource.RLIMIT_MEMLOCK: 0,
        resource.RLIMIT_CPU: CPU_SECONDS,
    }
    for kind, most in limits.items():
        with contextlib.suppress(ValueError, OSError):  # lower already
            resource.setrlimit(kind, (most, most))


def _landlock(libc: Libc) -> None:
    """No file, no TCP, no abstract socket, no signal to others: a set of rules without any rule."""
    version = libc.syscall(LANDLOCK_CREATE, None, 0, ASK_VERSION)
    files = (1 << FILE_RIGHTS.get(version, 16)) - 1
    rights = [files, *([3] if version >= 4 else []), *([3] if version >= 6 else [])]
    attributes = struct.pack(f"<{len(rights)}Q", *rights)
    rules = libc.syscall(LANDLOCK_CREATE, attributes, len(attributes), 0)
    try:
        libc.syscall(LANDLOCK_RESTRICT, rules, 0)
    finally:
        os.close(rules)


def _seccomp(libc: Libc) -> None:
    program = ctypes.create_string_buffer(seccomp_filter(ARCHITECTURES[platform.machine()]))
    described = struct.pack("HxxxxxxP", (len(program) - 1) // 8, ctypes.addressof(program))
    libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.create_string_buffer(described), 0, 0)
