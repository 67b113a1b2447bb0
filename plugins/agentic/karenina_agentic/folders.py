"""What an investigating agent can look at: a folder of its own, and the trace as a file."""

from __future__ import annotations

import errno
import hashlib
import re
import shutil
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path

from attrs import define
from karenina_calls.files.investigation import in_thread, temporary_copy
from karenina_judging.services import KEEP_FILE, WORKSPACE_COPY

from karenina_core import VerificationContext
from karenina_core.log import get_logger

TRACES = Path(".karenina", "traces")
"""Where in a workspace traces are written."""
MOST_TRACES = 10_000  # of one question in one folder; chosen, so that a search for a free name ends
MOST_REMOVED = 1000
"""How often a folder may be taken away by others before a trace is in it."""
log = get_logger("karenina.agentic")


Copies = Callable[[], AbstractAsyncContextManager[Path | None]]
"""Makes a copy of a workspace, which is removed after its `async with`."""


def copies_of(context: VerificationContext) -> Copies:
    """What makes copies of the item's workspace: the run, or without one a temporary folder."""
    return context.service(WORKSPACE_COPY, None) or partial(temporary_copy, context.workspace, context.config)


@asynccontextmanager
async def own_folder(
    workspace: Path | None, trace_file: Path | None, copies: Copies | None = None, *, trace_as: str = ""
) -> AsyncIterator[Path | None]:
    """A folder for one investigation, removed at the end: a copy of the workspace, and in it of the trace's file.

    Traces that were written into the workspace are not in it: only the agent that is given `trace_file` sees that one,
    under the name `trace_as` or else its own. None where there is neither. `copies` makes the copy; without it, a
    temporary folder does. Raises OSError and WorkspaceError where something cannot be copied.
    """
    if workspace is None and trace_file is None:
        yield None
        return
    async with AsyncExitStack() as stack:
        copy = copies() if copies is not None and workspace is not None else temporary_copy(workspace)
        folder = await stack.enter_async_context(copy)
        if folder is None:
            made = tempfile.TemporaryDirectory(prefix="karenina-", ignore_cleanup_errors=True)
            folder = Path(stack.enter_context(made), "workspace")
            folder.mkdir()
        own = folder
        await in_thread(lambda: _place(trace_file, trace_as, own))
        yield own


def _place(trace_file: Path | None, name: str, folder: Path) -> None:
    """Take other traces out of a copy and put this one in."""
    place = folder / TRACES
    for step in (place.parent, place):
        if step.is_symlink():
            step.unlink()
    if place.is_dir():
        shutil.rmtree(place)
    if trace_file is not None:
        place.mkdir(parents=True)
        shutil.copyfile(trace_file, place / (name or trace_file.name))


@define
class WrittenTrace:
    """The trace of the answering agent as a file; `path` is None where it was not wanted or could not be written."""

    path: Path | None = None
    name: str = ""
    """What agents know the file as, whatever it is called where it was written: equal prompts name equal files."""
    problem: str = ""
    keep: bool = False
    """Whether the file stays where it was written."""


@contextmanager
def written_trace(text: str, question_id: str, workspace: Path | None, *, keep: bool) -> Iterator[WrittenTrace]:
    """Write the trace under `.karenina/traces/` of the workspace, or into a temporary folder where there is none.

    The file is removed at the end unless it is to be kept, and so are these folders where nothing is in them. A folder
    that leads out of the workspace is not written to. What goes wrong is reported, and raises nothing.
    """
    written = WrittenTrace(name=f"{trace_name(question_id)}.txt", keep=keep)
    folders: list[Path] = []
    try:
        if workspace is None:
            folders = [Path(tempfile.mkdtemp(prefix="karenina-trace-"))]
        else:
            folders = [workspace / TRACES.parent, workspace / TRACES]
        written.path = _write(text, written.name, folders)
    except OSError as error:
        written.problem = f"the trace could not be written to a file: {error}"
    try:
        yield written
    finally:
        if not written.keep or written.path is None:
            _remove(written.path, folders)


def kept_at(context: VerificationContext, written: WrittenTrace, text: str, setting: str) -> str | None:
    """Have a written trace kept. Returns where it is after the run: relative to the result's folder in the run
    directory, and to the workspace; as a whole path where there is neither. None where it cannot be kept: that is
    reported.
    """
    if written.path is None:
        return None
    path = (TRACES / written.path.name).as_posix()
    keep = context.service(KEEP_FILE, None)
    if keep(path, text) if keep is not None else context.workspace is not None:
        written.keep = context.workspace is not None  # else the run directory alone has it
        return path
    if context.workspace is None:
        return str(written.path)
    context.warn(f"{setting}: the trace is removed with the workspace; give run_dir, or switch workspace_cleanup off")
    return None


def _write(text: str, name: str, folders: Sequence[Path]) -> Path:
    """Write a file that was not there. Others that work in the same folder may make and remove these folders."""
    stem, number, removed = name.removesuffix(".txt"), 1, 0
    while number < MOST_TRACES:
        path = folders[-1] / (name if number == 1 else f"{stem}_{number}.txt")
        try:
            for folder in folders:
                if folder.is_symlink():
                    raise OSError(f"{folder} is a link")
                try:
                    folder.mkdir()
                except FileExistsError:
                    if folder.is_file():  # else another item makes it, or takes it away, just now
                        raise NotADirectoryError(f"{folder} is a file") from None
            file = path.open("x", encoding="utf-8", errors="replace", newline="")
        except FileExistsError:
            number += 1  # of another item that works in the same folder, or kept by an earlier run
        except FileNotFoundError:
            if (removed := removed + 1) > MOST_REMOVED:
                raise
        else:
            try:
                with file:
                    file.write(text)
            except OSError:
                path.unlink(missing_ok=True)
                raise
            return path
    raise OSError(f"{folders[-1]} is full of traces")


def trace_name(question_id: str) -> str:
    """`trace_<id>`; ids that are no file names are made so, and distinguished by a hash."""
    safe = re.sub(r"[^A-Za-z0-9_-]+", "_", question_id)[:80]
    if safe == question_id:
        return f"trace_{safe}"
    return f"trace_{safe}_{hashlib.blake2b(question_id.encode('utf-8', 'replace'), digest_size=6).hexdigest()}"


def _remove(path: Path | None, folders: Sequence[Path]) -> None:
    """Take a trace away, and its folders where they are empty, whoever made them: the last of several items does."""
    if any(folder.is_symlink() for folder in folders):
        return  # what is there is somewhere else
    try:
        if path is not None:
            path.unlink(missing_ok=True)
        for folder in reversed(folders):
            folder.rmdir()
    except OSError as error:
        if error.errno not in (errno.ENOTEMPTY, errno.EEXIST, errno.ENOENT):
            log.warning("a trace could not be removed", path=str(path or folders[-1]), error=str(error))
