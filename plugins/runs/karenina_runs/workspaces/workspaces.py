"""Workspaces: the folders that agents work in, one for every answer.

A workspace is a copy of the question's folder, or an empty folder, beneath the benchmark's workspace root. All judges
of an answer look at what its model left there, each investigation at a copy of its own.
"""

from __future__ import annotations

import asyncio
import tempfile
import threading
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext
from functools import partial
from pathlib import Path
from typing import Any

from attrs import define, evolve, field
from karenina_calls.files.folders import Limits, copy_tree, is_shared, remove_tree
from karenina_calls.files.investigation import in_thread, is_own
from karenina_calls.models.models import has_tools
from karenina_calls.secrets.redaction import redactor
from karenina_judging.services import KEEP_FILE, WORKSPACE_COPY

from karenina_core.errors import ConfigError, ContractError, Problem, WorkspaceError, one_line
from karenina_core.log import get_logger
from karenina_core.pipeline.artifact_keys import Key
from karenina_core.pipeline.context import VerificationContext
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.plugin.application import Karenina
from karenina_core.values.config import VerificationConfig
from karenina_core.values.result import VerificationResult

from ..execute.surroundings import Place, Surroundings
from ..plan.items import Item, Prepared
from .workspace_capture import (
    WORKSPACES,
    CaptureRow,
    Snapshot,
    append_row,
    capture,
    problem_of,
    safe_name,
    snapshot,
    with_files,
)
from .workspace_sources import UNTOUCHED, WorkspaceChecks, judged_by_folder, source_folder, wants_workspace

LEFT = "the workspace after the answer"
"""What an error calls a folder that holds too much: the folder is gone when the message is read."""
NO_DIRECTORY = "workspaces are kept in the run directory, and there is none; give run_dir, or set it to none"
NO_RUN = "workspaces are kept in the run directory of a run, and a single verification has none; set it to none"
log = get_logger("karenina.run")


def _resolved(root: Path | None) -> Path | None:
    return None if root is None else root.resolve()


@define(eq=False)
class Workspace:
    """The folder of one answer."""

    path: Path | None
    """None where it could not be made."""
    is_copy: bool = True
    """Whether it is removed at the end; a question's own folder never is."""
    failure: str | None = None
    before: Snapshot | None = field(default=None, repr=False)
    """What was in it before the answer, where only what is new is kept."""
    _of: Workspaces | None = field(default=None, repr=False)

    @property
    def stays(self) -> bool:
        """Whether the folder is there after the answer's judges are done."""
        return not self.is_copy or (self._of is not None and not self._of.config.workspace_cleanup)

    @asynccontextmanager
    async def investigation_copy(self) -> AsyncIterator[Path]:
        """A copy for one investigation: no other one sees what is done to it, and it is removed afterwards.

        Links that lead out of the workspace are not in it. Raises WorkspaceError where it cannot be made.
        """
        if self.path is None or self._of is None:
            raise WorkspaceError(self.failure or "there is no workspace to look at")
        place = await self._of.copied(self.path, "look")
        try:
            yield place
        finally:
            await self._of.removed(place)


def keep_file(files: dict[str, str] | None, workspace: Workspace | None, path: str, text: str) -> bool:
    """The service `KEEP_FILE` of one item, which puts files into `files`; None where no run directory keeps them."""
    if not is_own(path):
        raise ContractError(f"a file cannot be kept as {path!r}; give a path beneath .karenina/")
    if files is None:
        return workspace is not None and workspace.stays
    files[path] = text
    return True


