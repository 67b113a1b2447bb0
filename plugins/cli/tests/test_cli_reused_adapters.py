"""Replies are taken over from a run whose adapter is the same: its distribution, its version and its code."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import Result
from karenina_calls.plugin_code import code_digest

Run = Callable[..., Result]
Files = Callable[..., Path]
ADAPTER = """\
from pathlib import Path

from karenina_core import hookimpl
from karenina_core.values.message import UsageMetadata
from karenina_core.plugin.adapters import AdapterSpec
from karenina_core.ports.values import LLMResponse, PortCapabilities

ANSWER = "Paris"
ASKED = Path(__file__).with_name("asked")


class Model:
    capabilities = PortCapabilities(needs_provider=False)

    def __init__(self, config):
        self.name = config.model_name

    async def ainvoke(self, messages, *, output=None, temperature=None, call=None):
        with ASKED.open("a") as asked:
            asked.write(f"{call.task}\\n")
        text = ANSWER if call.task == "generation" else '{"capital": "%s"}' % ANSWER
        return LLMResponse(content=text, usage=UsageMetadata(1, 1, 2))

    async def aclose(self):
        pass


@hookimpl
def karenina_register_adapters(registry):
    registry.register(AdapterSpec(interface="odd", llm_factory=Model))
"""
OTHER = """\
from karenina_core import hookimpl

@hookimpl
def karenina_item_finished(result):
    pass
"""


@pytest.fixture
def fresh() -> Iterator[Callable[[], None]]:
    """As in a new process: modules and their digests are read again."""

    def forget() -> None:
        for name in ("odd_adapter", "other_plugin"):
            sys.modules.pop(name, None)
        code_digest.cache_clear()

    forget()
    yield forget
    forget()


def same(folder: Path) -> None:
    """Changes nothing of the adapter."""


def code(folder: Path) -> None:
    file = folder / "odd_adapter.py"
    file.write_text(file.read_text("utf-8").replace('"Paris"', '"Lyon"'), "utf-8")


def version(folder: Path) -> None:
    file = folder / "karenina_odd-1.0.dist-info" / "METADATA"
    file.write_text(file.read_text("utf-8").replace("Version: 1.0", "Version: 1.1"), "utf-8")


def another_distribution(folder: Path) -> None:
    """Is newer, and has other code; it serves no calls."""
    other = folder.parent / "karenina-other"
    (other / "other_plugin.py").write_text(f"{OTHER}\n# more\n", "utf-8")
    file = other / "karenina_other-1.0.dist-info" / "METADATA"
    file.write_text(file.read_text("utf-8").replace("Version: 1.0", "Version: 2.0"), "utf-8")


@pytest.mark.parametrize(
    ("change", "asked"),
    [(same, 2), (another_distribution, 2), (version, 4), (code, 4)],
    ids=lambda it: getattr(it, "__name__", str(it)),
)
def test_replies_of_another_adapter_are_not_taken_over(
    change: Callable[[Path], None],
    asked: int,
    run: Run,
    write_benchmark: Files,
    install: Callable[..., Path],
    fresh: Callable[[], None],
) -> None:
    folder = install("karenina-odd", {"odd": "odd_adapter"}, "karenina.plugins", odd_adapter=ADAPTER)
    install("karenina-other", {"other": "other_plugin"}, "karenina.plugins", other_plugin=OTHER)
    models = [f"--{role}-{what}" for role in ("answering", "parsing") for what in ("model", "interface")]
    flags = [part for name in models for part in (name, "odd")]
    benchmark = write_benchmark("q0")
    assert run("verify", benchmark, *flags, "--out", "first").exit_code == 0
    change(folder)
    fresh()
    result = run("verify", benchmark, *flags, "--reuse", "first", "--out", "again")
    assert result.exit_code == 0, result.output
    assert len((folder / "asked").read_text().split()) == asked
