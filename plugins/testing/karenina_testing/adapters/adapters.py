"""Does an adapter keep the promises of its ports?"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from functools import partial
from typing import Any, get_args

from attrs import fields_dict

from karenina_core.errors import KareninaError, PluginError, one_line
from karenina_core.plugin.adapters import AdapterSpec
from karenina_core.plugin.registry import import_string
from karenina_core.ports.values import Channel, PortCapabilities
from karenina_core.values.config import ModelConfig

from ..checks import Check, Fault, Promise, Promises, Raised, attempt, expecting, promise_checks, run_checks
from ..watch.audit import HEAVY, construction_events, heavy_imports
from ..watch.source_lines import file_of, line_of_attribute, line_of_function
from .calls import BEHAVIOUR, FAULTS, LLM_CALLS, PARSER_CALLS, misnamed, replies_or_refuses
from .capabilities import CAPABILITIES
from .ports import PROTOCOLS, Ports
from .wires import Wire

ALWAYS: Promises[Ports] = Promises()
DIRECT: Promises[Ports] = Promises()
"""Of adapters that make ports themselves."""
METHODS: Mapping[str, tuple[str, dict[str, Any]]] = {
    "llm": ("ainvoke", {"output": None, "temperature": None, "call": None}),
    "parser": ("aparse", {"schema": {}, "call": None}),
    "agent": ("arun", {"tools": (), "mcp_servers": None, "config": None, "call": None}),
}


def adapter_checks(
    spec: AdapterSpec,
    *,
    config: ModelConfig | None = None,
    wire: Wire | None = None,
    expected_failures: Mapping[str, str] | None = None,
) -> list[Check]:
    """One check for every promise of an adapter.

    Calls are looked at with a `ScriptedServer`, whose address becomes the `endpoint_base_url` of `config` (by default
    a model called `conformance`). It speaks chat completions, or the protocol of `wire`. An adapter that
    asks no server at such an address is given a `config` without one; only what needs no server is looked at then.
    Raises ConfigError where a `config` is needed and not given.
    """
    ports = Ports(spec, config, wire)
    if spec.routes_to is None:
        ports.configured()
    promises: dict[str, Promise[Ports]] = {**ALWAYS}
    if spec.routes_to is None:
        promises |= DIRECT
        if not ports.served:
            promises["reply"] = ("A call returns a reply or raises PortError.", replies_or_refuses)
        elif callable_kinds := {"llm", "parser"} & set(ports.kinds):
            promises |= LLM_CALLS | CAPABILITIES if "llm" in callable_kinds else {}
            promises |= PARSER_CALLS if "parser" in callable_kinds else {}
            promises |= {
                f"fault_{name}": (fault.promise, partial(misnamed, fault=fault)) for name, fault in FAULTS.items()
            }
            promises |= BEHAVIOUR
    raised = partial(Fault.raised, remedy="raise PortError")
    return expecting(promise_checks(f"adapter {spec.interface}", ports, promises, raised), expected_failures)


def check_adapter(spec: AdapterSpec, **options: Any) -> None:
    """Run all checks of an adapter; `options` are those of `adapter_checks`. Raises an ExceptionGroup of what fails."""
    run_checks(adapter_checks(spec, **options))


@ALWAYS.add("spec", "Its AdapterSpec is complete.")
def _spec_fault(ports: Ports) -> Iterator[Fault]:
    remedy = f"AdapterSpec(interface={ports.spec.interface!r}, ...): "
    return (Fault(problem, "", remedy + change) for problem, change in _spec_problems(ports))


def _spec_problems(ports: Ports) -> Iterator[tuple[str, str]]:
    spec = ports.spec
    if spec.interface != spec.interface.strip() or not spec.interface.isprintable():
        yield f"the interface is called {spec.interface!r}", "choose a name that can be typed"
    if not spec.description:
        yield "it has no description", "say in `description` what it reaches"
    if spec.interface in (spec.routes_to, spec.fallback_interface):
        yield "it refers to itself", "remove its own name from routes_to and fallback_interface"
    if dotted := [name for name in spec.requires_modules if "." in name]:
        yield f"requires_modules names {dotted[0]!r}", "name the top-level module"
    if spec.requires_modules and not spec.install_hint:
        yield "it does not say how to install what it requires", "say in `install_hint` what to type"
    for kind in PROTOCOLS:
        if isinstance(factory := ports.factory(kind), str):
            try:
                import_string(factory)
            except PluginError as error:
                yield str(error), f"correct {kind}_factory: 'module:Name'"
    if spec.routes_to is not None:
        return
    reason: object = spec.availability_checker() if spec.availability_checker else None
    if not isinstance(reason, str | None):
        yield f"availability_checker returned {reason!r}", "return None, or why the interface cannot be used"
    if spec.config_checker is None:
        return
    known = fields_dict(ModelConfig)
    odd = ports.plain_config() if ports.served else ports.configured()
    checker = spec.config_checker
    for config in (ports.configured(), odd):
        complaints = attempt(lambda config: list[Any](checker(config)), config)
        if isinstance(complaints, Raised):
            yield f"config_checker raised {one_line(complaints.error)}", "return what is wrong as texts"
            return
        for text in complaints:
            if not isinstance(text, str) or text.partition(":")[0].partition(".")[0] not in known:
                yield f"config_checker says {text!r}", "write `field: message`, the field being one of ModelConfig"
        if config is not odd and complaints:
            yield f"config_checker refuses a usable model: {complaints[0]}", "accept it, or give the kit another config"


@DIRECT.add("light_import", "Listing it imports nothing heavy.")
def _heavy_entry(ports: Ports) -> Iterator[Fault]:
    """A factory that is given as it is, and not by an import string, is imported whenever karenina starts."""
    for kind in ports.kinds:
        factory = ports.factory(kind)
        if isinstance(factory, str) or not file_of(factory):
            continue
        watched = (*HEAVY, *ports.spec.requires_modules)
        for what, line in heavy_imports(factory, watched).items():
            remedy = f'name it by an import string: {kind}_factory="{factory.__module__}:{factory.__name__}"'
            yield Fault(f"importing its module {what}", line, remedy)


@DIRECT.add("light_construction", "To make a port opens nothing and imports no provider.")
def _busy_construction(ports: Ports) -> Iterator[Fault]:
    watched = (*HEAVY, *ports.spec.requires_modules)
    for kind in ports.kinds:
        config = ports.configured()
        make = partial(ports.make, kind, config)
        for what, line in construction_events(ports.factory(kind), (config,), watched, make).items():
            yield Fault(f"making the {kind} port {what}", line, "do it in aopen, or at the first call")


@DIRECT.add("ports", "Its ports have the methods and the capabilities of the protocols.")
def _port_fault(ports: Ports) -> Iterator[Fault]:
    for kind in ports.kinds:
        try:
            port = ports.make(kind, ports.configured())
        except KareninaError as error:
            yield Fault(f"its {kind} port cannot be made: {error}", line_of_attribute(type(ports.spec), "interface"))
        for problem, remedy in _protocol_problems(kind, port):
            yield Fault(problem, line_of_attribute(type(port), "__init__"), remedy)


def _protocol_problems(kind: str, port: Any) -> Iterator[tuple[str, str]]:
    protocol: Any = PROTOCOLS[kind]
    if not isinstance(port, protocol):
        wanted = [name for name in ("capabilities", METHODS[kind][0], "aclose") if not hasattr(port, name)]
        yield f"its {kind} port has no {', '.join(wanted)}", f"implement karenina_core.ports.{protocol.__name__}"
        return
    method, options = METHODS[kind]
    if kind == "llm" and getattr(port.capabilities, "supports_tools", False):
        options = {**options, "tools": ()}
    function = getattr(port, method)
    try:
        inspect.signature(function).bind([], **options)
    except TypeError as error:
        yield f"{method} cannot be called as the protocol says: {error}", f"take {', '.join(options)}"
    for name in (method, "aclose"):
        if not inspect.iscoroutinefunction(getattr(port, name)):
            yield f"{name} is no coroutine function", f"write `async def {name}`: {line_of_function(function)}"
    capabilities = port.capabilities
    if not isinstance(capabilities, PortCapabilities):
        yield f"capabilities is {capabilities!r}", "return a PortCapabilities"
    elif unknown := set(capabilities.output_channels) - set(get_args(Channel)):
        yield f"output_channels names {sorted(unknown)[0]!r}", f"there are {', '.join(get_args(Channel))}"
