"""`python -m tests.mutations`: a weak test lets a change pass, a strong one notices it."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import tomllib
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.mutations.__main__ import main

CODE = '''"""A room."""
from __future__ import annotations

LIMIT = 10


def allowed(number: int, most: int = LIMIT) -> bool:
    if number < 0:
        raise ValueError("less than nothing")
    return number <= most


def spins(number: int) -> int:
    while number > 0:
        number -= 1
    return number
'''
WEAK = """
import room


def test_small_numbers_are_allowed():
    assert room.allowed(1)
    assert not room.allowed(99)
"""
STRONG = """
import hypothesis
import pytest
import room


def test_laws_draw_the_same_again():
    assert hypothesis.settings.default.derandomize


def test_exactly_the_numbers_up_to_the_limit_are_allowed():
    assert [n for n in range(20) if room.allowed(n)] == list(range(11))
    with pytest.raises(ValueError, match="less"):
        room.allowed(-1)
    assert room.allowed(3, 3)


def test_it_ends():
    assert room.spins(3) == 0
    assert room.spins(-2) == -2
"""
CONFTEST = """
import gc
import sys

from hypothesis import settings

sys.path.insert(0, {0!r})
settings.register_profile("of-the-tests", derandomize=False)


def pytest_configure(config):
    if not config.getoption("--hypothesis-profile"):
        settings.load_profile("of-the-tests")


def pytest_collection_finish():
    gc.freeze()  # the conftest.py of the tests does so too: garbage collections find nothing of what is imported
"""
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture
def mutations(
    repository: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> Run:
    """`mutations(TESTS, "--option")` tries changes of CODE."""
    (tmp_path / "room.py").write_text(CODE, "utf-8")
    (tmp_path / "conftest.py").write_text(CONFTEST.format(str(tmp_path)), "utf-8")
    (tmp_path / "rooms.toml").write_text('[planted]\nsource = ["room.py"]\ntests = ["test_*.py"]\n', "utf-8")

    def execute(tests: str, *options: str) -> subprocess.CompletedProcess[str]:
        """Listing starts nothing, and is done here."""
        (tmp_path / "test_planted.py").write_text(tests, "utf-8")
        planted = ["--root", str(tmp_path), "--rooms", str(tmp_path / "rooms.toml"), "--grace", "5"]
        if "--list" in options:
            monkeypatch.setattr("sys.argv", ["tests.mutations", *planted, *options])
            return subprocess.CompletedProcess([], main(), capsys.readouterr().out, "")
        command = [sys.executable, "-m", "tests.mutations", *planted, *options]
        environment = {**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}  # to start is most of what a session takes
        return subprocess.run(
            command, cwd=repository, env=environment, capture_output=True, text=True, timeout=300, check=False
        )

    return execute


def survivors(printed: str) -> set[str]:
    """The changed lines of what survived."""
    return {line.strip() for line in printed.splitlines() if line.startswith("    +")}


def test_what_a_weak_test_does_not_notice_is_listed_and_a_strong_one_notices_it(mutations: Run, tmp_path: Path) -> None:
    weak = mutations(WEAK, "--json", str(tmp_path / "trials.json"))
    assert weak.returncode == 1, weak.stderr
    assert {"+    return number < most", "+LIMIT = 11", "+    if number <= 0:", "+    while number >= 0:"} <= survivors(
        weak.stdout
    )
    assert "-    return number <= most\n    +    return None" not in weak.stdout
    again = re.search(r"again: python -m tests.mutations --room planted --only (planted-\w+)", weak.stdout)
    assert again is not None
    assert mutations(WEAK, "--only", again[1]).returncode == 1

    strong = mutations(STRONG, "--json", str(tmp_path / "trials.json"), "--verbose", "--grace", "2")
    assert survivors(strong.stdout[strong.stdout.index("planted: ") :]) == set(), strong.stdout
    assert strong.returncode == 0
    assert (tmp_path / "room.py").read_text("utf-8") == CODE, "nothing is changed on the disk"


def test_what_was_noticed_is_not_tried_again_until_the_code_changes(mutations: Run, tmp_path: Path) -> None:
    kept = tmp_path / "trials.json"
    listed = re.findall(r"^(planted-\w+) .* allowed: ", mutations(STRONG, "--list").stdout, re.MULTILINE)
    some = (*(word for each in listed[:2] for word in ("--only", each)), "--json", str(kept))  # none that spins
    assert mutations(STRONG, *some).returncode == 0
    trials = json.loads(kept.read_text("utf-8"))
    assert len(trials) == 2
    kept.write_text(json.dumps([{**trial, "noticed_by": "survived"} for trial in trials]), "utf-8")
    assert mutations(STRONG, *some).returncode == 1, "what is kept is read"
    assert mutations(f"{STRONG}\n", *some).returncode == 0, "another test may notice it"
    kept.write_text(json.dumps([{**trial, "noticed_by": "somebody"} for trial in trials]), "utf-8")
    (tmp_path / "room.py").write_text(f"{CODE}\n", "utf-8")
    assert "somebody" not in mutations(STRONG, *some, "--verbose").stdout


def test_changes_are_drawn_by_a_seed_and_listed_without_being_tried(mutations: Run) -> None:
    drawn = [mutations("def test_fails(): assert False", "--list", "--count", "4", "--seed", seed) for seed in "112"]
    assert [run.returncode for run in drawn] == [0, 0, 0]
    first, same, other = (set(re.findall(r"planted-\w+", run.stdout)) for run in drawn)
    assert len(first) == 4
    assert first == same != other


def test_a_change_that_is_known_to_change_nothing_is_not_tried(mutations: Run, tmp_path: Path) -> None:
    every = re.findall(r"planted-\w+", mutations(WEAK, "--list").stdout)
    reasons = [f'[[mutant]]\nid = "{each}"\nchange = "x"\nreason = "y"\n' for each in every]
    (tmp_path / "equivalent.toml").write_text("\n".join(reasons), "utf-8")
    ran = mutations(WEAK)
    assert ran.returncode == 0
    assert f"0 of {len(every)} tried, 0 survived; {len(every)} are known to change nothing" in ran.stdout


NEEDS_ANOTHER = """
import time
import room


