"""The verdicts of the checks of an installed plugin, each of which has a time limit of its own."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator
from typing import IO, Any

from attrs import asdict, evolve, frozen

from karenina_core.errors import PluginError

from ..watch.source_lines import is_foreign, line_at

FRAME = re.compile(r'^  File "(?P<path>.+)", line (?P<number>\d+) in ', re.MULTILINE)
GRACE = 10.0
"""Seconds after which a process that did not end by itself is killed."""
PREPARING = 10.0
"""Seconds that making the checks of a plugin, or what one of them examines, may take beyond the limit of a check.
Chosen."""
PROGRAM = "karenina_testing.authoring.worker"
"""It alone imports the checks, which takes longer than all else that a command imports."""
LISTING = "loads"
"""The promise that a plugin breaks by hanging while it is imported."""


@frozen(kw_only=True)
class Verdict:
    """What became of one promise."""

    name: str
    subject: str = ""
    promise: str = ""
    kept: bool = False
    problem: str = ""
    input: str = ""
    """The smallest that shows it, where inputs are made at random."""
    line: str = ""
    change: str = ""
    seconds: float = 0.0

    def as_data(self) -> dict[str, Any]:
        return asdict(self)


@frozen(kw_only=True)
class Request:
    """What is to be checked, and how."""

    name: str
    examples: int | None = None
    seed: int | None = None
    seconds: float = 30.0
    text: str = ""
    """Only checks with this in their names."""


def verdicts(request: Request, progress: Callable[[str], None] = lambda name: None) -> list[Verdict]:
    """Run the checks of an installed plugin. One that takes too long, or ends the process, broke its promise; others
    run all the same. Raises PluginError where nothing can be checked.
    """
    found: dict[str, Verdict] = {}
    listed: list[dict[str, str]] | None = None
    while listed is None or len(found) < len(listed):
        with tempfile.TemporaryFile("w+", encoding="utf-8", errors="replace") as said:
            running = ""
            before = len(found)
            for message in _messages(
                {**asdict(request), "done": list(found)}, said, 2 * request.seconds + PREPARING + GRACE
            ):
                if "failed" in message:
                    raise PluginError(message["failed"])
                if "listed" in message:
                    listed = message["listed"]
                elif "begun" in message:
                    running = message["begun"]
                    progress(running)
                else:
                    name, running = message.pop("ended"), ""
                    found[name] = Verdict(name=name, **message)
            if listed is None or running:
                said.seek(0)
                verdict = _ended(running or LISTING, said.read(), request.seconds + (0 if running else PREPARING))
                found[verdict.name] = verdict
                if listed is None:
                    return [evolve(verdict, promise="It can be imported, and its checks can be made.")]
            elif len(found) == before:
                break
    about = {facts["name"]: facts for facts in listed}
    return [evolve(v, subject=about[v.name]["subject"], promise=about[v.name]["promise"]) for v in found.values()]


def _messages(request: dict[str, Any], said: IO[str], limit: float) -> Iterator[dict[str, Any]]:
    """What a process tells until it ends; a message that takes longer than the limit ends it."""
    command = [sys.executable, "-m", PROGRAM]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=said, text=True, encoding="utf-8"
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(request))
        process.stdin.close()
        try:
            while True:
                killer = threading.Timer(limit, process.kill)
                killer.start()
                line = process.stdout.readline()
                killer.cancel()
                if not line:
                    return
                yield json.loads(line)
        finally:
            process.kill()


def _ended(name: str, said: str, seconds: float) -> Verdict:
    """The verdict on a check in which the process ended: by its time limit, or for another reason."""
    hung = "Timeout (" in said
    steps = [(found["path"], int(found["number"])) for found in FRAME.finditer(said)]
    line = next((line_at(*step) for step in steps if is_foreign(step[0])), "")
    if hung:
        change = "let it end: bound loops and waits, or give it more time with --timeout"
        return Verdict(
            name=name, problem=f"it took longer than {seconds:g} s", line=line, change=change, seconds=seconds
        )
    last = said.strip().splitlines()[-1:] or ["it printed nothing"]
    return Verdict(
        name=name, problem=f"it ended the process: {last[0][:200]}", line=line, change="raise an error instead"
    )
