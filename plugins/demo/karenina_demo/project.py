"""What `karenina init` writes: a benchmark, recorded answers, a configuration, a workflow and what to type."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path

from karenina_cli.output import own_stdout, print_parts

from karenina_core.errors import ConfigError

from .bundle import DATA

PROJECT = DATA / "project"
FILES: Mapping[str, str] = {
    "README.md": "README.md",
    "questions.csv": "questions.csv",
    "answers.json": "answers.json",
    "karenina.toml": "karenina.toml",
    "requirements.txt": "requirements.txt",
    ".gitignore": "gitignore",
    ".github/workflows/karenina.yml": "karenina.yml",
}
"""Where each is written, and what it is called in this package."""
FIRST = "karenina verify questions.csv --config karenina.toml --manual-traces answers.json --out first-run"


def begun(folder: Path) -> None:
    """Write the project and print what to type next.

    Raises ConfigError where one of its files is there already, and then nothing is written, or where one cannot be
    written.
    """
    if there := [name for name in FILES if (folder / name).exists()]:
        raise ConfigError(
            f"in {folder} there is already {', '.join(there)}, and nothing is overwritten; choose another folder: "
            "karenina init FOLDER"
        )
    try:
        for name in FILES:
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        for name, source in FILES.items():
            with (folder / name).open("xb") as file:
                file.write((PROJECT / source).read_bytes())
    except OSError as error:
        raise ConfigError(f"{error.filename or folder} cannot be written: {error.strerror}") from error
    with own_stdout() as out:
        enter = [] if folder.resolve() == Path.cwd() else [f"  {shlex.join(['cd', str(folder)])}"]
        parts = [*(str(folder / name) for name in FILES), "", "Next:", *enter, f"  {FIRST}"]
        print_parts([*parts, "  karenina show first-run noble-gases"], out)
