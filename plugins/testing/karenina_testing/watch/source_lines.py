"""Naming the line of foreign source that has to change: `path:number: source`."""

from __future__ import annotations

import inspect
import linecache
import os
import re
import sys
import sysconfig
import traceback
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from types import FrameType
from typing import Any

STDLIB = sysconfig.get_paths()["stdlib"] + os.sep
OWN = f"{Path(__file__).parents[1]}{os.sep}"
Executed = Callable[[str, str], None]
"""Called with the name of a function and a line of it that has just been executed."""


def line_at(path: str, number: int) -> str:
    """A line as it is shown; the path is relative where it is inside of the working directory."""
    source = linecache.getline(path, number).strip()
    shown = path
    if Path(path).is_relative_to(Path.cwd()):
        shown = str(Path(path).relative_to(Path.cwd()))
    return f"{shown}:{number}: {source}" if source else f"{shown}:{number}"


def file_of(thing: Any) -> str | None:
    """The file that a class, function or module is written in; None where there is none."""
    try:
        return inspect.getsourcefile(thing if inspect.ismodule(thing) or callable(thing) else type(thing))
    except TypeError:
        return None


def line_of_function(function: Callable[..., Any]) -> str:
    """Where a function or method begins; nothing where it has no Python source."""
    code = getattr(inspect.unwrap(function), "__code__", None)
    return line_at(code.co_filename, code.co_firstlineno) if code else ""


def line_of_attribute(cls: type, name: str) -> str:
    """Where a class, or the first of its bases that does, assigns an attribute; else where the class begins."""
    for base in cls.__mro__:
        if name in base.__dict__ and not str(file_of(base)).startswith(OWN):
            path, lines, start = _source(base)
            for offset, text in enumerate(lines):
                if re.match(rf"\s+(?:(?:async )?def )?{re.escape(name)}\s*[:=(]", text):
                    return line_at(path, start + offset)
    path, _, start = _source(cls)
    return line_at(path, start) if path else ""


@lru_cache(maxsize=64)  # every check asks for lines of the same few classes
def _source(cls: type) -> tuple[str, list[str], int]:
    try:
        lines, start = inspect.getsourcelines(cls)
    except (OSError, TypeError):
        return "", [], 0
    return file_of(cls) or "", lines, start


def is_stdlib(path: str) -> bool:
    """Whether a file belongs to the standard library."""
    return path.startswith(STDLIB) and "site-packages" not in path


def is_foreign(path: str) -> bool:
    """Whether a file is neither ours nor of the standard library."""
    return not path.startswith((OWN, "<")) and not is_stdlib(path)


def line_of_error(error: BaseException, file: str | None) -> str:
    """The innermost line of `file` that an exception came through, else the innermost line of code that is not ours."""
    steps = [(frame.f_code.co_filename, number) for frame, number in traceback.walk_tb(error.__traceback__)]
    in_file = [step for step in steps if step[0] == file]
    found = in_file or [step for step in steps if is_foreign(step[0])]
    return line_at(*found[-1]) if found else ""


def line_of_frame(frame: FrameType | None) -> str:
    """The innermost line on a stack of code that is neither ours nor the standard library's."""
    steps = ((step.f_code.co_filename, number) for step, number in (traceback.walk_stack(frame) if frame else ()))
    return next((line_at(*step) for step in steps if is_foreign(step[0])), "")


def line_of_caller() -> str:
    """The line outside of karenina's core that the current call comes from."""
    steps = ((step.f_code.co_filename, number) for step, number in traceback.walk_stack(sys._getframe(1)))
    return next((line_at(*step) for step in steps if not step[0].startswith(OWN)), "")


def line_of_waiting(coroutine: Any, file: str | None) -> str:
    """The line of `file` at which a suspended coroutine waits."""
    found = ""
    while coroutine is not None:
        frame = getattr(coroutine, "cr_frame", None)
        if frame is not None and frame.f_code.co_filename == file:
            found = line_at(frame.f_code.co_filename, frame.f_lineno)
        coroutine = getattr(coroutine, "cr_await", None)
    return found


@contextmanager
def executing(file: str | None, executed: Executed) -> Iterator[None]:
    """Call `executed` after every line of `file` that this thread executes. Slow: for looking closer at a failure."""
    last: dict[FrameType, int] = {}

    def step(frame: FrameType, event: str, _: Any) -> Any:
        if frame.f_code.co_filename != file:
            return None
        if frame in last and event in ("line", "return"):
            executed(frame.f_code.co_name, line_at(frame.f_code.co_filename, last[frame]))
        if event == "line":
            last[frame] = frame.f_lineno
        elif event == "return":
            last.pop(frame, None)
        return step

    before = sys.gettrace()
    sys.settrace(step)
    try:
        yield
    finally:
        sys.settrace(before)
