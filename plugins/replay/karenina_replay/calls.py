"""Middleware in front of everything that is called: one writes down what passes, the other answers from what was
written down.

Several items may search for the same thing, in another order at every run, and the web may give each of them something
else. So while a run is recorded, equal queries have one outcome: the first. A replay then gives every item what it had.

A tool server may keep something between two calls, so every call is made and written down. Equal calls are answered in
the order of the recording. Where items run at the same time and a server answers equal calls differently, a replay can
give an item what another one had; the model's next call is then one that was not recorded, and says so.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, TypeVar, get_args

from attrs import define, evolve, field
from karenina_calls.ports.port_calls import LLMCall
from karenina_calls.ports.structured import instruction
from karenina_calls.records.requests import EmbeddingRequest, Request, SearchRequest, error_from, error_to, search_from
from karenina_calls.secrets.cleaning import Cleaner

from karenina_core.errors import KareninaError, PortError, SearchError
from karenina_core.ports.middleware import Call, CallTarget, Proceed
from karenina_core.ports.values import AgentResult, Channel, LLMResponse, ParsePortResult
from karenina_core.values.message import Message

from .options import ReplaySettings
from .recording import Recording, Writer, recording_of, writer_of

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
    first, schema = Message.from_dict(request.messages[0]), request.schema or {}
    text = first.text.removesuffix(instruction(schema, channel)) + instruction(schema, other)
    message = Message.system(text) if first.role == "system" else Message.user(text)
    return evolve(request, channel=other, messages=(message.to_dict(), *request.messages[1:]))
