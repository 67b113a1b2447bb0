"""Which answers need a workspace, where its files come from, and what is wrong with that before a model is called."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path

from attrs import fields_dict, frozen
from karenina_calls.files.folders import Limits, contents, is_shared, link_target
from karenina_calls.models.model_ports import can_use_tools
from karenina_vocabulary.traits import AgenticRubricTrait

from karenina_core.errors import ConfigError, Problem, WorkspaceError, one_line
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import VerificationConfig
from karenina_core.values.fields import changed
from karenina_core.values.question import Question
from karenina_core.values.rubric import Rubric

OWN = "workspace_"
"""What the names of its settings begin with."""
UNTOUCHED = (
    "agents judge the workspace, but {} cannot work in it: they find only the question's original folder, and no "
    "part of the answer"
)
"""What the notes before a run and the warnings of its items say of a model."""
REMEDY = "give the folder that the questions' folders are in: --workspace-root DIR, or Benchmark.load(path, DIR)"


def wants_workspace(
    question: Question, config: VerificationConfig, rubric: Rubric | None, *, tools: bool = False
) -> bool:
    """Whether the answers to a question are to have a workspace, where there is a root for one.

    `tools`: whether the answering model could use it.
    """
    return bool(question.workspace_path) or tools or investigated_modes(config, rubric) != set()


def investigated_modes(config: VerificationConfig, rubric: Rubric | None) -> set[str]:
    """The modes of the investigations that look at a workspace."""
    found: set[str] = {trait.context_mode for trait in rubric or () if isinstance(trait, AgenticRubricTrait)}
    if "agentic_parsing" in config.features and config.evaluation_mode != "rubric_only":
        found.add(config.agentic_judge_context)
    return found - {"trace_only"}


def first_of(names: Sequence[str]) -> str:
    """The first of them, and how many more there are."""
    return f"{names[0]} and {len(names) - 1} more" if len(names) > 1 else names[0]


def source_folder(root: Path, path: str | None) -> Path | None:
    """A question's folder beneath the root, without links; None where it has none. Raises WorkspaceError."""
    if not path:
        return None
    names = path.split("/")
    if path.startswith(("/", "\\")) or ".." in names or "\0" in path or not set(names) - {"", "."}:
        raise WorkspaceError(
            f"workspace_path {path!r} must name a folder beneath the workspace root, without '..' and no leading '/'"
        )
    try:
        top = root.resolve(strict=True)
        found = (top / path).resolve(strict=True)
    except (OSError, RuntimeError):
        raise WorkspaceError(
            f"there is no folder {root / path}; make it, correct workspace_path, or choose another workspace root"
        ) from None
    if top not in found.parents:
        raise WorkspaceError(f"workspace_path {path!r} leads out of {root} by a link; put the folder itself there")
    if not found.is_dir():
        raise WorkspaceError(f"{root / path} is not a folder; workspace_path names a folder")
    return found


