"""Embedders that keep their promises pass every check; a planted fault is found by its own check, with the line."""

from __future__ import annotations

import asyncio
import importlib
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import frozen
from karenina_calls.services.embedding import Embeddings
from karenina_testing.checks import Check, run_checks

from karenina_core import hookimpl
from karenina_core.errors import PluginError, PortError
from karenina_core.testing import check_embedder, embedder_checks, plugin_checks

LOOKED_AT = ["protocol", "light_construction", "problem", "light_problem"]
CALLED = [
    *("vectors", "order", "equal_texts", "no_texts", "model", "odd_text", "at_once", "loops", "cancellation"),
    "event_loop",
]


class Letters:
    """Right in every way, and waits for something in every call."""

    def __init__(self, model: str) -> None:
        self.model = model

    def problem(self) -> str | None:
        return None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        await asyncio.sleep(0.001)
        return Embeddings(vectors=tuple(self.vector(text) for text in texts), model=self.model)

    def vector(self, text: str) -> Any:
        return tuple(float(text.count(letter)) for letter in "aeiou")


def checks_of(embedder: Any, **options: Any) -> list[Check]:
    return embedder_checks(embedder, **{"model": "counts", **options})


HERE = pytest.mark.usefixtures("looked_at_here")


def names(embedder: Any, **options: Any) -> list[str]:
    return [check.name for check in embedder_checks(embedder, **options)]


@HERE
def test_an_embedder_that_is_right_passes() -> None:
    check_embedder(Letters, model="counts")
    assert names(Letters, model="counts") == [*LOOKED_AT, *CALLED]


def test_an_instance_is_taken_as_it_is() -> None:
    check_embedder(Letters("counts"), model="counts")
    assert "light_construction" not in names(Letters("counts"), model="counts")


@pytest.mark.parametrize("name", ["chokes", "drops_empty_texts", "nameless_model", "sorts_texts"])
def test_one_fault_is_one_failure(name: str, planted: Any) -> None:
    broken = [check.name for check in checks_of(planted(name).Planted) if check.find_fault()]
    assert len(broken) == 1


class Unwell(Letters):
    def problem(self) -> str | None:
        return f"there is no model {self.model!r}; write counts" if self.model != "counts" else None

    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        assert self.model == "counts", "an embedder with a problem is not called"
        return await super().aembed(texts)


@HERE
def test_nothing_is_embedded_where_it_cannot_work_or_no_model_is_named() -> None:
    check_embedder(Unwell, model="other")
    check_embedder(Unwell)
    assert names(Unwell, model="other") == names(Unwell) == names(Letters) == LOOKED_AT
    assert names(Unwell, model="counts") == [*LOOKED_AT, *CALLED]


def test_a_failure_may_be_expected_of_a_check_that_is_not_made_here() -> None:
    assert names(Letters, expected_failures={"odd_text": "refuses nothing"}) == LOOKED_AT
    with pytest.raises(ValueError, match=r"no check is called 'odd_texts' \(did you mean"):
        embedder_checks(Letters, expected_failures={"odd_texts": "?"})


class Silent(Letters):
    problem = None  # type: ignore[assignment]


class Synchronous(Letters):
    def aembed(self, texts: Sequence[str]) -> Embeddings:  # type: ignore[override]
        return Embeddings(vectors=tuple(self.vector(text) for text in texts), model=self.model)


class Endless(Letters):
    def vector(self, text: str) -> Any:
        return (1.0, math.inf if "\u2013" in text else 2.0)


class Uneven(Letters):
    def vector(self, text: str) -> Any:
        return (1.0,) * (len(text) + 1)


class Hollow(Letters):
    def vector(self, text: str) -> Any:
        return ()


class Wordy(Letters):
    def vector(self, text: str) -> Any:
        return ("1.0", "2.0")


class Bare(Letters):
    async def aembed(self, texts: Sequence[str]) -> Any:
        return [self.vector(text) for text in texts]


class Failing(Letters):
    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        raise PortError("HTTP 401: check the key", kind="auth")


