"""A copy of a workspace without a run: for contexts that are made by hand, and for evaluators used on their own."""

from __future__ import annotations

import asyncio
import tempfile
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TypeVar

from karenina_core.errors import WorkspaceError, one_line
from karenina_core.log import get_logger
from karenina_core.values.config import VerificationConfig

from .folders import Limits, copy_tree, is_shared, remove_tree
from .sandboxed_names import HIDDEN

T = TypeVar("T")
log = get_logger("karenina.pipeline")


@asynccontextmanager
async def temporary_copy(
    workspace: Path | None, config: VerificationConfig | None = None
) -> AsyncIterator[Path | None]:
    """A copy in a temporary folder, gone at the end; None for None.

    Traces of judges are not in it, nor links that lead out of the workspace, nor anything but files, folders and other
    links. It is no larger than `workspace_max_bytes` and `workspace_max_files` of the configuration, or of the default
    one. Raises WorkspaceError where it cannot be made.
    """
    if workspace is None:
        yield None
        return
    config = config or VerificationConfig()
    subject = "the workspace after the answer"  # often a copy, which is gone when people read this
    limits = Limits(max_bytes=config.workspace_max_bytes, max_files=config.workspace_max_files, subject=subject)
    made: list[Path] = []
    try:
        await in_thread(lambda: _copy(workspace, made, limits))
        yield made[0]
    finally:
        if made:
            await in_thread(lambda: _remove(made[0]))


def is_own(path: str) -> bool:
    """Whether a path, with `/`, names something beneath `.karenina`, where no file of an answer is."""
    first, *more = path.split("/")
    return first == HIDDEN and bool(more) and not {"", ".", ".."} & {*more}


async def in_thread(work: Callable[[], T], stop: Callable[[], None] = lambda: None) -> T:
    """Do it in a thread and wait for its end, also when this is cancelled: it may write to a folder that then goes.
    `stop` is called then."""
    working = asyncio.ensure_future(asyncio.to_thread(work))
    try:
        return await asyncio.shield(working)
    except asyncio.CancelledError:
        stop()
        if not working.cancelled():
            await asyncio.wait([working])
            working.exception()  # read, or asyncio logs that it never was
        raise


def _copy(workspace: Path, made: list[Path], limits: Limits) -> None:
    """The new folder is in `made` before anything is in it, so that it can be taken away whatever happens."""
    try:
        made.append(Path(tempfile.mkdtemp(prefix="karenina-")))
        copy_tree(workspace.resolve(), made[0], limits, wanted=is_shared)
    except OSError as error:
        raise WorkspaceError(f"{workspace} cannot be copied: {one_line(error)}") from error


def _remove(folder: Path) -> None:
    try:
        remove_tree(folder)
    except OSError as error:
        log.warning("a copy of a workspace could not be removed", folder=str(folder), error=one_line(error))
