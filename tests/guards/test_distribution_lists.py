"""Every plugin is named wherever an installation looks for it, and every entry point leads somewhere."""

from __future__ import annotations

import ast
import re
from importlib.metadata import distribution
from itertools import chain
from pathlib import Path
from typing import Any

import pytest
from packaging.requirements import Requirement
from packaging.version import Version

from karenina_core import Karenina, __version__


@pytest.fixture(scope="module")
def names(plugin_pyprojects: dict[str, dict[str, Any]]) -> set[str]:
    return {pyproject["project"]["name"] for pyproject in plugin_pyprojects.values()}


GROUPS = (
    *("plugins", "commands", "kinds", "settings", "result_parts", "options", "doctor", "doctor.run"),
    "validate",
    *("comparisons", "report"),
    *("gates", "continuations", "senders", "surroundings", "names", "checks", "commands.plugins", "commands.benchmark"),
    "commands.judge",
)


def _bare(requirement: str) -> str:
    return re.split(r"[ ;<>=!~\[]", requirement, maxsplit=1)[0]


def test_every_folder_has_a_distribution_of_its_name(repository: Path, plugin_pyprojects: dict[str, Any]) -> None:
    plugins = [path for path in (repository / "plugins").iterdir() if path.is_dir() and any(path.iterdir())]
    folders = {path.name for path in plugins if path.name != "__pycache__"}  # of conftest.py
    assert set(plugin_pyprojects) == folders
    for folder, pyproject in plugin_pyprojects.items():
        assert pyproject["project"]["name"] == f"karenina-{folder}"


def test_requirements_install_the_core_and_every_plugin_live(
    repository: Path, plugin_pyprojects: dict[str, Any]
) -> None:
    lines = (repository / "requirements.txt").read_text("utf-8").split("\n")
    editable = [line.removeprefix("-e ") for line in lines if line.startswith("-e ")]
    assert editable == [".", *(f"./plugins/{folder}" for folder in sorted(plugin_pyprojects))]
    assert "-c constraints.txt" in lines
    tools = (repository / "requirements-dev.txt").read_text("utf-8").split("\n")
    assert "-c constraints.txt" in tools
    assert not [line for line in tools if line.startswith("-e")], "they would be built and installed a second time"
    assert "-r requirements.txt -r requirements-dev.txt &&" in (repository / "CONTRIBUTING.md").read_text("utf-8")


def test_the_extra_all_names_every_plugin(core_pyproject: dict[str, Any], names: set[str]) -> None:
    extra = core_pyproject["project"]["optional-dependencies"]["all"]
    assert [_bare(line) for line in extra] == sorted(names)


def test_uv_installs_every_plugin_from_the_workspace(core_pyproject: dict[str, Any], names: set[str]) -> None:
    group = {_bare(line) for line in core_pyproject["dependency-groups"]["dev"]}
    assert {name for name in group if name.startswith("karenina-")} == names
    assert core_pyproject["tool"]["uv"]["sources"] == {name: {"workspace": True} for name in names}
    assert core_pyproject["tool"]["uv"]["workspace"]["members"] == ["plugins/*"]


def test_the_development_tools_are_the_same_for_pip_and_uv(repository: Path, core_pyproject: dict[str, Any]) -> None:
    files = [repository / f"requirements-{name}.txt" for name in ("build", "dev")]
    lines = [line for file in files for line in file.read_text("utf-8").splitlines()]
    pip = {_bare(line) for line in lines if line and not line.startswith(("-", "#"))}
    uv = {_bare(line) for line in core_pyproject["dependency-groups"]["dev"]}
    assert pip == {name for name in uv if not name.startswith("karenina-")}


def test_versions_agree(core_pyproject: dict[str, Any], plugin_pyprojects: dict[str, dict[str, Any]]) -> None:
    version = core_pyproject["project"]["version"]
    assert __version__ == version
    major, minor = version.split(".")[:2]
    window = f">={major}.{minor},<{major}.{int(minor) + 1}"
    assert all(line.endswith(window) for line in core_pyproject["project"]["optional-dependencies"]["all"])
    for pyproject in plugin_pyprojects.values():
        assert pyproject["project"]["version"] == version
        assert f"karenina-core{window}" in pyproject["project"]["dependencies"]


@pytest.mark.parametrize("name", ["constraints.txt", "constraints-oldest.txt"])
def test_constraints_pin_foreign_packages_and_nothing_else(name: str, repository: Path) -> None:
    lines = (repository / name).read_text("utf-8").splitlines()
    pins = [line for line in lines if line and not line.startswith("#")]
    assert all(re.fullmatch(r"[A-Za-z0-9._-]+==[A-Za-z0-9.+!]+", pin) for pin in pins), pins
    assert not [pin for pin in pins if pin.lower().startswith("karenina")]
    assert pins == sorted(pins, key=lambda pin: pin.partition("==")[0].lower().replace("_", "-"))


