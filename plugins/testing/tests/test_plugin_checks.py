"""Whole plugins: every built-in passes with everything that it brings; planted faults are found."""

from __future__ import annotations

import logging
from types import ModuleType
from typing import Any

import pytest
from attrs import frozen
from karenina_testing.checks import BrokenPromise, run_checks

from karenina_core import ArtifactKeys, Key, Stage, VerificationContext, hookimpl
from karenina_core.entry_points import installed_entry_points, owner
from karenina_core.plugin.discovery import discover
from karenina_core.testing import plugin_checks

OWN = ("loads", "marked", "light_import", "again", "beside_others", "registered", "kinds")
OF_COMMANDS = ("help", "help_option", "wrong_option", "own_name", "errors")
INSTALLED = sorted(source.name for source in discover() if source.distribution.startswith("karenina-"))
COMMANDS = sorted(
    point.name for point in installed_entry_points("karenina.commands") if owner(point).startswith("karenina-")
)


WHOLE = (
    *("litellm", "embedder-litellm", "embedder-minilm", "langchain", "openai_endpoint"),
    *("generate-answer", "trait-llm", "primitives", "search-tavily", "jsonld", "local-executor", "verify"),
)
"""Checked with everything that they bring: what .ci/run leaves out where it checks all plugins with the oldest
dependencies, those of which no other test checks a port with the newest ones, and one of each other kind. For a sink
see test_pytest_plugin.py, for runtimes test_runtime_checks.py."""


@pytest.mark.parametrize("name", sorted({*INSTALLED, *COMMANDS}))
def test_every_built_in_plugin_passes(
    name: str, long: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Those of WHOLE, and with `--long` all, with a third of the examples that .ci/run draws with the oldest
    dependencies; the others as far as that takes no process: `test_lazy_imports.py` sees what all of them import.
    `python -m tests.long_checks` draws many. No search goes out: its server is the kit's."""
    monkeypatch.setenv("TAVILY_API_KEY", "any")
    caplog.set_level(logging.CRITICAL)
    checks = plugin_checks(name, max_examples=15 if long or "litellm" in name else 5)
    names = [check.name for check in checks]
    assert names[: len(OWN)] == list(OWN) or (name in COMMANDS and f"{name}.light_import" in names)
    quick = {*OWN, *(f"{name}.{check}" for check in OF_COMMANDS)} - {"light_import"}
    run_checks([check for check in checks if long or name in WHOLE or check.name in quick])


@pytest.mark.parametrize(
    ("name", "check"),
    [
        ("generate-answer", "GenerateAnswer.repeatable"),
        ("trait-llm", "llm.judge_down"),
        ("openai_endpoint", "openai_endpoint.timeout"),
        ("jsonl", "jsonl.idempotent"),
        ("embedder-litellm", "litellm.order"),
        ("embedder-litellm", "litellm.cancellation"),
        ("embedder-minilm", "minilm.cancellation"),
        ("search-tavily", "tavily.odd_query"),
        ("primitives", "NumericGraded.score"),
        ("jsonld", "load_benchmark.round_trip"),
        ("verify", "verify.errors"),
        ("declarative-runtime", "declarative.junk"),
        ("local-executor", "local.lazy"),
    ],
)
def test_what_a_built_in_plugin_brings_is_checked(name: str, check: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TAVILY_API_KEY", "any")
    assert check in [found.name for found in plugin_checks(name)]


def test_a_plugin_is_checked_with_what_it_brings(stranger: ModuleType) -> None:
    checks = plugin_checks(stranger, max_examples=5)
    assert "WordCount.declared_reads" in [check.name for check in checks]
    run_checks(checks)


@pytest.mark.parametrize(
    ("name", "check", "said"),
    [
        ("misspelt_hook", "loads", "did you mean 'karenina_register_stages'"),
        ("unmarked_hook", "marked", "put @hookimpl above"),
        ("heavy_entry", "light_import", "imports aiohttp"),
        ("taken_name", "beside_others", "both provide the adapter 'litellm'"),
    ],
)
def test_a_planted_fault_is_found_with_its_line(
    name: str, check: str, said: str, planted: Any, fault_line: Any, failure: Any
) -> None:
    message = failure(plugin_checks(planted(name)), check)
    assert message.startswith(f"plugin loaded_{name} breaks {check}: ")
    assert said in message
    assert fault_line(name) in message


def test_an_import_string_that_leads_nowhere_is_found(planted: Any, failure: Any) -> None:
    assert "NoSuchSink" in failure(plugin_checks(planted("taken_name")), "registered")


def test_a_thing_that_cannot_be_checked_as_it_is_asks_for_options(failure: Any) -> None:
    assert "options={'manual': {...}}" in failure(plugin_checks("manual", options={}), "manual.options")


def test_an_unknown_entry_point_is_named_once() -> None:
    [loads] = plugin_checks("jsonll")
    with pytest.raises(BrokenPromise, match=r"no installed plugin is called 'jsonll' \(did you mean 'jsonl'\?\)"):
        loads.run()


def test_options_are_for_what_the_plugin_brings() -> None:
    with pytest.raises(ValueError, match=r"brings no 'json1' to check.*did you mean 'jsonl'"):
        plugin_checks("jsonl", options={"json1": {}})


@frozen
class Settings:
    most: int = 3


class Limited(Stage):
    """Made with the settings of its plugin."""

    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (Key("planted.long", bool),)

    def __init__(self, settings: Settings) -> None:
        self.settings = settings

    def execute(self, context: VerificationContext) -> None:
        long = len(context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)) > self.settings.most
        context.set_artifact("planted.long", long)


class WithSettings:
    """A plugin whose stage needs settings; the plugin is an instance, not a module."""

    @hookimpl
    def karenina_register_settings(self, registry: Any) -> None:
        registry.add(Settings)

    @hookimpl
    def karenina_register_stages(self, registry: Any) -> None:
        registry.add(Limited)


def test_stages_are_made_with_the_settings_of_their_plugin() -> None:
    checks = plugin_checks(WithSettings(), max_examples=5)
    assert "Limited.repeatable" in [check.name for check in checks]
    run_checks([check for check in checks if not check.name.endswith("light_import")])


class Counting:
    """Registers something else every time."""

    def __init__(self) -> None:
        self.times = 0

    @hookimpl
    def karenina_register_primitives(self, registry: Any) -> None:
        self.times += 1
        registry.add("karenina_template.language.primitives.text:ExactMatch", name=f"Primitive{self.times}")


def test_a_plugin_that_registers_something_else_every_time_is_found(failure: Any) -> None:
    assert "let the hooks depend on nothing but their arguments" in failure(plugin_checks(Counting()), "again")
