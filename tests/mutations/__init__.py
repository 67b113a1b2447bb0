"""Faults put into the code, to see which no test notices: `python -m tests.mutations`, from the repository's root."""

import os

for _library in ("OPENBLAS", "OMP"):  # a process with threads cannot be forked safely
    os.environ.setdefault(f"{_library}_NUM_THREADS", "1")
