"""Outcomes and the ledger of effects that a verdict is folded from."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, Literal, get_args

from attrs import field, frozen

from ..errors import ErrorKind

OutcomeName = Literal["passed", "failed", "scored", "auto_failed", "abstained", "insufficient", "error", "skipped"]
NAMES = get_args(OutcomeName)


@frozen(eq=False)
class Outcome:
    """What became of one item: exactly one name, and a detail for those that need one.

    `auto_failed` names the guard, `error` the kind of error, `skipped` the reason. An outcome equals its name, whatever
    its detail, so that `result.outcome == "error"` and `result.outcome in {"passed", "failed"}` work; two outcomes are
    equal where name and detail are. The whole text, such as `error(judge)`, is `str(outcome)`.
    """

    name: OutcomeName = field()
    detail: str | None = None

    @name.validator
    def _check_name(self, _: object, value: str) -> None:
        if value not in NAMES:
            raise ValueError(f"unknown outcome {value!r}; the outcomes are {', '.join(NAMES)}")

    def __eq__(self, other: object) -> bool:
        if isinstance(other, str):
            return self.name == other
        if isinstance(other, Outcome):
            return (self.name, self.detail) == (other.name, other.detail)
        return NotImplemented

    def __hash__(self) -> int:
        return hash(self.name)  # that of the text that it equals

    def __str__(self) -> str:
        return f"{self.name}({self.detail})" if self.detail else self.name


@frozen
class Effect:
    """What one stage has to say about the verdict. None leaves a part as it was."""

    stage: str
    field: bool | None = None
    """Whether the extracted fields are right (`field_verification_result`)."""
    verdict: bool | None = None
    """Whether the answer passes (`verify_result`)."""
    reason: str = ""
    outcome: OutcomeName = "failed"
    """What a False verdict of this effect is called."""

    def __attrs_post_init__(self) -> None:
        if self.outcome not in ("failed", "auto_failed", "abstained", "insufficient"):
            raise ValueError(f"an effect cannot be called {self.outcome!r}")


@frozen
class Verdict:
    """The fold of a ledger."""

    field: bool | None = None
    verdict: bool | None = None
    decided_by: Effect | None = None
    """The effect that last changed the verdict."""


def fold(effects: Iterable[Effect]) -> Verdict:
    """Read the effects in order; each part is what the last effect that speaks of it says."""
    field_result: bool | None = None
    verdict: bool | None = None
    decided_by: Effect | None = None
    for effect in effects:
        if effect.field is not None:
            field_result = effect.field
        if effect.verdict is not None:
            if effect.verdict != verdict:
                decided_by = effect
            verdict = effect.verdict
    return Verdict(field_result, verdict, decided_by)


def outcome_of(verdict: Verdict, *, error_kind: str | None, evaluates_template: bool) -> Outcome:
    """Name the outcome: an error whatever the verdict says; else the verdict, named by the effect that decided it."""
    if error_kind is not None:
        return Outcome("error", error_kind)
    if verdict.verdict is True:
        return Outcome("passed")
    if verdict.verdict is False and verdict.decided_by is not None:
        name = verdict.decided_by.outcome
        return Outcome(name, verdict.decided_by.stage if name == "auto_failed" else None)
    if evaluates_template:
        return Outcome("skipped", "no stage gave a verdict")
    return Outcome("scored")


def nothing_scored(states: Mapping[str, Mapping[str, Any]]) -> tuple[ErrorKind, str] | None:
    """`(kind, message)` of the error of an item that has rubric traits alone: none of them has a score, and some ended
    in an error. The kind is that of the first one. None where a trait has a score, or none was evaluated with an error.

    `states` is `trait_states` of a result.
    """
    failed = {name: row for name, row in states.items() if row["state"] == "error"}
    if not failed or any(row["state"] == "ok" for row in states.values()):
        return None
    reasons = "; ".join(f"{name}: {row['reason']}" for name, row in failed.items())
    kind: ErrorKind = next(iter(failed.values())).get("kind", "stage")
    return kind, f"no trait has a score ({reasons:.1000})"
