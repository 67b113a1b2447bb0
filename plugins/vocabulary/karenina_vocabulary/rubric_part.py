"""`RubricPart`: what became of every trait of an item, and how it is read for reports, summaries and people.

Results of other tools may lack states and scales. What a score is then follows from its field and its type;
a score that may be an error counts as none.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterator, Mapping
from typing import Any, ClassVar

from attrs import evolve, field, frozen

from karenina_core.values.fields import is_number, texts
from karenina_core.values.result_parts import ResultPart

from .trait_scale import ERROR_PREFIX, MISSING_LABEL, misfit, scale_classes, scale_kind

SCORES: Mapping[str, str] = {
    "llm": "llm_trait_scores",
    "regex": "regex_trait_scores",
    "callable": "callable_trait_scores",
    "metric": "metric_trait_scores",
    "agentic": "agentic_trait_scores",
}
"""Type of trait -> the field that holds its scores."""
JUDGED = ("llm", "agentic")
"""Types whose traits may be template kinds, stored as `trait.field`."""
COUNTS = ("tp", "fp", "fn", "tn")
FAILED = ("invalid", "missing", "error")
"""States of traits that should have a score and have none."""
LABEL = "label"
"""The detail that holds the label of a trait; those of the type `llm` have a field of their own."""


@frozen(kw_only=True)
class TraitOutcome:
    """One trait of one item."""

    name: str
    type: str | None
    """None where the result does not say, as for a trait that was skipped."""
    kind: str | None
    """`boolean`, `score`, `literal`, `template`, `metric`, or what another package calls it."""
    value: Any = None
    """The score; None unless the state is `ok`. Template kinds: `{field: value}`; metric traits: counts and metrics."""
    label: str | None = None
    """The class of a literal trait, the text that was replied instead of one, or what else the score is called."""
    state: str = "ok"
    reason: str = ""
    scale: Mapping[str, Any] = field(factory=dict)
    provenance: str | None = None
    details: Mapping[str, Any] = field(factory=dict)
    confusion: Mapping[str, Any] = field(factory=dict)
    """Of metric traits: what was found, `{"tp": [text], ...}`."""

    @property
    def higher_is_better(self) -> bool | None:
        found: bool | None = self.scale.get("higher_is_better")
        return found

    @property
    def counts(self) -> Mapping[str, int]:
        """Of metric traits: the confusion counts as stored; where there are none, the lengths of the stored lists."""
        if self.state != "ok" or self.kind != "metric":
            return {}
        stored = {key: int(self.value[key]) for key in COUNTS if is_number(self.value.get(key))}
        lists = {key: self.confusion.get(key) for key in COUNTS}
        return stored or {key: len(texts) for key, texts in lists.items() if isinstance(texts, list | tuple)}

    @property
    def metrics(self) -> Mapping[str, Any]:
        """Of metric traits: the metrics without the counts."""
        stored = self.value if isinstance(self.value, Mapping) and self.kind == "metric" else {}
        return {key: value for key, value in stored.items() if key not in COUNTS}

    def rows(self) -> Iterator[dict[str, Any]]:
        """See `RubricPart.rows`."""
        counts = {f"confusion_{key}": self.counts.get(key) for key in COUNTS}
        row: dict[str, Any] = {
            "trait_name": self.name,
            "trait_type": self.type,
            "kind": self.kind,
            "trait_score": self.value,
            "trait_label": self.label,
            "metric_name": None,
            **(counts if self.kind == "metric" else dict.fromkeys(counts)),
            "state": self.state,
            "reason": self.reason,
            "provenance": self.provenance,
            "higher_is_better": self.higher_is_better,
            **{f"details.{name}": value for name, value in self.details.items()},
        }
        if self.kind == "metric" and self.metrics:
            yield from ({**row, "metric_name": name, "trait_score": value} for name, value in self.metrics.items())
        elif self.kind == "template" and isinstance(self.value, Mapping) and self.value:
            yield from ({**row, "trait_name": f"{self.name}.{key}", "trait_score": v} for key, v in self.value.items())
        else:
            yield {**row, "trait_score": None} if self.kind == "metric" else row


@frozen(kw_only=True)
class RubricPart(ResultPart):
    """Trait scores by type. A trait that could not be scored has None, and a reason in `trait_states`.

    A table without entries means that there are no such traits, or that their stage did not run: the flags
    `rubric_evaluation_performed` and `agentic_rubric_evaluation_performed` say which. It is never None, so that code
    which goes through it needs no exception.
    """

    order: ClassVar[int] = 30
    has_columns: ClassVar[bool] = True
    rubric_evaluation_performed: bool = False
    rubric_evaluation_strategy: str | None = None
    """How traits of the type `llm` were requested: `batch` or `sequential`."""
    rubric_used_full_trace: bool | None = None
    """Whether traits were scored on the whole trace instead of the final message."""
    llm_trait_scores: Mapping[str, Any] = field(factory=dict)
    """True or False, a number, or the index of a class; template kinds as `trait.field`."""
    llm_trait_labels: Mapping[str, str] = field(factory=dict)
    """The class names of literal traits; if the index is -1, why there is none."""
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
    """`{trait: {name: value}}`: what an evaluator reports beside the score; columns of reports."""
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

    @classmethod
    def of(cls, context: Any, found: Mapping[str, Any]) -> RubricPart | None:
        performed = found.get("rubric_evaluation_performed") or found.get("agentic_rubric_evaluation_performed")
        return cls(**found) if performed else None

    def get_all_trait_scores(self) -> dict[str, Any]:
        """`{trait: score}` of every type as stored: None (literal traits: -1) where a trait could not be scored, and
        template kinds as `trait.field`."""
        return {name: score for _, scores in typed_scores(self) for name, score in scores.items()}

    def get_trait_by_name(self, name: str) -> tuple[Any, str | None] | None:
        """`(score, type)`; None where no trait of this name was evaluated.

        The score is None where there is none (see `trait_errors`), and `{field: value}` of a template kind; a field of
        one can be asked for as `trait.field`. The type is None where the result does not say it.
        """
        for trait in read_traits(self):
            if trait.name == name and trait.state != "skipped":
                return trait.value, trait.type
            fields = trait.value if trait.kind == "template" and isinstance(trait.value, Mapping) else {}
            if found := [value for key, value in fields.items() if f"{trait.name}.{key}" == name]:
                return found[0], trait.type
        return None

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
        return [row for outcome in read_traits(self) for row in outcome.rows()]


def typed_scores(part: RubricPart) -> Iterator[tuple[str, Mapping[str, Any]]]:
    """`(type, {trait: score})` as stored, those of other packages too."""
    for type_name, field_name in SCORES.items():
        yield type_name, getattr(part, field_name)
    yield from part.extra_trait_scores.items()


def read_traits(part: RubricPart | None) -> list[TraitOutcome]:
    """Every trait that the result speaks of: those with a place for a score by type, then the others. None without a
    rubric."""
    if part is None:
        return []
    stored: dict[tuple[str, str], Any] = {}
    for type_name, scores in typed_scores(part):
        for key, value in scores.items():
            if "." not in key or not _is_field(part, type_name, key, scores):
                stored.setdefault((key, type_name), value)
                continue
            owner, _, name = key.partition(".")
            if isinstance(fields := stored.setdefault((owner, type_name), _Fields()), _Fields):
                fields[name] = value
    types = Counter(name for name, _ in stored)

    def scale_type(name: str) -> str | None:
        found: str | None = (part.trait_scales.get(name) or {}).get("type")
        return found

    found = []
    for (name, type_name), value in stored.items():
        about = part
        if types[name] > 1 and scale_type(name) not in (None, type_name):
            # What is stored by the name of traits of several types is about the trait of the type of its scale.
            about = evolve(part, trait_scales={}, trait_states={}, trait_details={}, dynamic_rubric_skipped_traits={})
        found.append(_outcome(about, name, type_name, value))
    others = dict.fromkeys((*part.trait_states, *part.dynamic_rubric_skipped_traits))
    return found + [_outcome(part, name, None, None) for name in others if name not in types]


class _Fields(dict[str, Any]):
    """The fields of a template kind."""


def _is_field(part: RubricPart, type_name: str, key: str, scores: Mapping[str, Any]) -> bool:
    """Whether a key is `trait.field` of a trait that the result knows; names of other tools' traits may hold a dot."""
    owner, _, name = key.partition(".")
    if type_name not in JUDGED or not name or owner in scores or key in part.trait_states or key in part.trait_scales:
        return False
    scale = part.trait_scales.get(owner)
    return scale_kind(scale) == "template" if scale else owner in part.trait_states


