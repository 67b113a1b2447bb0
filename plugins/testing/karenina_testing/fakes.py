"""Stand-ins for models and templates that say what is written down, and applications made of what a test brings."""

from __future__ import annotations

import asyncio
import inspect
import itertools
import json
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from functools import partial
from typing import Any

from attrs import evolve, field, frozen
from karenina_vocabulary.handle import FieldVerdict, RegexVerdict, TemplateField

from karenina_core.errors import FillError, TemplateError
from karenina_core.plugin.adapters import AdapterRegistry, AdapterSpec
from karenina_core.plugin.application import Karenina
from karenina_core.plugin.discovery import discover, load_all
from karenina_core.plugin.markers import hookimpl
from karenina_core.plugin.registry import Registry
from karenina_core.ports.values import CallContext, Channel, LLMResponse, OutputFormat, PortCapabilities
from karenina_core.values.message import Message, UsageMetadata

SCRIPTED = "scripted"
"""The interface of a `ScriptedLLM`, unless it is given another one."""
ScriptedReply = str | Mapping[str, Any] | LLMResponse | BaseException
"""A reply: a text, an object (sent as JSON), a whole response, or an error to raise."""
Schema = Mapping[str, Any]
Swap = Callable[[Schema], tuple[Any, ...]]
"""Given the schema of a value: `(value,)` to put there instead of one that fits, or nothing in a tuple. The schema
has `nullable` where null fits too."""
DEEPEST = 8
"""Below so many steps into a schema the least value is taken: a schema may hold itself."""
WORDS = "because it says so"


@frozen(kw_only=True)
class ScriptedCall:
    """One call that a `ScriptedLLM` received."""

    messages: tuple[Message, ...]
    output: OutputFormat | None = None
    temperature: float | None = None
    context: CallContext | None = None

    @property
    def task(self) -> str:
        """What the call was for; empty where the caller did not say."""
        return self.context.task if self.context else ""

    @property
    def text(self) -> str:
        """All messages as one text, for looking into prompts."""
        return "\n\n".join(message.text for message in self.messages)


Script = Callable[[ScriptedCall], ScriptedReply | Awaitable[ScriptedReply]]


class ScriptedLLM:
    """An `LLMPort` that gives written replies and remembers what it was asked.

    Made of replies, each given once and in order, or of one function that is called with every `ScriptedCall`. A call
    beyond the last reply is an AssertionError. `seconds` is how long each reply takes.
    """

    def __init__(
        self,
        *replies: ScriptedReply | Script,
        channels: Sequence[Channel] = ("text",),
        usage: UsageMetadata | None = None,
        seconds: float = 0.0,
    ) -> None:
        self._script = replies[0] if len(replies) == 1 and callable(replies[0]) else None
        self._replies = list(replies)
        self._usage = UsageMetadata(10, 5, 15) if usage is None else usage
        self._seconds = seconds
        self.capabilities = PortCapabilities(output_channels=tuple(channels))
        self.calls: list[ScriptedCall] = []
        self.opened = 0
        """How often it was opened; `closed` counts the other end."""
        self.closed = 0
        self.in_flight = 0
        self.most_in_flight = 0
        """The largest number of calls that were waiting for their reply at the same time."""

    async def aopen(self) -> None:
        self.opened += 1

    async def ainvoke(
        self,
        messages: Sequence[Message],
        *,
        output: OutputFormat | None = None,
        temperature: float | None = None,
        call: CallContext | None = None,
    ) -> LLMResponse:
        """The next reply. Raises what the script says, and AssertionError where it says nothing."""
        asked = ScriptedCall(messages=tuple(messages), output=output, temperature=temperature, context=call)
        self.calls.append(asked)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        try:
            await asyncio.sleep(self._seconds)
            if self._script is None and len(self.calls) > len(self._replies):
                raise AssertionError(f"the script has {len(self._replies)} replies; this is call {len(self.calls)}")
            reply: Any = self._script(asked) if self._script else self._replies[len(self.calls) - 1]
            return self._response(await reply if inspect.isawaitable(reply) else reply, asked)
        finally:
            self.in_flight -= 1

    async def aclose(self) -> None:
        self.closed += 1

    def adapter(self, interface: str = SCRIPTED, **facts: Any) -> AdapterSpec:
        """An adapter that serves every model of `interface` with this one; `facts` are fields of `AdapterSpec`."""
        return AdapterSpec(interface=interface, llm_factory=lambda model: self, **facts)

    def asked(self, task: str) -> list[ScriptedCall]:
        """The calls for one task."""
        return [call for call in self.calls if call.task == task]

    def _response(self, reply: ScriptedReply, call: ScriptedCall) -> LLMResponse:
        if isinstance(reply, BaseException):
            raise reply
        if isinstance(reply, LLMResponse):
            return reply
        text = reply if isinstance(reply, str) else json.dumps(reply, ensure_ascii=False)
        called = call.output is not None and call.output.channel == "tool_call" and not isinstance(reply, str)
        return LLMResponse(content=text, structured=text if called else None, usage=self._usage)


