"""Settings of a run for asking questions."""

from __future__ import annotations

from attrs import frozen

from karenina_core import FewShotConfig
from karenina_core.model.fields import instance_of, optional
from karenina_core.model.sections import Section, setting

__all__ = ["GenerationSettings"]


@frozen(kw_only=True, slots=False)
class GenerationSettings(Section):
    """What is put before a question."""

    few_shot_config: FewShotConfig | None = setting(None, optional(instance_of(FewShotConfig)), environment=False)
