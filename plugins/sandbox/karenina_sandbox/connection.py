"""The host's ends of its connections: to the server, which starts and ends workers, and to each worker."""

from __future__ import annotations

import json
import math
import os
import select
import socket
import subprocess
import sys
import threading
import time
import weakref
from collections import OrderedDict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn

from attrs import define, field

from karenina_core.errors import TemplateError, TemplateRefused

from .frames import HEADER, MESSAGE, PART, TOKEN, framed
from .lockdown import NONE
from .processors import ANYWHERE, Processors
from .settings import SandboxSettings

START = (
    "import json, sys; sys.path += json.loads(sys.argv[2]); "
    "from karenina_sandbox.server import main; main(int(sys.argv[1]))"
)
"""What the server is started with. Its own path comes first: no folder of the host hides the standard library."""
ENVIRONMENT = {"PYTHONHASHSEED": "0"}
"""All that the server is given; it takes that away before it starts a worker. So sets of texts have the same order in
every run, and a verdict that hangs on it does not change. That texts can be made to collide costs a template its own
processor time alone, which is limited."""
STARTING = 60.0  # as ANSWERING
ANSWERING = 20.0
"""Seconds to wait for the server: for its start, with imports, and for a worker. Chosen: it takes 0.4 s, and 3 ms."""
QUICK = 1
"""Milliseconds that a call is waited for in the event loop itself; a longer one is waited for in a thread, which costs
more than most calls take."""
LOOK = 0.005
"""Seconds between looks at the processor time of a call that has nearly used it up."""
CPU_CLOCK = 2
"""The clock of a process, beside its number, is that of the scheduler; see clock_getcpuclockid(3)."""
LARGE = 64 << 20
"""Bytes of memory of its own with which a worker is not kept. Chosen: 64 that are kept stay below 4 GB."""
MOST_REPLY = 1 << 20
"""Bytes of a reply, beside twice those of what was asked: it may hold the extracted values and what matched."""


DEEPEST = 64
"""Levels of the JSON of a reply: what is written later, in files and for reports, takes no more of the stack."""


class WorkerEnded(Exception):
    """The worker has closed its end."""


class NoReply(Exception):
    """What came is no reply to what was asked."""


class TooLate(Exception):
    """No reply came in time."""


