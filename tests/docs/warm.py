"""A `karenina` for `PATH` that need not import anything: it is forked from a process that has carried out commands.
So is a `python` that is given a script; with anything else it is the real one.

    with warm() as folder:
        subprocess.run(["karenina", "plugins"], env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}"})

Each command is a process of its own with the arguments, environment, working folder, standard streams and exit code
that the console script has; signals do not reach it. Run as a program it is the process that forks.
"""

from __future__ import annotations

import contextlib
import json
import os
import runpy
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import traceback
from collections.abc import Iterator
from importlib import import_module
from pathlib import Path

PATIENCE = 120.0
SHIM = """\
#!{python} -IS
import json, os, socket, sys
if {name!r} == "python" and not "".join(sys.argv[1:2]).endswith(".py"):
    os.execv(sys.executable, [sys.executable, *sys.argv[1:]])
with socket.socket(socket.AF_UNIX) as there:
    there.connect({address!r})
    wanted = json.dumps([[{name!r}, *sys.argv[1:]], os.getcwd(), dict(os.environ)]).encode()
    socket.send_fds(there, [len(wanted).to_bytes(4, "big")], [0, 1, 2])
    there.sendall(wanted)
    code = there.recv(1)
sys.exit(code[0] if code else 70)
"""


@contextlib.contextmanager
def warm() -> Iterator[Path]:
    """The folder that goes first into `PATH`."""
    with tempfile.TemporaryDirectory() as short:  # short: an address of a socket may have 107 bytes
        folder = Path(short)
        address = str(folder / "socket")
        scripts = folder / "bin"
        scripts.mkdir()
        for name in ("karenina", "python"):
            (scripts / name).write_text(SHIM.format(python=sys.executable, address=address, name=name), "utf-8")
            (scripts / name).chmod(0o755)
        process = subprocess.Popen([sys.executable, __file__, address], stdout=subprocess.PIPE, cwd=folder)
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == b"ready\n"
            yield scripts
        finally:
            process.kill()
            process.wait(PATIENCE)
            assert process.stdout is not None
            process.stdout.close()


def serve(address: str) -> None:
    """Carry out commands until this process is killed."""
    ready = os.dup(1)
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    for words in (["plugins"], ["demo", "--quiet", "--out", "demo"], ["show", "demo"], ["report", "demo"]):
        with contextlib.suppress(SystemExit):
            carry_out(["karenina", *words])
    import_module("mcp.client.stdio")  # of which no command before has need
    assert threading.active_count() == 1, "a thread cannot be forked"
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nothing waits for those that serve a connection
    with socket.socket(socket.AF_UNIX) as here:
        here.bind(address)
        here.listen()
        os.write(ready, b"ready\n")
        while True:
            there, _ = here.accept()
            if os.fork() == 0:
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                here.close()
                answer(there)
            there.close()


def answer(there: socket.socket) -> None:
    """Fork the command, wait for it, and tell its exit code."""
    size, streams, _, _ = socket.recv_fds(there, 4, 3)
    words, folder, environment = json.loads(received(there, int.from_bytes(size, "big")))
    pid = os.fork()
    if pid:
        code = os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
        there.sendall(bytes([code if code >= 0 else 128 - code]))
        os._exit(0)
    for number, stream in enumerate(streams):
        os.dup2(stream, number)
    there.close()
    # those of before remember what their files were
    sys.stdin, sys.stdout, sys.stderr = (os.fdopen(n, "w" if n else "r", closefd=False) for n in range(3))
    os.chdir(folder)
    os.environ.clear()
    os.environ.update(environment)
    code = 70
    try:
        carry_out(words)
    except SystemExit as end:
        code = end.code if isinstance(end.code, int) else int(end.code is not None)
    except BaseException:
        traceback.print_exc()
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        sys.stderr.flush()
    os._exit(code)


def received(there: socket.socket, size: int) -> bytes:
    """As many bytes as were announced."""
    found = b""
    while len(found) < size:
        found += (more := there.recv(size - len(found)))
        assert more, "the command has ended before it was asked for"
    return found


def carry_out(words: list[str]) -> None:
    from karenina_cli import main

    if words[0] == "karenina":
        sys.argv = words
        main()
    sys.argv = words[1:]
    sys.path[0] = str(Path(words[1]).resolve().parent)
    runpy.run_path(words[1], run_name="__main__")
    sys.exit()


if __name__ == "__main__":
    serve(sys.argv[1])
