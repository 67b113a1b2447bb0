"""Tools with which an agent works in one folder: look around, read, search and write.

Nothing outside the folder is read or written, see `confined`. What cannot be done is an answer that says what to do
instead, never an exception. The work is done in threads; each call is bounded in what it reads, gives and takes.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import partial
from pathlib import Path
from threading import Event, Lock
from typing import Any

from attrs import define, field

from karenina_core.errors import did_you_mean
from karenina_core.ports.values import Tool, ToolOutcome

from .sandboxed_files import Bounds, Confined, Entry, confined, look, open_file, open_parent, replace_file, walk
from .sandboxed_names import Names, Refused, is_hidden, names_of, plain, quoted
from .to_its_end import to_its_end
from .workspace_text import MOST_LINES, MOST_TEXT, Search, is_binary, kind_of, matches_glob, read_lines, search_lines

MOST_LISTED = 500  # lines; chosen, as the next two: what is cut says so, and models ask for less
MOST_WALKED = 20_000
"""Entries of folders that one call looks at."""
MOST_FOUND = 100  # lines
MOST_SECONDS = 10.0  # for folders on slow disks
MOST_AT_ONCE = 1_000_000
"""Bytes that one call may write."""
MOST_WRITTEN = 50_000_000
"""Bytes that all calls of a toolset may write together."""
MOST_MADE = 10_000
"""Files and folders that all calls of a toolset may make together."""

PATH = {"type": "string", "description": "Relative to the workspace, with '/' between names, such as 'data/notes.txt'."}


def _property(kind: str, description: str, default: object) -> dict[str, Any]:
    """The JSON Schema of an argument that may be left out."""
    return {"type": kind, "description": description, "default": default}


def workspace_tools(
    root: Path,
    *,
    writable: bool = True,
    visible_hidden: frozenset[str] = frozenset(),
    most_written: int = MOST_WRITTEN,
    most_made: int = MOST_MADE,
) -> tuple[Tool, ...]:
    """`list_files`, `read_file`, `search_files` and, where `writable`, `write_file`, all within the folder `root`.

    Paths are relative to it. `..`, absolute paths, symbolic and hard links, pipes, sockets and devices are refused.
    Folders called `.karenina` are not shown, but for the paths in `visible_hidden`, which can be read and not written.
    All that is written with these tools together is at most `most_written` bytes and `most_made` new files and folders.
    Raises ConfigError where `root` is no folder, and on systems where the tools cannot be kept within it.
    """
    place = confined(root, visible_hidden)
    reading = (_list_tool(place), _read_tool(place), _search_tool(place))
    return (*reading, _write_tool(place, _Quota(most_written, most_made))) if writable else reading


def _list_tool(place: Confined) -> Tool:
    properties = {
        "path": _property("string", "A folder, relative to the workspace; '.' is all of it.", "."),
        "recursive": _property("boolean", "Also what is in the folders beneath.", False),
    }

    def work(given: Mapping[str, Any], stopped: Event) -> str:
        names = names_of(given["path"])
        bounds = Bounds(MOST_WALKED, MOST_SECONDS, stopped=stopped)
        lines: list[str] = []
        size = 0
        with closing(walk(place, names, bounds, deep=given["recursive"])) as walked:
            for _, entry in walked:
                if len(lines) == MOST_LISTED or size > MOST_TEXT:
                    bounds.reached = f"there are more than the {len(lines)} above"
                    break
                lines.append(_line(entry))
                size += len(lines[-1])
        return "\n".join([*(lines or [f"{quoted(names)} is empty"]), *_notes(bounds)])

    description = (
        f"List the files of a folder of the workspace with their sizes, at most {MOST_LISTED}. Folders end with '/'. "
        "Links, pipes and the like are named, but cannot be used."
    )
    return _tool("list_files", description, properties, work)


def _line(entry: Entry) -> str:
    path = plain(entry.names)
    if entry.kind == "folder":
        return f"{path}/"
    if entry.kind != "file":
        return f"{path} ({'symbolic link' if entry.kind == 'link' else entry.kind}, cannot be used)"
    return f"{path} ({entry.size} bytes{', hard link, cannot be used' if entry.links > 1 else ''})"


def _notes(bounds: Bounds) -> list[str]:
    notes = []
    if bounds.reached:
        notes.append(f"[not all was looked at, because {bounds.reached}: give a narrower path]")
    if bounds.unread:
        notes.append(f"[{bounds.unread} folders could not be looked into]")
    return notes


def _read_tool(place: Confined) -> Tool:
    properties = {
        "path": PATH,
        "start_line": _property("integer", "The first line to read; lines are counted from 1.", 1) | {"minimum": 1},
        "lines": _property("integer", "How many lines to read at most.", MOST_LINES) | {"minimum": 1},
    }

    def work(given: Mapping[str, Any], stopped: Event) -> str:
        names = names_of(_file_path(given["path"]))
        with open_parent(place, names) as folder, open_file(folder, names) as file:
            if is_binary(file):
                size = os.fstat(file).st_size
                return f"[a binary file of {size} bytes: {kind_of(file)}; it cannot be read as text]"
            bounds = Bounds(0, MOST_SECONDS, stopped=stopped)
            return read_lines(file, given["start_line"], given["lines"], bounds)

    description = (
        f"Read a text file of the workspace, or some of its lines; at most {MOST_TEXT} bytes at once. A note in "
        "brackets at the end says whether it goes on. Binary files are described, not shown."
    )
    return _tool("read_file", description, properties, work)


def _file_path(path: str) -> str:
    if path.endswith("/"):
        raise Refused(f"{quoted(path)} ends with '/', so it is a folder: give the path of a file")
    return path


def _search_tool(place: Confined) -> Tool:
    properties = {
        "text": {"type": "string", "description": "What a line has to contain, literally: no pattern, no line break."},
        "path": _property("string", "A file, or a folder with all beneath it.", "."),
        "glob": _property(
            "string", "Only files whose name fits, such as '*.csv', or whose path does, such as 'src/**/*.py'.", "**"
        ),
        "ignore_case": _property("boolean", "Take capitals and small letters alike.", False),
    }

    def work(given: Mapping[str, Any], stopped: Event) -> str:
        text, glob = given["text"], given["glob"]
        if not text or "\n" in text or len(text) > 1000:
            raise Refused("text has to be part of one line, 1 to 1000 characters: search for a shorter piece")
        if not glob or len(glob) > 300:
            raise Refused("glob has to have 1 to 300 characters, such as '*.csv': give another or leave it out")
        search = Search(text, given["ignore_case"], MOST_FOUND)
        bounds = Bounds(MOST_WALKED, MOST_SECONDS, stopped=stopped)
        _search(place, given["path"], glob, search, bounds)
        if search.more:
            bounds.reached = f"there are more than the {len(search.lines)} lines above"
        none = [f"no line with this text in the {search.files} text files that were searched"]
        return "\n".join([*(search.lines or none), *search.notes(), *_notes(bounds)])

    description = (
        "Search the text files of the workspace for a plain text (regular expressions are not understood). Gives "
        f"'path:line number: line' for the first {MOST_FOUND} lines that have it."
    )
    return _tool("search_files", description, properties, work)


def _search(place: Confined, path: str, glob: str, search: Search, bounds: Bounds) -> None:
    names = names_of(path)
    if names:
        with open_parent(place, names) as folder:
            if look(folder, names).kind != "folder":
                with open_file(folder, names) as file:
                    if matches_glob(names, glob):
                        search_lines(file, names, search, bounds)
                return
    with closing(walk(place, names, bounds, deep=True)) as walked:
        for folder, entry in walked:
            if entry.kind == "file" and matches_glob(entry.names, glob):
                try:
                    with open_file(folder, entry.names) as file:
                        search_lines(file, entry.names, search, bounds)
                except (Refused, OSError):
                    search.unread += 1
            if search.more or not bounds.in_time():
                return


@define
class _Quota:
    """What may still be written: bytes, and new files and folders."""

    left: int
    entries: int
    _lock: Lock = field(factory=Lock, repr=False)

    def take(self, count: int, entries: int) -> None:
        with self._lock:
            if count > self.left:
                raise Refused(f"only {self.left} bytes may still be written, this has {count}: write less, or finish")
            if entries > self.entries:
                what = f"only {self.entries} new files and folders may still be made, this takes {entries}"
                raise Refused(f"{what}: write into files that are there, or finish")
            self.left -= count
            self.entries -= entries

    def give_back(self, count: int, entries: int) -> None:
        with self._lock:
            self.left += count
            self.entries += entries


def _missing(place: Confined, names: Names) -> int:
    """How many folders and files have to be made for this path. Raises Refused or OSError."""
    for depth in range(1, len(names) + 1):
        try:
            with open_parent(place, names[:depth]) as folder:
                look(folder, names[:depth])
        except FileNotFoundError:
            return len(names) - depth + 1
    return 0


def _write_tool(place: Confined, quota: _Quota) -> Tool:
    properties = {"path": PATH, "content": {"type": "string", "description": "The whole text of the file."}}

    def work(given: Mapping[str, Any], stopped: Event) -> str:
        path = _file_path(given["path"])
        names = names_of(path)
        if not path.isprintable():
            raise Refused(f"{quoted(path)} has characters that are not printed: give the file another name")
        if any(map(is_hidden, names)):
            raise Refused(f"{quoted(path)} is not yours to write: give the file another name")
        data = _encoded(given["content"])
        missing = _missing(place, names)
        quota.take(len(data), missing)
        try:
            with open_parent(place, names, make=True) as folder:
                existed = replace_file(folder, names, data)
        except BaseException:
            quota.give_back(len(data), missing)
            raise
        return f"{'replaced' if existed else 'made'} {quoted(names)} ({len(data)} bytes)"

    description = (
        f"Write a text file of the workspace, at most {MOST_AT_ONCE} bytes; folders that are missing are made. What "
        "was in the file before is replaced."
    )
    return _tool("write_file", description, properties, work)


def _encoded(content: str) -> bytes:
    if "\0" in content:
        raise Refused("content has a NUL character in it, which no text file has: leave it out")
    try:
        data = content.encode("utf-8")
    except UnicodeEncodeError:
        raise Refused("content has half of a surrogate pair in it: write the whole character") from None
    if len(data) > MOST_AT_ONCE:
        raise Refused(f"content has {len(data)} bytes, more than {MOST_AT_ONCE}: write several smaller files")
    return data


def _given(arguments: Mapping[str, Any], properties: Mapping[str, Any]) -> dict[str, Any]:
    """Every argument of a call, which a model may have made up. Raises Refused."""
    for name in arguments:
        if name not in properties:
            known = f"{did_you_mean(name, properties)}; give: {', '.join(properties)}"
            raise Refused(f"there is no argument {quoted(name)}{known}")
    given = {}
    for name, schema in properties.items():
        value = arguments.get(name)
        if value is None:
            if "default" not in schema:
                raise Refused(f"{name} is missing: {schema['description']}")
            value = schema["default"]
        if schema["type"] == "string" and not isinstance(value, str):
            raise Refused(f"{name} has to be a string")
        if schema["type"] == "boolean" and not isinstance(value, bool):
            raise Refused(f"{name} has to be true or false")
        if schema["type"] == "integer":  # models write 5.0 for 5
            number = isinstance(value, int | float) and not isinstance(value, bool)
            if not number or not value >= 1 or value % 1 != 0:
                raise Refused(f"{name} has to be a whole number, 1 or more")
            value = int(value)
        given[name] = value
    return given


def _tool(
    name: str, description: str, properties: Mapping[str, Any], work: Callable[[Mapping[str, Any], Event], str]
) -> Tool:
    """A tool with these properties of its arguments; one without a default has to be given.

    `work` runs in a thread; cancelling a call waits until it has ended, so that nothing is written later.
    Refused and OSError become answers that are errors; those of the system name no path.
    """
    required = [key for key, schema in properties.items() if "default" not in schema]
    schema = {"type": "object", "properties": dict(properties), "required": required, "additionalProperties": False}

    async def run(arguments: Mapping[str, Any]) -> ToolOutcome:
        return await to_its_end(partial(outcome, arguments))

    def outcome(arguments: Mapping[str, Any], stopped: Event) -> ToolOutcome:
        try:
            return ToolOutcome(work(_given(arguments, properties), stopped))
        except Refused as refusal:
            return ToolOutcome(str(refusal), is_error=True)
        except FileNotFoundError:
            return ToolOutcome("there is no such file: list_files says what there is", is_error=True)
        except PermissionError:
            return ToolOutcome("the permissions of the file or its folder forbid this: use another one", is_error=True)
        except OSError as error:
            text = f"the system says: {error.strerror}; try another file, or finish without it"
            return ToolOutcome(text, is_error=True)

    return Tool(name=name, description=description, input_schema=schema, run=run)