@define(eq=False)
class Worker:
    """One locked process and the connection to it. One call at a time."""

    pid: int
    server: Server
    level: str = ""
    filled: OrderedDict[int, None] = field(factory=OrderedDict)
    """The filled templates that it remembers, as it does that itself."""
    code: int | None = None
    """How it ended; None where it has not been ended yet, or that is not known."""
    ended: bool = False
    slow: bool = False
    """Whether the last call took longer than `QUICK`."""
    large: bool = False
    """Whether it had much memory after the last such call."""
    _socket: socket.socket = field(kw_only=True, repr=False)
    _poll: Any = field(init=False, repr=False)
    _out: memoryview = field(init=False, factory=lambda: memoryview(b""), repr=False)
    _in: bytearray = field(init=False, factory=bytearray, repr=False)
    _token: bytes = field(init=False, default=bytes(TOKEN), repr=False)
    _most: int = field(init=False, default=MOST_REPLY)
    _place: int = field(init=False, default=ANYWHERE)
    """The processor that it is kept on."""

    def __attrs_post_init__(self) -> None:
        self._socket.setblocking(False)
        self._poll = select.poll()
        self._poll.register(self._socket, select.POLLIN)
        self._poll.register(self.server.descriptor, 0)  # that it hangs up: then this one ends, too
        weakref.finalize(self, self._socket.close)

    @property
    def is_idle(self) -> bool:
        """Whether it is there, and its server, and has sent nothing that it was not asked for."""
        return not self._poll.poll(0)

    def quick(self, message: Mapping[str, Any]) -> Any:
        """The reply to a message, from the processor of the caller; None where it takes longer than `QUICK`: `result`
        gives it then, and it is computed on any processor. Raises as `send` and `reply` do."""
        if self.slow:
            self.slow = False  # perhaps the next one is quick
            self.send(message)
            return None
        processors, here, before = self.server.processors, ANYWHERE, None
        if processors is not None:  # the number is still that of this process, which was idle a moment ago
            try:
                here, before = processors.hold(self.pid, self._place)
                self._place = here
            except OSError:
                processors = self.server.processors = None
        try:
            self.send(message)
            return self.reply(QUICK)
        except TooLate:
            self.slow = True
            if processors is not None:
                processors.let_go(self.pid)
                self._place = ANYWHERE
            return None
        finally:
            if processors is not None:
                processors.release(here, before)

    def send(self, message: Mapping[str, Any]) -> None:
        """Begin a call. Raises ValueError and the like for what is no JSON."""
        self._token = os.urandom(TOKEN)
        frame = framed(self._token, message)
        self._most = MOST_REPLY + 2 * len(frame)
        self._in.clear()
        self._out = memoryview(frame)
        self._write()
        if self._out:
            self._poll.modify(self._socket, select.POLLIN | select.POLLOUT)

    def _write(self) -> None:
        try:
            while self._out:
                self._out = self._out[self._socket.send(self._out) :]
        except BlockingIOError:
            pass
        except OSError as error:
            raise WorkerEnded from error

    def reply(self, milliseconds: float) -> Any:
        """The reply, within that time. Raises TooLate (the call goes on), WorkerEnded and NoReply."""
        end = time.monotonic() + milliseconds / 1000
        while milliseconds >= 0 and self._poll.poll(milliseconds):
            if self._out:
                self._write()
                if not self._out:
                    self._poll.modify(self._socket, select.POLLIN)
            if self._read():
                return self._message()
            milliseconds = (end - time.monotonic()) * 1000  # it may write a byte at a time, and never let this one wait
        raise TooLate

    def result(self, seconds: float, hard_seconds: float) -> Any:
        """The reply to a call, which is interrupted after so much processor time, and given up after so much on the
        clock. Raises as `reply` does."""
        end, limit, interrupted = time.monotonic() + hard_seconds, self._used() + seconds, False
        while True:
            left, more = end - time.monotonic(), limit - self._used()
            if more <= 0 and not interrupted:
                interrupted = True
                self.server.interrupt(self)
            try:
                found = self.reply(1000 * (left if interrupted else min(left, max(more, LOOK))))
            except TooLate:
                if time.monotonic() >= end:
                    raise
            else:
                self.large = resident(self.pid) > self.server.resident + LARGE
                return found

    def _used(self) -> float:
        """The processor time that its process has had, in seconds."""
        try:
            return time.clock_gettime((~self.pid << 3) | CPU_CLOCK)
        except OSError:  # it has ended
            return 0.0

    def _read(self) -> bool:
        """Whether all of a frame is there."""
        try:
            part = self._socket.recv(PART)
        except BlockingIOError:
            return False
        except OSError as error:
            raise WorkerEnded from error
        if not part:
            raise WorkerEnded
        self._in += part
        found = len(self._in) - HEADER.size
        if found < 0:
            return False
        (length,) = HEADER.unpack_from(self._in)
        if not TOKEN < length <= self._most:
            raise NoReply(f"a reply of {length} bytes, where {self._most} are the most")
        if found > length:
            raise NoReply("more than a reply")
        return bool(found == length)

    def _message(self) -> Any:
        body = bytes(self._in[HEADER.size :])
        if self._out or body[:TOKEN] != self._token:
            raise NoReply("something that was not requested")
        text = body[TOKEN:]
        try:
            characters = text.decode()
            found, end = _read_value(characters)
        except (ValueError, RecursionError) as error:
            raise NoReply(f"what cannot be read ({error})") from None
        if end < len(characters):
            raise NoReply("something behind its JSON")
        if not isinstance(found, dict):
            raise NoReply("no JSON object")
        if text.count(b"[") + text.count(b"{") > DEEPEST and _depth(found) > DEEPEST:
            raise NoReply(f"JSON that is deeper than {DEEPEST} levels")
        return _without_surrogates(found) if b"\\" in text and b"\\ud" in text.lower() else found

    def close(self) -> None:
        self._socket.close()


def _refuse(word: str) -> NoReturn:
    raise ValueError(f"{word} is no JSON")


def _finite(word: str) -> float:
    number = float(word)
    return number if math.isfinite(number) else _refuse(word)


_read_value = json.JSONDecoder(parse_constant=_refuse, parse_float=_finite).raw_decode
"""A value and where it ends. No reply has white space around it, which would be looked for."""


def _depth(value: Any) -> int:
    """How many lists and objects hold one another."""
    depth, layer = 0, [value]
    while layer := [part for part in layer if isinstance(part, dict | list)]:
        depth += 1
        layer = [part for whole in layer for part in (whole.values() if isinstance(whole, dict) else whole)]
    return depth


def _without_surrogates(value: Any) -> Any:
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode()
    if isinstance(value, dict):
        return {_without_surrogates(key): _without_surrogates(item) for key, item in value.items()}
    return [_without_surrogates(item) for item in value] if isinstance(value, list) else value


