"""Settings of a run for the evaluation of rubrics."""

from __future__ import annotations

from typing import Literal

from attrs import frozen

from karenina_core.values.sections import Section, word

RubricStrategy = Literal["batch", "sequential"]


@frozen(kw_only=True, slots=False)
class RubricSettings(Section):
    """How the judge is asked about traits."""

    rubric_evaluation_strategy: RubricStrategy = word("batch", RubricStrategy)
    """Whether the judge scores traits together in one call, or each in a call of its own."""
