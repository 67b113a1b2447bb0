"""GenerateAnswer: the answer of the model, with the examples of its prompt."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

from attrs import evolve
from karenina_calls.ports.text import invisible
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.planned_calls import PlannedCall, size
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traces import prompt_of

from karenina_core import Category, Karenina, Stage, VerificationConfig, VerificationContext, hookimpl
from karenina_core.errors import PortError, Problem, plural
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.ports.values import LLMResponse
from karenina_core.values.message import Message, TextBlock, ThinkingBlock, trace_dicts
from karenina_core.values.question import Question
from karenina_core.values.result import EMPTY
from karenina_core.values.rubric import Rubric

from .few_shot import examples_for, few_shot_problems, with_examples
from .tool_answers import trace_text, with_workspace, worked, works_with_tools

INVISIBLE = "invisible_characters"
"""The caveat of a result whose answer has characters that people do not see and models read."""


class GenerateAnswer(Stage):
    """Asks the answering model, unless the context carries an answer for another judge to read."""

    category = Category.GENERATION
    produces = (
        ArtifactKeys.RAW_LLM_RESPONSE,
        ArtifactKeys.RECURSION_LIMIT_REACHED,
        ArtifactKeys.ANSWERING_MODEL_STR,
        ArtifactKeys.ANSWERING_MCP_SERVERS,
    )
    result_fields = (
        "raw_llm_response",
        "recursion_limit_reached",
        "answering_mcp_servers",
        "trace_messages",
        "conversation_context",
        "usage_metadata",
        "usage_unavailable",
        "agent_metrics",
        "text_flags",
        "replayed_from",
        "few_shot_example_count",
    )
    extends = ("caveats",)

    def check_questions(
        self, questions: Sequence[Question], config: VerificationConfig, app: Karenina
    ) -> Iterable[Problem]:
        return few_shot_problems(config.few_shot_config, questions)

    def calls(
        self, question: Question, rubric: Rubric | None, config: VerificationConfig, app: Karenina
    ) -> Iterable[PlannedCall]:
        (model,) = config.answering_models
        recorded = app.adapters.resolve_interface(model.interface).spec.is_recorded
        examples, _ = examples_for(None if recorded else config.few_shot_config, question)
        sends = size(model.system_prompt, with_examples(examples, question.question))
        turns = model.agent_max_turns if model.mcp_urls_dict or question.workspace_path else 1
        task = PromptTask.GENERATION
        return [PlannedCall(task=task, role="answering", sends=sends, reads_answer=False, turns=turns)]

    async def execute(self, context: VerificationContext) -> None:
        context.set_artifact(ArtifactKeys.ANSWERING_MODEL_STR, str(context.task.answering))
        cached = context.cached_answer_data
        answer = cached if cached is not None else await _asked(context)
        if not answer.raw_llm_response.strip():
            answer = evolve(answer, text_flags=(*(flag for flag in answer.text_flags if flag != EMPTY), EMPTY))
            why = "; all its tokens were used before it" if "truncated" in answer.text_flags else ""
            limit = f" ({context.answering_model.token_limit})" if why and context.cached_answer_data is None else ""
            context.note(f"the answer is empty{why}{limit}")
            if context.evaluates_template and not answer.recursion_limit_reached:
                context.record(field=False, verdict=False, reason=f"the answer is empty{why}", outcome="failed")
        if hidden := invisible(answer.raw_llm_response):
            context.extend_result_field("caveats", [INVISIBLE])
            kinds = ", ".join(f"{kind.replace('_', ' ')} {count}" for kind, count in sorted(hidden.items()))
            context.warn(f"the answer has {plural(hidden.total(), 'invisible character')}: {kinds}")
        context.set_artifact_and_result(ArtifactKeys.RAW_LLM_RESPONSE, answer.raw_llm_response)
        context.set_artifact_and_result(ArtifactKeys.RECURSION_LIMIT_REACHED, answer.recursion_limit_reached)
        context.set_artifact_and_result(ArtifactKeys.ANSWERING_MCP_SERVERS, list(answer.answering_mcp_servers))
        for name in ("trace_messages", "conversation_context", "agent_metrics", "text_flags", "usage_unavailable"):
            value = getattr(answer, name)
            context.set_result_field(name, list(value) if isinstance(value, tuple) else value)
        if cached is not None:
            context.set_result_field("usage_metadata", cached.usage_metadata)
            if cached.replayed_from is not None:
                context.set_result_field("replayed_from", cached.replayed_from)
                context.note("the answer was given to the run; its model was not asked")


async def _asked(context: VerificationContext) -> CachedAnswer:
    """The answer of a model that is asked once, or works with tools. Raises PortError where there is none to use."""
    recorded = context.is_recorded
    examples, withheld = examples_for(None if recorded else context.config.few_shot_config, context.question)
    if withheld:
        context.note(f"{plural(len(withheld), 'few-shot example')} left out: the question's own answer is in it")
    context.set_result_field("few_shot_example_count", len(examples))
    messages = context.answering.prompt(
        PromptTask.GENERATION,
        with_workspace(context, context.system_prompt("answering") or ""),
        with_examples(examples, context.question_text),
    )
    return await (worked if works_with_tools(context) else _answered)(context, messages)


async def _answered(context: VerificationContext, messages: list[Message]) -> CachedAnswer:
    """One direct call, and one more where nothing comes back."""
    recorded = context.is_recorded
    response = await context.answering.invoke(PromptTask.GENERATION, messages)
    text = trace_text(trace := _trace(response))
    if not text.strip() and not recorded:
        _refuse_filtered(response)
        response = await context.answering.invoke(PromptTask.GENERATION, messages)
        text = trace_text(trace := _trace(response))
    _refuse_filtered(response)
    if recorded:  # these messages were not sent
        messages = prompt_of(trace)
    return CachedAnswer(
        raw_llm_response=text,
        trace_messages=tuple(trace_dicts(trace)),
        conversation_context=tuple([message.to_dict() for message in messages]),
        text_flags=(*response.flags, *(("truncated",) if response.finish_reason == "length" else ())),
        usage_unavailable=response.usage_unavailable,
    )


def _trace(response: LLMResponse) -> list[Message]:
    """The messages of an answer: those that were recorded with it, else one message of the model."""
    if isinstance(response.raw, tuple) and response.raw and all(isinstance(m, Message) for m in response.raw):
        return list(response.raw)
    thinking = (ThinkingBlock(response.thinking),) if response.thinking else ()
    return [Message("assistant", (*thinking, TextBlock(response.content)), response.usage)]


def _refuse_filtered(response: LLMResponse) -> None:
    if response.finish_reason == "content_filter":
        raise PortError("the provider's content filter cut the answer off", kind="content_filter")


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(GenerateAnswer)
