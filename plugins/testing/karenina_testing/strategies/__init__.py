"""hypothesis strategies for the values of karenina. Everything that they make is valid, and much of it is odd.

They are part of the extra `karenina-core[testing]`.
"""

from __future__ import annotations

from .. import examples  # noqa: F401  # first: without hypothesis it says what to install
from .benchmarks import (
    agentic_traits,
    benchmarks,
    callable_traits,
    dynamic_rubrics,
    filled_templates,
    fillings_of,
    llm_traits,
    metric_traits,
    questions,
    regex_traits,
    rubrics,
    template_handles,
    template_specs,
    traits,
)
from .models import (
    effects,
    llm_responses,
    manual_answers,
    messages,
    model_configs,
    plan_requests,
    retry_policies,
    usage,
    verification_configs,
)
from .results import cached_answers, identities, results, rubric_parts, traces
from .values import json_objects, json_values, names, of_type, texts

__all__ = [
    "agentic_traits",
    "benchmarks",
    "cached_answers",
    "callable_traits",
    "dynamic_rubrics",
    "effects",
    "filled_templates",
    "fillings_of",
    "identities",
    "json_objects",
    "json_values",
    "llm_responses",
    "llm_traits",
    "manual_answers",
    "messages",
    "metric_traits",
    "model_configs",
    "names",
    "of_type",
    "plan_requests",
    "questions",
    "regex_traits",
    "results",
    "retry_policies",
    "rubric_parts",
    "rubrics",
    "template_handles",
    "template_specs",
    "texts",
    "traces",
    "traits",
    "usage",
    "verification_configs",
]
