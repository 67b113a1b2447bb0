"""Tables of evidence: one row for every quotation of every field, and of every trait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from attrs import field, frozen
from karenina_vocabulary.rubric_part import TraitOutcome, read_traits

from karenina_core import VerificationResult

from .shared import ADDED, CAVEATS, ENDING, IDENTITY, MODELS, RUN, extension_columns
from .table import Column, Row, Table, at


@frozen
class Excerpt:
    """One quotation for a field or a trait; without a number where there is none."""

    name: str | None
    number: int | None = None
    facts: Mapping[str, Any] = field(factory=dict)
    trait: TraitOutcome | None = None
    stored_risk: Any = None
    """The risk that is stored by quotation, beside the quotations."""

    def get(self, name: str) -> Any:
        """A fact; an empty text is none."""
        value = self.facts.get(name)
        return None if value == "" else value

    @property
    def risk(self) -> Any:
        recorded = self.get("hallucination_risk")
        return self.stored_risk if recorded is None else recorded


def excerpts_of(found: Mapping[str, Any], name: str) -> list[Mapping[str, Any]]:
    """The entries for a field or a trait, those that only explain why there is no quotation too."""
    entries = found.get(name)
    return [e for e in entries if isinstance(e, Mapping)] if isinstance(entries, list | tuple) else []


def quoted(entries: Iterable[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """The entries that quote something."""
    return [entry for entry in entries if entry.get("text")]


def attributes(result: VerificationResult) -> list[str]:
    """The fields about which deep judgment has anything to say."""
    part = result.deep_judgment
    if part is None:
        return []
    names = [*part.extracted_excerpts, *part.attribute_reasoning, *part.attributes_without_excerpts]
    names += part.hallucination_risk_assessment or ()
    if part.deep_judgment_performed and result.template is not None:
        names += (*(result.template.parsed_gt_response or ()), *(result.template.parsed_llm_response or ()))
    return list(dict.fromkeys(names))


def _of_fields(result: VerificationResult) -> Iterator[Excerpt]:
    part = result.deep_judgment
    if part is None:
        return
    for name in attributes(result):
        entries = excerpts_of(part.extracted_excerpts, name)
        yield from (Excerpt(name, number, facts) for number, facts in enumerate(entries))
        if not entries:
            yield Excerpt(name)
    if not attributes(result):
        yield Excerpt(None)  # it was to be judged deeply and nothing came of it


def judged_traits(result: VerificationResult) -> list[str]:
    """The traits that were to be judged deeply."""
    part = result.deep_judgment_rubric
    if part is None:
        return []
    names = [*part.trait_metadata, *part.extracted_rubric_excerpts, *part.rubric_trait_reasoning]
    names += [*part.traits_without_valid_excerpts, *part.rubric_hallucination_risk_assessment]
    known = [trait.name for trait in read_traits(result.rubric)]
    return list(dict.fromkeys([*names, *(name for name in part.deep_judgment_rubric_scores if name in known)]))


def _of_traits(result: VerificationResult) -> Iterator[Excerpt]:
    part = result.deep_judgment_rubric
    if part is None:
        return
    traits = {trait.name: trait for trait in read_traits(result.rubric)}
    for name in judged_traits(result):
        entries = excerpts_of(part.extracted_rubric_excerpts, name)
        assessed = part.rubric_hallucination_risk_assessment.get(name)
        risks = assessed.get("per_excerpt_risks") if isinstance(assessed, Mapping) else None
        for number, facts in enumerate(entries):
            risk = risks[number] if isinstance(risks, list | tuple) and number < len(risks) else None
            yield Excerpt(name, number, facts, traits.get(name), risk)
        if not entries:
            yield Excerpt(name, trait=traits.get(name))
    if not judged_traits(result):
        yield Excerpt(None)


def _fact(name: str) -> Callable[[Row], Any]:
    return lambda row: row.item.get(name)


def _by_name(path: str) -> Callable[[Row], Any]:
    """What a mapping of the result says about the row's field or trait."""
    mapping = at(path)

    def read(row: Row) -> Any:
        values = mapping(row)
        return values.get(row.item.name) if isinstance(values, Mapping) else None

    return read


def _inside(path: str, name: str) -> Callable[[Row], Any]:
    """One value of the mapping that a mapping of the result has about the row's field or trait."""
    outer = _by_name(path)

    def read(row: Row) -> Any:
        values = outer(row)
        return values.get(name) if isinstance(values, Mapping) else None

    return read


def _has_excerpts(row: Row) -> bool | None:
    part = row.result.deep_judgment
    if part is None or row.item.name is None:
        return None
    return bool(quoted(excerpts_of(part.extracted_excerpts, row.item.name)))


def _only_invented(row: Row) -> bool | None:
    part = row.result.deep_judgment
    return None if part is None or row.item.name is None else row.item.name in part.attributes_with_invented_excerpts


def _of_trait(name: str) -> Callable[[Row], Any]:
    return lambda row: getattr(row.item.trait, name) if row.item.trait is not None else None


