"""AgenticParseTemplate: an agent looks for the results of another one; its report fills the template in."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, Literal

from attrs import frozen
from karenina_calls.models.model_ports import why_no_investigator
from karenina_calls.ports.structured import json_objects
from karenina_judging.asking import check_reply, closed_object, unable_judges
from karenina_judging.judgment import NOT_PERFORMED, READS, Judgment, code_alone, fillable
from karenina_judging.untrusted_text import UNTRUSTED_NOTE, untrusted
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.handle import FilledTemplate, TemplateHandle
from karenina_vocabulary.planned_calls import PlannedCall, asks_judge, size, template_size
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traces import EvaluationInput, evaluation_input

from karenina_core import (
    Category,
    Karenina,
    Question,
    Rubric,
    Skip,
    Stage,
    VerificationConfig,
    VerificationContext,
    feature,
    hookimpl,
)
from karenina_core.errors import RETRYABLE, AgentResponseError, FillError, KareninaError, ParseError, PortError, Problem
from karenina_core.pipeline.stage import in_mode

from .agents import WITH_TRACE, Assignment, Investigation, cut_short, investigated, material_of, with_own
from .prompts import FILLING, filling_text, verification_system

MALFORMED = "parse_decision_malformed"
"""The caveat of results whose decision could not be read."""
LONGEST_REASONING = 2000  # characters; chosen
LOST = re.compile(
    r"""\W* (?: API\s?Connection\s?Error\W+ | API\s?Error\W+ (?:\d{3}\W+)? )
    (?: connection | connect(?:ing)? | network | unable | failed | could | cannot )\b
    (?: \W+ (?: to | not | be | was | has | been | the | API | server | peer | host | connection | connect | error
      | established | refused | reset | closed | lost | aborted | timed | out | by | with | ECONN[A-Z]+ )\b )* \W*
    | \W* API\ connection\ error \W*""",
    re.IGNORECASE | re.VERBOSE,
)
"""A message that is nothing but the error of a connection to an API."""
SYSTEM = f"""\
You are shown the final message of an agent that worked on a question, and the JSON Schema of a record. Decide whether \
this message alone gives what the record asks for. If it does not, another agent will search for it.

- reasoning: go through the fields, and say for each whether the message gives a value. Do not repeat the values.
- sufficient: true where the message gives a value for every field, or says that there is none. A value that the \
message only announces, such as one that it says is in a file, is not given.
- answer: where it is sufficient, the record, with the values as the message gives them; otherwise null.

Do not work anything out and correct nothing. Whether the values are right is not your concern.

