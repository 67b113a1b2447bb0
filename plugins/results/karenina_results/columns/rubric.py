"""The table of traits: one row for every trait of every item, metric by metric and field by field."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any

from attrs import evolve, frozen
from karenina_vocabulary.rubric_part import COUNTS, TraitOutcome, read_traits
from karenina_vocabulary.trait_scale import scale_classes

from karenina_core import VerificationResult
from karenina_core.values.fields import is_number

from .shared import ADDED, HEAD, RUN, extension_columns
from .table import Column, Found, Row, Table, named, of_item, own, stored

LLM_KINDS: Mapping[str, str] = {
    "boolean": "llm_binary",
    "score": "llm_score",
    "literal": "llm_literal",
    "template": "llm_template",
}


@frozen
class TraitRow:
    """One score of a trait: the trait's own, one of its metrics, or one of its fields."""

    trait: TraitOutcome
    name: str
    """That of the trait; of a field `trait.field`."""
    score: Any
    """None unless the trait's state is `ok`."""
    metric: str | None = None

    @property
    def ok(self) -> bool:
        return self.trait.state == "ok"


def trait_rows(result: VerificationResult) -> Iterator[TraitRow]:
    """The rows of all traits of a result, whatever became of them; a trait without a score has one too."""
    for trait in read_traits(result.rubric):
        if trait.kind == "metric":
            metrics = trait.metrics.items()
            yield from [TraitRow(trait, trait.name, value, name) for name, value in metrics] or [
                TraitRow(trait, trait.name, None)
            ]
        elif trait.kind == "template" and isinstance(trait.value, Mapping) and trait.value:
            yield from (TraitRow(trait, f"{trait.name}.{key}", value) for key, value in trait.value.items())
        else:
            yield TraitRow(trait, trait.name, trait.value)


def trait_type(trait: TraitOutcome) -> str | None:
    """`llm_binary`, `llm_score`, `llm_literal` or `llm_template` where the judge scores by reading, `llm` where not
    even a scale says which; else the type of the trait as it is."""
    return LLM_KINDS.get(trait.kind or "", "llm") if trait.type == "llm" else trait.type


def _method(row: Row) -> str | None:
    """How the trait was scored."""
    deep = row.result.deep_judgment_rubric
    if deep is not None and row.item.trait.name in deep.trait_metadata:
        return "deep_judgment"
    type_: str | None = row.item.trait.type
    return type_


def _more(result: VerificationResult) -> Iterator[Found]:
    """Whether a dynamic trait was skipped, what evaluators say beside the scores, and what stages add."""
    part = result.rubric
    if part is not None:
        for name in (*part.dynamic_rubric_skipped_traits, *part.dynamic_rubric_promoted_traits):
            about = "True: what the trait is about does not occur in the answer. None: the trait is not due."
            yield ("skipped", name), Column(f"{name}_skipped", "boolean", partial(_skipped, name), about)
        for name in (name for details in part.trait_details.values() for name in details):
            read = partial(lambda name, row: row.item.trait.details.get(name), name)
            yield ("details", name), own(f"details.{name}", "value", read, "Detail recorded beside the score.")
    yield from extension_columns(result)


def _skipped(name: str, row: Row) -> bool | None:
    part = row.result.rubric
    if part is None:
        return None
    if name in part.dynamic_rubric_skipped_traits:
        return True
    return False if name in part.dynamic_rubric_promoted_traits else None


DEEP = "deep_judgment_rubric"
TRAIT = "trait.name"
INVESTIGATION = named("rubric.agentic_trait_investigation_traces", key=TRAIT)
COLUMNS = (
    *HEAD,
    *stored("rubric", "boolean", "rubric_evaluation_performed"),
    *stored("rubric", "text", "rubric_evaluation_strategy"),
    own("trait_name", "text", of_item("name"), "`trait.field` for a field of a record."),
    own("trait_score", "value", of_item("score"), "As it is: True, 4, 0.5. None: no score."),
    own("trait_label", "text", of_item("trait.label"), "The class; where there is none, what was replied instead."),
    own("trait_type", "text", lambda row: trait_type(row.item.trait)),
    own("evaluation_method", "text", _method, "The type of the trait, or `deep_judgment`."),
    own("metric_name", "text", of_item("metric"), "Of metric traits."),
    *(own(f"confusion_{name}", "whole", of_item(f"trait.counts.{name}"), "Of metric traits.") for name in COUNTS),
    own("investigation_trace", "text", INVESTIGATION, "Of agentic traits."),
    *RUN,
    own("trait_provenance", "text", of_item("trait.provenance"), "`global`, `question_specific` or `dynamic`."),
    own(
        "trait_number",
        "number",
        lambda row: float(s) if isinstance(s := row.item.score, bool) or is_number(s) else None,
        "The score as a number: True 1, False 0, a class its rank.",
    ),
    own("state", "text", of_item("trait.state"), "`ok`, `invalid`, `missing`, `error` or `skipped`."),
    own("reason", "text", lambda row: row.item.trait.reason or None, "Why there is no score."),
    own("kind", "text", of_item("trait.kind"), "`boolean`, `score`, `literal`, `template`, `metric`, ..."),
    own("higher_is_better", "boolean", of_item("trait.higher_is_better")),
    own("scale_min", "number", of_item("trait.scale.min")),
    own("scale_max", "number", of_item("trait.scale.max")),
    own(
        "scale_classes",
        "json",
        lambda row: scale_classes(row.item.trait.scale) or None,
        "A list of texts, in the order of their ranks.",
    ),
    *ADDED,
)
RISK = named(f"{DEEP}.rubric_hallucination_risk_assessment", "overall_risk", key=TRAIT)
EVIDENCE = (
    own("trait_reasoning", "text", named(f"{DEEP}.rubric_trait_reasoning", key=TRAIT)),
    own("trait_excerpts", "json", named(f"{DEEP}.extracted_rubric_excerpts", key=TRAIT), "A list of quotations."),
    own("trait_hallucination_risk", "text", RISK, "The highest of its quotations."),
)
RUBRIC = Table("rubric", COLUMNS, trait_rows, _more)
PLACE = [column.name for column in COLUMNS].index("trait_provenance") + 1
RUBRIC_WITH_EVIDENCE = evolve(
    RUBRIC, name="rubric_with_evidence", columns=(*COLUMNS[:PLACE], *EVIDENCE, *COLUMNS[PLACE:])
)
"""The same with what deep judgment says about every trait."""
