"""Answers of a model that works with tools: those of its servers, its own, and those of a workspace."""

from __future__ import annotations

import asyncio
import re
from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

from attrs import evolve
from karenina_calls.tools.tool_calls import on_warning
from karenina_vocabulary.tasks import PromptTask
from karenina_vocabulary.traces import render_trace

from karenina_core import ModelConfig, VerificationConfig, VerificationContext
from karenina_core.errors import AgentTimeoutError, ErrorKind, PortError, WorkspaceError, plural
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.ports.values import AgentResult, Limit, Tool
from karenina_core.values.message import Message, ToolResultBlock, ToolUseBlock, trace_dicts, without_prompt

FAILURE_WORDS = re.compile(
    r"\b(?:error|failed|exception|traceback|stack trace|404|500|502|503|timeout|invalid|unauthorized|forbidden"
    r"|not found|cannot|unable to)\b",
    re.IGNORECASE,
)
OF_MODEL: Collection[Limit | None] = ("turns", "tool_calls", "repeated_calls")
"""Limits that a model runs into which does not come to an end: the answer is wrong."""
GRANTED: Mapping[Limit, tuple[str, ErrorKind]] = {
    "time": ("agent_timeout", "timeout"),
    "tokens": ("agent_max_total_tokens", "budget"),
    "cost": ("agent_max_cost_usd", "budget"),
}
"""Limits that say what the user grants, and how fast the provider is: by setting, and the kind of error that it is."""
WHERE = (
    'You have a working folder. For your tools its root is ".": the inputs of the task are there, and what you are '
    "asked to produce belongs there too. Give your answer as text when you are done."
)
NO_CODE = "Files can be looked at, searched and written; nothing can be executed."
CODE = "You can execute code in it."
CODE_APART = "You can execute code in it, inside a sandbox."


def agent_metrics(messages: Iterable[Message], limit: Limit | None = None) -> dict[str, Any]:
    """The numbers of one agent run.

    `iterations`: replies of the model. `tool_calls`: calls, or answers of tools where there are more of these.
    `tool_call_counts`: calls by tool, `tools_used` its names in order. `suspect_failed_tool_calls`: answers that look
    like failures, `suspect_failed_tools` the tools that gave them; see `looks_failed`. `limit`: which limit ended the
    work, or None; `limit_reached`: whether one did.
    """
    counts: Counter[str] = Counter()
    suspects: list[str] = []
    names: dict[str, list[str]] = {}
    """By id: the tools whose answers are awaited, for servers that give several calls of a reply one id."""
    iterations = results = 0
    for message in messages:
        iterations += message.role == "assistant"
        begun: set[str] = set()
        for block in message.content:
            if isinstance(block, ToolUseBlock):
                counts[block.name] += 1
                if block.id not in begun:  # some servers begin again with every reply: the last one counts
                    names[block.id] = []
                begun.add(block.id)
                names[block.id].append(block.name)
            elif isinstance(block, ToolResultBlock):
                results += 1
                awaited = names.get(block.tool_use_id) or ["unknown"]
                if looks_failed(block):
                    suspects.append(awaited[0])
                if len(awaited) > 1:
                    awaited.pop(0)
    return {
        "iterations": iterations,
        "tool_calls": max(counts.total(), results),
        "tools_used": sorted(counts),
        "tool_call_counts": dict(sorted(counts.items())),
        "suspect_failed_tool_calls": len(suspects),
        "suspect_failed_tools": sorted(set(suspects)),
        "limit_reached": limit is not None,
        "limit": limit,
    }


def looks_failed(result: ToolResultBlock) -> bool:
    """Whether a tool reported that it failed, or used one of the words of failures. Only a hint: a tool that finds a
    text about errors looks failed too, and nothing is decided by it.
    """
    return result.is_error or FAILURE_WORDS.search(result.content) is not None


def works_with_tools(context: VerificationContext) -> bool:
    """Whether the answering model is run as an agent: it is one, it has tool servers, or there is a workspace."""
    model = context.answering
    has_tools = model.agent_capabilities is not None or bool(model.servers or model.tools)
    return (has_tools or context.workspace is not None) and model.can_use_tools


def with_workspace(context: VerificationContext, system_text: str) -> str:
    """The system text; where there is a workspace, with what the model has to know of it."""
    if context.workspace is None:
        return system_text
    model = context.answering
    if not model.can_use_tools:
        if not context.is_recorded:
            context.warn(
                f"the model {model.config.identity} cannot use tools: it does not see the question's workspace"
            )
        return system_text
    able = model.agent_capabilities or model.capabilities
    execution = NO_CODE
    if able.supports_code_execution:
        execution = CODE_APART if able.uses_sandboxed_execution else CODE
    return "\n\n".join(part for part in (system_text, f"{WHERE} {execution}") if part)


