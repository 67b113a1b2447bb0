"""A recording: written line by line during a run, read as a whole before one begins."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any
from weakref import WeakKeyDictionary

from karenina_calls.ports.item_calls import current_item
from karenina_calls.records.requests import FORMAT, EmbeddingRequest, Request, SearchRequest, ToolRequest
from karenina_calls.secrets.known_secrets import secrets_of
from karenina_calls.secrets.redaction import Secrets

from karenina_core import ModelConfig
from karenina_core.errors import ConfigError, PortError, Problem, RunDirectoryError
from karenina_core.secrets import secrets_in

from .options import ReplaySettings


class Writer:
    """Appends calls to a new file."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._file: IO[str] | None = None
        self._users: set[object] = set()
        self.secrets = Secrets(secrets_in(os.environ))
        self.settled: dict[str, Mapping[str, Any]] = {}
        """By key: the outcomes of calls that are made once, however often they are asked for."""

    def knows(self, model: ModelConfig, app: Any) -> None:
        """Never write this model's key, nor any other secret that a run with it has."""
        self.secrets = Secrets({**self.secrets.sources, **secrets_of(app, [model])})

    def open(self) -> None:
        """Raises RunDirectoryError where the file exists or cannot be made."""
        if self._file is None:
            try:
                self._file = self._path.open("x", encoding="utf-8", newline="\n")
            except FileExistsError:
                raise RunDirectoryError(f"{self._path} exists; record to another file or delete it first") from None
            except OSError as error:
                raise RunDirectoryError(f"{self._path} cannot be written: {error.strerror}") from error

    def enter(self, user: object) -> None:
        """Open the file for one more user. Raises RunDirectoryError, as `open` does."""
        self.open()
        self._users.add(user)

    def leave(self, user: object) -> None:
        """Close the file when the last user leaves: some models are open for one item only, others for the run."""
        self._users.discard(user)
        if not self._users:
            self.close()

    def write(
        self, request: Request | EmbeddingRequest | SearchRequest | ToolRequest, outcome: Mapping[str, Any]
    ) -> None:
        """Write a call down, without secrets; `removed` in the outcome lists what they were the values of."""
        self.open()
        assert self._file is not None
        removed = set(outcome.get("removed", ()))
        outcome = self.secrets.data(outcome, removed)
        marked = {"removed": sorted(removed)} if removed else {}
        line = json.dumps({**request.line(), **outcome, **marked}, ensure_ascii=True, separators=(",", ":"))
        self._file.write(f"{self.secrets.text(line)}\n")
        self._file.flush()

    def close(self) -> None:
        if self._file is not None:
            self._file.close()
            self._file = None


class Recording:
    """Recorded replies by key. Equal calls get their replies in the order of the recording, and then the last one."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._replies: dict[str, list[Mapping[str, Any]]] = {}
        self._errors: dict[str, Mapping[str, Any]] = {}
        self._removed: dict[str, set[str]] = {}
        """By key: what the secrets were the values of that are not in a reply any more."""
        try:
            lines = self.path.read_text("utf-8").split("\n")
        except FileNotFoundError:
            raise ConfigError([Problem("replay", f"there is no file {self.path}; make one with --record")]) from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError([Problem("replay", f"{self.path} cannot be read: {error}")]) from error
        for number, text in enumerate(lines, 1):
            if text.strip():
                self._take(number, text)

    def _take(self, number: int, text: str) -> None:
        try:
            line = json.loads(text)
            key = line["key"]
            if line["format"] != FORMAT:
                raise ValueError(f"its format is {line['format']!r}, this program reads {FORMAT}")
            if "removed" in line:
                self._removed.setdefault(key, set()).update(line["removed"])
            if "reply" in line:
                self._replies.setdefault(key, []).append(line["reply"])
            else:
                self._errors[key] = line["error"]
        except (ValueError, KeyError, TypeError) as error:
            raise ConfigError(
                [Problem("replay", f"{self.path}, line {number} is not a recorded call: {error}")]
            ) from error

    def __len__(self) -> int:
        return len(self._replies.keys() | self._errors.keys())

    def holds(self, key: str) -> bool:
        """Whether a reply to a call is recorded, or its failure."""
        return key in self._replies or key in self._errors

    def find(self, key: str, served: int = 0) -> tuple[Mapping[str, Any] | None, Mapping[str, Any] | None]:
        """`(reply, error)` for a call that was answered `served` times before.

        The error only where no attempt succeeded; both are None where nothing is known. The item that asks records the
        names of the secrets that were taken out.
        """
        if (item := current_item.get()) is not None:
            item.removed |= self._removed.get(key, set())
        if replies := self._replies.get(key):
            return replies[min(served, len(replies) - 1)], None
        return None, self._errors.get(key)

    def missing(self, key: str, what: str, about: str) -> PortError:
        """The error for a call that was not recorded: its task, its model, and what else distinguishes it from
        others."""
        return PortError(
            f"{self.path} holds no call of {what} ({about}, key {key[:12]}): something that the call is made of "
            "has changed; record again with --record",
            kind="invalid_request",
            final=True,
        )


# One file per settings object, however many models there are. It goes when the application goes.
_writers: WeakKeyDictionary[ReplaySettings, Writer] = WeakKeyDictionary()
_recordings: WeakKeyDictionary[ReplaySettings, Recording] = WeakKeyDictionary()


def writer_of(settings: ReplaySettings) -> Writer:
    """The writer of the file to record to."""
    return _writers.setdefault(settings, Writer(Path(str(settings.record))))


def recording_of(settings: ReplaySettings) -> Recording:
    """The recording to replay, read at the first use."""
    if settings not in _recordings:
        _recordings[settings] = Recording(Path(str(settings.replay)))
    return _recordings[settings]