class Vague(Letters):
    def problem(self) -> str | None:
        return " "


class Unusable(Letters):
    async def aembed(self, texts: Sequence[str]) -> Embeddings:
        return Embeddings(vectors=tuple(self.vector(text) for text in texts), model=self.model, usage=None)  # type: ignore[arg-type]


class Unmade(Letters):
    def __init__(self, model: str) -> None:
        raise PluginError("no file of weights")


@pytest.mark.parametrize(
    ("cls", "check", "said"),
    [
        (Silent, "protocol", "no method problem"),
        (Synchronous, "protocol", "no `async def aembed`"),
        (Endless, "vectors", "holds inf"),
        (Uneven, "vectors", "1 and 2 numbers"),
        (Hollow, "vectors", "the vector of '' is tuple without numbers"),
        (Wordy, "vectors", "holds '1.0' (str)"),
        (Bare, "vectors", "aembed returned list"),
        (Failing, "vectors", "it raised PortError: HTTP 401: check the key"),
        (Vague, "problem", "problem() returned ' '"),
        (Unusable, "model", "the usage of the Embeddings is None"),
        (Unmade, "protocol", "it raised PluginError: no file of weights"),
    ],
)
def test_every_other_promise_can_be_broken(cls: Any, check: str, said: str, failure: Any) -> None:
    message = failure(checks_of(cls), check)
    assert f"embedder {cls.__name__} breaks {check}: " in message
    assert said in message
    assert "test_embedder_checks.py:" in message


def test_a_slow_question_is_found(monkeypatch: pytest.MonkeyPatch, failure: Any) -> None:
    monkeypatch.setattr("karenina_testing.instances.LONGEST_PROBLEM", -1.0)
    assert "problem() took" in failure(checks_of(Letters), "problem")


HEAVY = """\
class Heavy:
    def __init__(self, model, settings=None):
        import {made}

    def problem(self):
        import {asked}

    async def aembed(self, texts):
        raise NotImplementedError
"""


@pytest.mark.parametrize(
    ("made", "asked", "check", "line"),
    [("aiohttp", "re", "light_construction", 3), ("re", "aiohttp", "light_problem", 6)],
)
def test_what_is_imported_here_already_is_seen_in_a_fresh_interpreter(
    made: str, asked: str, check: str, line: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Any
) -> None:
    importlib.import_module("aiohttp")
    (tmp_path / f"heavy_{check}.py").write_text(HEAVY.format(made=made, asked=asked), "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    heavy = importlib.import_module(f"heavy_{check}").Heavy
    for settings in (None, Settings()):
        message = failure(checks_of(heavy, settings=settings), check)
        assert "imports aiohttp" in message
        assert f"heavy_{check}.py:{line}: import aiohttp" in message
    del sys.modules[f"heavy_{check}"]


@frozen
class Settings:
    alphabet: str = "aeiou"


class Set(Letters):
    def __init__(self, model: str, settings: Settings) -> None:
        super().__init__(model)
        self.settings = settings

    def vector(self, text: str) -> Any:
        return tuple(float(text.count(letter)) for letter in self.settings.alphabet)


class Plugin:
    """Embedders, one of which takes settings."""

    @hookimpl
    def karenina_register_settings(self, registry: Any) -> None:
        registry.add(Settings)

    @hookimpl
    def karenina_register_embedders(self, registry: Any) -> None:
        registry.add(Set, name="set")
        registry.add(Letters, name="letters")


@HERE
def test_the_embedders_of_a_plugin_are_checked_with_its_settings(failure: Any) -> None:
    checks = plugin_checks(Plugin(), options={"set": {"model": "counts"}})
    own = [check.name for check in checks if check.name.startswith(("set.", "letters."))]
    assert own == [*(f"letters.{name}" for name in LOOKED_AT), *(f"set.{name}" for name in [*LOOKED_AT, *CALLED])]
    run_checks([check for check in checks if check.name in own])
    assert "missing 1 required positional argument" in failure(checks_of(Set), "protocol")
    check_embedder(Set, model="counts", settings=Settings("xyz"))
