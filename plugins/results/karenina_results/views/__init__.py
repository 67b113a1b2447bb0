"""The plugin `result-views`: results seen as fields and verdicts, as scores of traits, and as evidence for both."""

from __future__ import annotations

from typing import Any

from karenina_core import hookimpl

__all__ = ["VIEWS"]

VIEWS = {
    "items": "karenina_results.views.items:ItemResults",
    "template": "karenina_results.views.template:TemplateResults",
    "rubric": "karenina_results.views.rubric:RubricResults",
    "judgment": "karenina_results.views.judgment:JudgmentResults",
    "rubric_judgments": "karenina_results.views.judgment:RubricJudgmentResults",
}


@hookimpl
def karenina_register_views(registry: Any) -> None:
    for name, target in VIEWS.items():
        registry.add(target, name=name)