def _outcome(part: RubricPart, name: str, type_name: str | None, value: Any) -> TraitOutcome:
    scale = part.trait_scales.get(name) or {}
    details = part.trait_details.get(name) or {}
    label = details.get(LABEL) if type_name != "llm" else None
    label = label if isinstance(label, str) else None
    if type_name in (None, "llm") and name in part.llm_trait_labels:
        label = part.llm_trait_labels[name]
    kind = _kind(scale, type_name, value, name in part.llm_trait_labels)
    state, reason = _state(part, name, _what_is_wrong(scale, type_name, kind, value, label))
    if kind == "literal" and state == "ok" and (classes := scale_classes(scale)):
        label = classes[value] if label is None else label
        if label.strip().casefold() != classes[value].strip().casefold():
            reason = f"its label is {label!r}, but the score {value} is that of the class {classes[value]!r}"
    return TraitOutcome(
        name=name,
        type=type_name or scale.get("type"),
        kind=kind,
        value=value if state == "ok" else None,
        label=label,
        state=state,
        reason=reason,
        scale=scale,
        provenance=part.trait_provenance.get(name),
        details=details,
        confusion=part.metric_trait_confusion_lists.get(name) or {},
    )


def _kind(scale: Mapping[str, Any], type_name: str | None, value: Any, has_llm_label: bool) -> str | None:
    if kind := scale_kind(scale):
        return kind
    if kind := {"regex": "boolean", "metric": "metric"}.get(type_name or scale.get("type") or ""):
        return kind
    if isinstance(value, _Fields):
        return "template"
    if has_llm_label and type_name in (None, "llm"):
        return "literal"
    if isinstance(value, bool):
        return "boolean"
    return "score" if is_number(value) and not _may_be_no_class(scale, type_name, value) else None


