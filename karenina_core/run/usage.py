"""What the calls of many items came to, task by task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..model.result import VerificationResult
from ..model.trait_scale import is_number

__all__ = ["TOTAL", "usage_by_task"]

TOTAL = "total"
COUNTED = ("calls", "attempts", "repairs", "input_tokens", "output_tokens", "total_tokens")


def usage_by_task(results: Iterable[VerificationResult]) -> dict[str, dict[str, Any]]:
    """See `VerificationResultSet.usage_by_task`. The order of the results changes nothing."""
    rows: dict[str, list[Mapping[str, Any]]] = {}
    for result in results:
        for task, row in result.generation.usage_metadata.items():
            if task != TOTAL and isinstance(row, Mapping) and not row.get("cached"):
                rows.setdefault(task, []).append(row)
    return {task: _added(found) for task, found in rows.items()}


def _added(rows: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    known = _numbers(rows, "cost_usd")
    return {
        "items": len(rows),
        **{name: sum(_numbers(rows, name)) for name in COUNTED},
        "seconds": math.fsum(_numbers(rows, "seconds")),
        "cost_usd": math.fsum(known) if len(known) == len(rows) else None,
        "usage_unavailable": any(row.get("usage_unavailable") for row in rows),
        "models": sorted({str(row["model"]) for row in rows if row.get("model") is not None}),
    }


def _numbers(rows: Sequence[Mapping[str, Any]], name: str) -> list[Any]:
    """Those that are numbers: rows may come from other tools' files."""
    return [row[name] for row in rows if is_number(row.get(name))]