@frozen(kw_only=True)
class FakeHandle:
    """A `TemplateHandle` without a runtime: one field per expected value, right when the extracted value equals it."""

    expected: Mapping[str, str | int | float | bool] = field(factory=lambda: {"fact": "42"})
    """The fields and their ground truth. Without any, no judge is needed."""
    patterns: RegexVerdict = RegexVerdict(False, True)
    """What the patterns say about every trace."""
    credit: float | None = None
    """The partial credit of every filled template."""
    failure: str | None = None
    """Where given, `verify`, `regex` and `granular` raise TemplateError with this text."""
    marks: Mapping[str, str] = field(factory=dict)
    """Fields that are decided on the trace, and the text that the answering model has to have written for each."""
    semantic: frozenset[str] = field(default=frozenset(), converter=frozenset)
    """Fields that are right from a similarity of 0.5 on."""
    isolation: str = "no-code"

    def schema(self) -> dict[str, Any]:
        words = {str: "string", bool: "boolean", int: "integer", float: "number"}
        properties = {name: {"type": [words[type(value)], "null"]} for name, value in self.expected.items()}
        closed = {"required": list(properties), "additionalProperties": False}
        return {"type": "object", "properties": properties, **closed}

    def fields(self) -> tuple[TemplateField, ...]:
        return tuple(
            TemplateField(
                name, type(value).__name__, f"what the response says about {name}", True, semantic=name in self.semantic
            )
            for name, value in self.expected.items()
        )

    def trace_fields(self) -> tuple[TemplateField, ...]:
        return tuple(
            TemplateField(name, "bool", f"whether it says {text!r}", True) for name, text in self.marks.items()
        )

    def ground_truth(self) -> Mapping[str, Any]:
        return {**self.expected, **dict.fromkeys(self.marks, True)}

    async def build(self, data: Mapping[str, Any] | None) -> FakeFilled:
        """Raises FillError for values of another type, and where no field is there."""
        given = data if isinstance(data, Mapping) else {}
        if self.expected and not self.expected.keys() & given.keys():
            raise FillError(f"expected an object with the keys {', '.join(self.expected)}")
        known = {name: given.get(name) for name in self.expected}
        for name, value in known.items():
            kind = type(self.expected[name])
            if value is not None and type(value) is not kind and (kind, type(value)) != (float, int):
                raise FillError(f"{name} must be {kind.__name__}, not {value!r}")
        return FakeFilled(handle=self, data=known)


@frozen(kw_only=True)
class FakeFilled:
    """A `FilledTemplate` of a `FakeHandle`."""

    handle: FakeHandle = field(factory=FakeHandle)
    data: Mapping[str, Any] = field(factory=lambda: {"fact": "42"})
    accepted: frozenset[str] = frozenset()

    @property
    def nulls(self) -> frozenset[str]:
        return frozenset(name for name, value in self.data.items() if value is None)

    def values(self) -> Mapping[str, Any]:
        return dict(self.data)

    def accepting(self, fields: Collection[str]) -> FakeFilled:
        for name in fields:
            if name not in self.handle.expected:
                raise TemplateError(f"field {name!r} has no expected value")
        return evolve(self, accepted=self.accepted | frozenset(fields))

    async def verify(
        self, trace: str, *, said: str | None = None, similarities: Mapping[str, float] | None = None
    ) -> FieldVerdict:
        self._may_fail()
        similar = similarities or {}
        right: dict[str, bool | None] = {}
        for name, value in self.data.items():
            expected = self.handle.expected[name]
            if name in self.accepted or value is None:
                right[name] = True if name in self.accepted else None
            elif name not in self.handle.semantic or value == expected:
                right[name] = bool(value == expected)
            elif name in similar:
                right[name] = similar[name] >= 0.5
            else:
                raise TemplateError(f"field {name!r} needs a similarity")
        right |= {name: text in (trace if said is None else said) for name, text in self.handle.marks.items()}
        scores = {name: None if found is None else float(found) for name, found in right.items()}
        return FieldVerdict(all(found is True for found in right.values()), right, scores)

    async def granular(self) -> float | None:
        """The handle's credit; 1 where every field is accepted."""
        self._may_fail()
        everything = self.accepted >= self.data.keys() and not self.handle.marks
        return 1.0 if self.handle.credit is not None and everything else self.handle.credit

    async def regex(self, trace: str) -> RegexVerdict:
        self._may_fail()
        return self.handle.patterns

    def _may_fail(self) -> None:
        if self.handle.failure is not None:
            raise TemplateError(self.handle.failure)


def fitting(schema: Schema, *, most: bool = False, swap: Swap | None = None) -> Any:
    """The least JSON value that fits a schema: false, the first of an enumeration, the minimum, empty lists.

    With `most` it is the greatest: true, the last, the maximum, one entry per list, every property. Knows types,
    enumerations, unions, references and bounds; no patterns or formats. `swap` puts other values in some places.
    """
    return _Fitting(schema, most, swap or (lambda _: ())).value(schema, 0)


