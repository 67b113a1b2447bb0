"""The public names of traits, tasks and templates as stages share them."""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, Mapping[str, str]] = {
    "karenina_core": {
        "AgenticRubricTrait": "karenina_vocabulary.traits",
        "ArtifactKeys": "karenina_vocabulary.artifact_keys",
        "CallableRubricTrait": "karenina_vocabulary.traits",
        "FewShotConfig": "karenina_vocabulary.prompt_config",
        "LLMRubricTrait": "karenina_vocabulary.traits",
        "MetricRubricTrait": "karenina_vocabulary.traits",
        "PromptConfig": "karenina_vocabulary.prompt_config",
        "RegexRubricTrait": "karenina_vocabulary.traits",
        "TraitCase": "karenina_vocabulary.evaluators",
        "TraitEvaluator": "karenina_vocabulary.evaluators",
        "TraitScore": "karenina_vocabulary.evaluators",
    },
    "karenina_core.prompts": {
        "PromptTask": "karenina_vocabulary.tasks",
    },
    "karenina_core.templates": {
        "FieldVerdict": "karenina_vocabulary.handle",
        "FilledTemplate": "karenina_vocabulary.handle",
        "RegexVerdict": "karenina_vocabulary.handle",
        "TemplateField": "karenina_vocabulary.handle",
        "TemplateHandle": "karenina_vocabulary.handle",
        "TemplateRuntime": "karenina_vocabulary.handle",
    },
}
