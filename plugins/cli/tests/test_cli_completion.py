"""`karenina completion`: the Tab key in real shells."""

from __future__ import annotations

import os
import pty
import select
import shutil
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

Run = Callable[..., Result]
BIN = Path(sys.executable).parent
BASH = """\
eval "$(karenina completion bash)"
COMP_WORDS=(karenina {words}) COMP_CWORD={last}
_karenina_completion karenina
printf '%s\\n' "${{COMPREPLY[@]}}"
"""
SECONDS = 60


def environment(tmp_path: Path) -> dict[str, str]:
    path = f"{BIN}{os.pathsep}{os.environ['PATH']}"
    return {**os.environ, "PATH": path, "HOME": str(tmp_path), "TERM": "xterm", "ZDOTDIR": str(tmp_path)}


def needs(shell: str) -> str:
    found = shutil.which(shell)
    if found is None:
        pytest.skip(f"{shell} is not installed")
    return found


def said(command: list[str], tmp_path: Path) -> list[str]:
    ran = subprocess.run(
        command, env=environment(tmp_path), cwd=tmp_path, capture_output=True, text=True, timeout=SECONDS, check=True
    )
    assert ran.stderr == ""
    return ran.stdout.split("\n")


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("ver", ["verify"]),
        ("benchmark imp", ["import"]),
        ("verify x.jsonld --mode rub", ["rubric_only"]),
        ("verify x.jsonld --answering-int", ["--answering-interface"]),
        ("verfy --vers", ["--version"]),  # of a command that is not known: no traceback
    ],
)
def test_bash_completes(words: str, expected: list[str], tmp_path: Path) -> None:
    script = BASH.format(words=words, last=len(words.split()))
    found = [line for line in said([needs("bash"), "--norc", "-c", script], tmp_path) if line]
    assert found == expected


def test_fish_completes_and_says_what_commands_do(tmp_path: Path) -> None:
    script = "karenina completion fish | source; complete --do-complete 'karenina ver'"
    found = said([needs("fish"), "--no-config", "-c", script], tmp_path)
    assert "verify\tRun a benchmark." in found


def test_zsh_completes(tmp_path: Path) -> None:
    """In a terminal, because zsh completes nowhere else: a line that has become whole, and printed what it says."""
    zsh = needs("zsh")
    process, terminal = pty.fork()
    if process == 0:
        os.chdir(tmp_path)
        os.execve(zsh, [zsh, "-f", "-i"], environment(tmp_path))
    try:
        os.write(terminal, b'autoload -U compinit; compinit -u -D; eval "$(karenina completion zsh)"; print R""EADY\n')
        assert "READY" in shown(terminal, "READY")
        os.write(terminal, b"karenina verif\t")
        assert "karenina verify" in shown(terminal, "karenina verify")
    finally:
        os.kill(process, 9)
        os.waitpid(process, 0)
        os.close(terminal)


def shown(terminal: int, wanted: str) -> str:
    """What the terminal shows until it has shown this."""
    text, deadline = "", time.monotonic() + SECONDS
    while wanted not in text and time.monotonic() < deadline:
        if select.select([terminal], [], [], 0.5)[0]:
            text += os.read(terminal, 65536).decode("utf-8", "replace")
    return text


def test_a_shell_that_is_not_known_is_named_with_those_that_are(run: Run) -> None:
    refused = run("completion", "tcsh")
    assert refused.exit_code == 2
    assert "'bash', 'zsh', 'fish'" in refused.stderr
