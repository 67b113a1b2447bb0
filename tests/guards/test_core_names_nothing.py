"""The core names no instance: no stage, adapter, trait type, service, plugin or distribution.

What is installed says the names, so that a new one is looked for without being listed here.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

from karenina_core import Karenina
from karenina_core.values.result_parts import declared_parts

PACKAGE = Path(__file__).parents[2] / "karenina_core"
KINDS = {"stage", "adapter", "trait evaluator", "embedder", "search tool", "tool server client", "judgment strategy"}
ALLOWED: dict[tuple[str, str], str] = {
    ("errors", "template"): "a kind of error: the code that an author wrote",
    ("ports/middleware", "llm"): "a kind of call: of an LLMPort",
    ("values/model_config", "litellm"): "the published default of the interface of a ModelConfig",
}
"""(module, name): why it may be there."""


def files() -> Iterator[tuple[str, Path]]:
    for path in sorted(PACKAGE.rglob("*.py")):
        yield path.relative_to(PACKAGE).with_suffix("").as_posix(), path


@pytest.fixture(scope="module")
def names() -> set[str]:
    """Of everything that is installed beside the core itself."""
    app = Karenina.installed()
    found = {name for registry in app.registries if registry.kind in KINDS for name in registry}
    found |= {feature for entry in app.stages.values() for feature in entry.load().features}
    for plugin in app.plugins:
        if plugin.distribution != "karenina-core":
            found |= {plugin.name, plugin.distribution}
    return found | {part.info.name for part in declared_parts()}


def literals(source: str) -> Iterator[tuple[int, str]]:
    """`(line, text)` of every string of the code; docstrings are prose."""
    tree = ast.parse(source)
    prose = {
        id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str) and id(node) not in prose:
            yield node.lineno, node.value


def named(source: str, names: set[str]) -> list[tuple[int, str]]:
    """A name that is a string of its own, or, where it is no word of English, a word of one."""
    found = []
    for line, text in literals(source):
        words = set(re.findall(r"[A-Za-z][\w-]*", text))
        odd = {name for name in names if "-" in name or "_" in name or name != name.lower()}
        found += [(line, name) for name in sorted({text} & names | words & odd)]
    return found


def test_no_module_of_the_core_names_an_instance(names: set[str]) -> None:
    assert len(names) > 50
    found = {(module, name): line for module, path in files() for line, name in named(path.read_text("utf-8"), names)}
    wrong = [f"{module}.py:{line}: {name!r}" for (module, name), line in found.items() if (module, name) not in ALLOWED]
    unused = sorted(ALLOWED.keys() - found.keys())
    assert not unused, f"these are named no longer; take them out of ALLOWED: {unused}"
    assert not wrong, "the core must ask what is registered instead of naming it:\n" + "\n".join(wrong)


def test_what_is_looked_for_is_found() -> None:
    code = 'if x == "manual" or y in ("ParseTemplate", f"needs karenina-manual: {x}"): ...'
    source = f'"""karenina-manual in prose."""\n{code}'
    known = {"manual", "ParseTemplate", "karenina-manual"}
    assert [name for _, name in named(source, known)] == ["manual", "ParseTemplate", "karenina-manual"]
    assert named('"write it in a manual way"', known) == []
