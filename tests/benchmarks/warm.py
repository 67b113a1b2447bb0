"""Imports what measurements need: of this module it is the import that counts, see `processes.share_imports`."""

from __future__ import annotations

import threading

from . import memory, reports, resume, templates, throughput
from .workload import Workload

__all__ = ["memory", "reports", "resume", "templates", "throughput"]

_workload = Workload()
_workload.in_directory(2)
_workload.app.loop.close()
assert threading.active_count() == 1, "a thread cannot be forked"
