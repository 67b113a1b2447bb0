"""Recordings, written line by line during a run and read as a whole before one begins, and the middleware in front of
everything that is called: one writes down what passes, the other answers from what was written down.

Several items may search for the same thing, in another order at every run, and the web may give each of them something
else. So while a run is recorded, equal queries have one outcome: the first. A replay then gives every item what it had.

A tool server may keep something between two calls, so every call is made and written down. Equal calls are answered in
the order of the recording. Where items run at the same time and a server answers equal calls differently, a replay can
give an item what another one had; the model's next call is then one that was not recorded, and says so.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, TypeVar, get_args
from weakref import WeakKeyDictionary

from attrs import define, evolve, field
from karenina_calls.files.bounded import LEVELS_OF_RECORDS, MOST_RECORDED, json_bounded, read_bounded
from karenina_calls.ports.item_calls import current_item
from karenina_calls.ports.port_calls import LLMCall
from karenina_calls.ports.structured import instruction, place_of_instruction, with_schema
from karenina_calls.records.requests import (
    FORMAT,
    EmbeddingRequest,
    Request,
    SearchRequest,
    ToolRequest,
    error_from,
    error_to,
    search_from,
)
from karenina_calls.secrets.incoming import Cleaner
from karenina_calls.secrets.known_secrets import secrets_of
from karenina_calls.secrets.redaction import Secrets

from karenina_core import ModelConfig
from karenina_core.errors import ConfigError, KareninaError, PortError, Problem, RunDirectoryError, SearchError
from karenina_core.ports.middleware import Call, CallTarget, Proceed
from karenina_core.ports.values import AgentResult, Channel, LLMResponse, ParsePortResult
from karenina_core.secrets import secrets_in
from karenina_core.values.message import Message, TextBlock

from .settings import ReplaySettings


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
            lines = read_bounded(self.path, MOST_RECORDED).decode("utf-8").split("\n")
        except FileNotFoundError:
            raise ConfigError([Problem("replay", f"there is no file {self.path}; make one with --record")]) from None
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError([Problem("replay", f"{self.path} cannot be read: {error}")]) from error
        for number, text in enumerate(lines, 1):
            if text.strip():
                self._take(number, text)

    def _take(self, number: int, text: str) -> None:
        try:
            line = json_bounded(text, LEVELS_OF_RECORDS)
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
                [
                    Problem(
                        "replay", f"{self.path}, line {number} is not a recorded call: {error}; make one with --record"
                    )
                ]
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


R = TypeVar("R")
OF_MODELS = LLMResponse | ParsePortResult | AgentResult


def around(target: CallTarget, settings: ReplaySettings, app: Any) -> Recorder | Player | None:
    """The middleware that the settings ask for. The work of a model with tools is recorded call by call."""
    if target.kind == "work":
        return None
    if not settings.record:
        return Player(recording_of(settings))
    writer = writer_of(settings)
    if target.config is not None:
        writer.knows(target.config, app)
    return Recorder(writer)


@define(eq=False)
class Recorder:
    """Passes every call on and writes it down, with its reply or its failure. An agent works with its tools as it would
    without a recording; what they answered is in its messages."""

    writer: Writer

    async def aopen(self) -> None:
        self.writer.enter(self)

    async def aclose(self) -> None:
        self.writer.leave(self)

    async def __call__(self, call: Call[R], proceed: Proceed) -> R:
        if call.target.kind == "search":
            found: Any = await self._first(call, proceed)
            return found  # type: ignore[no-any-return]  # a search's reply is a list of results
        try:
            reply = await proceed(call)
        except KareninaError as error:
            self.writer.write(call.request, {"error": error_to(error)})
            raise
        self.writer.write(call.request, self._outcome(call, reply))
        return reply

    def _outcome(self, call: Call[R], reply: R) -> Mapping[str, Any]:
        cleaner = Cleaner(self.writer.secrets)  # the reader of the answer removes them as well
        cleaned = cleaner.reply(reply) if isinstance(reply, OF_MODELS) else reply
        return cleaner.outcome("reply", call.to_data(cleaned))

    async def _first(self, call: Call[Any], proceed: Proceed) -> Any:
        """The outcome of the first search for this; others get the same again."""
        settled, key = self.writer.settled, call.request.key
        if key not in settled:
            try:
                own = self._outcome(call, await proceed(call))
            except SearchError as error:
                own = {"error": error_to(error)}
            if settled.setdefault(key, own) is own:  # an equal query may have been faster
                self.writer.write(call.request, own)
        return search_from(settled[key])


@define(eq=False)
class Player:
    """Answers from a recording. What is behind it is never opened and never asked: no tool is called, nothing is
    written into an agent's folder, and no key is needed."""

    recording: Recording
    served: dict[str, int] = field(factory=dict)
    answers = True

    async def __call__(self, call: Call[R], proceed: Proceed) -> R:
        """Raises PortError, for a search SearchError: the recorded failure, or that there is no such call."""
        if isinstance(call, LLMCall) and self._is_on_weaker_channel(call):
            problem = f"{self.recording.path} holds this call of {call.request.recipient} on a weaker channel only"
            raise PortError(problem, kind="invalid_request", status=400, final=True)
        is_search, key = call.target.kind == "search", call.request.key
        served = 0 if is_search else self.served.get(key, 0)
        self.served[key] = served + 1
        reply, error = self.recording.find(key, served)
        if reply is not None:
            return call.from_data(reply)
        failure = error_from(error) if error is not None else self.recording.missing(key, *_described(call))
        raise SearchError(str(failure)) if is_search else failure

    def _is_on_weaker_channel(self, call: LLMCall) -> bool:
        """Whether the call is recorded on a weaker channel and not on this one: its schema had been refused there, to
        this call or to another one, and the refusal itself need not be in the recording."""
        output, request = call.output, call.request
        if output is None or self.recording.holds(request.key):
            return False
        weaker = set(get_args(Channel)) - {output.channel, *output.refused}  # they are tried from the strongest on
        return any(self.recording.holds(_as_on(request, output.channel, other).key) for other in weaker)


def _described(call: Call[Any]) -> tuple[str, str]:
    """The task and the model of a call, and what else distinguishes it from others."""
    request = call.request
    if isinstance(request, Request):
        context = getattr(call, "context", None)
        about = f" for question {context.question_id!r}" if context and context.question_id else ""
        return f"task {request.task!r}{about} to {request.recipient}", f"replicate {request.replicate}"
    if isinstance(request, EmbeddingRequest):
        return f"task {request.task!r} to {request.recipient}", f"{len(request.texts)} texts"
    if isinstance(request, SearchRequest):
        return f"search tool {request.recipient}", f"query {request.query[:60]!r}"
    return f"the tool server {request.server!r}", f"tool {request.tool!r}" if request.tool else "its list of tools"


def _as_on(request: Request, channel: Channel, other: Channel) -> Request:
    """The request as it is made on another channel."""
    messages, schema = [Message.from_dict(message) for message in request.messages], request.schema or {}
    at = place_of_instruction(messages, channel)
    *before, last = messages[at].content
    assert isinstance(last, TextBlock)  # it ends with the instruction
    text = last.text.removesuffix(instruction(schema, channel)).removesuffix("\n\n")
    messages[at] = evolve(messages[at], content=(*before, TextBlock(text)))
    asked = with_schema(messages, schema, other)
    return evolve(request, channel=other, messages=tuple(message.to_dict() for message in asked))
