"""The names of everything that karenina asks a model to do."""

from enum import StrEnum

EMBEDDING = "embedding"
"""The key under which the use of an embedder is accounted for. It has no prompt."""
SEARCH = "search"
"""The same of a search tool."""


class PromptTask(StrEnum):
    """One task of a model. The name is also the key of its usage and of its instructions."""

    GENERATION = "generation"
    PARSING = "parsing"
    AGENTIC_PARSING_INVESTIGATION = "agentic_parsing_investigation"
    AGENTIC_PARSING_EXTRACTION = "agentic_parsing_extraction"
    AGENTIC_PARSING_DECISION = "agentic_parsing_decision"
    ABSTENTION_DETECTION = "abstention_detection"
    SUFFICIENCY_DETECTION = "sufficiency_detection"
    RUBRIC_LLM_TRAIT_BATCH = "rubric_llm_trait_batch"
    RUBRIC_LLM_TRAIT_SINGLE = "rubric_llm_trait_single"
    RUBRIC_LLM_TRAIT_TEMPLATE = "rubric_llm_trait_template"
    RUBRIC_LITERAL_TRAIT_BATCH = "rubric_literal_trait_batch"
    RUBRIC_LITERAL_TRAIT_SINGLE = "rubric_literal_trait_single"
    RUBRIC_METRIC_TRAIT = "rubric_metric_trait"
    RUBRIC_AGENTIC_TRAIT_INVESTIGATION = "rubric_agentic_trait_investigation"
    RUBRIC_AGENTIC_TRAIT_EXTRACTION = "rubric_agentic_trait_extraction"
    RUBRIC_DYNAMIC_PRESENCE_CHECK = "rubric_dynamic_presence_check"
    EMBEDDING_EQUIVALENCE = "embedding_equivalence"
    DJ_TEMPLATE_EXCERPT_EXTRACTION = "dj_template_excerpt_extraction"
    DJ_TEMPLATE_HALLUCINATION = "dj_template_hallucination"
    DJ_TEMPLATE_REASONING = "dj_template_reasoning"
    DJ_TEMPLATE_REASONING_ONLY = "dj_template_reasoning_only"
    DJ_RUBRIC_EXCERPT_EXTRACTION = "dj_rubric_excerpt_extraction"
    DJ_RUBRIC_HALLUCINATION = "dj_rubric_hallucination"
    DJ_RUBRIC_REASONING = "dj_rubric_reasoning"
    DJ_RUBRIC_SCORE_EXTRACTION = "dj_rubric_score_extraction"
