"""The filter of system calls, on every architecture; and that the attacks do get out where nothing is locked."""

from __future__ import annotations

import json
import os
import platform
import re
import struct
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from karenina_sandbox.syscalls import (
    ALLOW,
    AND,
    ARCHITECTURE_AT,
    ARCHITECTURES,
    ARGUMENTS_AT,
    DENY,
    JUMP_IF_AT_LEAST,
    JUMP_IF_EQUAL,
    KILL,
    LOAD,
    NUMBER_AT,
    RETURN,
    seccomp_filter,
)

sys.path.append(str(Path(__file__).parent))
from attacks import ATTACKS

OTHERS = {
    "x86_64": {"open": 2, "socket": 41, "clone": 56, "fork": 57, "execve": 59, "kill": 62, "ptrace": 101, "prctl": 157},
    "aarch64": {"openat": 56, "socket": 198, "clone": 220, "execve": 221, "kill": 129, "ptrace": 117, "prctl": 167},
}


def decided(program: bytes, audit: int, number: int, *arguments: int) -> int:
    """What the kernel does with a call, by its rules for the few instructions that the filter has."""
    code = [struct.unpack_from("<HBBI", program, place) for place in range(0, len(program), 8)]
    data = struct.pack("<IIQ6Q", number, audit, 0, *arguments, *[0] * (6 - len(arguments)))
    assert (NUMBER_AT, ARCHITECTURE_AT, ARGUMENTS_AT) == (0, 4, 16)
    loaded, place = 0, 0
    while True:
        kind, if_true, if_false, value = code[place]
        if kind == RETURN:
            return int(value)
        place += 1
        if kind == LOAD:
            (loaded,) = struct.unpack_from("<I", data, value)
        elif kind == AND:
            loaded &= value
        else:
            holds = {JUMP_IF_EQUAL: loaded == value, JUMP_IF_AT_LEAST: loaded >= value}[kind]
            place += if_true if holds else if_false


HARMLESS = {"mmap": (0, 4096, 3, 0x22), "mprotect": (0, 4096, 3), "futex": (0, 0x189), "madvise": (0, 4096, 4)}
"""Arguments of calls that are looked into, as the C library gives them."""


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_what_is_not_listed_is_refused(name: str) -> None:
    architecture = ARCHITECTURES[name]
    program = seccomp_filter(architecture)
    given = {architecture.calls[call]: arguments for call, arguments in HARMLESS.items()}
    every = range(600)
    allowed = {
        number for number in every if decided(program, architecture.audit, number, *given.get(number, ())) == ALLOW
    }
    assert allowed == {*architecture.calls.values()}
    for number in {*every, *(0x40000000 + number for number in every)} - allowed:
        assert decided(program, architecture.audit, number) == DENY
    assert not allowed & set(OTHERS[name].values())
    assert len(allowed) < 40


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_call_of_another_architecture_ends_the_process(name: str) -> None:
    program = seccomp_filter(ARCHITECTURES[name])
    for other in (0x40000003, 0x40000028, *(found.audit for key, found in ARCHITECTURES.items() if key != name)):
        assert {decided(program, other, number) for number in range(600)} == {KILL}


@pytest.mark.parametrize("name", ARCHITECTURES)
@pytest.mark.parametrize(
    ("call", "argument", "refused"),
    [
        ("mmap", 2, [4, 5, 6, 7, (1 << 32) + 4, 0x1004]),  # executable
        ("mmap", 3, [0x40022, 0x40021, 0x15040022]),  # huge pages
        ("mprotect", 2, [4, 5, 6, 7, (1 << 32) + 4]),
        ("futex", 1, [*(kind | flags for kind in (*range(2, 9), *range(11, 64)) for flags in (0, 128, 256, 384))]),
        ("madvise", 2, [*range(4), *range(5, 8), *range(9, 14), *range(15, 110)]),
    ],
)
def test_calls_that_are_allowed_are_looked_into(name: str, call: str, argument: int, refused: list[int]) -> None:
    architecture = ARCHITECTURES[name]
    program = seccomp_filter(architecture)
    for value in refused:
        arguments = [*HARMLESS[call]]
        arguments[argument] = value
        assert decided(program, architecture.audit, architecture.calls[call], *arguments) == DENY, hex(value)


