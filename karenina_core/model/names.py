"""The public names of traits, tasks and templates as stages share them."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["NAMES"]

NAMES: Mapping[str, Mapping[str, str]] = {
    "karenina_core": {
        "AgenticRubricTrait": "karenina_core.model.traits",
        "ArtifactKeys": "karenina_core.pipeline.artifact_keys",
        "CallableRubricTrait": "karenina_core.model.traits",
        "FewShotConfig": "karenina_core.model.prompt_config",
        "LLMRubricTrait": "karenina_core.model.traits",
        "MetricRubricTrait": "karenina_core.model.traits",
        "PromptConfig": "karenina_core.model.prompt_config",
        "RegexRubricTrait": "karenina_core.model.traits",
        "TraitCase": "karenina_core.pipeline.traits",
        "TraitEvaluator": "karenina_core.pipeline.traits",
        "TraitScore": "karenina_core.pipeline.traits",
    },
    "karenina_core.prompts": {
        "PromptTask": "karenina_core.prompts.tasks",
    },
    "karenina_core.templates": {
        "FieldVerdict": "karenina_core.templates.handle",
        "FilledTemplate": "karenina_core.templates.handle",
        "RegexVerdict": "karenina_core.templates.handle",
        "TemplateField": "karenina_core.templates.handle",
        "TemplateHandle": "karenina_core.templates.handle",
        "TemplateRuntime": "karenina_core.templates.handle",
    },
}
