"""The tutorials work for someone who has karenina from wheels and nothing of this repository.

Blocks are marked as `tests/docs` describes; those marked `installed` need the package that the reader has just
installed, and are run here only.
"""

from __future__ import annotations

import os
import re
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

FENCE = re.compile(r"^```(\w*)[ ]*([^\n]*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
TUTORIALS = ("first-benchmark", "first-stage")
Run = Callable[..., subprocess.CompletedProcess[str]]


@pytest.fixture(scope="module")
def venv(fresh: Callable[..., Path], own_pip: Callable[[Path], None]) -> Path:
    made = fresh("karenina-core[testing]")
    own_pip(made)
    return made


@pytest.fixture
def shell(venv: Path, run: Run, sources: list[Path], tmp_path: Path) -> Callable[[str], str]:
    """Run a line of shell where the environment is active and packages come from the folders of wheels."""
    settings = {
        "PATH": f"{venv / 'bin'}{os.pathsep}{os.environ['PATH']}",
        "PIP_NO_INDEX": "1",
        "PIP_FIND_LINKS": " ".join(map(str, sources)),
        "PIP_NO_COMPILE": "0",  # pip reads it as `--no-compile`: little of what builds a package is run
    }
    return lambda line: run(["bash", "-c", f"{line} 2>&1"], tmp_path, **settings).stdout


def steps(text: str) -> Iterator[tuple[str, str, str]]:
    """`(what, argument, text)`: `save` a file, `run` a command, `python` code; `output` is what came before."""
    for language, first_line, body in FENCE.findall(text):
        if name := re.search(r"\bsave=(\S+)", first_line):
            yield "save", name[1], body
        elif first_line.strip() == "output":
            yield "output", "", body
        elif language == "python" and first_line.strip() == "run":
            yield "python", "", body
        elif first_line.strip() in ("run", "installed"):
            for part in re.split(r"^\$ ", body, flags=re.MULTILINE)[1:]:
                command, _, output = part.partition("\n")
                yield "run", command, output


def fits(expected: str, printed: str) -> bool:
    """`...` stands for anything in a line, or alone for any lines; runs of blanks count as one."""
    lines = [" ".join(line.split()) for line in expected.strip().splitlines()]
    patterns = [
        "(?:[^\n]*\n)*?" if line == "..." else "[^\n]*?".join(map(re.escape, line.split("..."))) + "\n"
        for line in lines
    ]
    said = "".join(" ".join(line.split()) + "\n" for line in printed.strip().splitlines())
    return re.fullmatch("".join(patterns), said) is not None


@pytest.mark.parametrize("tutorial", TUTORIALS)
def test_a_tutorial_works_from_wheels(
    tutorial: str, shell: Callable[[str], str], repository: Path, tmp_path: Path
) -> None:
    text = (repository / "docs" / "tutorial" / f"{tutorial}.md").read_text("utf-8")
    printed = ""
    commands = 0
    for what, argument, body in steps(text):
        if what == "save":
            (tmp_path / argument).write_text(body, "utf-8")
        elif what == "python":
            (tmp_path / "block.py").write_text(body, "utf-8")
            printed = shell("python block.py")
        elif what == "output":
            assert fits(body, printed), printed
        else:
            commands += 1
            printed = shell(argument)
            assert not body.strip() or fits(body, printed), f"{argument} printed\n{printed}"
    assert commands >= 3
