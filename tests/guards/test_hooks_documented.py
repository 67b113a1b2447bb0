"""Every hook is in the reference, with its exact signature, and the registries and hooks agree."""

from __future__ import annotations

import inspect
from pathlib import Path

import pytest

from karenina_core.plugin import hookspecs
from karenina_core.plugin.application import OTHER_KINDS, REGISTRIES

HOOKS = {name: function for name, function in vars(hookspecs).items() if name.startswith("karenina_")}


@pytest.fixture(scope="module")
def page(repository: Path) -> str:
    return (repository / "docs" / "reference" / "hooks.md").read_text("utf-8")


@pytest.mark.parametrize("name", sorted(HOOKS))
def test_a_hook_is_documented_with_its_exact_signature(name: str, page: str) -> None:
    signature = f"{name}{inspect.signature(HOOKS[name])}".replace("'", "")
    assert f"```python\n{signature}\n```" in page
    assert f"### `{name}`" in page


def test_no_hook_is_documented_that_does_not_exist(page: str) -> None:
    headings = [
        line.removeprefix("### `").rstrip("`") for line in page.splitlines() if line.startswith("### `karenina_")
    ]
    assert sorted(headings) == sorted(HOOKS)


@pytest.mark.parametrize("name", sorted(HOOKS))
def test_a_hook_says_when_it_is_called_and_what_comes_back(name: str) -> None:
    assert len((inspect.getdoc(HOOKS[name]) or "").split()) >= 5


def test_every_hook_fills_a_registry_or_is_listed_as_a_kind() -> None:
    assert set(REGISTRIES) | set(OTHER_KINDS) == set(HOOKS)
    assert set(REGISTRIES) & set(OTHER_KINDS) == set()
