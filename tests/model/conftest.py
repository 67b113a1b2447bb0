"""Hypothesis strategies for results."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import strategies as st
from karenina_vocabulary.evaluation_parts import ChecksPart, DeepJudgmentPart, DeepJudgmentRubricPart, TemplatePart
from karenina_vocabulary.rubric_part import RubricPart

from karenina_core import ModelIdentity, VerificationResult
from karenina_core.values.outcome import OutcomeName
from karenina_core.values.result import GenerationPart, LedgerEntry, MetadataPart, TrailEntry

TEXT = st.text(st.characters(codec="utf-8"), max_size=20) | st.sampled_from(
    ["", "\0", "\u2028\u2029\x85", "\r\n", '"\\', "\u202e", "NaN", "null", "🧬" * 3]
)
NUMBER = st.integers(-(2**53), 2**53) | st.floats(allow_nan=False, allow_infinity=False)
SCALAR = st.none() | st.booleans() | NUMBER | TEXT
JSON = SCALAR | st.lists(SCALAR, max_size=3) | st.dictionaries(TEXT, SCALAR | st.lists(SCALAR, max_size=2), max_size=2)
ROWS = st.lists(st.dictionaries(TEXT, JSON, max_size=3), max_size=3)
TEXTS = st.lists(TEXT, max_size=3)
MAYBE_TEXT = st.none() | TEXT
MAYBE = st.none() | st.booleans()
OBJECT = st.dictionaries(TEXT, JSON, max_size=3)
IDENTITY = st.builds(ModelIdentity, TEXT, TEXT, MAYBE_TEXT, TEXTS, MAYBE_TEXT)
METADATA = st.builds(
    MetadataPart,
    question_id=TEXT,
    template_id=TEXT,
    result_id=TEXT,
    question_text=TEXT,
    raw_answer=MAYBE_TEXT,
    keywords=TEXTS,
    answering=IDENTITY,
    parsing=IDENTITY,
    outcome=st.sampled_from(OutcomeName.__args__),
    outcome_detail=MAYBE_TEXT,
    error=MAYBE_TEXT,
    warnings=TEXTS,
    execution_time=st.floats(0, 1e6),
    run_name=MAYBE_TEXT,
    replicate=st.integers(1, 9),
    retry_counts=st.dictionaries(TEXT, st.integers(0, 9), max_size=2),
)
TEMPLATE = st.builds(
    TemplatePart,
    parsed_gt_response=st.none() | OBJECT,
    parsed_llm_response=st.none() | OBJECT,
    verify_result=MAYBE,
    verify_granular_result=st.none() | st.floats(0, 1),
    field_results=st.none() | st.dictionaries(TEXT, MAYBE, max_size=3),
    field_scores=st.none() | st.dictionaries(TEXT, st.none() | st.floats(0, 1), max_size=3),
    regex_validation_results=st.none() | st.dictionaries(TEXT, st.booleans(), max_size=3),
    judge_repairs=st.integers(0, 3),
)
GENERATION = st.builds(
    GenerationPart,
    raw_llm_response=TEXT,
    trace_messages=ROWS,
    conversation_context=ROWS,
    answering_mcp_servers=TEXTS,
    usage_metadata=OBJECT,
    agent_metrics=st.none() | OBJECT,
    text_flags=TEXTS,
)
CHECKS = st.builds(ChecksPart, abstention_detected=MAYBE, abstention_reasoning=MAYBE_TEXT, mcp_enabled=st.booleans())
RUBRIC = st.builds(RubricPart, llm_trait_scores=OBJECT, llm_trait_labels=st.dictionaries(TEXT, TEXT, max_size=2))
TRAIL = st.builds(TrailEntry, TEXT, st.sampled_from(["ran", "skipped", "failed"]), TEXT, st.floats(0, 9))
DEEP = st.builds(DeepJudgmentPart, extracted_excerpts=OBJECT, attributes_without_excerpts=TEXTS)
DEEP_RUBRIC = st.builds(DeepJudgmentRubricPart, trait_metadata=OBJECT, traits_without_valid_excerpts=TEXTS)


@pytest.fixture(scope="session")
def results() -> Any:
    """A strategy of results that hold anything JSON can hold."""
    return st.builds(
        VerificationResult,
        metadata=METADATA,
        generation=GENERATION,
        checks=CHECKS,
        template=st.none() | TEMPLATE,
        rubric=st.none() | RUBRIC,
        deep_judgment=st.none() | DEEP,
        deep_judgment_rubric=st.none() | DEEP_RUBRIC,
        evaluation_input=MAYBE_TEXT,
        ledger=st.lists(st.builds(LedgerEntry, TEXT, OBJECT, TEXT), max_size=2).map(tuple),
        trail=st.lists(
            st.builds(TrailEntry, TEXT, st.sampled_from(["ran", "skipped", "failed"]), TEXT, st.floats(0, 9)),
            max_size=2,
        ).map(tuple),
        extensions=st.dictionaries(TEXT, OBJECT, max_size=2),
    )
