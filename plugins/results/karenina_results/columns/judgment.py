"""Tables of evidence: one row for every quotation of every field, and of every trait."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any

from attrs import field, frozen
from karenina_vocabulary.evaluation_parts import DeepJudgmentPart
from karenina_vocabulary.rubric_part import TraitOutcome, read_traits

from karenina_core import VerificationResult

from .shared import ADDED, HEAD, RUN, extension_columns
from .table import Column, Row, Table, at, named, of_item, own, stored


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


def _of_field(read: Callable[[DeepJudgmentPart, str], bool]) -> Callable[[Row], bool | None]:
    """What deep judgment says about the row's field; None where there is none."""

    def found(row: Row) -> bool | None:
        part, name = row.result.deep_judgment, row.item.name
        return None if part is None or name is None else read(part, name)

    return found


EXCERPT = (
    own("excerpt_index", "whole", of_item("number"), "From 0; None: nothing was quoted."),
    own("excerpt_text", "text", _fact("text"), "None: the entry explains why there is no quotation."),
    own("excerpt_confidence", "text", _fact("confidence")),
    own("excerpt_similarity_score", "number", _fact("similarity_score"), "To the passage of the answer."),
    own("excerpt_search_results", "json", _fact("search_results"), "None: no search was made, or it failed."),
    own("excerpt_hallucination_risk", "text", of_item("risk"), "`none`, `low`, `medium` or `high`."),
    own("excerpt_hallucination_justification", "text", _fact("hallucination_justification")),
)
EXCERPT_ADDED = (
    own("excerpt_explanation", "text", _fact("explanation")),
    own("excerpt_start", "whole", _fact("start"), "In the text that the judge read, in characters."),
    own("excerpt_end", "whole", _fact("end"), "In the text that the judge read, in characters."),
    own("excerpt_search_error", "text", _fact("search_error"), "Why the search failed."),
    own("excerpt_left_out", "json", _fact("left_out"), "Asides of the passage that the quotation lacks."),
)

HAS_EXCERPTS = _of_field(lambda part, name: bool(quoted(excerpts_of(part.extracted_excerpts, name))))
ONLY_INVENTED = _of_field(lambda part, name: name in part.attributes_with_invented_excerpts)
BEYOND_EXCERPTS = _of_field(lambda part, name: name in part.values_beyond_excerpts)
JUDGMENT = Table(
    "judgment",
    (
        *HEAD,
        *stored("deep_judgment", "text", "deep_judgment_mode"),
        *stored("deep_judgment", "boolean", "deep_judgment_performed", "deep_judgment_search_enabled"),
        own("attribute_name", "text", of_item("name"), "None: no result."),
        own("gt_attribute_value", "value", named("template.parsed_gt_response")),
        own("llm_attribute_value", "value", named("template.parsed_llm_response")),
        own("attribute_match", "boolean", named("template.field_results"), "As `field_match`."),
        *EXCERPT,
        own("attribute_reasoning", "text", named("deep_judgment.attribute_reasoning")),
        own("attribute_overall_risk", "text", named("deep_judgment.hallucination_risk_assessment")),
        own("attribute_has_excerpts", "boolean", HAS_EXCERPTS),
        *stored("deep_judgment", "whole", "deep_judgment_model_calls", about="Of the item."),
        Column(
            "deep_judgment_excerpt_retries",
            "whole",
            at("deep_judgment.deep_judgment_excerpt_retry_count"),
            "Of the item.",
        ),
        Column("stages_completed", "json", at("deep_judgment.deep_judgment_stages_completed"), "A list of names."),
        *stored("template", "json", "parsed_gt_response", about="All expected fields."),
        *stored("template", "json", "parsed_llm_response", about="All extracted fields."),
        *RUN,
        *EXCERPT_ADDED,
        *stored("template", "boolean", "verify_result"),
        own("attribute_only_invented", "boolean", ONLY_INVENTED, "Whether all its quotations are."),
        own("attribute_value_beyond_excerpts", "boolean", BEYOND_EXCERPTS, "With `deep_judgment_bind_values`."),
        *ADDED,
    ),
    _of_fields,
    extension_columns,
)

METADATA = "deep_judgment_rubric.trait_metadata"
RUBRIC_JUDGMENT = Table(
    "rubric_judgment",
    (
        *HEAD,
        own("trait_name", "text", of_item("name"), "None: no result."),
        own("trait_score", "value", of_item("trait.value"), "None: no score."),
        own("trait_label", "text", of_item("trait.label")),
        *EXCERPT,
        own("trait_reasoning", "text", named("deep_judgment_rubric.rubric_trait_reasoning")),
        own(
            "trait_overall_risk",
            "text",
            named("deep_judgment_rubric.rubric_hallucination_risk_assessment", "overall_risk"),
            "The highest of its quotations.",
        ),
        own("trait_model_calls", "whole", named(METADATA, "model_calls"), "Of the trait."),
        own("trait_excerpt_retries", "whole", named(METADATA, "excerpt_retry_count"), "Of the trait."),
        own("trait_stages_completed", "json", named(METADATA, "stages_completed"), "A list of names."),
        own("trait_validation_failed", "boolean", named(METADATA, "excerpt_validation_failed")),
        own("trait_had_excerpts", "boolean", named(METADATA, "had_excerpts")),
        *RUN,
        *EXCERPT_ADDED,
        own("state", "text", of_item("trait.state"), "`ok`, `invalid`, `missing`, `error` or `skipped`."),
        own("reason", "text", lambda row: (row.item.trait and row.item.trait.reason) or None, "Why there is no score."),
        own("trait_provenance", "text", of_item("trait.provenance")),
        own(
            "standard_trait_score",
            "value",
            named("deep_judgment_rubric.standard_rubric_scores"),
            "Without deep judgment; None: not requested, or none was given.",
        ),
        *ADDED,
    ),
    _of_traits,
    extension_columns,
)
