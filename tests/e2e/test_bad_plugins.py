"""Plugins that misbehave in each of the hooks: the error names them before any call, or every item has its result."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from karenina_core import Benchmark, ModelConfig, VerificationConfig, hookimpl
from karenina_core.errors import KareninaError
from karenina_core.testing import ScriptedLLM, application

Bench = Callable[[int], Benchmark]


def fails(*_: Any, **__: Any) -> Any:
    raise ValueError("I do not feel like it")


def leaves(*_: Any, **__: Any) -> Any:
    raise SystemExit(3)


async def fails_later(*_: Any, **__: Any) -> Any:
    raise ValueError("I do not feel like it")


async def forgets(*_: Any, **__: Any) -> Any:
    return None


async def returns_something(*_: Any, **__: Any) -> Any:
    return object()


MANNERS: dict[str, Callable[[], Any]] = {
    "raises": fails,
    "leaves": leaves,
    "returns a number": lambda: 7,
    "returns a class": lambda: object,
    "returns what raises": lambda: fails,
    "returns what raises later": lambda: fails_later,
    "returns what does not proceed": lambda: forgets,
    "returns what gives something else": lambda: returns_something,
}


OF_REGISTERING = ("raises", "leaves", "returns a number", "returns what raises")
"""What hooks return that register something is not looked at: two values that are good for nothing stand for all."""


OF_REGISTRIES = ("karenina_register_stages", "karenina_register_adapters")
"""They stand for all hooks that register something, which are asked in one way, in the short form."""


def hooks(manner: str, long: bool) -> list[str]:
    app = application(installed=True)
    try:
        known = sorted(name for name in vars(app.hooks) if name.startswith("karenina_"))
    finally:
        app.loop.close()
    assert {"karenina_wrap_call", "karenina_run_started", *OF_REGISTRIES} <= set(known)
    registering = {name for name in known if name.startswith("karenina_register_")}
    left = () if manner not in OF_REGISTERING else registering if long else OF_REGISTRIES
    return [name for name in known if name not in registering or name in left]


def misbehaving(hook: str, manner: Callable[[], Any]) -> Any:
    def implementation(self: Any) -> Any:
        return manner()

    cls = type("Misbehaving", (), {hook: hookimpl(implementation)})
    return cls()


@pytest.mark.parametrize("manner", MANNERS)
def test_a_plugin_that_misbehaves_in_a_hook_is_named_or_harms_no_item(
    manner: str, benchmark_of: Bench, long: bool
) -> None:
    for hook in hooks(manner, long):
        llm = ScriptedLLM(lambda call: {"target": "BCL2"} if call.task == "parsing" else "It binds BCL2.")
        model = ModelConfig(model_name="m", interface="scripted", max_retries=1)
        config = VerificationConfig(answering_models=[model], parsing_models=[model])
        try:
            app = application(llm, misbehaving(hook, MANNERS[manner]), installed=True)
            results = benchmark_of(2).run_verification(config, app=app)
        except KareninaError as error:
            refused = str(error).lower()
        else:
            outcomes = [str(result.outcome) for result in results]
            assert len(outcomes) == 2, hook
            assert all(outcome == "passed" or outcome.startswith("error(") for outcome in outcomes), (hook, outcomes)
            continue
        assert "misbehaving" in refused, (hook, refused)
        assert not llm.asked("answering"), hook


@pytest.mark.parametrize("manner", MANNERS)
@pytest.mark.parametrize("hook", ["karenina_load_benchmark", "karenina_save_benchmark"])
def test_a_plugin_that_misbehaves_with_files_is_an_error_of_the_file(
    hook: str, manner: str, benchmark_of: Bench, tmp_path: Path
) -> None:
    app = application(misbehaving(hook, MANNERS[manner]), installed=True)
    file = tmp_path / "b.jsonld"
    try:
        benchmark_of(1).save(file, app=app)
        read = len(Benchmark.load(file, app=app))
    except KareninaError as error:
        refused = str(error)
    else:
        assert read == 1
        return
    assert str(file) in refused


def test_these_plugins_are_as_bad_as_they_look() -> None:
    with pytest.raises(ValueError, match="feel like it"):
        asyncio.run(fails_later())
