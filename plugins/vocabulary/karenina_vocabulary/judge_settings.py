"""Settings of a run that several stages which judge an answer share."""

from __future__ import annotations

from attrs import frozen
from attrs.converters import optional
from attrs.validators import optional as optional_check

from karenina_core.values.fields import text, texts
from karenina_core.values.sections import Section, flag, setting, whole


@frozen(kw_only=True, slots=False)
class JudgeSettings(Section):
    """What judges read, and what they are asked about."""

    use_full_trace_for_template: bool = flag(False)
    """Whether the judge reads the whole trace instead of the final message."""
    judge_with: str | None = setting(None, optional_check(text))
    """How questions without a template are judged: the name of a template runtime that makes one, such as `reference`.
    None: they are left out."""
    include_extraction_hints: bool = flag(True)
    use_full_trace_for_rubric: bool = flag(True)
    """Whether traits are scored on the whole trace instead of the final message."""
    rubric_trait_names: tuple[str, ...] | None = setting(None, converter=optional(texts), environment=False)
    """Evaluate these traits only; None: all."""
    rubric_concurrency: int = whole(6, least=1, neutral=True)
    """Calls about traits of one item that are in flight at the same time."""