HEADERS = {
    "x86_64": (f"/usr/include/{platform.machine()}-linux-gnu/asm/unistd_64.h", "/usr/include/asm/unistd_64.h"),
    "aarch64": ("/usr/include/asm-generic/unistd.h",),
}
"""Where the kernel's headers say which number a system call has; aarch64 has the generic ones."""
NUMBERED = re.compile(r"#define __NR(?:3264)?_(\w+)\s+(\d+)\s*$", re.MULTILINE)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_numbers_are_those_of_the_kernel(name: str) -> None:
    header = next((path for path in map(Path, HEADERS[name]) if path.exists()), None)
    if header is None:
        pytest.skip("the kernel's headers are not installed")
    numbers = {call: int(number) for call, number in NUMBERED.findall(header.read_text("utf-8"))}
    architecture = ARCHITECTURES[name]
    program = seccomp_filter(architecture)
    allowed = {
        call
        for call, number in numbers.items()
        if decided(program, architecture.audit, number, *HARMLESS.get(call, ())) == ALLOW
    }
    assert len(numbers) > 300
    assert allowed == {*architecture.calls}


UNLOCKED = """
import ctypes, json, os, signal, socket, struct, subprocess, sys, threading, time
from pydantic import BaseModel, ImportString, TypeAdapter, create_model
MACHINE = {machine!r}
def syscall(number_x86, number_arm, *arguments):
    number = number_x86 if MACHINE == "x86_64" else number_arm
    function = ctypes.CDLL(None, use_errno=True).syscall
    function.restype = ctypes.c_long
    result = function(ctypes.c_long(number), *[ctypes.c_long(a) if isinstance(a, int) else a for a in arguments])
    if result < 0:
        raise OSError(ctypes.get_errno(), "syscall")
    return result
found = {{}}
for name, code in json.loads(sys.stdin.read()).items():
    space = dict(globals())
    try:
        exec(code, space)
        found[name] = bool(space["attack"]())
    except Exception as error:
        found[name] = repr(error)
print(json.dumps(found))
"""
REAL = (
    *("read passwords", "read a secret", "read a secret by os", "read a secret by the C library", "map a secret"),
    *("read a secret by openat2", "own environment in /proc", "list the root", "ask whether a file is there"),
    *("look for a file by access", "write a file", "make a folder", "make a link", "file in memory", "environment"),
    *("environment of the C library", "listen", "pair of sockets", "shell", "subprocess", "spawn", "thread"),
    *("descriptor of the server", "own machine code", "memory that becomes code", "be traceable", "host name"),
    *("work when not asked", "import string", "type hints", "pickle", "subclasses", "other modules", "UDP"),
    *("shared memory", "semaphores", "messages", "lock with priority", "copy a descriptor", "pipe", "watch files"),
    *(
        "descriptor of events",
        "descriptor of a timer",
        "descriptor of signals",
        "outlive the server",
        "forward reference",
    ),
    *("file as a module", "pickle of a module", "plugin of pydantic"),
)
"""Attacks that need nothing which is not there, and do no harm."""


def test_the_attacks_get_out_where_nothing_is_locked(tmp_path: Path) -> None:
    (tmp_path / "secret").write_text("SECRET-7391")
    facts: dict[str, Any] = {
        "secret": tmp_path / "secret",
        "folder": tmp_path,
        "tcp": 1,
        "udp": 9,
        "unix": "x",
        "host": 1,
    }
    codes = {name: ATTACKS[name].format(**facts).replace("{{", "{").replace("}}", "}") for name in REAL}
    codes["work when not asked"] = codes["work when not asked"].replace("0.01, 0.01", "60")
    done = subprocess.run(
        [sys.executable, "-c", UNLOCKED.format(machine=platform.machine())],
        input=json.dumps(codes),
        env={**os.environ, "KARENINA_CANARY_KEY": "sk-canary"},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert {name: said for name, said in found.items() if said is not True} == {}