@frozen
class _Fitting:
    root: Schema
    most: bool
    swap: Swap

    def value(self, schema: Schema, depth: int) -> Any:
        if "$ref" in schema:
            target: Any = self.root
            for step in str(schema["$ref"]).removeprefix("#/").split("/"):
                target = target[step]
            return self.value({**target, "nullable": schema.get("nullable", False)}, depth + 1)
        for union in ("anyOf", "oneOf", "allOf"):
            if union in schema:
                choices = [choice for choice in schema[union] if choice.get("type") != "null"] or schema[union]
                nullable = len(choices) < len(schema[union]) or schema.get("nullable", False)
                return self.value({**choices[0], "nullable": nullable}, depth + 1)
        if swapped := self.swap(schema):
            return swapped[0]
        if "const" in schema:
            return schema["const"]
        most = self.most and depth < DEEPEST
        return schema["enum"][-1 if most else 0] if "enum" in schema else self._typed(schema, most, depth)

    def _typed(self, schema: Schema, most: bool, depth: int) -> Any:
        kinds = [schema.get("type", "object")] if isinstance(schema.get("type", ""), str) else schema["type"]
        kind = next((kind for kind in kinds if kind != "null"), "null")
        if kind == "object":
            properties = schema.get("properties", {})
            names = properties if most else schema.get("required", properties)
            return {name: self.value(properties.get(name, {}), depth + 1) for name in names}
        if kind == "array":
            length = max(int(schema.get("minItems", 0)), int(most and schema.get("maxItems", 1) > 0))
            return [self.value(schema.get("items", {"type": "string"}), depth + 1) for _ in range(length)]
        if kind in ("integer", "number"):
            low = schema.get("minimum", schema.get("exclusiveMinimum", -1) + 1)
            high = schema.get("maximum", schema.get("exclusiveMaximum", low + 2) - 1)
            return max(low, high) if most else low
        return {"boolean": most, "null": None}.get(kind, WORDS.ljust(int(schema.get("minLength", 0)), "."))


def example_of(schema: Schema) -> Any:
    """A plain JSON value that fits a schema, with yes and an x: what a judge can say where any answer will do."""
    return fitting(schema, swap=_plain)


def _plain(schema: Schema) -> tuple[Any, ...]:
    kinds = () if "const" in schema or "enum" in schema else schema.get("type", ())
    if "boolean" in kinds:
        return (True,)
    return ("x" * int(schema.get("minLength", 1)),) if "string" in kinds else ()


def application(
    *plugins: Any,
    installed: bool | Collection[str] = False,
    settings: Mapping[str, Mapping[str, Any]] | None = None,
) -> Karenina:
    """A `Karenina` of the given plugins, and of the installed ones: all of them, or those named by `installed`.

    A plugin is a module or an object with `@hookimpl` functions; a stage class, an `AdapterSpec` and a `ScriptedLLM`
    are taken as plugins that bring just that; a subclass of `Registry` is a kind of things for the others. Plugins are
    called like their module, class, stage or interface; a second one of the same name gets `-2` and so on.
    `KARENINA_DISABLE` and `KARENINA_PLUGINS` are not read. `settings` holds tables by plugin name. Raises ConfigError
    where they do not fit.
    """
    sources = [s for s in discover() if installed is True or s.name in installed] if installed else []
    found, infos = load_all(sources)
    kinds = [thing for thing in plugins if isinstance(thing, type) and issubclass(thing, Registry)]
    for thing in plugins:
        if thing not in kinds:
            name, plugin = _as_plugin(thing)
            names = itertools.chain([name], (f"{name}-{number}" for number in itertools.count(2)))
            found[next(free for free in names if free not in found.keys() | infos.keys())] = plugin
    return Karenina(found, infos=infos.values(), settings=settings, kinds=kinds)


def _as_plugin(thing: Any) -> tuple[str, Any]:
    if isinstance(thing, ScriptedLLM):
        thing = thing.adapter()
    if isinstance(thing, AdapterSpec):
        factories = (thing.llm_factory, thing.parser_factory, thing.agent_factory, thing.batch_factory)
        factory: Any = next(filter(None, factories), thing)
        while isinstance(factory, partial):
            factory = factory.func
        module = factory.partition(":")[0] if isinstance(factory, str) else str(factory.__module__)
        return thing.interface, _bringing(thing, "karenina_register_adapters", module)
    if hasattr(thing, "execute") and hasattr(thing, "should_run"):
        stage = thing if isinstance(thing, type) else type(thing)
        return str(thing.name), _bringing(thing, "karenina_register_stages", stage.__module__)
    return name_of(thing), thing


def name_of(thing: Any) -> str:
    """What a plugin is called that comes without a name: like its module or its class."""
    return str(getattr(thing, "__name__", type(thing).__name__)).rpartition(".")[2]


def _bringing(thing: Any, hook: str, module: str) -> Any:
    """A plugin that brings this thing. Its code is that of `module`: by it a run sees whether it is what it was."""

    def register(self: object, registry: Any) -> None:
        (registry.register if isinstance(registry, AdapterRegistry) else registry.add)(thing)

    return type("_Brings", (), {"__module__": module, hook: hookimpl(register)})()