def test_that_is_slow():
    time.sleep(0.3)
    room.seen = room.allowed(1)


def test_that_is_quick():
    assert room.seen
"""


def test_a_test_that_needs_another_one_before_it_is_named(mutations: Run) -> None:
    ran = mutations(NEEDS_ANOTHER)
    assert ran.returncode == 1
    assert "depends on those that run before it: {'result': 'test_planted.py::test_that_is_quick'}" in ran.stderr


def test_a_default_and_a_constant_are_changed_where_they_are_imported(mutations: Run) -> None:
    late = f"from room import LIMIT\n{STRONG}\ndef test_the_limit():\n    assert LIMIT == 10\n"
    (limit,) = re.findall(r"^(planted-\w+) .*\n.*\n    \+LIMIT = 11$", mutations(late, "--list").stdout, re.MULTILINE)
    printed = mutations(late, "--only", limit, "--verbose").stdout
    (line,) = re.findall(r"\+LIMIT = 11\n    .*", printed)
    assert "test_planted.py::" in line, line


def test_tests_that_fail_as_things_are_say_so(mutations: Run) -> None:
    ran = mutations("def test_fails(): assert False")
    assert ran.returncode == 1
    assert "the tests do not pass as they are" in ran.stderr


def test_tests_of_another_copy_of_the_code_say_so(mutations: Run, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "room.py").write_text(CODE, "utf-8")
    ran = mutations("import sys\nsys.path.insert(0, 'other')\n" + WEAK)
    assert ran.returncode == 1
    assert f"the tests do not import {tmp_path / 'room.py'}" in ran.stderr


def test_a_change_that_makes_a_test_spin_is_ended(mutations: Run, tmp_path: Path) -> None:
    listed = mutations(STRONG, "--list").stdout
    (spinning,) = re.findall(r"(planted-\w+) .*\n.*\n    \+        number \+= 1", listed)
    ran = mutations(STRONG, "--only", spinning, "--verbose", "--grace", "2")
    assert ran.returncode == 0
    assert "too slow" in ran.stdout


def test_every_room_has_files_and_tests_and_every_known_change_exists(
    repository: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    folder = repository / "tests" / "mutations"
    rooms = tomllib.loads((folder / "rooms.toml").read_text("utf-8"))
    for name, room in rooms.items():
        for pattern in (*room["source"], *room["tests"]):
            assert list(repository.glob(pattern)), (name, pattern)
    monkeypatch.setattr("sys.argv", ["tests.mutations", "--list"])
    assert main() == 0
    listed = capsys.readouterr().out
    known = tomllib.loads((folder / "equivalent.toml").read_text("utf-8"))["mutant"]
    assert {entry["id"] for entry in known} <= set(re.findall(r"^\w+-[0-9a-f]{8}", listed, re.MULTILINE))
    assert all(len(entry["reason"]) > 10 for entry in known)
