"""Runs tests once for each of some variables that happen to be in an environment and must change nothing.

    python -m tests.environments [ARGUMENT OF PYTEST ...]

By default those of `tests/e2e`, whole worlds of runs; that takes a quarter of an hour for each variable, so it is no
part of the suite. Exit code 1 where something fails in one of them.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

__all__ = ["VARIABLES", "failed"]

REPOSITORY = Path(__file__).parents[1]
VARIABLES = {
    "POSTGRES_PASSWORD": "postgres",
    "DB_PASSWORD": "33333333",
    "X_TOKEN": "metadata",
    "KARENINA_BUDGET_TOKENS": "50000000",
}
"""A word, a number and a name of a field that runs are full of, and a setting that limits nothing here."""


def failed(arguments: list[str]) -> list[str]:
    """`NAME=VALUE` of the variables with which some test fails, each set alone."""
    found = []
    for name, value in VARIABLES.items():
        print(f"{name}={value}", flush=True)
        command = [sys.executable, "-m", "pytest", "-q", *arguments]
        ran = subprocess.run(command, cwd=REPOSITORY, env={**os.environ, name: value}, check=False)
        found += [f"{name}={value}"] if ran.returncode else []
    return found


if __name__ == "__main__":
    bad = failed(sys.argv[1:] or ["-n", "2", "tests/e2e"])
    print(f"failed with: {', '.join(bad)}" if bad else f"nothing fails with any of {len(VARIABLES)} variables")
    sys.exit(bool(bad))
