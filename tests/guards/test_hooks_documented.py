"""Every hook is in the reference, with its exact signature and its owner."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from karenina_core import Karenina
from karenina_core.plugin.discovery import KINDS, discover, load
from karenina_core.plugin.kinds import CORE_KINDS, HOOKS

OWNERS = {f"karenina_register_{source.name}": source for source in discover(KINDS)}
SIGNATURES = {name: str(inspect.signature(hook)).replace("'", "") for name, hook in HOOKS.items()} | {
    hook: f"(registry: {load(source).__name__}) -> None" for hook, source in OWNERS.items()
}
OF_STRANGERS = {"karenina_register_instructions"}
"""What karenina asks for and has none of: its own adapters add nothing to prompts. `tests/packages/units` does."""
CORE_HOOKS = 20
"""A core with more of them has begun to know what its plugins are for."""


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs" / "reference" / "hooks.md").read_text("utf-8")


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_a_hook_is_documented_with_its_exact_signature(name: str, page: str) -> None:
    assert f"### `{name}`\n\n```python\n{name}{SIGNATURES[name]}\n```" in page


@pytest.mark.parametrize("hook", sorted(OWNERS))
def test_a_hook_that_registers_is_documented_with_its_owner(hook: str, page: str) -> None:
    after = page.partition(f"### `{hook}`")[2].partition("\n##")[0]
    assert f"declared by `{OWNERS[hook].distribution}`" in after.casefold()


def test_no_hook_is_documented_that_does_not_exist(page: str) -> None:
    headings = [
        line.removeprefix("### `").rstrip("`") for line in page.splitlines() if line.startswith("### `karenina_")
    ]
    assert sorted(headings) == sorted(SIGNATURES)


@pytest.mark.parametrize("name", sorted(SIGNATURES))
def test_a_hook_says_when_it_is_called_and_what_comes_back(name: str) -> None:
    hook = HOOKS[name] if name in HOOKS else load(OWNERS[name])
    assert len((inspect.getdoc(hook) or "").split()) >= 5


def test_every_kind_has_a_noun_of_its_own() -> None:
    nouns = [load(source).kind for source in OWNERS.values()]
    assert sorted(nouns) == sorted(set(nouns))


def test_every_kind_that_can_be_declared_is_one_and_is_in_use() -> None:
    app = Karenina.installed()
    assert {kind.name: kind.reason for kind in app.kinds if kind.state != "active"} == {}
    assert {kind.name for kind in app.kinds} == set(OWNERS)
    used = {registry.hook for registry in app.registries if len(registry)}
    assert set(OWNERS) - used == OF_STRANGERS


def test_the_core_has_few_hooks() -> None:
    assert len(HOOKS) + len(CORE_KINDS) <= CORE_HOOKS
