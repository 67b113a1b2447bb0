"""Template runtimes that keep their promises pass every check; planted faults are found."""

from __future__ import annotations

import json
from collections.abc import Callable
from types import ModuleType
from typing import Any

import pytest
from attrs import evolve, frozen
from karenina_template.declarative_templates import DeclarativeRuntime
from karenina_testing.checks import BrokenPromise, run_checks
from karenina_vocabulary.kinds import TemplateRuntimeRegistry

from karenina_core import Karenina
from karenina_core.testing import runtime_checks


@pytest.mark.parametrize("name", ["declarative", "in-process"])
def test_built_in_runtimes_pass(name: str) -> None:
    run_checks(runtime_checks(Karenina.default().registry(TemplateRuntimeRegistry).load(name)))


def test_only_a_runtime_that_executes_nothing_is_asked_to_prove_it() -> None:
    found = {
        name: Karenina.default().registry(TemplateRuntimeRegistry).make(name) for name in ("declarative", "in-process")
    }
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
    name: str, check: str, planted: Any, fault_line: Any, failure: Any
) -> None:
    message = failure(runtime_checks(planted(name).Planted, sources=json.dumps), check)
    assert message.startswith(f"runtime planted breaks {check}: ")
    assert fault_line(name) in message


@pytest.mark.parametrize("check", ["closed_schema", "refuses"])
def test_other_faults_of_a_careless_runtime_are_found(check: str, planted: Any, failure: Any) -> None:
    checks = runtime_checks(planted("forgetful_handle").Planted, sources=json.dumps)
    assert "forgetful_handle.py:" in failure(checks, check)


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


def filled_with(change: Any) -> Any:
    """What alters every filled template of a handle by `change(filled, handle)`, which gives methods."""

    def alter(handle: Any) -> Any:
        async def build(data: Any) -> Any:
            filled = await handle.build(data)
            return Changed(filled, **change(filled, handle))

        return Changed(handle, build=build)

    return alter


def deaf_to_what_was_said(filled: Any, handle: Any) -> Any:
    async def verify(trace: str, *, said: Any = None, similarities: Any = None) -> Any:
        return await filled.verify(trace, similarities=similarities)

    return {"verify": verify}


def all_must_be_right(filled: Any, handle: Any) -> Any:
    async def verify(trace: str, **more: Any) -> Any:
        verdict = await filled.verify(trace, **more)
        return evolve(verdict, result=all(found is True for found in verdict.field_results.values()))

    return {"verify": verify}


def credit_of_all_fields(filled: Any, handle: Any) -> Any:
    async def granular() -> float:
        scores = (await filled.verify("the trace")).field_scores.values()
        return sum(score or 0.0 for score in scores) / len(scores)

    return {"granular": granular}


def unnamed_strategy(filled: Any, handle: Any) -> Any:
    async def verify(trace: str, **more: Any) -> Any:
        return evolve(await filled.verify(trace, **more), composition_strategy=None)

    return {"verify": verify}


def accepts_nothing(filled: Any, handle: Any) -> Any:
    return {"accepting": lambda fields: filled}


def accepts_anything(filled: Any, handle: Any) -> Any:
    known = {field.name for field in handle.fields()}
    return {"accepting": lambda fields: filled.accepting([name for name in fields if name in known])}


def forgets_what_was_extracted(filled: Any, handle: Any) -> Any:
    return {"accepting": lambda fields: Changed(filled.accepting(fields), values=handle.ground_truth)}


def guesses_similarities(filled: Any, handle: Any) -> Any:
    async def verify(trace: str, *, said: Any = None, similarities: Any = None) -> Any:
        guessed = {field.name: 0.0 for field in handle.fields() if field.semantic}
        return await filled.verify(trace, said=said, similarities={**guessed, **(similarities or {})})

    return {"verify": verify}


def asks_the_judge(handle: Any) -> Any:
    return Changed(handle, fields=lambda: handle.fields() + handle.trace_fields())


def hides_trace_fields(handle: Any) -> Any:
    return Changed(handle, trace_fields=lambda: ())


def silent_about_meaning(handle: Any) -> Any:
    return Changed(handle, fields=lambda: tuple(evolve(field, semantic=False) for field in handle.fields()))


@pytest.mark.parametrize(
    ("alter", "check"),
    [
        (without_fields, "fields"),
        (with_odd_values, "writable"),
        (asks_the_judge, "trace_fields"),
        (hides_trace_fields, "trace_fields"),
        (filled_with(deaf_to_what_was_said), "trace_fields"),
        (filled_with(all_must_be_right), "strategy"),
        (filled_with(credit_of_all_fields), "strategy"),
        (filled_with(unnamed_strategy), "strategy"),
        (filled_with(accepts_nothing), "accepting"),
        (filled_with(accepts_anything), "accepting"),
        (filled_with(forgets_what_was_extracted), "accepting"),
        (filled_with(guesses_similarities), "semantic"),
        (silent_about_meaning, "semantic"),
    ],
    ids=lambda given: getattr(given, "__name__", str(given)),
)
def test_every_other_promise_can_be_broken(alter: Any, check: str) -> None:
    checks = {found.name: found for found in runtime_checks(Altered(alter=alter))}
    with pytest.raises(BrokenPromise, match=f"runtime declarative breaks {check}: "):
        checks[check].run()


def test_a_runtime_must_say_what_it_is() -> None:
    silent = evolve(DeclarativeRuntime(), languages=frozenset(), name="silent")
    with pytest.raises(BrokenPromise, match="runtime silent breaks declared: "):
        runtime_checks(silent, sources=json.dumps)[0].run()
