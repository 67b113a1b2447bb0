"""Interfaces: routed, checked without importing providers, replaced only by what an adapter itself names."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from karenina_calls.models.model_ports import make_port

from karenina_core import AdapterRegistry, AdapterSpec, ModelConfig
from karenina_core.errors import AdapterUnavailableError, DuplicateName, PluginError, UnknownName
from karenina_core.testing import ScriptedLLM, application

MODEL = ModelConfig(model_name="m", interface="x")


def spec(interface: str, **facts: Any) -> AdapterSpec:
    if "routes_to" not in facts:
        facts.setdefault("llm_factory", lambda model: ScriptedLLM("hello"))
    return AdapterSpec(interface=interface, **facts)


def registry(*specs: AdapterSpec) -> AdapterRegistry:
    return application(*specs).adapters


def test_an_adapter_needs_a_name_and_something_to_offer() -> None:
    with pytest.raises(PluginError, match="interface name"):
        spec("")
    with pytest.raises(PluginError, match="llm_factory"):
        AdapterSpec(interface="empty")


def test_only_specs_are_adapters() -> None:
    with pytest.raises(PluginError, match="AdapterSpec"):
        AdapterRegistry("p").add("module:Port", name="x")


def test_one_name_twice_is_refused() -> None:
    drafts = AdapterRegistry("p")
    drafts.register(spec("x"))
    with pytest.raises(DuplicateName, match="'p' registers the adapter 'x' twice"):
        drafts.register(spec("x"))


def test_an_unknown_interface_is_answered_with_a_suggestion() -> None:
    adapters = registry(spec("openai_like"), spec("other"))
    for ask in (adapters.get_spec, adapters.resolve_interface):
        with pytest.raises(
            UnknownName, match=r"'openai_lik' \(did you mean 'openai_like'\?\); available: openai_like, other"
        ):
            ask("openai_lik")
    found = adapters.check_availability("openai_lik")
    assert (found.available, found.state) == (False, "unknown")


def test_routes_are_followed_and_noted() -> None:
    adapters = registry(spec("old", routes_to="middle"), spec("middle", routes_to="new"), spec("new"))
    found = adapters.resolve_interface("old")
    assert (found.requested, found.interface) == ("old", "new")
    assert found.note == "old is served by middle; middle is served by new"
    assert adapters.check_availability("old").available
    assert adapters.resolve_interface("new").note == ""


@pytest.mark.parametrize("names", [("a",), ("a", "b"), ("a", "b", "c")])
def test_circles_are_found_and_shown_in_order(names: tuple[str, ...]) -> None:
    following = {name: names[(i + 1) % len(names)] for i, name in enumerate(names)}
    adapters = registry(*(spec(name, routes_to=target) for name, target in following.items()))
    with pytest.raises(PluginError, match="circle: " + " -> ".join([*names, names[0]])):
        adapters.resolve_interface("a")
    found = adapters.check_availability("a")
    assert (found.available, found.state) == (False, "broken")
    assert "circle" in found.reason


def test_a_route_to_nowhere_is_unknown() -> None:
    adapters = registry(spec("old", routes_to="gone"))
    assert adapters.check_availability("old").state == "unknown"
    with pytest.raises(UnknownName, match="'gone'"):
        adapters.resolve_interface("old")


def test_without_a_declared_fallback_an_unavailable_interface_is_an_error() -> None:
    adapters = registry(
        spec("x", requires_modules=("there_is_no_such_package",), install_hint="pip install such"), spec("y")
    )
    assert adapters.check_availability("x").state == "not_installed"
    with pytest.raises(AdapterUnavailableError, match="there_is_no_such_package is not installed; pip install such"):
        adapters.resolve_interface("x")


def test_a_declared_fallback_is_used_and_noted() -> None:
    adapters = registry(spec("x", availability_checker=lambda: "no key", fallback_interface="y"), spec("y"))
    availability = adapters.check_availability("x")
    assert (availability.available, availability.state) == (False, "broken")
    assert availability.fallback_interface == "y"
    found = adapters.resolve_interface("x")
    assert found.interface == "y"
    assert found.note == "x falls back to y: no key"


def test_fallbacks_in_a_circle_are_an_error() -> None:
    down = {"availability_checker": lambda: "down"}
    adapters = registry(spec("x", fallback_interface="y", **down), spec("y", fallback_interface="x", **down))
    with pytest.raises(PluginError, match="circle: x -> y -> x"):
        adapters.resolve_interface("x")


def test_an_available_interface_is_never_replaced() -> None:
    adapters = registry(spec("x", fallback_interface="y"), spec("y"))
    assert adapters.resolve_interface("x").interface == "x"


def test_a_check_that_raises_is_a_broken_adapter() -> None:
    def check() -> str | None:
        raise OSError("no such device")

    found = registry(spec("x", availability_checker=check)).check_availability("x")
    assert (found.available, found.state) == (False, "broken")
    assert "OSError: no such device" in found.reason


def test_making_a_port_that_fails_names_the_interface() -> None:
    def factory(model: ModelConfig) -> Any:
        raise ZeroDivisionError("oops")

    broken = spec("x", llm_factory=factory)
    with pytest.raises(PluginError, match=r"interface 'x'.*ZeroDivisionError: oops"):
        make_port(registry(broken), factory, MODEL, broken)


def test_a_factory_named_by_an_import_string_is_imported_when_it_is_needed() -> None:
    lazy = spec("x", llm_factory="there_is_no_such_package:Port", install_hint="pip install such")
    adapters = registry(lazy)
    assert adapters.check_availability("x").available
    with pytest.raises(PluginError, match=r"'there_is_no_such_package' is not installed\. pip install such"):
        make_port(adapters, "there_is_no_such_package:Port", MODEL, lazy)


def test_availability_is_looked_up_without_importing_the_provider(tmp_path: Path) -> None:
    (tmp_path / "sample_provider.py").write_text("raise RuntimeError('imported')\n", "utf-8")
    script = (
        "import sys; sys.path.insert(0, sys.argv[1])\n"
        "from karenina_core import AdapterSpec\n"
        "from karenina_core.testing import application\n"
        "app = application(AdapterSpec(interface='x', llm_factory='sample_provider:Port',"
        " requires_modules=('sample_provider',)))\n"
        "print(app.adapters.check_availability('x').available, app.adapters.resolve_interface('x').interface,"
        " 'sample_provider' in sys.modules)\n"
    )
    ran = subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)], capture_output=True, text=True, check=True, timeout=60
    )
    assert ran.stdout.split() == ["True", "x", "False"]
