"""Making the ports of an adapter and calling them: each time a fresh port, a fresh event loop, a fresh server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any, TypeVar

from attrs import evolve, frozen
from karenina_calls.models.model_ports import make_port

from karenina_core.errors import ConfigError
from karenina_core.plugin.adapters import AdapterRegistry, AdapterSpec
from karenina_core.ports.protocols import AgentPort, LLMPort, ParserPort
from karenina_core.ports.values import AgentResult, CallContext, LLMResponse, ParsePortResult
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import Message

from ..checks import Fault, Raised, attempt
from ..watch.loops import in_loop, within
from ..watch.source_lines import line_of_attribute
from .server import CHAT, Script, ScriptedServer
from .wires import Wire

T = TypeVar("T")
KEY = "karenina-canary-key-0123456789"
"""A key that must show up nowhere but in the request."""
ASK = (Message.system("Be exact."), Message.user("What is the capital of France?"))
DATA: Mapping[str, Any] = {"capital": "Paris"}
SCHEMA: Mapping[str, Any] = {
    "type": "object",
    "properties": {"capital": {"type": "string"}},
    "required": ["capital"],
    "additionalProperties": False,
}
PROTOCOLS: Mapping[str, type] = {"llm": LLMPort, "parser": ParserPort, "agent": AgentPort}
NOWHERE = "http://127.0.0.1:9/v1"
TIMEOUT = 5.0  # seconds; a call on loopback takes milliseconds
LONGEST_CALL = 10.0  # seconds; twice TIMEOUT
METHODS: Mapping[str, str] = {"llm": "ainvoke", "parser": "aparse", "agent": "arun"}
"""The method of each kind of port that makes a call."""
RETURNED: Mapping[str, type] = {"llm": LLMResponse, "parser": ParsePortResult, "agent": AgentResult}


class WrongReturn(Exception):
    """A call returned something else than its protocol says."""

    def __init__(self, kind: str, returned: object) -> None:
        super().__init__(f"{METHODS[kind]} returned {returned!r}")
        self.remedy = f"return {RETURNED[kind].__name__}, from karenina_core.ports"
        self.method = METHODS[kind]


@frozen
class Ports:
    """The ports of one adapter, made as often as checks need them."""

    spec: AdapterSpec
    config: ModelConfig | None
    given_wire: Wire | None

    @property
    def served(self) -> bool:
        """Whether its models can be made to ask a scripted server."""
        return self.given_wire is not None or self.config is None or self.config.endpoint_base_url is not None

    @property
    def wire(self) -> Wire:
        return self.given_wire or CHAT

    @property
    def kinds(self) -> list[str]:
        """Which of `llm`, `parser` and `agent` there are."""
        return [kind for kind in PROTOCOLS if self.factory(kind) is not None]

    def factory(self, kind: str) -> Any:
        return getattr(self.spec, f"{kind}_factory")

    def configured(self, url: str = NOWHERE, **fields: Any) -> ModelConfig:
        """The configuration of a model that asks the server at `url`; for unserved adapters the given one."""
        if self.config is not None and not self.served:
            return evolve(self.config, **fields)
        base = self.config or self.plain_config()
        asked = {"endpoint_base_url": url, "endpoint_api_key": KEY, "api_key_env": None, "request_timeout": TIMEOUT}
        return evolve(base, **(asked | fields))

    def plain_config(self) -> ModelConfig:
        """A model of this interface about which nothing is known. Raises ConfigError where something must be."""
        provider = "openai" if self.spec.requires_provider else None
        if self.spec.is_recorded:
            raise ConfigError("give the checks recorded answers with config=ModelConfig(manual_traces=...)")
        try:
            return ModelConfig(model_name="conformance", interface=self.spec.interface, model_provider=provider)
        except ConfigError as error:
            raise ConfigError(f"give the checks a usable model with config=ModelConfig(...): {error}") from None

    def make(self, kind: str, config: ModelConfig) -> Any:
        """A port that is not opened yet. Raises PluginError and ConfigError."""
        return make_port(AdapterRegistry(), self.factory(kind), config, self.spec)

    def use(self, config: ModelConfig, work: Callable[[Any], Awaitable[T]], kind: str = "") -> T:
        """Make a port, open it, do the work, close it."""

        async def run() -> T:
            port = self.make(kind or self.kinds[0], config)
            try:
                if opener := getattr(port, "aopen", None):
                    await opener()
                return await within(work(port), LONGEST_CALL)
            finally:
                await within(port.aclose(), LONGEST_CALL)

        return in_loop(run())

    def serve(self, script: Script) -> ScriptedServer:
        """A server that is not started yet."""
        return ScriptedServer(script, wire=self.wire)

    def fails(
        self, script: Script, *, seconds: float = LONGEST_CALL, **fields: Any
    ) -> tuple[BaseException | None, ScriptedServer]:
        """What one plain call raises that is answered by `script`, and the server that answered."""
        with self.serve(script) as server:
            config = self.configured(server.url, **fields)
            outcome = attempt(self.use, config, lambda port: within(self.ask(port), seconds))
            return outcome.error if isinstance(outcome, Raised) else None, server

    async def ask(self, port: Any, messages: Any = ASK, kind: str = "", **options: Any) -> Any:
        """One plain call of a port: for text, or for data where it is a parser. `kind` is the first by default."""
        kind = kind or self.kinds[0]
        recorded = self.config.manual_traces if self.config else None  # found by the id of the question
        question = next(iter(recorded)) if recorded else "conformance"
        about = CallContext("parsing" if kind == "parser" else "generation", question)
        given = (messages, SCHEMA) if kind == "parser" else (messages,)
        reply = await getattr(port, METHODS[kind])(*given, call=about, **options)
        if not isinstance(reply, RETURNED[kind]):
            raise WrongReturn(kind, reply)
        return reply

    def asking(self, **options: Any) -> Callable[[Any], Awaitable[Any]]:
        return partial(self.ask, **options)

    def line_of(self, method: str) -> str:
        """Where a method of the first port begins."""
        port = self.make(self.kinds[0], self.configured())
        return line_of_attribute(type(port), method)

    def fault(self, problem: str, remedy: str = "", method: str = "") -> Fault:
        """A fault of a method; by default of the one that makes a call."""
        return Fault(problem, self.line_of(method or METHODS[self.kinds[0]]), remedy)
