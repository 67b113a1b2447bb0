"""Template runtimes that keep their promises pass every check; planted faults are found."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from attrs import evolve, frozen
from karenina_template.structured import DeclarativeRuntime

from karenina_core import Karenina
from karenina_core.testing import runtime_checks
from karenina_core.testing.checks import BrokenPromise, run_checks


@pytest.mark.parametrize("name", ["declarative", "in-process"])
def test_built_in_runtimes_pass(name: str) -> None:
    run_checks(runtime_checks(Karenina.default().template_runtimes.load(name)))


def test_only_a_runtime_that_executes_nothing_is_asked_to_prove_it() -> None:
    found = {name: Karenina.default().template_runtimes.make(name) for name in ("declarative", "in-process")}
    assert {n: "inert" in [check.name for check in runtime_checks(r)] for n, r in found.items()} == {
        "declarative": True,
        "in-process": False,
    }


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("leaks_gold", "gold_blind"),
        ("believes_everything", "inert"),
        ("forgetful_handle", "shared"),
        ("forgetful_handle", "junk"),
        ("forgetful_handle", "verdict"),
    ],
)
def test_a_planted_fault_is_found_with_its_line(
    name: str, check: str, planted: Callable[[str], ModuleType], fault_line: Callable[[str], str]
) -> None:
    checks = {found.name: found for found in runtime_checks(planted(name).Planted, sources=json.dumps)}
    with pytest.raises(BrokenPromise, match=f"runtime planted breaks {check}: ") as broken:
        checks[check].run()
    assert fault_line(name) in str(broken.value)


@pytest.mark.parametrize("check", ["closed_schema", "refuses"])
def test_other_faults_of_a_careless_runtime_are_found(check: str, planted: Callable[[str], ModuleType]) -> None:
    checks = {found.name: found for found in runtime_checks(planted("forgetful_handle").Planted, sources=json.dumps)}
    with pytest.raises(BrokenPromise, match=r"forgetful_handle\.py:"):
        checks[check].run()


def test_a_language_of_its_own_needs_sources(planted: Callable[[str], ModuleType]) -> None:
    with pytest.raises(ValueError, match="runtime planted: say with sources=function"):
        runtime_checks(planted("forgetful_handle").Planted)


def test_a_leak_alone_breaks_nothing_else(planted: Callable[[str], ModuleType]) -> None:
    run_checks(runtime_checks(planted("leaks_gold").Planted, expected_failures={"gold_blind": "planted"}))


class Changed:
    """A handle, or a filled template, some of whose methods say something else."""

    def __init__(self, inner: Any, **methods: Any) -> None:
        self.inner = inner
        self.methods = methods

    def __getattr__(self, name: str) -> Any:
        return self.methods.get(name, getattr(self.inner, name))


@frozen
class Altered(DeclarativeRuntime):
    """Right, but for what `alter` makes of a handle."""

    alter: Any = None

    async def load(self, text: str, primitives: Any) -> Any:
        return self.alter(await super().load(text, primitives))


def without_fields(handle: Any) -> Any:
    return Changed(handle, fields=lambda: ())


def with_odd_values(handle: Any) -> Any:
    async def build(data: Any) -> Any:
        filled = await handle.build(data)
        return Changed(filled, values=lambda: {name: {value} for name, value in filled.values().items()})

    return Changed(handle, build=build)


@pytest.mark.parametrize(("alter", "check"), [(without_fields, "fields"), (with_odd_values, "writable")])
def test_every_other_promise_can_be_broken(alter: Any, check: str) -> None:
    checks = {found.name: found for found in runtime_checks(Altered(alter=alter))}
    with pytest.raises(BrokenPromise, match=f"runtime declarative breaks {check}: "):
        checks[check].run()


def test_a_runtime_must_say_what_it_is() -> None:
    silent = evolve(DeclarativeRuntime(), languages=frozenset(), name="silent")
    with pytest.raises(BrokenPromise, match="runtime silent breaks declared: "):
        runtime_checks(silent, sources=json.dumps)[0].run()