{UNTRUSTED_NOTE}"""
FEATURE = "agentic_parsing"
UNANSWERED = "_unanswered_fields"


@frozen(kw_only=True)
class Decision:
    """What was decided, and the filled template where no agent is needed."""

    kind: Literal["direct", "escalated", "answer_error_null"]
    reasoning: str
    judgment: Judgment | None = None
    note: str = ""
    """What the agent is shown of it."""
    given: EvaluationInput | None = None
    """What was read."""
    malformed: bool = False


async def decide(context: VerificationContext, handle: TemplateHandle) -> Decision:
    """Ask the judge once. It is shown the question, the final message and the schema.

    A reply that cannot be used and a judge that cannot be reached for now are decisions for an agent. Raises PortError
    where the judge cannot be reached at all.
    """
    rows = context.get_result_field("trace_messages", [])
    given = evaluation_input(rows, context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE), full_trace=False)
    if given.error is not None:
        return _escalated(reason := f"there is no final message: {given.error}", note=reason)
    if LOST.fullmatch(given.text):
        reasoning = "the final message is only the error of a connection to an API"
        with suppress(FillError):  # of a template that has to have values
            nothing = Judgment(filled=await handle.build({field.name: None for field in handle.fields()}))
            return Decision(kind="answer_error_null", reasoning=reasoning, judgment=nothing, given=given)
    try:
        return await _asked(context, handle, given)
    except ParseError as error:
        return _escalated(f"the decision could not be read: {error}", malformed=True)
    except PortError as error:
        if error.kind not in RETRYABLE:
            raise
        return _escalated(f"the judge could not be asked: {error}")


def _escalated(reasoning: str, *, note: str = "", malformed: bool = False) -> Decision:
    return Decision(kind="escalated", reasoning=reasoning[:LONGEST_REASONING], note=note, malformed=malformed)


async def _asked(context: VerificationContext, handle: TemplateHandle, given: EvaluationInput) -> Decision:
    model, task = context.parsing, PromptTask.AGENTIC_PARSING_DECISION
    schema = _schema(handle.schema())
    user = (
        f"Question:\n{context.question_text}\n\nThe final message:\n{untrusted(given.text, 'final message')}\n\n"
        f"The JSON Schema of the record:\n{json.dumps(handle.schema(), ensure_ascii=False)}"
    )
    shape = {"json_schema": schema, "format_instructions": ""}
    messages = model.prompt(task, with_own(model, SYSTEM), user, shape)
    result = await model.parse(task, messages, schema, validate=_read, temperature=0.0, max_repairs=0)
    reasoning, answer = result.parsed
    if answer is None:
        return _escalated(reasoning, note=reasoning)
    try:
        filled = await handle.build(answer)
    except FillError as error:
        return _escalated(f"{reasoning} (The answer that was given does not fit the template: {error})", note=reasoning)
    judgment = Judgment(filled=filled, channel=result.channel, repairs=result.repairs)
    return Decision(kind="direct", reasoning=reasoning, judgment=judgment, given=given)


def _schema(record: Mapping[str, Any]) -> dict[str, Any]:
    """The schema of a decision, with that of the record in it."""
    own = {key: value for key, value in record.items() if key != "$defs"}
    decision = closed_object(
        {
            "reasoning": {"type": "string", "description": "Field by field, whether the message gives a value"},
            "sufficient": {"type": "boolean", "description": "Whether the message alone is enough"},
            "answer": {"anyOf": [own, {"type": "null"}], "description": "The record; null where it is not enough"},
        }
    )
    return {**decision, "$defs": record["$defs"]} if "$defs" in record else decision


async def _read(data: Mapping[str, Any]) -> tuple[str, Mapping[str, Any] | None]:
    """The reasoning, and the record where the message is enough. Raises FillError where that is not to be seen."""
    known = {"reasoning": {"type": "string"}, "sufficient": {"type": "boolean"}}
    check_reply(data, closed_object(known))
    answer = data.get("answer")
    if not data["sufficient"]:
        return data["reasoning"][:LONGEST_REASONING], None
    if not isinstance(answer, Mapping):
        raise FillError("sufficient is true, and there is no answer")
    return data["reasoning"][:LONGEST_REASONING], answer


class AgenticParseTemplate(Stage):
    """Fills the template from what an agent finds in the workspace and the trace; takes the place of ParseTemplate."""

    category = Category.TEMPLATE
    requires = (ArtifactKeys.RAW_ANSWER, ArtifactKeys.ANSWER, ArtifactKeys.RAW_LLM_RESPONSE)
    reads = READS
    produces = (
        ArtifactKeys.PARSED_ANSWER,
        ArtifactKeys.PARSING_MODEL_STR,
        ArtifactKeys.INVESTIGATION_TRACE,
        ArtifactKeys.AGENTIC_PARSING_PERFORMED,
        ArtifactKeys.TEMPLATE_EVALUATOR,
        *NOT_PERFORMED,
    )
    result_fields = (
        "parsed_llm_response",
        "evaluation_input",
        "used_full_trace",
        "judge_channel",
        "judge_repairs",
        "investigation_trace",
        "agentic_parsing_performed",
        "agentic_extraction_recovery",
        "agentic_extraction_error",
        "dynamic_parsing_performed",
        "dynamic_parse_decision",
        "dynamic_decision_reasoning",
        *NOT_PERFORMED,
    )
    extends = ("caveats",)
    included_when = in_mode("template_only", "template_and_rubric") & feature(FEATURE)

    settings = (
        *("agentic_judge_context", "agentic_parsing_max_turns", "agentic_parsing_timeout", "agentic_parsing_trigger"),
        *("agentic_parsing_materialize_trace", "agentic_parsing_persist_trace"),
    )

    def check_left_out(self, config: VerificationConfig, app: Karenina) -> Iterable[Problem]:
        if config.agentic_parsing:
            what = "in the mode rubric_only no template is filled in; switch agentic_parsing off, or change"
            yield Problem("agentic_parsing", f"{what} evaluation_mode")
        elif config.agentic_parsing_trigger != "always":
            what = "dynamic decides whether an agent is needed, and agentic_parsing is off; switch it on, or set always"
            yield Problem("agentic_parsing_trigger", what)

    def check_config(self, config: VerificationConfig, app: Karenina) -> Iterable[Problem]:
        if config.judge_with is not None:
            what = "is not what the agent of agentic_parsing does; leave one of them out (--without agentic_parsing)"
            yield Problem("judge_with", what)
        if config.agentic_judge_context == "trace_only":
            problem = (
                "with trace_only the agent of agentic_parsing reads what the judge reads without it, for more calls"
            )
            yield Problem("agentic_judge_context", problem, fatal=False)
        if config.agentic_parsing_persist_trace and not config.agentic_parsing_materialize_trace:
            problem = "agentic_parsing_persist_trace has no effect: agentic_parsing_materialize_trace is off"
            yield Problem("", problem, fatal=False)
        if config.agentic_parsing_materialize_trace and config.agentic_judge_context not in WITH_TRACE:
            what = "needs an agentic_judge_context that includes the trace"
            yield Problem("agentic_parsing_materialize_trace", what)
        if config.deep_judgment_enabled:
            what = "deep judgment looks for evidence in what a judge reads, and with agentic_parsing an agent looks for"
            remedy = "switch one of them off (--without deep_judgment, or --without agentic_parsing)"
            yield Problem("deep_judgment_enabled", f"{what} the values elsewhere; {remedy}")
        if config.agentic_parsing_trigger == "dynamic":
            remedy = "set agentic_parsing_trigger to always"
            yield from unable_judges(app, config.parsing_models, PromptTask.AGENTIC_PARSING_DECISION, remedy)
        task = PromptTask.AGENTIC_PARSING_INVESTIGATION
        for number, model in enumerate(config.parsing_models):
            if reason := why_no_investigator(app, model, task):
                remedy = f"{reason}; use a model that can call tools, or switch agentic_parsing off"
                yield Problem(f"parsing_models[{number}]", remedy)

    def calls(
        self, question: Question, rubric: Rubric | None, config: VerificationConfig, app: Karenina
    ) -> Iterable[PlannedCall]:
        least, most = asks_judge(question.template)
        if not most:
            return
        sends = size(question.question, *(model.system_prompt for model in config.parsing_models))
        call = partial(PlannedCall, sends=sends, may_send=template_size(question), unless_decided=True)
        if config.agentic_parsing_trigger == "dynamic":
            yield call(task=PromptTask.AGENTIC_PARSING_DECISION, least=least)
            least = 0
        turns = config.agentic_parsing_max_turns
        yield call(task=PromptTask.AGENTIC_PARSING_INVESTIGATION, least=least, turns=turns)
        yield call(task=PromptTask.AGENTIC_PARSING_EXTRACTION, least=least)

    def should_run(self, context: VerificationContext) -> bool | Skip:
        return super().should_run(context) and fillable(context)

    async def execute(self, context: VerificationContext) -> None:
        handle = context.get_artifact(ArtifactKeys.ANSWER)
        for key, value in NOT_PERFORMED.items():
            context.set_artifact_and_result(key, value)
        context.set_artifact(ArtifactKeys.TEMPLATE_EVALUATOR, None)
        if handle.fields():
            context.set_artifact(ArtifactKeys.PARSING_MODEL_STR, str(context.task.parsing))
            dynamic = context.config.agentic_parsing_trigger == "dynamic"
            judgment = await (_where_needed if dynamic else _by_agent)(context, handle)
        else:
            context.set_artifact(ArtifactKeys.PARSING_MODEL_STR, code_alone(handle))
            _without_agent(context)
            judgment = Judgment(filled=await handle.build({}))
        context.set_artifact(ArtifactKeys.PARSED_ANSWER, judgment.filled)
        context.set_result_field("parsed_llm_response", judgment.filled.values())
        context.set_result_field("judge_channel", judgment.channel)
        context.set_result_field("judge_repairs", judgment.repairs)


def _without_agent(context: VerificationContext) -> None:
    context.set_artifact_and_result(ArtifactKeys.AGENTIC_PARSING_PERFORMED, False)
    context.set_artifact_and_result(ArtifactKeys.INVESTIGATION_TRACE, None)


async def _where_needed(context: VerificationContext, handle: TemplateHandle) -> Judgment:
    """By the final message where it is enough, as the judge decides, else by an agent."""
    context.set_result_field("dynamic_parsing_performed", True)
    decision = await decide(context, handle)
    context.set_result_field("dynamic_parse_decision", decision.kind)
    context.set_result_field("dynamic_decision_reasoning", decision.reasoning)
    context.note(f"decided: {decision.kind}")
    if decision.malformed:
        context.extend_result_field("caveats", [MALFORMED])
        context.warn(f"{decision.reasoning:.500}; an agent was sent")
    if decision.judgment is None:
        return await _by_agent(context, handle, decision.note)
    _without_agent(context)
    if decision.given is not None:
        context.set_result_field("evaluation_input", decision.given.text)
    return decision.judgment


async def _by_agent(context: VerificationContext, handle: TemplateHandle, note: str = "") -> Judgment:
    context.set_artifact_and_result(ArtifactKeys.AGENTIC_PARSING_PERFORMED, True)
    try:
        found = await _looked(context, handle, note)
    except BaseException:
        context.set_artifact_and_result(ArtifactKeys.INVESTIGATION_TRACE, None)
        raise
    context.set_artifact_and_result(ArtifactKeys.INVESTIGATION_TRACE, found.trace)
    if found.limit is not None:
        settings = {"turns": "agentic_parsing_max_turns", "time": "agentic_parsing_timeout"}
        raise cut_short(found.limit, context.parsing, **settings)
    if found.unexamined:
        raise AgentResponseError(found.unexamined)
    model, task, schema = context.parsing, PromptTask.AGENTIC_PARSING_EXTRACTION, handle.schema()
    user = filling_text(context.question_text, found.report or found.trace)
    shape = {"json_schema": schema, "format_instructions": ""}
    messages = model.prompt(task, with_own(model, FILLING), user, shape)
    try:
        result = await model.parse(task, messages, schema, validate=handle.build)
    except PortError as error:
        filled = await _own_object(handle, found.report)
        if filled is None:
            raise
        context.set_result_field("agentic_extraction_recovery", "local_json")
        context.set_result_field("agentic_extraction_error", str(error))
        context.warn(f"the report could not be read by the judge ({error!s:.500}); its own JSON object was taken")
        return Judgment(filled=filled)
    return Judgment(filled=result.parsed, channel=result.channel, repairs=result.repairs)


async def _looked(context: VerificationContext, handle: TemplateHandle, note: str) -> Investigation:
    """Let the agent look at what `agentic_judge_context` allows. Raises PortError, OSError and WorkspaceError."""
    config, response = context.config, context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
    mode, as_file = config.agentic_judge_context, config.agentic_parsing_materialize_trace
    if mode == "workspace_only" and context.workspace is None:
        raise AgentResponseError("there is no workspace to look at; set agentic_judge_context to show the trace")
    if mode == "trace_only" and not response.strip():
        raise AgentResponseError("there is nothing to judge: the trace is empty")
    if mode in WITH_TRACE:
        context.set_result_field("used_full_trace", True)
        context.set_result_field("evaluation_input", response)
    assignment = Assignment(
        task=PromptTask.AGENTIC_PARSING_INVESTIGATION,
        system=verification_system(handle.schema()),
        modes=(mode,),
        trace_as_file=as_file,
        max_turns=config.agentic_parsing_max_turns,
        timeout=config.agentic_parsing_timeout,
        note=note,
    )
    keep = "agentic_parsing_persist_trace" if config.agentic_parsing_persist_trace else ""
    with material_of(context, as_file=as_file, keep=keep) as (material, _):
        return await investigated(context.parsing, assignment, material)


async def _own_object(handle: TemplateHandle, report: str) -> FilledTemplate | None:
    """The template, filled in from the last JSON object of a report that fits it: agents end their reports with it, and
    may quote others before. Fields that it calls unanswered are null."""
    for found in reversed(json_objects(report)):
        data = dict(found)
        unanswered = data.pop(UNANSWERED, [])
        if isinstance(unanswered, list):
            data |= {name: None for name in unanswered if isinstance(name, str)}
        try:
            return await handle.build(data)
        except KareninaError:
            continue
    return None


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(AgenticParseTemplate)
