"""What an agent may do where it asks, and the files that it reads and writes through karenina.

https://agentclientprotocol.com/protocol/tool-calls#requesting-permission and .../file-system
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from attrs import define, field
from karenina_calls.files.sandboxed_files import Confined, confined, open_file, open_parent, replace_file
from karenina_calls.files.sandboxed_names import Names, Refused, names_of

MOST_BYTES = 10_000_000
"""Of a file. Chosen, not measured: far more than a model can read."""
OF_FILES = frozenset({"read", "edit", "delete", "move"})
"""Kinds of calls that are refused where nothing says which files they are about."""
PATHS = frozenset({"path", "file_path", "filepath", "abs_path", "notebook_path", "source", "destination", "cwd"})
"""Names of arguments that are paths, as agents call them."""


@define(eq=False)
class Permissions:
    """The policy of one session: kinds of calls, and files inside its folder only."""

    folder: Path
    """Absolute, without links."""
    allow: frozenset[str]
    over: bool = False
    """Whether the work was cancelled: every question is then answered so."""
    _place: Confined = field(init=False)

    def __attrs_post_init__(self) -> None:
        self._place = confined(self.folder)

    def decided(self, call: Mapping[str, Any], options: list[Mapping[str, Any]]) -> dict[str, Any]:
        """The answer to `session/request_permission`: one of the options that it offers."""
        wanted = "allow" if self.allows(call) else "reject"
        for kind in (f"{wanted}_once", f"{wanted}_always"):
            for option in options:
                if not self.over and option.get("kind") == kind:
                    return {"outcome": {"outcome": "selected", "optionId": option["optionId"]}}
        return {"outcome": {"outcome": "cancelled"}}

    def allows(self, call: Mapping[str, Any]) -> bool:
        """Whether a call of this kind is allowed, and everything that it names is inside the folder."""
        kind, paths = call.get("kind") or "other", list(_paths(call))
        if kind not in self.allow or (kind in OF_FILES and not paths):
            return False
        return all(Path(os.path.realpath(self.folder / path)).is_relative_to(self.folder) for path in paths)

    async def read(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """`fs/read_text_file`. Raises Refused, KeyError, TypeError, ValueError or OSError."""
        text = await asyncio.to_thread(self._read, self._names("read", params["path"]))
        line, limit = params.get("line"), params.get("limit")
        if line is not None or limit is not None:
            lines = text.splitlines(keepends=True)
            first = max(0, int(line or 1) - 1)
            text = "".join(lines[first : None if limit is None else first + max(0, int(limit))])
        return {"content": text}

    async def write(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """`fs/write_text_file`. Raises the same."""
        data = str(params["content"]).encode("utf-8", "replace")
        await asyncio.to_thread(self._write, self._names("edit", params["path"]), data)
        return {}

    def _names(self, kind: str, path: str) -> Names:
        if kind not in self.allow or self.over:
            raise Refused(f"files may not be {'read' if kind == 'read' else 'written'} here")
        given = Path(path)
        if not given.is_absolute():
            raise Refused(f"{path!r} is relative: give an absolute path")
        if not given.is_relative_to(self.folder):
            raise Refused(f"{path!r} is outside the workspace {str(self.folder)!r}: nothing there can be reached")
        return names_of(given.relative_to(self.folder).as_posix())

    def _read(self, names: Names) -> str:
        with (
            open_parent(self._place, names) as parent,
            open_file(parent, names) as descriptor,
            open(descriptor, "rb", closefd=False) as file,
        ):
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise Refused(f"the file has more than {MOST_BYTES} bytes")
        return data.decode("utf-8")

    def _write(self, names: Names, data: bytes) -> None:
        with open_parent(self._place, names, make=True) as parent:
            replace_file(parent, names, data)


def _paths(call: Mapping[str, Any]) -> Iterator[str]:
    """Every path that a call names: its locations, the files of its diffs, and arguments that are called like paths."""
    for part in (*(call.get("locations") or ()), *(call.get("content") or ())):
        if isinstance(part, dict) and isinstance(path := part.get("path"), str):
            yield path
    given = call.get("rawInput")
    for name, value in given.items() if isinstance(given, dict) else ():
        if str(name).lower() in PATHS and isinstance(value, str):
            yield value
