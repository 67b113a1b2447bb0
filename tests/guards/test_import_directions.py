"""A distribution imports what its `pyproject.toml` declares and nothing else; the core imports none of ours."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any


def imported_modules(path: Path, package: str) -> Iterator[tuple[str, int]]:
    """`(absolute module, line)` of every import of a file: also inside functions, under TYPE_CHECKING, and by
    `import_module` of a text."""
    text = path.read_text("utf-8")
    by_text = "import_module" in text
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Import):
            yield from ((alias.name, node.lineno) for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = package.split(".")[: len(package.split(".")) - node.level + 1] if node.level else []
            module = ".".join([*base, *([node.module] if node.module else [])])
            yield module, node.lineno
            yield from ((f"{module}.{alias.name}", node.lineno) for alias in node.names)
        elif by_text and isinstance(node, ast.Call) and "import_module" in ast.unparse(node):
            texts = [arg.value for arg in node.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            if any(ast.unparse(part).endswith("import_module") for part in (node.func, *node.args)):
                yield from ((text, node.lineno) for text in texts)


def test_the_reader_of_imports_sees_all_of_them(tmp_path: Path) -> None:
    source = tmp_path / "pack" / "inner" / "module.py"
    source.parent.mkdir(parents=True)
    source.write_text(
        "import os.path\nfrom ..model import x\n\ndef f():\n    from . import y\n    import karenina_jsonld\n"
        "    return importlib.import_module('numpy').x, to_thread(import_module, 'litellm')\n",
        "utf-8",
    )
    found = {module for module, _ in imported_modules(source, "pack.inner")}
    imported = {"os.path", "pack.model", "pack.model.x", "karenina_jsonld", "pack.inner", "pack.inner.y"}
    assert found == imported | {"numpy", "litellm"}


def _name(requirement: str) -> str:
    return re.sub(r"[-_.]+", "-", re.split(r"[ ;<>=!~\[]", requirement, maxsplit=1)[0]).lower()


def _declared(pyproject: dict[str, Any], *, extras: bool) -> set[str]:
    """The distributions that one names as dependencies, and in its extras."""
    project = pyproject["project"]
    optional = project.get("optional-dependencies", {}).values() if extras else ()
    return {_name(line) for lines in (project["dependencies"], *optional) for line in lines}


def test_what_is_imported_is_declared(
    repository: Path,
    source_files: list[Path],
    core_pyproject: dict[str, Any],
    plugin_pyprojects: dict[str, dict[str, Any]],
) -> None:
    """The extra of the core is for installing all of ours; it permits no import."""
    owners = dict(packages_distributions())
    declared = {"karenina_core": _declared(core_pyproject, extras=False)}
    for pyproject in plugin_pyprojects.values():  # those that are installed from here are in no list of files
        package = pyproject["project"]["name"].replace("-", "_")
        owners[package] = [pyproject["project"]["name"]]
        declared[package] = _declared(pyproject, extras=True)
    owners["karenina_core"] = [core_pyproject["project"]["name"]]
    kit = declared["karenina_testing"]  # what the group `karenina.checks` names is imported by it alone
    undeclared = []
    for path in source_files:
        relative = path.relative_to(repository)
        home = relative.parts[:2] if relative.parts[0] == "plugins" else ()
        package = relative.parts[len(home)]
        assert package in declared, f"{relative} is in no wheel: a distribution has one package, of its name"
        own = ".".join(relative.parent.parts[len(home) :])
        for module, line in imported_modules(path, own):
            top = module.split(".")[0]
            if top in sys.stdlib_module_names or top == package:
                continue
            allowed = declared[package] | (kit if path.name == "checks.py" else set())
            if not {_name(owner) for owner in owners.get(top, [])} & allowed:
                undeclared.append(f"{relative}:{line}: {top}")
    assert sorted(set(undeclared)) == []
