"""One investigation: an agent, a folder of its own, and what it is shown."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve, frozen
from karenina_calls.tools.agent_loop import TRUNCATED
from karenina_vocabulary.artifact_keys import ArtifactKeys
from karenina_vocabulary.traces import render_trace

from karenina_core import VerificationContext
from karenina_core.errors import AgentExecutionError, AgentResponseError, ErrorKind
from karenina_core.ports.model_client import ModelClient
from karenina_core.ports.values import Limit, Tool
from karenina_core.values.message import Message, ToolResultBlock, ToolUseBlock

from .folders import TRACES, Copies, copies_of, kept_at, own_folder, written_trace
from .prompts import investigation_text

EMPTY_ANSWER = "the answer is empty"
WITH_TRACE = ("trace_and_workspace", "trace_only")
"""Context modes in which an investigator is shown the trace."""
WITH_WORKSPACE = ("trace_and_workspace", "workspace_only")
OF_MODEL: dict[Limit, str] = {
    "tool_calls": "agent_max_tool_calls",
    "tokens": "agent_max_total_tokens",
    "cost": "agent_max_cost_usd",
    "repeated_calls": "agent_max_repeated_calls",
}
"""Limits of a model for all its work with tools, and the settings of it that they are."""
LISTING = frozenset({"list_files", "Glob", "LS"})
"""Tools that show names of files and nothing that is in them: karenina's own, and those of agents that bring tools."""
NO_LINE = "no line with this text"
"""How `search_files` begins where it has found nothing."""
KINDS: dict[Limit, ErrorKind] = {"time": "timeout", "tokens": "budget", "cost": "budget"}
"""The kinds of error of limits that say what the user grants; the others are `agent`."""


@frozen(kw_only=True)
class Material:
    """What there is to investigate about one answer."""

    question: str
    response: str = ""
    """The trace of the answering agent."""
    workspace: Path | None = None
    trace_file: Path | None = None
    """The trace as a file, for those that ask for one."""
    trace_as: str = ""
    """The name of that file in the agents' folders; its own where there is none."""
    copies: Copies | None = None
    """Makes a copy of the workspace for one investigation; without it, a temporary folder does."""


@contextmanager
def material_of(
    context: VerificationContext, *, as_file: bool, keep: str = ""
) -> Iterator[tuple[Material, str | None]]:
    """What there is to investigate about the item, and where its trace is after the run (see `kept_at`).

    Where the trace is wanted as a file it is one meanwhile; it is kept where `keep` names the setting that asks for it.
    """
    response, workspace = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE), context.workspace
    material = Material(
        question=context.question_text, response=response, workspace=workspace, copies=copies_of(context)
    )
    if not (as_file and response):
        yield material, None
        return
    with written_trace(response, context.question_id, workspace, keep=bool(keep)) as written:
        if written.problem:
            context.warn(f"{written.problem}; it is in the prompt instead")
        kept = kept_at(context, written, response, keep) if keep else None
        yield evolve(material, trace_file=written.path, trace_as=written.name), kept


@frozen(kw_only=True)
class Assignment:
    """What one agent is to do, and what of the material it may see."""

    task: str
    system: str
    modes: tuple[str, ...]
    """Context modes: the agent is shown what any of them allows."""
    trace_as_file: bool
    max_turns: int
    timeout: float | None
    """Seconds."""
    note: str = ""
    """What was found out before, by reading alone."""

    @property
    def shows_trace(self) -> bool:
        return any(mode in WITH_TRACE for mode in self.modes)

    @property
    def shows_workspace(self) -> bool:
        return any(mode in WITH_WORKSPACE for mode in self.modes)


@frozen(kw_only=True)
class Investigation:
    """What an agent found out."""

    trace: str
    """All of its work, as text."""
    report: str = ""
    """Its last text; empty where a limit ended the work."""
    turns: int = 0
    limit: Limit | None = None
    """What ended the work before the agent did; then there is no report to rely on."""
    unexamined: str = ""
    """Why what it says rests on nothing that it has seen, or is not all of it; empty where there is no reason to."""


