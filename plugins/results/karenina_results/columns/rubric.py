"""The table of traits: one row for every trait of every item, metric by metric and field by field."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from attrs import evolve, frozen
from karenina_vocabulary.rubric_part import TraitOutcome, read_traits
from karenina_vocabulary.trait_scale import scale_classes

from karenina_core import VerificationResult
from karenina_core.values.fields import is_number

from .shared import ADDED, CAVEATS, ENDING, IDENTITY, MODELS, RUN, extension_columns
from .table import Column, Found, Row, Table, at

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


def _trait(name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row.item.trait, name)


def _scale(name: str) -> Callable[[Row], Any]:
    return lambda row: row.item.trait.scale.get(name)


def _number(row: Row) -> float | None:
    score = row.item.score
    return float(score) if isinstance(score, bool) or is_number(score) else None


def _method(row: Row) -> str | None:
    """How the trait was scored."""
    deep = row.result.deep_judgment_rubric
    if deep is not None and row.item.trait.name in deep.trait_metadata:
        return "deep_judgment"
    type_: str | None = row.item.trait.type
    return type_


def _investigation(row: Row) -> Any:
    part = row.result.rubric
    return part.agentic_trait_investigation_traces.get(row.item.trait.name) if part is not None else None


def _evidence(name: str) -> Callable[[Row], Any]:
    """What deep judgment says about the row's trait, in one of its mappings."""

    def read(row: Row) -> Any:
        part = row.result.deep_judgment_rubric
        return getattr(part, name).get(row.item.trait.name) if part is not None else None

    return read


def _risk(row: Row) -> Any:
    assessed = _evidence("rubric_hallucination_risk_assessment")(row)
    return assessed.get("overall_risk") if isinstance(assessed, Mapping) else None


def _more(result: VerificationResult) -> Iterator[Found]:
    """Whether a dynamic trait was skipped, what evaluators say beside the scores, and what stages add."""
    part = result.rubric
    if part is not None:
        for name in (*part.dynamic_rubric_skipped_traits, *part.dynamic_rubric_promoted_traits):
            about = "True: what the trait is about does not occur in the answer. None: the trait is not due."
            yield ("skipped", name), Column(f"{name}_skipped", "boolean", partial(_skipped, name), about)
        for name in (name for details in part.trait_details.values() for name in details):
            about, read = "Detail recorded beside the score.", partial(_detail, name)
            yield ("details", name), Column(f"details.{name}", "value", read, about, False)
    yield from extension_columns(result)


def _skipped(name: str, row: Row) -> bool | None:
    part = row.result.rubric
    if part is None:
        return None
    if name in part.dynamic_rubric_skipped_traits:
        return True
    return False if name in part.dynamic_rubric_promoted_traits else None


def _detail(name: str, row: Row) -> Any:
    return row.item.trait.details.get(name)


COLUMNS = (
    *ENDING,
    CAVEATS,
    *IDENTITY,
    *MODELS,
    Column("rubric_evaluation_performed", "boolean", at("rubric.rubric_evaluation_performed")),
    Column("rubric_evaluation_strategy", "text", at("rubric.rubric_evaluation_strategy")),
    Column("trait_name", "text", lambda row: row.item.name, "`trait.field` for a field of a record.", False),
    Column("trait_score", "value", lambda row: row.item.score, "As it is: True, 4, 0.5. None: no score.", False),
    Column("trait_label", "text", _trait("label"), "The class; where there is none, what was replied instead.", False),
    Column("trait_type", "text", lambda row: trait_type(row.item.trait), per_result=False),
    Column("evaluation_method", "text", _method, "The type of the trait, or `deep_judgment`.", False),
    Column("metric_name", "text", lambda row: row.item.metric, "Of metric traits.", False),
    Column("confusion_tp", "whole", lambda row: row.item.trait.counts.get("tp"), "Of metric traits.", False),
    Column("confusion_fp", "whole", lambda row: row.item.trait.counts.get("fp"), "Of metric traits.", False),
    Column("confusion_fn", "whole", lambda row: row.item.trait.counts.get("fn"), "Of metric traits.", False),
    Column("confusion_tn", "whole", lambda row: row.item.trait.counts.get("tn"), "Of metric traits.", False),
    Column("investigation_trace", "text", _investigation, "Of agentic traits.", False),
    *RUN,
    Column("trait_provenance", "text", _trait("provenance"), "`global`, `question_specific` or `dynamic`.", False),
    Column("trait_number", "number", _number, "The score as a number: True 1, False 0, a class its rank.", False),
    Column("state", "text", _trait("state"), "`ok`, `invalid`, `missing`, `error` or `skipped`.", False),
    Column("reason", "text", lambda row: row.item.trait.reason or None, "Why there is no score.", False),
    Column("kind", "text", _trait("kind"), "`boolean`, `score`, `literal`, `template`, `metric`, ...", False),
    Column("higher_is_better", "boolean", _trait("higher_is_better"), per_result=False),
    Column("scale_min", "number", _scale("min"), per_result=False),
    Column("scale_max", "number", _scale("max"), per_result=False),
    Column(
        "scale_classes",
        "json",
        lambda row: scale_classes(row.item.trait.scale) or None,
        "A list of texts, in the order of their ranks.",
        False,
    ),
    *ADDED,
)
EVIDENCE = (
    Column("trait_reasoning", "text", _evidence("rubric_trait_reasoning"), per_result=False),
    Column("trait_excerpts", "json", _evidence("extracted_rubric_excerpts"), "A list of quotations.", False),
    Column("trait_hallucination_risk", "text", _risk, "The highest of its quotations.", False),
)
RUBRIC = Table("rubric", COLUMNS, trait_rows, _more)
PLACE = [column.name for column in COLUMNS].index("trait_provenance") + 1
RUBRIC_WITH_EVIDENCE = evolve(
    RUBRIC, name="rubric_with_evidence", columns=(*COLUMNS[:PLACE], *EVIDENCE, *COLUMNS[PLACE:])
)
"""The same with what deep judgment says about every trait."""