@define(eq=False)
class Workspaces(Surroundings):
    """The workspaces of one run. `close` removes what is left of them when the run ends."""

    root: Path | None = field(converter=_resolved)
    """Where they are made; without one no item gets a workspace, and copies of a folder that is lent are temporary."""
    config: VerificationConfig
    run_name: str = ""
    run_dir: Path | None = None
    has_tools: Callable[[Item], bool] = lambda item: has_tools(item.answering)
    """Whether the answering model of an item can use a workspace."""
    redact: Callable[[str], str] = str
    """Takes secrets out of files that stages have kept."""
    notes: Sequence[str] = ()
    _temporary: set[Path] = field(factory=set)
    _alone: dict[Path | None, asyncio.Lock] = field(factory=dict)
    _writing: threading.Lock = field(factory=threading.Lock)

    @classmethod
    def of_run(cls, prepared: Prepared, run_dir: Path | None) -> Workspaces:
        root, config = prepared.workspace_root, prepared.config
        notes: Sequence[str] = ()
        if run_dir is None:
            if config.workspace_output_mode != "none":
                raise ConfigError([Problem("workspace_output_mode", NO_DIRECTORY)])
            checks = WorkspaceChecks(root, config, prepared.questions, prepared.rubrics, prepared.uses_tools)
            notes = checks.unkept_traces()
        redact = redactor(prepared.secrets)
        return cls(root, config, prepared.run_name, run_dir, prepared.has_tools, redact, notes)

    @classmethod
    def of_item(
        cls, app: Karenina, item: Item, config: VerificationConfig, root: str | Path | None, *, is_answered: bool
    ) -> Workspaces:
        if config.workspace_output_mode != "none":
            raise ConfigError([Problem("workspace_output_mode", NO_RUN)])
        folder = None if root is None else Path(root)
        if is_answered:  # copies of its workspace never get between the folders of whoever lends it
            return cls(folder if folder is not None and folder.is_dir() else None, config)
        tools = has_tools(item.answering, app.adapters.resolve_interface(item.answering.interface))
        WorkspaceChecks(folder, config, [item.question], {item.question.id: item.rubric}, tools).check(app)
        return cls(folder, config, has_tools=lambda item: tools)

    def begin(self, context: VerificationContext, place: Place | None, cached: CachedAnswer | None) -> None:
        if not isinstance(place, Workspace):
            return
        if place.failure is not None:
            context.mark_error(place.failure)
        elif cached is None or cached.workspace is None:  # else others have worked in it
            judged = judged_by_folder(context.question, context.config, context.rubric)
            if judged and not context.answering.can_use_tools:
                context.warn(UNTOUCHED.format(context.answering.config.identity))

    def service(self, kind: Key[Any], place: Place | None, files: dict[str, str] | None) -> Any:
        workspace = place if isinstance(place, Workspace) else None
        if kind == KEEP_FILE:
            return partial(keep_file, files, workspace)
        if kind == WORKSPACE_COPY and workspace is not None:
            return workspace.investigation_copy
        return None

    @property
    def limits(self) -> Limits:
        return Limits(max_bytes=self.config.workspace_max_bytes, max_files=self.config.workspace_max_files)

    def opened(self, item: Item) -> AbstractAsyncContextManager[Workspace | None]:
        """The workspace of an answer, as long as its judges need it; None where the item needs none.

        One that cannot be made is a workspace with a `failure`. Without copies, the answers of a question wait for each
        other.
        """
        return nullcontext() if self.root is None or not self.wanted(item) else self._opened(item, self.root)

    @asynccontextmanager
    async def _opened(self, item: Item, root: Path) -> AsyncIterator[Workspace]:
        try:
            source = source_folder(root, item.question.workspace_path)
        except WorkspaceError as error:
            yield Workspace(None, failure=str(error))
            return
        alone = source is not None and not self.config.workspace_copy
        async with self._alone.setdefault(source, asyncio.Lock()) if alone else nullcontext():
            workspace = await self._made(item, source)
            try:
                yield workspace
            finally:
                if workspace.path is not None and workspace.is_copy and self.config.workspace_cleanup:
                    await self.removed(workspace.path)

    def wanted(self, item: Item) -> bool:
        """Whether the answer of an item is made, or judged, in a folder."""
        tools = self.has_tools(item)
        return self.root is not None and wants_workspace(item.question, self.config, item.rubric, tools=tools)

    async def _made(self, item: Item, source: Path | None) -> Workspace:
        """Raises nothing but cancellation: what goes wrong is the item's error, and no model is called."""
        path: Path | None = None
        try:
            is_copy = source is None or self.config.workspace_copy
            path = await self.copied(source, "run", safe_name(item.question.id), whole=True) if is_copy else source
            assert path is not None
            before = None
            if self.config.workspace_output_mode == "produced" and self.run_dir is not None:
                patterns = self.config.workspace_output_exclude_patterns
                place = path
                before = await in_thread(lambda: snapshot(place, self.limits, patterns))
        except BaseException as error:
            if path is not None and path != source:
                await self.removed(path)
            if not isinstance(error, OSError | WorkspaceError):
                raise
            return Workspace(None, failure=f"the workspace cannot be made: {problem_of(error)}")
        if is_copy and not self.config.workspace_cleanup:
            self._temporary.discard(path)
        return Workspace(path, is_copy=is_copy, before=before, of=self)

    def lent(self, path: Path) -> Workspace:
        """A folder that the caller removes. Investigations get copies, beneath the root."""
        return Workspace(path.resolve(), is_copy=False, of=self)

    async def copied(self, source: Path | None, purpose: str, name: str = "", *, whole: bool = False) -> Path:
        """A new folder beneath the root: empty, or with a copy of `source` but for the traces of judges.

        With `whole`, what a copy leaves out is an error. Raises WorkspaceError and OSError.
        """
        name = name or (safe_name(source.name.partition("_run_")[0]) if source is not None else "workspace")

        stopped = threading.Event()

        def work() -> Path:
            place = Path(tempfile.mkdtemp(prefix=f"{name}_{purpose}_", dir=self.root))
            self._temporary.add(place)
            try:
                if source is not None:
                    limits = self.limits if whole else evolve(self.limits, subject=LEFT)
                    done = copy_tree(source, place, limits, wanted=is_shared, stopped=stopped.is_set)
                    if whole and done.left_out:
                        raise WorkspaceError(f"{source}: {done.left_out[0]}; take it out")
                if stopped.is_set():
                    raise WorkspaceError("the copy was interrupted")
            except BaseException:
                self._remove(place)
                raise
            return place

        try:
            return await in_thread(work, stopped.set)
        except OSError as error:
            raise WorkspaceError(
                f"a workspace beneath {self.root or tempfile.gettempdir()} cannot be made: {one_line(error)}"
            ) from error

    async def removed(self, place: Path) -> None:
        """Remove one of the run's own folders. A failure is logged."""
        await in_thread(lambda: self._remove(place))

    def _remove(self, place: Path) -> None:
        try:
            remove_tree(place)
        except OSError as error:
            log.warning("a workspace could not be removed", folder=str(place), error=one_line(error))
            return
        self._temporary.discard(place)

    def files_to_keep(self) -> dict[str, str] | None:
        """Where the stages of an item put texts that are to be kept, by path; None without a run directory."""
        return None if self.run_dir is None else {}

    async def keep(
        self,
        place: Place | None,
        item: Item,
        result: VerificationResult,
        files: Mapping[str, str] | None = None,
    ) -> None:
        """Keep in the run directory what the configuration says, and `files` whatever it says.

        What goes wrong is in the manifest, or in the log.
        """
        mode = self.config.workspace_output_mode
        if self.run_dir is None or (mode == "none" and not files):
            return
        row = CaptureRow(
            question_id=item.question.id,
            result_id=result.metadata.result_id,
            run_name=self.run_name,
            replicate=item.replicate,
            answering=str(item.answering.identity),
            parsing=str(item.parsing.identity),
            capture_mode=mode,
        )
        folder = self.run_dir / WORKSPACES
        workspace = place if isinstance(place, Workspace) else None
        try:
            await in_thread(lambda: self._kept(workspace, folder, row, files or {}))
        except OSError as error:
            log.warning("the manifest of workspaces cannot be written", folder=str(folder), error=one_line(error))

    def _kept(self, workspace: Workspace | None, folder: Path, row: CaptureRow, files: Mapping[str, str]) -> None:
        patterns = self.config.workspace_output_exclude_patterns
        if files and (workspace is None or row.capture_mode == "none"):
            done = row
        elif workspace is None or workspace.path is None:
            why = workspace.failure if workspace is not None else None
            done = evolve(row, status="skipped", skip_reason=why or "the item needs no workspace")
        else:
            limits = evolve(self.limits, subject=LEFT)
            done = capture(workspace.path, folder, row, limits, before=workspace.before, patterns=patterns)
        if files:
            done = with_files(folder, done, {path: self.redact(text) for path, text in files.items()})
        with self._writing:
            append_row(folder, done)

    def close(self) -> None:
        """Remove what is left, such as after a second interrupt. It does not wait for anything but the disk."""
        for place in list(self._temporary):
            self._remove(place)