EXCERPT = (
    Column("excerpt_index", "whole", lambda row: row.item.number, "From 0; None: nothing was quoted.", False),
    Column("excerpt_text", "text", _fact("text"), "None: the entry explains why there is no quotation.", False),
    Column("excerpt_confidence", "text", _fact("confidence"), per_result=False),
    Column("excerpt_similarity_score", "number", _fact("similarity_score"), "To the passage of the answer.", False),
    Column("excerpt_search_results", "json", _fact("search_results"), "None: no search was made, or it failed.", False),
    Column(
        "excerpt_hallucination_risk", "text", lambda row: row.item.risk, "`none`, `low`, `medium` or `high`.", False
    ),
    Column("excerpt_hallucination_justification", "text", _fact("hallucination_justification"), per_result=False),
)
EXCERPT_ADDED = (
    Column("excerpt_explanation", "text", _fact("explanation"), per_result=False),
    Column("excerpt_start", "whole", _fact("start"), "In the text that the judge read, in characters.", False),
    Column("excerpt_end", "whole", _fact("end"), "In the text that the judge read, in characters.", False),
    Column("excerpt_search_error", "text", _fact("search_error"), "Why the search failed.", False),
    Column("excerpt_left_out", "json", _fact("left_out"), "Asides of the passage that the quotation lacks.", False),
)

JUDGMENT = Table(
    "judgment",
    (
        *ENDING,
        CAVEATS,
        *IDENTITY,
        *MODELS,
        Column("deep_judgment_mode", "text", at("deep_judgment.deep_judgment_mode")),
        Column("deep_judgment_performed", "boolean", at("deep_judgment.deep_judgment_performed")),
        Column("deep_judgment_search_enabled", "boolean", at("deep_judgment.deep_judgment_search_enabled")),
        Column("attribute_name", "text", lambda row: row.item.name, "None: nothing came of it.", False),
        Column("gt_attribute_value", "value", _by_name("template.parsed_gt_response"), per_result=False),
        Column("llm_attribute_value", "value", _by_name("template.parsed_llm_response"), per_result=False),
        Column("attribute_match", "boolean", _by_name("template.field_results"), "As `field_match`.", False),
        *EXCERPT,
        Column("attribute_reasoning", "text", _by_name("deep_judgment.attribute_reasoning"), per_result=False),
        Column(
            "attribute_overall_risk", "text", _by_name("deep_judgment.hallucination_risk_assessment"), per_result=False
        ),
        Column("attribute_has_excerpts", "boolean", _has_excerpts, "", False),
        Column("deep_judgment_model_calls", "whole", at("deep_judgment.deep_judgment_model_calls"), "Of the item."),
        Column(
            "deep_judgment_excerpt_retries",
            "whole",
            at("deep_judgment.deep_judgment_excerpt_retry_count"),
            "Of the item.",
        ),
        Column("stages_completed", "json", at("deep_judgment.deep_judgment_stages_completed"), "A list of names."),
        Column("parsed_gt_response", "json", at("template.parsed_gt_response"), "All expected fields."),
        Column("parsed_llm_response", "json", at("template.parsed_llm_response"), "All extracted fields."),
        *RUN,
        *EXCERPT_ADDED,
        Column("verify_result", "boolean", at("template.verify_result")),
        Column("attribute_only_invented", "boolean", _only_invented, "Whether all its quotations are.", False),
        *ADDED,
    ),
    _of_fields,
    extension_columns,
)

METADATA = "deep_judgment_rubric.trait_metadata"
RUBRIC_JUDGMENT = Table(
    "rubric_judgment",
    (
        *ENDING,
        CAVEATS,
        *IDENTITY,
        *MODELS,
        Column("trait_name", "text", lambda row: row.item.name, "None: nothing came of it.", False),
        Column("trait_score", "value", _of_trait("value"), "None: no score.", False),
        Column("trait_label", "text", _of_trait("label"), per_result=False),
        *EXCERPT,
        Column("trait_reasoning", "text", _by_name("deep_judgment_rubric.rubric_trait_reasoning"), per_result=False),
        Column(
            "trait_overall_risk",
            "text",
            _inside("deep_judgment_rubric.rubric_hallucination_risk_assessment", "overall_risk"),
            "The highest of its quotations.",
            False,
        ),
        Column("trait_model_calls", "whole", _inside(METADATA, "model_calls"), "Of the trait.", False),
        Column("trait_excerpt_retries", "whole", _inside(METADATA, "excerpt_retry_count"), "Of the trait.", False),
        Column("trait_stages_completed", "json", _inside(METADATA, "stages_completed"), "A list of names.", False),
        Column("trait_validation_failed", "boolean", _inside(METADATA, "excerpt_validation_failed"), "", False),
        Column("trait_had_excerpts", "boolean", _inside(METADATA, "had_excerpts"), per_result=False),
        *RUN,
        *EXCERPT_ADDED,
        Column("state", "text", _of_trait("state"), "`ok`, `invalid`, `missing`, `error` or `skipped`.", False),
        Column("reason", "text", lambda row: _of_trait("reason")(row) or None, "Why there is no score.", False),
        Column("trait_provenance", "text", _of_trait("provenance"), per_result=False),
        Column(
            "standard_trait_score",
            "value",
            _by_name("deep_judgment_rubric.standard_rubric_scores"),
            "Without deep judgment; None: not asked for, or none was given.",
            False,
        ),
        *ADDED,
    ),
    _of_traits,
    extension_columns,
)
