"""Settings: what becomes of a gate that nothing decides, and what a run is compared with as soon as it is done."""

from __future__ import annotations

from typing import Literal, TypeAlias

from attrs import field, frozen, validators

Undecided: TypeAlias = Literal["fail", "warn", "pass"]


@frozen(kw_only=True)
class CompareSettings:
    """`[plugins.compare]`."""

    undecided: Undecided = "fail"
    """What becomes of the gate on regressions where there are too few questions to decide: it fails, it passes with a
    warning, or it passes and only its message says so. What is missing never passes, whatever is set here."""
    tolerated_drop: float = field(default=0.1, validator=[validators.ge(0), validators.le(1)])
    """A drop that is larger, and not significant, is undecided: a part of 1 for rates, of the scale for scores. Chosen:
    by chance, 60 questions seldom drop so much; of six, a single one that gets worse is more."""
    baseline: str | None = None
    """The directory of the run that `karenina verify` and `karenina resume` compare a run with when it is done."""
    max_drop: float | None = field(default=None, validator=validators.optional(validators.ge(0)))
    """How much worse a run may be than the earlier one: a part of 1 for rates, points of the scale for scores. This and
    the next setting count in `karenina compare --config`, too."""
    fail_on_regression: bool = False
    """Whether a run fails that is significantly worse than the earlier one."""
