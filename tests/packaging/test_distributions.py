"""What is inside the wheels and source distributions of the core and of every plugin."""

from __future__ import annotations

import configparser
import tarfile
import tomllib
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

FOLDERS = sorted(path.parent.name for path in Path(__file__).parents[2].glob("plugins/*/pyproject.toml"))
DISTRIBUTIONS = ["karenina-core", *(f"karenina-{folder}" for folder in FOLDERS)]
Build = Callable[..., list[Path]]


def _wheel(built: list[Path]) -> zipfile.ZipFile:
    return zipfile.ZipFile(next(built[0].glob("*.whl")))


def _metadata(wheel: zipfile.ZipFile, name: str) -> str:
    return next(wheel.read(path).decode() for path in wheel.namelist() if path.endswith(f".dist-info/{name}"))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_wheel_holds_its_package_and_nothing_else(distribution: str, projects: dict[str, Path], build: Build) -> None:
    package = distribution.replace("-", "_")
    with _wheel(build(projects[distribution])) as wheel:
        names = wheel.namelist()
    shipped = [name for name in names if ".dist-info/" not in name]
    assert {name.split("/")[0] for name in shipped} == {package}
    assert f"{package}/py.typed" in shipped
    assert not [name for name in shipped if "/tests/" in name or "/test_" in name or name.endswith(".pyc")]
    folder = projects[distribution] / package
    modules = {path.relative_to(folder.parent).as_posix() for path in folder.rglob("*.py")}
    assert modules <= set(shipped)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_wheel_declares_its_entry_points_and_requirements(
    distribution: str, projects: dict[str, Path], build: Build
) -> None:
    project = tomllib.loads((projects[distribution] / "pyproject.toml").read_text("utf-8"))["project"]
    with _wheel(build(projects[distribution])) as wheel:
        metadata = _metadata(wheel, "METADATA")
        entry_points = _metadata(wheel, "entry_points.txt") if "entry-points" in project else ""
    parser = configparser.ConfigParser()
    parser.optionxform = str  # type: ignore[assignment,method-assign]  # names are case-sensitive
    parser.read_string(entry_points)
    ours = ("karenina.", "pytest11")
    groups = {group: dict(parser[group]) for group in parser.sections() if group.startswith(ours)}
    assert groups == project.get("entry-points", {})
    header, _, readme = metadata.partition("\n\n")
    lines = header.splitlines()
    assert f"Name: {distribution}" in lines
    assert f"Version: {project['version']}" in lines
    assert "Requires-Python: >=3.11" in lines
    assert len([line for line in lines if line.startswith("Requires-Dist: ") and "extra ==" not in line]) == len(
        project["dependencies"]
    )
    assert readme.strip()


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
def test_a_source_distribution_can_be_built_from(distribution: str, projects: dict[str, Path], build: Build) -> None:
    package = distribution.replace("-", "_")
    with tarfile.open(next(build(projects[distribution])[0].glob("*.tar.gz"))) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    folder = projects[distribution] / package
    modules = {path.relative_to(folder.parent).as_posix() for path in folder.rglob("*.py")}
    assert {"pyproject.toml", "README.md", "PKG-INFO", f"{package}/py.typed"} | modules <= names
    if distribution == "karenina-core":
        assert not [name for name in names if name.startswith(("tests", "plugins", ".ci"))]
        assert "LICENSE" in names


def test_a_distribution_brings_the_command_line(projects: dict[str, Path], build: Build) -> None:
    entry_points = configparser.ConfigParser()
    with _wheel(build(projects["karenina-cli"])) as wheel:
        entry_points.read_string(_metadata(wheel, "entry_points.txt"))
    assert dict(entry_points["console_scripts"]) == {"karenina": "karenina_cli:main"}
