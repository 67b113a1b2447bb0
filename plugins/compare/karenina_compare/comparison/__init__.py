"""Comparisons: two runs, or the models of one run, question by question; and gates on what comes out."""

from __future__ import annotations

from karenina_runs.summaries.gates import Gate

from .compare import compare, compare_models
from .gates import Limits, gates
from .values import Answers, Comparison, Flip, Pair, Row, Test, Tie

__all__ = [
    "Answers",
    "Comparison",
    "Flip",
    "Gate",
    "Limits",
    "Pair",
    "Row",
    "Test",
    "Tie",
    "compare",
    "compare_models",
    "gates",
]
