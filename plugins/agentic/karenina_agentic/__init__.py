"""Agents as judges: they look into the trace and the workspace of an answer before it is scored."""

from .agents import Material
from .evaluator import AgenticTraitEvaluator, Finding

__all__ = ["AgenticTraitEvaluator", "Finding", "Material"]
