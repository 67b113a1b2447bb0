"""What importing the core and the help of the command line take in counted work: modules, and calls of functions.

    python -m tests.benchmarks.started

prints the counts as JSON; `tests/guards/test_counted_start.py` holds them against budgets.
"""

from __future__ import annotations

import json
import subprocess
import sys

from .workload import REPOSITORY

__all__ = ["started"]

STARTS = {
    "import karenina_core": "import karenina_core",
    "karenina --help": """
import contextlib, io
sys.argv = ["karenina", "--help"]
from karenina_cli import main
with contextlib.redirect_stdout(io.StringIO()), contextlib.suppress(SystemExit):
    main()
""",
}
FINDING = ("<frozen", "importlib", "email", "pathlib", "zipfile")
"""What finds modules and installed packages: it does more where more is installed, so its calls are not counted."""
PROBE = """
import sys
calls = metadata = 0
def count(frame, event, arg):
    global calls, metadata
    if event == "call":
        code = frame.f_code
        calls += not any(name in code.co_filename for name in {finding!r})
        metadata += code.co_name == "parsestr"
before = set(sys.modules)
sys.setprofile(count)
{code}
sys.setprofile(None)
modules = sorted(set(sys.modules) - before)
import json
print(json.dumps({{"modules": modules, "calls": calls, "metadata": metadata}}))
"""


def started() -> dict[str, dict[str, object]]:
    """`{what: {"modules": names, "calls", "metadata"}}`: modules that a bare interpreter does not have, calls of Python
    functions, and how often the metadata of an installed package is read."""
    return {name: _counted(code) for name, code in STARTS.items()}


def _counted(code: str) -> dict[str, object]:
    probe = PROBE.format(code=code, finding=FINDING)
    for _ in range(2):  # the first time, byte code is compiled
        ran = subprocess.run([sys.executable, "-c", probe], cwd=REPOSITORY, capture_output=True, text=True, check=True)
    counted: dict[str, object] = json.loads(ran.stdout)
    return counted


def main() -> None:
    print(json.dumps(started()))


if __name__ == "__main__":
    main()
