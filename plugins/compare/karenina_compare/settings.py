"""Settings: what becomes of a gate that nothing decides, and what a run is compared with as soon as it is done."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field, frozen, validators

Undecided: TypeAlias = Literal["fail", "warn", "pass"]


@frozen(kw_only=True)
class CompareSettings:
    """`[plugins.compare]`."""

    undecided: Undecided = "fail"
    """What happens to the regression gate if there are too few questions to decide: it fails, it passes with a warning,
    or it passes and only its message says so. Missing results never pass, whatever is set here."""
    tolerated_drop: float = field(default=0.1, validator=[validators.ge(0), validators.le(1)])
    """A larger drop that is not significant is undecided: a fraction for rates, a fraction of the scale for scores. By
    chance, 60 questions seldom drop so much; of six questions, a single one that gets worse is more."""
    baseline: str | None = None
    """The directory of the run that `karenina verify` and `karenina resume` compare a run with when it is done."""
    max_drop: float | None = field(default=None, validator=validators.optional(validators.ge(0)))
    """How much worse a run may be than the earlier one: a fraction for rates, points of the scale for scores. This and
    the next setting also apply in `karenina compare --config`."""
    fail_on_regression: bool = False
    """Whether a run that is significantly worse than the earlier one fails."""
