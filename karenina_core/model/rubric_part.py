"""`RubricPart`: what became of the traits of one item."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from attrs import field, frozen

from .fields import texts
from .trait_rows import FAILED, find_trait, read_traits, rows_of, typed_scores

__all__ = ["RubricPart"]


@frozen(kw_only=True)
class RubricPart:
    """Trait scores by type. A trait that could not be scored has None, and a reason in `trait_states`.

    A table without entries means that there are no such traits, or that their stage did not run: the flags
    `rubric_evaluation_performed` and `agentic_rubric_evaluation_performed` say which. It is never None, so that code
    which goes through it needs no exception.
    """

    rubric_evaluation_performed: bool = False
    rubric_evaluation_strategy: str | None = None
    """How traits of the type `llm` were asked for: `batch` or `sequential`."""
    rubric_used_full_trace: bool | None = None
    """Whether traits were scored on the whole trace instead of the final message."""
    llm_trait_scores: Mapping[str, Any] = field(factory=dict)
    """True or False, a number, or the index of a class; template kinds as `trait.field`."""
    llm_trait_labels: Mapping[str, str] = field(factory=dict)
    """The class names of literal traits; where the index is -1, why there is none."""
    regex_trait_scores: Mapping[str, Any] = field(factory=dict)
    callable_trait_scores: Mapping[str, Any] = field(factory=dict)
    metric_trait_scores: Mapping[str, Any] = field(factory=dict)
    """`{trait: {"tp", "fn", "fp", ("tn",) metric: value, ...}}`: counts and metrics together."""
    metric_trait_confusion_lists: Mapping[str, Any] = field(factory=dict)
    """`{trait: {"tp": [text], "fn": [...], "fp": [...], "tn": [...]}}`."""
    agentic_rubric_evaluation_performed: bool = False
    agentic_trait_scores: Mapping[str, Any] = field(factory=dict)
    agentic_trait_investigation_traces: Mapping[str, Any] = field(factory=dict)
    extra_trait_scores: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    """`{type: {trait: score}}` for trait types of other packages."""
    trait_details: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    """`{trait: {name: value}}`: what an evaluator says beside the score; columns of reports."""
    trait_scales: Mapping[str, Mapping[str, Any]] = field(factory=dict)
    """`{trait: {"type", "higher_is_better", "kind", ...}}`: what a score means, without the benchmark at hand."""
    trait_states: Mapping[str, Any] = field(factory=dict)
    """`{trait: {"state": "ok|invalid|missing|error|skipped", "reason": ...}}`, with the `kind` of an error."""
    trait_provenance: Mapping[str, str] = field(factory=dict)
    """`global`, `question_specific` or `dynamic`, by trait."""
    dynamic_rubric_promoted_traits: tuple[str, ...] = field(default=(), converter=texts)
    """Dynamic traits whose concept is present in the answer, so that they were evaluated."""
    dynamic_rubric_skipped_traits: Mapping[str, str] = field(factory=dict)
    """`{trait: reason}` for those that were not."""

    def get_all_trait_scores(self) -> dict[str, Any]:
        """`{trait: score}` of every type as stored: None (literal traits: -1) where a trait could not be scored, and
        template kinds as `trait.field`."""
        return {name: score for _, scores in typed_scores(self) for name, score in scores.items()}

    def get_trait_by_name(self, name: str) -> tuple[Any, str | None] | None:
        """`(score, type)`; None where no trait of this name was evaluated.

        The score is None where there is none (see `trait_errors`), and `{field: value}` of a template kind; a field of
        one can be asked for as `trait.field`. The type is None where the result does not tell it.
        """
        return find_trait(self, name)

    def get_llm_trait_labels(self) -> dict[str, str]:
        """The class names of literal traits; where there is none, what was replied, or why there was no reply."""
        return dict(self.llm_trait_labels)

    @property
    def trait_errors(self) -> dict[str, str]:
        """`{trait: reason}` of the traits that should have a score and have none. Skipped ones are not among them."""
        return {trait.name: trait.reason for trait in read_traits(self) if trait.state in FAILED}

    def rows(self) -> list[dict[str, Any]]:
        """A row per trait, per metric of a metric trait, and per field of a template kind (`trait.field`).

        Columns: trait_name, trait_type, kind, trait_score (None unless the state is `ok`), trait_label, metric_name,
        confusion_tp, confusion_fp, confusion_fn, confusion_tn (counts; metric traits only), state, reason, provenance,
        higher_is_better, and `details.<name>` where an evaluator says more.
        """
        return rows_of(self)