async def worked(context: VerificationContext, messages: Sequence[Message]) -> CachedAnswer:
    """Let the model work, once more where it says and does nothing.

    Raises PortError where there is no usable answer, as where its time, its tokens or its money is used up, which is no
    fault of the model: what was done until then is in the result, too.
    """
    model = context.answering
    tools = [on_warning(tool, partial(_warned, context)) for tool in await _tools(context)]
    config = model.agent_config(workspace_path=context.workspace)
    try:
        result = await model.run_agent(PromptTask.GENERATION, messages, tools, config=config)
        if result.limit is None and not _has_text(result):
            result = await model.run_agent(PromptTask.GENERATION, messages, tools, config=config)
        _refuse_cut_off(result, model.config)
    except PortError as error:
        if isinstance(done := error.evidence.get("agent_result"), AgentResult) and _has_text(done):
            trace = _trace(done)  # it is no answer: nothing of it is judged
            context.set_result_field("trace_messages", trace_dicts(trace))
            context.set_result_field("agent_metrics", agent_metrics(trace, done.limit))
            context.set_result_field("conversation_context", [message.to_dict() for message in messages])
            context.set_result_field("usage_unavailable", done.usage_unavailable)
        raise
    trace = _trace(result)
    metrics = agent_metrics(trace, result.limit)
    ended = f", ended by its limit of {result.limit}" if result.limit else ""
    calls = plural(metrics["tool_calls"], "call")
    context.note(f"worked with {plural(len(tools), 'tool')}: {calls} in {plural(result.turns, 'turn')}{ended}")
    return CachedAnswer(
        raw_llm_response=trace_text(trace),
        trace_messages=tuple(trace_dicts(trace)),
        recursion_limit_reached=result.limit in OF_MODEL,
        answering_mcp_servers=model.servers,
        agent_metrics=metrics,
        conversation_context=tuple(message.to_dict() for message in messages),
        text_flags=result.flags,
        usage_unavailable=result.usage_unavailable,
    )


def trace_text(trace: Sequence[Message]) -> str:
    """A trace as text: a single message without tool calls is its own text, anything else is rendered."""
    messages = without_prompt(trace)
    return messages[0].text if len(messages) == 1 and not messages[0].tool_calls else render_trace(messages)


async def _tools(context: VerificationContext) -> tuple[Tool, ...]:
    """The tools of the servers and, for a model without file tools of its own, those of the workspace."""
    model, agent = context.answering, context.answering.agent_capabilities
    if context.workspace is None or (agent is not None and agent.supports_file_tools):
        return model.tools
    from karenina_calls.files.workspace_tools import workspace_tools  # only models with a workspace need them

    taken = {tool.name for tool in model.tools}
    written, made = await asyncio.to_thread(_room, context.workspace, context.config)
    own = (
        evolve(tool, name=f"workspace__{tool.name}") if tool.name in taken else tool
        for tool in workspace_tools(context.workspace, most_written=written, most_made=made)
    )
    return (*model.tools, *own)


def _room(workspace: Path, config: VerificationConfig) -> tuple[int, int]:
    """Bytes, and new files and folders, that may be written into a workspace, so that it can still be copied for its
    judges."""
    from karenina_calls.files.folders import Limits, contents
    from karenina_calls.files.workspace_tools import MOST_MADE, MOST_WRITTEN

    limits = Limits(max_bytes=config.workspace_max_bytes, max_files=config.workspace_max_files)
    try:
        sizes = [entry.size for entry in contents(workspace, limits)]
    except (OSError, WorkspaceError):  # a folder that is used without a copy may hold more; it cannot be copied anyway
        return MOST_WRITTEN, MOST_MADE
    left = max(0, limits.max_bytes - sum(sizes)), max(0, limits.max_files - len(sizes))
    return min(MOST_WRITTEN, left[0]), min(MOST_MADE, left[1])


def _warned(context: VerificationContext, warning: str) -> None:
    """What is odd about a server is a warning of the item, once."""
    if warning not in context.warnings:
        context.warn(warning)


def _trace(result: AgentResult) -> list[Message]:
    """The messages of an agent; one of its final response where it gave none."""
    return list(result.trace_messages) or [Message.assistant(result.final_response or result.raw_trace)]


def _has_text(result: AgentResult) -> bool:
    return bool(trace_text(_trace(result)).strip())


def _refuse_cut_off(result: AgentResult, model: ModelConfig) -> None:
    """Raises PortError, with what was done, where the work was ended by what the user grants and not by the model."""
    if result.limit is None or result.limit in OF_MODEL:
        return
    setting, kind = GRANTED[result.limit]
    reason = f"the answering agent was ended by its limit of {result.limit} before it was done"
    if (granted := getattr(model, setting)) is not None:  # else it is a limit of the agent's own
        reason = f"{reason}; raise {setting} ({granted:g})"
    error: PortError = AgentTimeoutError(reason, kind=kind) if kind == "timeout" else PortError(reason, kind=kind)
    error.evidence = {"agent_result": result}
    raise error
