"""Templates that try to get out of the sandbox: as root and as an ordinary user nothing of them does."""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

sys.path.append(str(Path(__file__).parent))
from attacks import AT_LOADING, ATTACKS, CRASHES, EXHAUSTION, PROTOCOL  # type: ignore[import-not-found]  # beside it

HERE = Path(__file__).parent
ORDINARY = (
    *("setpriv", "--reuid=65534", "--regid=65534", "--clear-groups", "--bounding-set=-all,+dac_read_search"),
    *("--inh-caps=+dac_read_search", "--ambient-caps=+dac_read_search"),
)
"""Starts a program as an ordinary user, who may read the checkout wherever it is; nothing else of root is left."""
USERS = ("root", "ordinary") if os.geteuid() == 0 else ("ordinary",)
CALLS = {
    "x86_64": {"unshare": 272, "landlock": 444, "prctl": 157},
    "aarch64": {"unshare": 97, "landlock": 444, "prctl": 167},
}[platform.machine()]
Attacked = Callable[..., dict[str, Any]]


LEVELS = ("sandbox-full", "sandbox-no-userns", "sandbox-seccomp-only")
SAMPLE = (
    *("read a secret", "write a file", "TCP", "UDP", "fork", "kill the host", "kill the group", "x32", "endless loop"),
    *(
        "shared memory",
        "named messages",
        "signals of a descriptor",
        "limits of the host",
        "call of another architecture",
    ),
    *("library", "code of a callback", "no truth value", "two replies"),
)
READING = ("loading: read", "loading: annotation", "at the end")
OF_RIGHTS = tuple(
    name for name in ATTACKS if name in READING or name not in {*EXHAUSTION, *CRASHES, *PROTOCOL, *AT_LOADING}
)
"""Attacks whose success may depend on who carries them out: the short form for root."""
NO_FILTERS = "prctl"
DENIED = ((), ("unshare",), ("landlock",), ("unshare", "landlock"), (NO_FILTERS,))
"""Names of system calls that the kernel refuses."""


def attacks_of(user: str, *, long: bool) -> tuple[str, ...]:
    return tuple(ATTACKS) if long or user == "ordinary" else OF_RIGHTS


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "attack" in metafunc.fixturenames:
        long = metafunc.config.getoption("--long", default=False)
        rows = [(name, user) for user in USERS for name in attacks_of(user, long=long)]
        metafunc.parametrize(("attack", "user"), rows)


@pytest.fixture(scope="session")
def attacked(tmp_path_factory: pytest.TempPathFactory, long: bool) -> Attacked:
    """`attacked(user, *denied)`: what became of the attacks, run once in a process of this user, where the kernel
    refuses the denied calls. The attacks of the user where it refuses none, and else the sample."""
    known: dict[str, list[dict[str, Any]]] = {}

    def run(user: str) -> list[dict[str, Any]]:
        folder = tmp_path_factory.mktemp("attacked")
        for part in (folder, *folder.parents[:2]):
            part.chmod(0o777)
        become = ORDINARY if user == "ordinary" and os.geteuid() == 0 else ()
        # of `prctl` only what sets a filter
        calls = [[[CALLS[name], *([22] if name == NO_FILTERS else [])] for name in names] for names in DENIED]
        every = attacks_of(user, long=long)
        sample = [name for name in SAMPLE if name in every]
        tasks = [(refused, sample if refused else every) for refused in calls]
        command = [*become, sys.executable, str(HERE / "attacked.py"), str(folder), json.dumps(tasks)]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        found = list(map(json.loads, done.stdout.splitlines()))
        assert len(found) == len(tasks), done.stderr
        return found

    def found(user: str, *denied: str) -> dict[str, Any]:
        if user not in known:
            known[user] = run(user)
        return known[user][DENIED.index(denied)]

    return found


def test_an_attack_reaches_nothing_and_the_next_template_is_served(attack: str, user: str, attacked: Attacked) -> None:
    every = attacked(user)
    found = every["attacks"][attack]
    assert every["user"] == (0 if user == "root" else every["user"] or 1)
    assert found["outcome"] == "False" or found["outcome"].startswith("TemplateError: "), found
    assert found["changes"] == []
    assert found["next"] is True
    assert len(found["outcome"]) < 4200
    assert found["seconds"] < 60, "it held the host up"


@pytest.mark.parametrize("user", USERS)
def test_the_server_outlives_every_attack(user: str, attacked: Attacked) -> None:
    every = attacked(user)
    assert every["level"] in LEVELS
    assert len({found["server"] for found in every["attacks"].values()}) == 1


@pytest.mark.parametrize("user", USERS)
@pytest.mark.parametrize(
    ("denied", "level"),
    [
        (("unshare",), "sandbox-no-userns"),
        (("landlock",), "sandbox-seccomp-only"),
        (("unshare", "landlock"), "sandbox-seccomp-only"),
    ],
)
def test_with_less_than_everything_it_says_so_and_still_holds(
    denied: tuple[str, ...], level: str, user: str, attacked: Attacked
) -> None:
    every = attacked(user, *denied)
    here = attacked(user)["level"]  # this machine may offer less than everything
    assert every["level"] == max(level, here, key=LEVELS.index)
    for name, found in every["attacks"].items():
        assert found["outcome"] == "False" or found["outcome"].startswith("TemplateError: "), name
        assert found["changes"] == []


@pytest.mark.parametrize("user", USERS)
def test_without_seccomp_nothing_is_run(user: str, attacked: Attacked) -> None:
    every = attacked(user, NO_FILTERS)
    assert every["level"].startswith("refused: this kernel has no seccomp filters")
