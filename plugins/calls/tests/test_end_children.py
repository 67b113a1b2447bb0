"""A process that ends at once takes along what it has started, and nothing else."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

PARENT = """
import os, subprocess, sys, time
from karenina_calls.files.process_cleanup import end_children

code = "import subprocess, sys, time; "
code += "inner = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(100)'], start_new_session=True); "
code += "print(inner.pid, flush=True); time.sleep(100)"
child = subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE, text=True, start_new_session=True)
inner = int(child.stdout.readline())
end_children()
print(child.wait(10), inner, flush=True)
"""


def runs(number: int) -> bool:
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux shows what others have started")
def test_all_that_a_process_has_started_is_ended() -> None:
    bystander = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(100)"])
    try:
        done = subprocess.run([sys.executable, "-c", PARENT], capture_output=True, text=True, timeout=60, check=True)
        code, inner = map(int, done.stdout.split())
        assert code == -9
        ends = time.monotonic() + 10
        while runs(inner):
            assert time.monotonic() < ends
            time.sleep(0.01)
        assert bystander.poll() is None
        assert runs(os.getpid())
    finally:
        bystander.kill()
        bystander.wait()
