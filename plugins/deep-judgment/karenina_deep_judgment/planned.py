"""The calls of deep judgment, as they are known before a run."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from attrs import evolve
from karenina_vocabulary.planned_calls import PlannedCall, size, template_size
from karenina_vocabulary.rubric_config import TraitEvidenceRules, tool_name
from karenina_vocabulary.tasks import SEARCH, PromptTask

from karenina_core import Question, VerificationConfig


def template_calls(question: Question, config: VerificationConfig) -> Iterator[PlannedCall]:
    """Of a template: quotations, asked for again where they are not in the text, what a search says of them, reasoning,
    and the values."""
    sends, may_send = _sends(question, config), template_size(question)
    call = partial(PlannedCall, sends=sends, may_send=may_send, unless_decided=True)
    if config.deep_judgment_mode == "full":
        most = 1 + config.deep_judgment_excerpt_retry_attempts
        yield call(task=PromptTask.DJ_TEMPLATE_EXCERPT_EXTRACTION, most=most)
        if config.deep_judgment_search_enabled:
            yield evolve(_searches(config.deep_judgment_search_tool), unless_decided=True)
            yield call(task=PromptTask.DJ_TEMPLATE_HALLUCINATION, least=0, reads_answer=False)
        yield call(task=PromptTask.DJ_TEMPLATE_REASONING)
    else:
        yield call(task=PromptTask.DJ_TEMPLATE_REASONING_ONLY)
    yield call(task=PromptTask.PARSING)


def trait_calls(question: Question, rules: TraitEvidenceRules, config: VerificationConfig) -> Iterator[PlannedCall]:
    """Of a trait: without a quotation, where one is wanted, there are no reasoning and no score."""
    call = partial(PlannedCall, sends=_sends(question, config))
    if rules.excerpts:
        yield call(task=PromptTask.DJ_RUBRIC_EXCERPT_EXTRACTION, most=1 + rules.retries)
        if rules.search:
            yield _searches(config.deep_judgment_rubric_search_tool)
            yield call(task=PromptTask.DJ_RUBRIC_HALLUCINATION, least=0, reads_answer=False)
    least = int(not rules.excerpts)
    yield call(task=PromptTask.DJ_RUBRIC_REASONING, least=least)
    yield call(task=PromptTask.DJ_RUBRIC_SCORE_EXTRACTION, least=least, reads_answer=False)


def _searches(tool: object) -> PlannedCall:
    """One for each quotation, and how many there will be is not known."""
    return PlannedCall(task=SEARCH, least=0, most=None, model=str(tool_name(tool)), reads_answer=False)


def _sends(question: Question, config: VerificationConfig) -> int:
    return size(question.question, *(model.system_prompt for model in config.parsing_models))