@frozen
class WorkspaceChecks:
    """What the questions of a run need of workspaces, and what is wrong with that before a model is called."""

    root: Path | None
    config: VerificationConfig
    questions: Sequence[Question]
    rubrics: Mapping[str, Rubric | None]
    tools: bool = False
    """Whether an answering model could use a workspace."""

    def wants(self, question: Question, *, tools: bool) -> bool:
        return wants_workspace(question, self.config, self.rubrics.get(question.id), tools=tools)

    def by_folder_alone(self, question: Question) -> bool:
        """Whether an investigation looks at nothing but the workspace."""
        return "workspace_only" in investigated_modes(self.config, self.rubrics.get(question.id))

    def check(self, app: Karenina) -> list[str]:
        """Refuse what cannot work: no root, a folder that is not there, leads out of the root or holds too much, and a
        judgment by a folder that stays empty.

        Nothing is made or changed. Returns notes. Raises ConfigError with every problem.
        """
        tools = self.tools and self.root is not None
        wanting = [question for question in self.questions if self.wants(question, tools=tools)]
        notes = self._check_folders(wanting) if wanting else []
        return [*notes, *self._check_models(app)]

    def _check_folders(self, wanting: Sequence[Question]) -> list[str]:
        root, config = self.root, self.config
        if root is None:
            needing = {q.id: f"works in the folder {q.workspace_path!r}" for q in wanting if q.workspace_path}
            for question in filter(self.by_folder_alone, wanting):
                needing.setdefault(question.id, "is judged by nothing but its workspace")
            if needing:
                first = next(question.id for question in wanting if question.id in needing)
                more = f" (and {len(needing) - 1} more questions need one)" if len(needing) > 1 else ""
                what = f"there is none, and question {first} {needing[first]}{more}; {REMEDY}"
                raise ConfigError([Problem("workspace_root", what)])
            return ["there is no workspace root, so agents that investigate see no workspace"]
        if not root.is_dir():
            raise ConfigError([Problem("workspace_root", f"there is no folder {root}; make it or name another")])
        problems: list[Problem] = []
        copies = config.workspace_copy or any(not question.workspace_path for question in wanting)
        if copies and not os.access(root, os.W_OK | os.X_OK):
            what = f"workspaces are made in {root}, which cannot be written to; copy it to a folder that can"
            problems.append(Problem("workspace_root", what))
        by_path: dict[str | None, list[str]] = {}
        for question in wanting:
            by_path.setdefault(question.workspace_path, []).append(question.id)
        for path, asked in by_path.items():
            try:
                source = source_folder(root, path)
                if source is not None and config.workspace_copy:
                    _check_source(source, config)
            except WorkspaceError as error:
                problems.append(Problem(f"question {first_of(asked)}", str(error)))
        if problems:
            raise ConfigError(problems)
        answers = len(config.answering_models) * config.replicate_count
        shared = [path for path, asked in by_path.items() if path and len(asked) * answers > 1]
        if config.workspace_copy or not shared:
            return []
        what = "workspace_copy is off and several answers are made in the same folder, each on top of the last one"
        return [f"{what}: {', '.join(map(repr, shared[:5]))}"]

    def _check_models(self, app: Karenina) -> list[str]:
        """Refuse to judge by an empty folder: the question has none, and the answering model can write nothing.

        Returns notes on questions that are judged by their folders as they were before.
        """
        blind = [q.id for q in self.questions if not q.workspace_path and self.by_folder_alone(q)]
        looked_at = [q.id for q in self.questions if judged_by_folder(q, self.config, self.rubrics.get(q.id))]
        asked = self.config.answering_models if blind or looked_at else ()
        unable = [str(model.identity) for model in asked if not can_use_tools(app, model)]
        if blind and unable:
            what = (
                f"question {first_of(blind)} would be judged by an empty folder: it has no workspace_path, and the "
                f"model {unable[0]} cannot write files; give the question its folder, or show the trace"
            )
            raise ConfigError([Problem("workspace_path", what)])
        return [f"question {first_of(looked_at)}: {UNTOUCHED.format(', '.join(unable))}"] if unable else []

    def idle(self) -> list[str]:
        """Settings of workspaces, and of what is left in them, that were changed and have no effect."""
        config = self.config
        found = changed(config, (name for name in fields_dict(VerificationConfig) if name.startswith(OWN)))
        having = [] if self.root is None else [q for q in self.questions if self.wants(q, tools=self.tools)]
        if not having:
            return [f"{name} has no effect: no question of this run has a workspace" for name in found]
        own_folder = [question.workspace_path for question in having if question.workspace_path]
        copied = own_folder and config.workspace_copy
        idle = {}
        if not own_folder:
            idle["workspace_copy"] = "no question of this run has a folder of its own"
        if not config.workspace_copy and len(own_folder) == len(having):
            idle["workspace_cleanup"] = "workspace_copy is off, and the questions' own folders are never removed"
        if config.workspace_output_mode == "none":
            idle["workspace_output_exclude_patterns"] = "workspace_output_mode is none"
            if not copied and not any(investigated_modes(config, self.rubrics.get(q.id)) for q in having):
                idle |= dict.fromkeys(("workspace_max_bytes", "workspace_max_files"), "no workspace is copied or kept")
        return [f"{name} has no effect: {idle[name]}" for name in found if name in idle]

    def unkept_traces(self) -> list[str]:
        """Settings that ask for traces to be kept which a run without a directory removes with their workspaces."""
        config = self.config
        if self.root is None or not config.workspace_cleanup:
            return []
        asking: dict[str, None] = {}
        by_judge = "agentic_parsing" in config.features and config.agentic_parsing_materialize_trace
        for question in self.questions:
            in_place = question.workspace_path and not config.workspace_copy
            if in_place or not self.wants(question, tools=self.tools):
                continue
            rubric = self.rubrics.get(question.id)
            agentic = [trait for trait in rubric or () if isinstance(trait, AgenticRubricTrait)]
            if any(trait.materialize_trace for trait in agentic):
                kept = [trait.name for trait in agentic if trait.persist_trace]
                asking |= {f"persist_trace of the trait {name!r}": None for name in kept}
            if by_judge and config.agentic_parsing_persist_trace:
                asking["agentic_parsing_persist_trace"] = None
        why = "a trace is removed with its copy of the workspace; give a run directory, or switch workspace_cleanup off"
        return [f"{name} has no effect: {why}" for name in asking]


def _check_source(source: Path, config: VerificationConfig) -> None:
    """Raises WorkspaceError where the folder cannot be copied as a whole."""
    limits = Limits(max_bytes=config.workspace_max_bytes, max_files=config.workspace_max_files)
    try:
        for entry in contents(source, limits, is_shared):
            if entry.kind == "other":
                raise WorkspaceError(f"{source / entry.path} is neither a file nor a folder nor a link; remove it")
            if entry.kind == "link" and link_target(source, entry) is None:
                what = "is a link that leads out of the question's folder; replace it with its target"
                raise WorkspaceError(f"{source / entry.path} {what}")
    except OSError as error:
        raise WorkspaceError(f"{source} cannot be read: {one_line(error)}; correct its permissions") from error


def judged_by_folder(question: Question, config: VerificationConfig, rubric: Rubric | None) -> bool:
    """Whether agents look into a question's own folder."""
    return bool(question.workspace_path) and investigated_modes(config, rubric) != set()