def _may_be_no_class(scale: Mapping[str, Any], type_name: str | None, value: Any) -> bool:
    """-1 is also how a literal trait without a class is written; only a scale would say which it is."""
    return value == -1 and not isinstance(value, bool) and not scale and type_name in SCORES


def _state(part: RubricPart, name: str, wrong: tuple[str, str] | None) -> tuple[str, str]:
    """What the result says, unless it says `ok` about something that is no score."""
    stored = part.trait_states.get(name)
    state = stored.get("state") if isinstance(stored, Mapping) else stored
    reason = str(stored.get("reason") or "") if isinstance(stored, Mapping) else ""
    if name in part.dynamic_rubric_skipped_traits and state in (None, "skipped"):
        return "skipped", reason or str(part.dynamic_rubric_skipped_traits[name] or "")
    if state not in (None, "ok"):
        known = state in (*FAILED, "skipped")
        return (str(state), reason) if known else ("error", reason or f"its state is {state!r}")
    return wrong or ("ok", reason)


def _what_is_wrong(
    scale: Mapping[str, Any], type_name: str | None, kind: str | None, value: Any, label: str | None
) -> tuple[str, str] | None:
    """State and reason where a stored value is no score."""
    if kind == "literal":  # where the label says that there is no class, there is none, whatever the number is
        if label == MISSING_LABEL:
            return "missing", "the reply says nothing about it"
        if label is not None and label.startswith(ERROR_PREFIX):
            return "error", label.removeprefix(ERROR_PREFIX).removesuffix("]").strip()
        if value == -1 and not isinstance(value, bool):
            return (
                "invalid",
                f"{label!r} is not one of its classes" if label else "the reply was not one of its classes",
            )
    if value is None or (kind == "metric" and value == {}):
        return "error", "no score is stored, and no reason"
    if isinstance(value, float) and not math.isfinite(value):
        return "invalid", f"the stored score is {value}"
    if kind is None and _may_be_no_class(scale, type_name, value):
        return "invalid", "the stored score is -1, which is also how an unknown class is written"
    wanted = misfit(kind, scale, value)
    return ("invalid", f"the stored score {value!r} is not {wanted}") if wanted else None