def test_the_oldest_versions_are_those_that_are_declared(
    repository: Path, core_pyproject: dict[str, Any], plugin_pyprojects: dict[str, dict[str, Any]]
) -> None:
    """Bounds of which no version is installed in `.ci/run` would be claims that nothing checks."""
    pinned = dict(
        line.split("==")
        for line in (repository / "constraints-oldest.txt").read_text("utf-8").splitlines()
        if not line.startswith("#")
    )
    declared: dict[str, set[str]] = {}
    for pyproject in (core_pyproject, *plugin_pyprojects.values()):
        project = pyproject["project"]
        for line in chain(project["dependencies"], *project.get("optional-dependencies", {}).values()):
            if not line.startswith("karenina-"):
                requirement = Requirement(line)
                bounds = {part.version for part in requirement.specifier if part.operator == ">="}
                assert len(bounds) == 1, f"{project['name']}: {line} has no lower bound"
                declared.setdefault(requirement.name, set()).update(bounds)
    for name, bounds in declared.items():
        assert {Version(bound) for bound in bounds} == {Version(pinned[name])}, f"{name}: {bounds}, {pinned[name]}"


def _entry_points(pyproject: dict[str, Any]) -> dict[str, dict[str, str]]:
    """`{group: {name: value}}` of karenina's groups."""
    groups = {
        name: points for name, points in pyproject["project"].get("entry-points", {}).items() if name != "pytest11"
    }
    assert set(groups) <= {f"karenina.{name}" for name in GROUPS}
    return groups


def test_every_entry_point_names_a_module_that_is_there(repository: Path, plugin_pyprojects: dict[str, Any]) -> None:
    for folder, pyproject in plugin_pyprojects.items():
        groups = _entry_points(pyproject)
        assert groups, f"plugins/{folder} has no entry point, so nothing would find it"
        for value in (value for group in groups.values() for value in group.values()):
            module = repository / "plugins" / folder / value.partition(":")[0].replace(".", "/")
            assert module.with_suffix(".py").is_file() or (module / "__init__.py").is_file(), value


def test_every_module_with_hooks_has_an_entry_point(
    repository: Path, source_files: list[Path], plugin_pyprojects: dict[str, Any]
) -> None:
    named = {
        value
        for pyproject in plugin_pyprojects.values()
        for value in _entry_points(pyproject).get("karenina.plugins", {}).values()
    }
    for path in source_files:
        relative = path.relative_to(repository)
        if relative.parts[0] == "plugins" and _implements_hooks(path):
            module = ".".join(relative.with_suffix("").parts[2:]).removesuffix(".__init__")
            assert module in named, f"{relative} implements hooks; name it in the pyproject.toml of its distribution"


def _implements_hooks(path: Path) -> bool:
    text = path.read_text("utf-8")
    tree = ast.parse(text if "hookimpl" in text else "")
    functions = [node for node in tree.body if isinstance(node, ast.FunctionDef)]
    return any(ast.unparse(decorator).startswith("hookimpl") for node in functions for decorator in node.decorator_list)


def test_every_stage_and_every_adapter_has_an_entry_point_of_its_own() -> None:
    """Else it could not be listed, blocked or replaced by name."""
    app = Karenina.installed()
    stages = [app.stages[name].plugin for name in app.stages]
    adapters = [app.adapters[name].plugin for name in app.adapters if not app.adapters.get_spec(name).routes_to]
    assert stages
    assert adapters
    for owners in (stages, adapters):
        assert len(owners) == len(set(owners)), sorted(owners)


def test_what_is_installed_is_what_is_declared(
    core_pyproject: dict[str, Any], plugin_pyprojects: dict[str, dict[str, Any]]
) -> None:
    """Entry points are written at installation: after a change, install again as CONTRIBUTING.md says."""
    for pyproject in (core_pyproject, *plugin_pyprojects.values()):
        installed: dict[str, dict[str, str]] = {}
        for point in distribution(pyproject["project"]["name"]).entry_points:
            if point.group.startswith("karenina."):
                installed.setdefault(point.group, {})[point.name] = point.value
        assert installed == _entry_points(pyproject), pyproject["project"]["name"]


def test_every_plugin_of_ours_is_active(names: set[str]) -> None:
    app = Karenina.installed()
    ours = [plugin for plugin in app.plugins if plugin.distribution in names | {"karenina-core"}]
    assert ours
    assert {plugin.name: plugin.reason for plugin in ours if plugin.state != "active"} == {}
