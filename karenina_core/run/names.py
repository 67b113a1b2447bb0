"""The public names of runs and their results."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["NAMES"]

NAMES: Mapping[str, Mapping[str, str]] = {
    "karenina_core": {
        "Benchmark": "karenina_core.run.benchmark",
        "RepairSelection": "karenina_core.run.repair_selection",
        "ReplayEntry": "karenina_core.run.answers",
        "ReplayKey": "karenina_core.run.answers",
        "ReplayStore": "karenina_core.run.answers",
        "RunControl": "karenina_core.run.control",
        "VerificationResultSet": "karenina_core.run.results",
        "aextend_run": "karenina_core.run.extension",
        "arepair_run": "karenina_core.run.repair",
        "aresume_run": "karenina_core.run.resume",
        "arun_single_model_verification": "karenina_core.run.single",
        "extend_run": "karenina_core.run.extension",
        "repair_run": "karenina_core.run.repair",
        "resume_run": "karenina_core.run.resume",
        "run_single_model_verification": "karenina_core.run.single",
        "undo_repair": "karenina_core.run.undoing",
    },
}
