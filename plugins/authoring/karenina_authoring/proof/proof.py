"""What a proof is: the cases that a template was put to, what became of them, and what that means."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Literal

from attrs import asdict, field, frozen

from karenina_core.values.question import Question

State = Literal["proven", "not_proven", "unusable", "not_checked", "no_template"]
KEY = "proof"
"""Of a question's `custom_metadata`: the figures of its last proof."""


@frozen(kw_only=True)
class Case:
    """One filling of a template, as a judge could make it from a response."""

    kind: str
    """`own_values`; how a mutant is wrong, such as `sign`; or what a variant changes, such as `case`."""
    fields: Sequence[str]
    """Those whose value is not the expected one."""
    values: Mapping[str, Any]
    """What was extracted: JSON data by field."""
    passes: bool
    """Whether the template has to accept it."""

    @property
    def shown(self) -> str:
        """The changed values in a few words."""
        named = self.fields or list(self.values)
        return ", ".join(f"{name} = {self.values[name]!r:.80}" for name in named)


@frozen(kw_only=True)
class Failure:
    """A case whose outcome is not the one that it has to have."""

    case: Case
    problem: str
    """What happened, in words."""


@frozen
class Tally:
    """How many cases there were, and how many of them ended as they have to."""

    made: int = 0
    right: int = 0


@frozen(kw_only=True)
class Proof:
    """Whether a template accepts its own values, rejects wrong ones and accepts other forms of the right ones."""

    question: str
    """Its id."""
    template: str
    """The digest of the text that was put to the proof."""
    state: State
    """`not_checked`: the template is code that may not run here."""
    own_values: bool | None = None
    """Whether it accepts its own expected values."""
    mutants: Tally = Tally()
    variants: Tally = Tally()
    leaks: Sequence[str] = ()
    """What its texts give away."""
    left_out: Mapping[str, str] = field(factory=dict)
    """The fields that no case could be made for, and why."""
    failures: Sequence[Failure] = ()
    faults: Sequence[str] = ()
    """Why it must not count as finished: it leaks, cannot fail, or refuses its own values."""
    reasons: Sequence[str] = ()
    """Why the state is not `proven`, the faults first."""

    @property
    def holds(self) -> bool:
        return self.state == "proven"

    def figures(self) -> dict[str, Any]:
        """What a benchmark file keeps of it, under `KEY`."""
        return {
            "template": self.template,
            "state": self.state,
            "own_values": self.own_values,
            "mutants": {"made": self.mutants.made, "rejected": self.mutants.right},
            "variants": {"made": self.variants.made, "accepted": self.variants.right},
            "leaks": len(self.leaks),
            "left_out": dict(self.left_out),
            "reasons": list(self.reasons),
        }

    def document(self) -> dict[str, Any]:
        """Everything, as JSON data."""
        cases = [asdict(found.case) | {"problem": found.problem} for found in self.failures]
        facts = {"question": self.question, **self.figures(), "leaks": list(self.leaks)}
        return facts | {"faults": list(self.faults), "failures": cases}


Kept = Literal["none", "current", "stale"]


def kept(question: Question) -> Kept:
    """Whether the question has the figures of a proof of the template that it has now."""
    figures = question.custom_metadata.get(KEY)
    if not isinstance(figures, Mapping):
        return "none"
    return "current" if figures.get("template") == question.template_id else "stale"
