"""Forgets the marker of a hook."""

from typing import Any

from karenina_core import hookimpl


def karenina_register_sinks(registry: Any) -> None:  # the fault
    registry.add("karenina_results.jsonl:JsonLines", name="planted")


@hookimpl
def karenina_register_executors(registry: Any) -> None:
    registry.add("karenina_runs.execute.local:LocalExecutor", name="planted")
