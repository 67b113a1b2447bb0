"""Adapters: how a model is reached, and whether it can be reached here."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from attrs import field, frozen

from ..errors import AdapterUnavailableError, PluginError, one_line
from .registry import Registry, is_installed, with_settings

Factory = str | Callable[..., Any]
"""Makes a port from a `ModelConfig`: a callable, or an import string."""


@frozen(kw_only=True)
class AdapterAvailability:
    """Whether an interface can be used here. `not_installed` and `broken` are different things to mend."""

    available: bool
    state: Literal["available", "not_installed", "broken", "unknown"] = "available"
    reason: str = ""
    fallback_interface: str | None = None


@frozen(kw_only=True)
class AdapterSpec:
    """What an adapter plugin says about one interface.

    Factories and checkers are given the plugin's settings as one more argument where they take one more.
    """

    interface: str
    description: str = ""
    llm_factory: Factory | None = None
    """Makes an `LLMPort` from a `ModelConfig`: a callable or an import string, like those below."""
    parser_factory: Factory | None = None
    """Makes a `ParserPort`; without one the judge uses the `LLMPort` and karenina's own parser."""
    agent_factory: Factory | None = None
    """Makes an `AgentPort`, which then answers in place of the `LLMPort`. Without one, a model whose `LLMPort` says
    `supports_tools` works with tools in karenina's own loop."""
    batch_factory: Factory | None = None
    """Makes a `BatchPort` (`karenina_calls.ports.batch`), for models with `batch = true`."""
    config_checker: Callable[..., Iterable[str]] | None = None
    """Says what is wrong with a `ModelConfig`, as `field: message` lines. Called before any model is."""
    availability_checker: Callable[..., str | None] | None = None
    """Returns why the interface cannot be used here, or None. It must not import the provider."""
    requires_modules: tuple[str, ...] = ()
    """Top-level modules that must be installed. They are looked up, not imported."""
    install_hint: str = ""
    fallback_interface: str | None = None
    """Another interface to use when this one cannot be; never used unless it is named here."""
    routes_to: str | None = None
    """Another interface that serves this name."""
    judge_tasks: tuple[str, ...] | None = None
    """The tasks of a judge that it can serve; None: any."""
    is_recorded: bool = False
    """Whether its answers are those of `ModelConfig.manual_traces`, so that nothing is sent to a model."""
    agent_tier: Literal["tool_loop", "deep_agent"] = "tool_loop"
    requires_provider: bool = False
    name: str = field(init=False)

    @name.default
    def _name(self) -> str:
        return self.interface

    def __attrs_post_init__(self) -> None:
        if not self.interface:
            raise PluginError("an adapter needs an interface name")
        if not (self.routes_to or self.llm_factory or self.parser_factory or self.agent_factory):
            raise PluginError(
                f"adapter {self.interface!r} needs an llm_factory, a parser_factory, an agent_factory or routes_to"
            )


@frozen(kw_only=True)
class Resolution:
    """Which interface serves a model, and how it was arrived at."""

    requested: str
    spec: AdapterSpec
    note: str = ""
    """What the run's manifest says when the interface is not the requested one."""

    @property
    def interface(self) -> str:
        return self.spec.interface


class AdapterRegistry(Registry[AdapterSpec]):
    """Register an `AdapterSpec` for every interface: how models are reached."""

    kind = "adapter"
    hook = "karenina_register_adapters"
    affects_every_run = False
    unknown = "no adapter serves the interface"

    def register(self, spec: AdapterSpec, *, replaces: str | None = None) -> None:
        """Add an interface. Raises DuplicateName."""
        self.add(spec, replaces=replaces)

    def checked(self, thing: Any) -> Any:
        if not isinstance(thing, AdapterSpec):
            raise PluginError(f"an adapter is registered as an AdapterSpec, not as {thing!r}")
        return thing

    def get_spec(self, interface: str) -> AdapterSpec:
        """Raises UnknownName with the names that there are."""
        return self.load(interface)

    def get_interfaces(self) -> list[str]:
        return sorted(self)

    def check_availability(self, interface: str) -> AdapterAvailability:
        """Look whether an interface can be used, without importing its provider."""
        if interface not in self:
            return AdapterAvailability(available=False, state="unknown", reason=f"no adapter serves {interface!r}")
        spec = self.get_spec(interface)
        if spec.routes_to:
            return self._availability_of_route(interface)
        missing = [name for name in spec.requires_modules if not is_installed(name)]
        if missing:
            hint = f"; {spec.install_hint}" if spec.install_hint else ""
            reason = f"{', '.join(missing)} is not installed{hint}"
            return AdapterAvailability(
                available=False, state="not_installed", reason=reason, fallback_interface=spec.fallback_interface
            )
        try:
            reason = (self.call(spec.availability_checker, spec) if spec.availability_checker else None) or ""
        except Exception as error:
            reason = f"its check failed: {one_line(error)}"
        if reason:
            return AdapterAvailability(
                available=False, state="broken", reason=reason, fallback_interface=spec.fallback_interface
            )
        return AdapterAvailability(available=True)

    def _availability_of_route(self, interface: str) -> AdapterAvailability:
        seen = [interface]
        while interface in self and (step := self.get_spec(interface).routes_to):
            if step in seen:
                return AdapterAvailability(available=False, state="broken", reason=_circle(seen, step))
            seen.append(step)
            interface = step
        return self.check_availability(interface)

    def resolve_interface(self, interface: str) -> Resolution:
        """Follow `routes_to` and, where the adapter declares one and is unavailable, `fallback_interface`.

        Raises UnknownName, and AdapterUnavailableError where the interface cannot be used and declares no fallback.
        """
        notes: list[str] = []
        name, seen = interface, [interface]
        while True:
            spec = self.get_spec(name)
            if spec.routes_to:
                step, why = spec.routes_to, f"{name} is served by {spec.routes_to}"
            elif (found := self.check_availability(name)).available:
                return Resolution(requested=interface, spec=spec, note="; ".join(notes))
            elif spec.fallback_interface:
                step, why = spec.fallback_interface, f"{name} falls back to {spec.fallback_interface}: {found.reason}"
            else:
                raise AdapterUnavailableError(f"interface {name!r} cannot be used here: {found.reason}")
            if step in seen:
                raise PluginError(f"adapter {interface!r} is {_circle(seen, step)}")
            seen.append(step)
            notes.append(why)
            name = step

    def is_recorded(self, interface: str) -> bool:
        """Whether the answers of this interface were recorded beforehand."""
        return interface in self and self.get_spec(interface).is_recorded

    def call(self, function: Callable[..., Any], spec: AdapterSpec, *arguments: Any) -> Any:
        """Call a function of an adapter; the settings of its plugin are one more argument where it takes one more."""
        owner = self[spec.interface].plugin if spec.interface in self else ""
        return function(*with_settings(function, arguments, self.settings(owner)))


def _circle(seen: Sequence[str], step: str) -> str:
    return f"routed in a circle: {' -> '.join([*seen, step])}"
