"""Run attacks with sandboxes of this user, and print what became of each, as JSON: `attacked.py FOLDER TASKS`.

A task is the system calls that the kernel refuses and the names of attacks. Each is carried out in a fork of
this process, which has imported what is needed, and in a folder of its own.
"""

from __future__ import annotations

import asyncio
import ctypes
import errno
import json
import os
import platform
import socket
import struct
import sys
import threading
import time
import traceback
from pathlib import Path
from typing import Any

from karenina_sandbox.lockdown import PR_SET_NO_NEW_PRIVS, PR_SET_SECCOMP, SECCOMP_MODE_FILTER, Libc
from karenina_sandbox.runtime import SandboxRuntime
from karenina_sandbox.settings import SandboxSettings
from karenina_sandbox.syscalls import ALLOW, JUMP_IF_EQUAL, LOAD, NUMBER_AT, RETURN
from karenina_template.primitives import NAMES

from karenina_core import templates as primitives
from karenina_core.errors import TemplateError, TemplateRefused

sys.path.append(str(Path(__file__).parent))
from attacks import ATTACKS, TEMPLATE

PRIMITIVES = {name: getattr(primitives, name) for name in NAMES}
HARMLESS = """
class Answer(BaseAnswer):
    said: str = VerifiedField("what is said", "x", ExactMatch())
"""


class World:
    """What attacks could reach."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (folder / "secret").write_text("SECRET-7391")
        self.heard: list[str] = []
        self.tcp = socket.create_server(("127.0.0.1", 0))
        self.udp = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.udp.bind(("127.0.0.1", 0))
        self.unix = socket.socket(socket.AF_UNIX)
        self.unix.bind(f"\0karenina-{os.getpid()}")
        self.unix.listen()
        for name, wait in (("tcp", self.tcp.accept), ("udp", lambda: self.udp.recv(9)), ("unix", self.unix.accept)):
            threading.Thread(target=self._listen, args=(name, wait), daemon=True).start()
        self.facts = {
            "secret": str(folder / "secret"),
            "folder": str(folder),
            "tcp": self.tcp.getsockname()[1],
            "udp": self.udp.getsockname()[1],
            "unix": f"karenina-{os.getpid()}",
            "host": os.getpid(),
            "machine": platform.machine(),
        }

    def _listen(self, name: str, wait: Any) -> None:
        while True:
            wait()
            self.heard.append(name)

    def changes(self) -> list[str]:
        """What an attack has left behind."""
        found = sorted(path.name for path in self.folder.iterdir())
        intact = (self.folder / "secret").read_text() == "SECRET-7391"
        return [name for name in found if name != "secret"] + self.heard + ([] if intact else ["no secret"])


async def attacked(runtime: SandboxRuntime, world: World, code: str) -> dict[str, Any]:
    source = TEMPLATE.replace("{code}", "{{code}}").format(machine=platform.machine())
    source = source.replace("{code}", code.format(**world.facts))
    began = time.perf_counter()
    try:
        filled = await (await runtime.load(source, PRIMITIVES)).build({"said": "x"})
        outcome = repr((await filled.verify("the trace")).result)
    except TemplateError as error:
        outcome = f"{type(error).__name__}: {error}"
    return {"outcome": outcome, "seconds": time.perf_counter() - began}


def deny(calls: list[list[int]]) -> None:
    """Have the kernel refuse these system calls from now on, here and in every process that is started: each is a
    number, and perhaps its first argument.
    """
    program = b""
    for number, *argument in calls:
        program += struct.pack("<HBBI", LOAD, 0, 0, NUMBER_AT)
        program += struct.pack("<HBBI", JUMP_IF_EQUAL, 0, 3 if argument else 1, number)
        if argument:
            program += struct.pack("<HBBI", LOAD, 0, 0, 16)
            program += struct.pack("<HBBI", JUMP_IF_EQUAL, 0, 1, argument[0])
        program += struct.pack("<HBBI", RETURN, 0, 0, 0x00050000 | errno.EINVAL)
    if calls:
        code = ctypes.create_string_buffer(program + struct.pack("<HBBI", RETURN, 0, 0, ALLOW))
        described = struct.pack("HxxxxxxP", (len(code) - 1) // 8, ctypes.addressof(code))
        libc = Libc()
        libc.prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0)
        libc.prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, ctypes.create_string_buffer(described), 0, 0)


async def task(folder: Path, names: list[str]) -> dict[str, Any]:
    os.environ["KARENINA_CANARY_KEY"] = "sk-canary-7391"
    runtime = SandboxRuntime(SandboxSettings(seconds=0.3, hard_seconds=0.9, load_seconds=0.4, memory_mb=256))
    world = World(folder)
    try:
        harmless = await runtime.load(HARMLESS, PRIMITIVES)
    except TemplateRefused as error:
        return {"user": os.getuid(), "level": f"refused: {error}"}
    found: dict[str, Any] = {}
    for name in names:
        fact = await attacked(runtime, world, ATTACKS[name])
        server = runtime.pool.server.pid
        verdict = await (await harmless.build({"said": "x"})).verify("")
        found[name] = fact | {
            "changes": world.changes(),
            "next": verdict.result,
            "server": server,
        }
    runtime.close()
    return {"user": os.getuid(), "level": harmless.isolation, "attacks": found}


def main(folder: Path, tasks: list[tuple[list[list[int]], list[str]]]) -> None:
    for number, (denied, names) in enumerate(tasks):
        if process := os.fork():
            os.waitpid(process, 0)
            continue
        try:
            deny(denied)
            own = folder / str(number)
            own.mkdir()
            print(json.dumps(asyncio.run(task(own, names))), flush=True)
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(0)


if __name__ == "__main__":
    main(Path(sys.argv[1]), json.loads(sys.argv[2]))
