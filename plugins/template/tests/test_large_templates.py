"""Templates with very many fields: loading them takes time in proportion, and holds up nothing else."""

from __future__ import annotations

import asyncio
import cProfile
import json
import pstats
import sys
import threading
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from karenina_runs.plan.templates import AT_ONCE, TemplateLoader
from karenina_template.declarative_templates import DeclarativeRuntime
from karenina_template.primitives import NAMES
from karenina_template.pydantic_handle import THREAD
from karenina_template.python_source import InProcessRuntime

from karenina_core import hookimpl
from karenina_core import templates as primitives
from karenina_core.testing import application
from karenina_core.values.question import TemplateSource

PRIMITIVES = {name: getattr(primitives, name) for name in NAMES}
Fields = Callable[[int], dict[str, Any]]


def field(number: int, type_: str, ground_truth: Any, primitive: str, more: str = "") -> dict[str, Any]:
    return {
        "name": f"f{number}",
        "type": type_,
        "description": f"Whether the response does thing {number}, as the guideline of {1900 + number % 90} asks{more}",
        "ground_truth": ground_truth,
        "verify_with": {"type": primitive},
    }


KINDS: dict[str, Fields] = {
    "truth values": lambda n: field(n, "bool", True, "BooleanMatch"),
    "a text each": lambda n: field(n, "str", f"protein P{n}", "ExactMatch"),
    "one text for all": lambda n: field(n, "str", "BCL2", "ExactMatch", ", such as BCL2"),
    "numbers of a scale": lambda n: field(n, "int", n % 6, "NumericExact", ", from 0 to 5"),
    "no letters": lambda n: field(n, "str", "+" * (1 + n % 3), "LiteralMatch"),
}


def text_of(kind: Fields, count: int) -> str:
    return json.dumps({"fields": [kind(number) for number in range(count)]})


def calls_to_load(kind: Fields, count: int) -> int:
    """How many functions are called while a template with so many fields is loaded."""
    profile = cProfile.Profile()
    loaded = DeclarativeRuntime()._loaded
    profile.runcall(loaded, text_of(kind, count), PRIMITIVES)
    return int(pstats.Stats(profile).total_calls)  # type: ignore[attr-defined]


@pytest.mark.parametrize("kind", KINDS)
def test_four_times_the_fields_take_four_times_the_work(kind: str) -> None:
    calls_to_load(KINDS[kind], 2)  # what is made once
    few, many = calls_to_load(KINDS[kind], 60), calls_to_load(KINDS[kind], 240)
    assert many < 5 * few  # each place for each value would be sixteen


def test_two_thousand_fields_are_loaded_in_seconds() -> None:
    began = time.thread_time()
    handle = DeclarativeRuntime()._loaded(text_of(KINDS["truth values"], 2000), PRIMITIVES)
    assert time.thread_time() - began < 10  # about 2 on an idle machine
    assert len(handle.fields()) == 2000


SLOW_SOURCE = """
import time
time.sleep(0.5)

class Answer(BaseAnswer):
    target: str = VerifiedField("The target", "BCL2", ExactMatch())
"""


@pytest.mark.parametrize(
    ("runtime", "text"),
    [(DeclarativeRuntime(), text_of(KINDS["a text each"], 400)), (InProcessRuntime(), SLOW_SOURCE)],
)
def test_a_template_is_loaded_in_a_thread_of_its_own(runtime: Any, text: str) -> None:
    async def main() -> tuple[set[str], int]:
        threads, turns = set(), 0
        loading = asyncio.ensure_future(runtime.load(text, PRIMITIVES))
        while not loading.done():
            await asyncio.sleep(0.005)
            threads |= {thread.name for thread in threading.enumerate()}
            turns += 1
        assert (await loading).fields()
        return threads, turns

    threads, turns = asyncio.run(main())
    assert THREAD in threads
    assert turns > 5


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Threads take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager_threads")
def test_templates_that_are_loaded_at_once_leave_the_filters_of_warnings_alone() -> None:
    """Python keeps those filters per process: two threads that set and restore them could swap them."""
    odd = json.dumps({"fields": [field(0, "str", "x", "ExactMatch") | {"name": name} for name in ("copy", "json")]})

    async def main() -> None:
        await asyncio.gather(*(DeclarativeRuntime().load(odd, PRIMITIVES) for _ in range(60)))

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        before = list(warnings.filters)
        asyncio.run(main())
        assert list(warnings.filters) == before


def test_few_templates_are_loaded_at_a_time() -> None:
    most = 0

    class Runtime:
        name, languages, executes_code, isolation = "slow", frozenset({"slow"}), False, "no-code"

        def __init__(self) -> None:
            self.loading = 0

        async def load(self, text: str, primitives: Any) -> str:
            nonlocal most
            self.loading += 1
            most = max(most, self.loading)
            await asyncio.sleep(0.001)
            self.loading -= 1
            return text

    class Plugin:
        @hookimpl
        def karenina_register_template_runtimes(self, registry: Any) -> None:
            registry.add(Runtime())

    async def main() -> list[str]:
        loader = TemplateLoader(application(Plugin()), "refuse")
        return await asyncio.gather(*(loader.load(TemplateSource(str(n), "slow")) for n in range(30)))

    assert asyncio.run(main()) == [str(n) for n in range(30)]
    assert most == AT_ONCE
