"""Settings of a run for asking questions."""

from __future__ import annotations

from attrs import frozen
from karenina_vocabulary.prompt_config import FewShotConfig

from karenina_core.values.fields import instance_of, optional
from karenina_core.values.sections import Section, setting


@frozen(kw_only=True, slots=False)
class GenerationSettings(Section):
    """What is put before a question."""

    few_shot_config: FewShotConfig | None = setting(None, optional(instance_of(FewShotConfig)), environment=False)