def resident(pid: int) -> int:
    """The memory that a process has, in bytes; 0 where that cannot be read."""
    try:
        return int(Path(f"/proc/{pid}/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGESIZE")
    except OSError:
        return 0


class Server:
    """The process that starts and ends workers. Started when it is made, ended when it is not used any more."""

    def __init__(
        self, settings: SandboxSettings, primitives: Mapping[str, type], prepared: frozenset[str] = frozenset()
    ) -> None:
        """`prepared` are primitives that are used soon. Raises TemplateError where it does not start."""
        self.prepared = prepared
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        paths = [path for path in sys.path if os.path.isabs(path)]
        with theirs:
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-s", "-X", "utf8", "-c", START, str(theirs.fileno()), json.dumps(paths)],
                pass_fds=[theirs.fileno()],
                env=ENVIRONMENT,
                cwd="/",
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                start_new_session=True,  # an interrupt from the keyboard is for the host
            )
        self._socket, self.descriptor = ours, ours.fileno()
        self._lock = threading.Lock()
        self._finalizer = weakref.finalize(self, _end, ours, self._process)
        named = {name: (cls.__module__, cls.__qualname__) for name, cls in primitives.items()}
        wanted: dict[str, Any] = {"imports": list(settings.imports), "memory_mb": settings.memory_mb}
        wanted |= {"primitives": named, "prepared": sorted(prepared)}
        began, _ = self._asked(wanted, STARTING)
        self.notes: Sequence[str] = began["notes"]
        self.processors: Processors | None = None
        """For workers, where this process may choose their processors."""
        with suppress(OSError):
            self.processors = Processors()
        self.resident = resident(self._process.pid)

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def runs(self) -> bool:
        """Whether it has not hung up: to ask for the end of its process takes longer."""
        watch = select.poll()
        watch.register(self.descriptor, 0)
        return self._finalizer.alive and not watch.poll(0)

    def fork(self) -> Worker:
        """A new worker, locked. Raises TemplateError where there can be none."""
        said, descriptors = self._asked({"do": "fork"}, ANSWERING)
        os.set_inheritable(descriptors[0], False)
        worker = Worker(said["pid"], self, socket=socket.socket(fileno=descriptors[0]))
        try:
            hello = worker.reply(ANSWERING * 1000)
        except (TooLate, WorkerEnded, NoReply) as error:
            raise TemplateError(
                f"the sandbox cannot start a process for the template ({self.end(worker, wait=True)})"
            ) from error
        worker.level = hello["level"]
        if worker.level == NONE:
            self.end(worker)
            raise TemplateRefused(f"this kernel locks no process: {'; '.join(hello['missing'])}")
        return worker

    def end(self, worker: Worker, wait: bool = False) -> int | None:
        """End a worker, once. Returns its exit code, or the number of the signal that ended it, negative, where that is
        waited for; None where the server is gone.
        """
        if not worker.ended:
            worker.ended = True
            with suppress(TemplateError):
                worker.code = self._asked({"do": "end", "pid": worker.pid, "wait": wait}, ANSWERING)[0]["status"]
            worker.close()  # a thread that still waits for a reply has noticed
        return worker.code

    def interrupt(self, worker: Worker) -> None:
        """Have a worker stop what it does, as far as its code lets it."""
        with suppress(TemplateError):
            self._asked({"do": "interrupt", "pid": worker.pid}, ANSWERING)

    def close(self) -> None:
        """End it with all of its workers."""
        self._finalizer()

    def _asked(self, message: Mapping[str, Any], seconds: float) -> tuple[dict[str, Any], list[int]]:
        with self._lock:
            try:
                self._socket.settimeout(seconds)
                self._socket.send(json.dumps(message).encode())
                data, descriptors, _, _ = socket.recv_fds(self._socket, MESSAGE, 1)
            except OSError as error:
                data, descriptors = b"", []
                reason = str(error) or type(error).__name__
            else:
                reason = "it has ended"
            if not data:  # what it says later would be taken for another answer
                self._finalizer()
        if not data:
            raise TemplateError(f"the server of the sandbox does not answer: {reason}")
        said: dict[str, Any] = json.loads(data)
        if "failure" in said:
            raise TemplateError(f"the sandbox cannot start a process for templates: {said['failure']}")
        return said, descriptors


def _end(connection: socket.socket, process: subprocess.Popen[bytes]) -> None:
    connection.close()
    process.kill()
    process.wait()
