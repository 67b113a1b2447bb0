"""Settings of a run for the embedding check."""

from __future__ import annotations

from attrs import frozen

from karenina_core.values.sections import Section, fraction, switch

EMBEDDING_THRESHOLD = 0.85  # the default of the public reference project


def _fraction(text: str) -> float:
    """A number from 0 to 1. Raises ValueError for anything else."""
    try:
        value = float(text)
    except ValueError:
        value = -1.0
    if not 0 <= value <= 1:
        raise ValueError(f"must be a number from 0 to 1, not {text!r}")
    return value


@frozen(kw_only=True, slots=False)
class EmbeddingCheckSettings(Section):
    """The embedding check. `EMBEDDING_CHECK` in the environment sets `embedding_check_enabled` if neither it nor
    `features` is given.
    """

    embedding_check_threshold: float = fraction(
        EMBEDDING_THRESHOLD, variable="EMBEDDING_CHECK_THRESHOLD", asked=_fraction
    )
    """How similar (0 to 1) a wrong text must be to the expected one before the judge is asked whether they mean the
    same; `EMBEDDING_CHECK_THRESHOLD` in the environment if it is not given.
    """
    _embedding_check_enabled: bool | None = switch("embedding_check", variable="EMBEDDING_CHECK")

    @property
    def embedding_check_enabled(self) -> bool:
        return "embedding_check" in self.features
