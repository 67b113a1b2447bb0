"""The public names of runs and their results."""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, Mapping[str, str]] = {
    "karenina_core": {
        "Benchmark": "karenina_runs.benchmark",
        "RepairSelection": "karenina_runs.amend.repair",
        "ReplayEntry": "karenina_runs.answers.answers",
        "ReplayKey": "karenina_runs.answers.answers",
        "ReplayStore": "karenina_runs.answers.answers",
        "RunControl": "karenina_runs.execute.control",
        "RunInfo": "karenina_runs.results.sinks",
        "Sink": "karenina_runs.results.sinks",
        "VerificationResultSet": "karenina_runs.results.results",
        "aextend_run": "karenina_runs.amend.extension",
        "arepair_run": "karenina_runs.amend.repair",
        "aresume_run": "karenina_runs.resume",
        "arun_single_model_verification": "karenina_runs.execute.single",
        "extend_run": "karenina_runs.amend.extension",
        "repair_run": "karenina_runs.amend.repair",
        "resume_run": "karenina_runs.resume",
        "run_single_model_verification": "karenina_runs.execute.single",
        "undo_repair": "karenina_runs.amend.repair",
    },
}