async def investigated(model: ModelClient, assignment: Assignment, material: Material) -> Investigation:
    """Let an agent do its work on a copy of the workspace. Where it is given files in place of the trace itself, a tool
    has to have shown it some of their contents: else its report is about nothing that it has read.

    Raises PortError where the model cannot be reached or says nothing, OSError and WorkspaceError where the workspace
    cannot be copied.
    """
    with_trace = assignment.shows_trace and bool(material.response)
    file = material.trace_file if with_trace and assignment.trace_as_file else None
    workspace = material.workspace if assignment.shows_workspace else None
    shown = None if file is None else TRACES / (material.trace_as or file.name)
    async with own_folder(workspace, file, material.copies, trace_as=material.trace_as) as folder:
        user = investigation_text(
            material.question,
            trace=material.response if with_trace else None,
            trace_file=None if shown is None else _shown(model, folder, shown),
            workspace=None if workspace is None else _shown(model, folder, Path()),
            note=assignment.note,
        )
        has_files = folder is not None and any(path.is_file() for path in folder.rglob("*"))
        config = model.agent_config(max_turns=assignment.max_turns, timeout=assignment.timeout, workspace_path=folder)
        messages = model.prompt(assignment.task, with_own(model, assignment.system), user)
        result = await model.run_agent(assignment.task, messages, _tools(model, folder, shown), config=config)
    trace = result.raw_trace or render_trace(result.trace_messages) or result.final_response
    if not trace.strip() and result.limit is None:
        raise AgentResponseError("the agent gave no text")
    # an agent without messages says nothing about its tools
    has_to_look = bool(result.trace_messages) and (file is not None or (workspace is not None and not with_trace))
    unexamined = ""
    if TRUNCATED in result.flags:
        unexamined = f"the report was cut off ({model.config.token_limit})"
    elif has_to_look and not _has_read(result.trace_messages, absence_counts=file is None, has_files=has_files):
        unexamined = "the agent had to look into files, but no tool has shown it any of their contents"
    return Investigation(
        trace=trace, report=result.final_response, turns=result.turns, limit=result.limit, unexamined=unexamined
    )


def _has_read(messages: Sequence[Message], *, absence_counts: bool, has_files: bool) -> bool:
    """Whether a tool has returned contents: without an error, and more than names of files. Of tools that are not known
    every answer counts. That something is absent can be found out without: by a list of the files where a search or an
    attempt to read one came back empty, or where there are none."""
    names: dict[str, str] = {}
    listed, tried = False, not has_files
    for block in (block for message in messages for block in message.content):
        if isinstance(block, ToolUseBlock):
            names[block.id] = block.name
        elif isinstance(block, ToolResultBlock):
            name = names.get(block.tool_use_id, "")
            if name in LISTING:
                listed = listed or not block.is_error
            elif block.is_error or (name == "search_files" and block.content.startswith(NO_LINE)):
                tried = True
            else:
                return True
    return absence_counts and listed and tried


def cut_short(limit: Limit, model: ModelClient, *, turns: str, time: str) -> AgentExecutionError:
    """That an investigation has no report, and what to raise: the task's own settings of turns and time, or the
    model's, where they are set."""
    problem = f"the investigation was ended by a limit ({limit}) before it had a report"
    if limit in OF_MODEL:
        granted = getattr(model.config, OF_MODEL[limit])
        setting = "" if granted is None else f"{OF_MODEL[limit]} of the model {model.config.identity}"
    else:
        setting = turns if limit == "turns" else time
    problem = f"{problem}; raise {setting}" if setting else problem
    return AgentExecutionError(problem, limit_reached=limit != "time", kind=KINDS.get(limit, "agent"))


def with_own(model: ModelClient, system: str) -> str:
    """The task's text after the system prompt that the user set for this model."""
    own = model.config.system_prompt
    return f"{own}\n\n{system}" if own else system


def _shown(model: ModelClient, folder: Path | None, inside: Path) -> str:
    """A path as the agent sees it: the tools take those inside the folder. So equal investigations have equal
    prompts, and recordings of them can be found; an agent with file tools of its own needs the real one."""
    assert folder is not None  # there is something to show
    return str(folder / inside) if _has_own_tools(model) else inside.as_posix()


def _has_own_tools(model: ModelClient) -> bool:
    agent = model.agent_capabilities
    return agent is not None and agent.supports_file_tools


def _tools(model: ModelClient, folder: Path | None, trace: Path | None) -> tuple[Tool, ...]:
    """Tools that list, search and read the files of the folder and nothing else."""
    if folder is None or _has_own_tools(model):
        return ()
    from karenina_calls.files.workspace_tools import workspace_tools  # only investigations of files pay for it

    shown = frozenset() if trace is None else frozenset({trace.as_posix()})
    return workspace_tools(folder, writable=False, visible_hidden=shown)
