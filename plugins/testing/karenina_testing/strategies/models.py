"""Strategies for what models are given, what they reply, and how a run is configured."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cache
from typing import Any, get_args

from attrs import evolve
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy
from karenina_calls.ports.text import sanitize
from karenina_vocabulary.prompt_config import FewShotConfig, PromptConfig

from karenina_core.pipeline.stage import PlanRequest
from karenina_core.ports.values import LLMResponse
from karenina_core.values.config import (
    AttemptPolicy,
    EvaluationMode,
    ManualAnswer,
    ModelConfig,
    RetryPolicy,
    VerificationConfig,
    facts,
    switches,
)
from karenina_core.values.message import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, UsageMetadata
from karenina_core.values.outcome import Effect

from .benchmarks import rubrics
from .values import FULL_TEXT, JSON, MAYBE, MAYBE_NAME, MAYBE_TEXT, NAME, OBJECT, SWITCH, TEXT, by_name

MODES = get_args(EvaluationMode)
MODE = st.sampled_from(MODES)
FEATURES = sorted(switches().values())
SECONDS = st.floats(0.1, 600)
TOKENS = st.integers(0, 10**6)
MAYBE_TOKENS = st.none() | TOKENS
TEXT_BLOCK = st.builds(TextBlock, TEXT)
TOOL_CALL = st.builds(ToolUseBlock, NAME, NAME, OBJECT)
SAID = TEXT_BLOCK | st.builds(ThinkingBlock, TEXT, MAYBE_TEXT) | TOOL_CALL
ATTEMPTS = st.builds(AttemptPolicy, st.integers(1, 9), SECONDS, SECONDS, st.floats(1, 4))
EXAMPLE = st.fixed_dictionaries({"question": TEXT, "answer": TEXT})
FEW_SHOT = st.builds(
    FewShotConfig,
    source=st.sampled_from(["disabled", "question_pool", "global", "both"]),
    pool_mode=st.sampled_from(["all", "k-shot"]),
    pool_k=st.integers(1, 5),
    global_examples=st.lists(EXAMPLE, max_size=2),
)
PROMPTS = st.builds(PromptConfig, generation=MAYBE_TEXT, parsing=MAYBE_TEXT, rubric_evaluation=MAYBE_TEXT)


def _some_of(values: Sequence[str]) -> SearchStrategy[frozenset[str]]:
    return st.frozensets(st.sampled_from(values)) if values else st.just(frozenset())


@cache
def usage() -> SearchStrategy[UsageMetadata]:
    """Token counts whose total is their sum; the price may be unknown."""
    return st.builds(
        lambda sent, received, **more: UsageMetadata(sent, received, sent + received, **more),
        TOKENS,
        TOKENS,
        cost_usd=st.none() | st.floats(0, 100),
        cache_read_tokens=MAYBE_TOKENS,
        cache_creation_tokens=MAYBE_TOKENS,
        model=MAYBE_NAME,
    )


@cache
def messages() -> SearchStrategy[Message]:
    """One message of any role, with the blocks that the role can have."""
    return st.one_of(
        st.builds(Message, st.sampled_from(["system", "user"]), st.lists(TEXT_BLOCK, min_size=1, max_size=2)),
        st.builds(Message, st.just("assistant"), st.lists(SAID, min_size=1, max_size=3), st.none() | usage()),
        st.builds(
            Message, st.just("tool"), st.lists(st.builds(ToolResultBlock, NAME, TEXT, SWITCH), min_size=1, max_size=2)
        ),
    )


def _response(text: str, **facts: Any) -> LLMResponse:
    content, flags = sanitize(text)
    return LLMResponse(content=content, flags=flags, **facts)


@cache
def llm_responses() -> SearchStrategy[LLMResponse]:
    """One reply, its text as an adapter leaves it: safe to write, with flags for what is odd about it."""
    return st.builds(
        _response,
        TEXT,
        tool_calls=st.lists(TOOL_CALL, max_size=2).map(tuple),
        thinking=MAYBE_TEXT,
        usage=usage(),
        usage_unavailable=SWITCH,
        finish_reason=st.sampled_from([None, "stop", "length", "tool_calls", "content_filter"]),
        actual_model=MAYBE_NAME,
    )


@cache
def manual_answers() -> SearchStrategy[Mapping[str, ManualAnswer]]:
    """`{question id: recorded answer}`, some with the fields that a judge would extract, some with messages."""
    return st.dictionaries(
        NAME,
        st.builds(ManualAnswer, FULL_TEXT, st.none() | OBJECT)
        | st.builds(lambda text: ManualAnswer(text, None, (Message.assistant(text),)), FULL_TEXT),
        min_size=1,
        max_size=4,
    )


@cache
def retry_policies() -> SearchStrategy[RetryPolicy]:
    """Attempts and waits by kind of failure."""
    return st.builds(RetryPolicy, rate_limited=ATTEMPTS, timeout=ATTEMPTS, connection=ATTEMPTS, server=ATTEMPTS)


@cache
def model_configs() -> SearchStrategy[ModelConfig]:
    """One model, of a provider or with recorded answers."""
    return st.builds(
        ModelConfig,
        id=MAYBE_NAME,
        model_name=NAME,
        model_provider=MAYBE_NAME,
        interface=st.sampled_from(["litellm", "openai_endpoint", "scripted"]),
        temperature=st.none() | st.floats(0, 2),
        max_tokens=st.none() | st.integers(1, 10**6),
        system_prompt=MAYBE_TEXT,
        max_retries=st.integers(0, 3),
        endpoint_base_url=st.sampled_from([None, "http://127.0.0.1:9/v1"]),
        request_timeout=st.none() | SECONDS,
        retry_policy=st.none() | retry_policies(),
        extra_kwargs=st.dictionaries(st.sampled_from(["top_p", "seed", "user"]), JSON, max_size=2),
        mcp_urls_dict=by_name(st.just("http://127.0.0.1:9/mcp")),
    ) | st.builds(ModelConfig, id=MAYBE_NAME, interface=st.just("manual"), manual_traces=manual_answers())


MODELS = st.lists(model_configs(), min_size=1, max_size=2, unique_by=lambda model: str(model.identity))


SETTINGS = {
    "deep_judgment_reasoning_only": SWITCH,
    "deep_judgment_max_excerpts_per_attribute": st.integers(1, 5),
    "deep_judgment_fuzzy_match_threshold": st.floats(0, 1),
    "deep_judgment_excerpt_retry_attempts": st.integers(0, 3),
    "embedding_check_threshold": st.floats(0, 1),
    "features": _some_of(FEATURES),
    "use_full_trace_for_template": SWITCH,
    "include_extraction_hints": SWITCH,
    "few_shot_config": st.none() | FEW_SHOT,
    "prompt_config": st.just(PromptConfig()) | PROMPTS,
}
"""Of sections, as far as they are installed."""
CONFIG = st.builds(
    VerificationConfig,
    **{name: values for name, values in SETTINGS.items() if name in facts()},
    evaluation_mode=st.none() | MODE,
    replicate_count=st.integers(1, 5),
    request_timeout=SECONDS,
    retry_max_elapsed_seconds=st.none() | SECONDS,
    stage_idle_timeout=st.none() | st.just(0) | SECONDS,
    concurrency=st.integers(1, 64),
    code_policy=st.sampled_from(["sandbox", "trusted", "refuse"]),
)
WHOLE_CONFIG = st.builds(
    lambda config, **more: evolve(config, **more),
    CONFIG,
    answering_models=MODELS,
    parsing_models=MODELS,
    retry_policy=retry_policies(),
)


def verification_configs(*, with_models: bool = True) -> SearchStrategy[VerificationConfig]:
    """A run's configuration. `with_models=False` leaves the models out, for what is given them otherwise."""
    return WHOLE_CONFIG if with_models else CONFIG


@cache
def effects() -> SearchStrategy[Effect]:
    """What one stage may record about the verdict."""
    return st.builds(
        Effect, NAME, MAYBE, MAYBE, TEXT, st.sampled_from(["failed", "auto_failed", "abstained", "insufficient"])
    )


def plan_requests(features: Iterable[str] = ()) -> SearchStrategy[PlanRequest]:
    """What a plan may be asked for. `features` are names to draw from, beside those that have a switch."""
    known = _some_of(sorted({*FEATURES, *features}))
    return st.builds(PlanRequest, mode=MODE, features=known, rubric=st.none() | rubrics())
