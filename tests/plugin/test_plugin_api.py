"""Plugins say for which version of the plugin API they were written; what will be gone warns whoever uses it."""

from __future__ import annotations

import importlib
import json
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from click.testing import CliRunner
from karenina_cli.commands.doctor import command as doctor
from karenina_cli.commands.plugins import command as plugins

import karenina_core
from karenina_core import KareninaDeprecationWarning, hookspec, names
from karenina_core.plugin import api, hookspecs
from karenina_core.plugin.api import PLUGIN_API, deprecation
from karenina_core.testing import application, plugin_checks

Make = Callable[..., ModuleType]
SINK = """
from karenina_core import hookimpl

@hookimpl
def karenina_register_sinks(registry):
    registry.add(dict, name={name!r})
"""


@pytest.fixture
def install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str, str], None]:
    """`install("old", source)`: a distribution karenina-old with one plugin of this source."""

    def make(name: str, source: str, group: str = "karenina.plugins") -> None:
        site = tmp_path / name
        info = site / f"karenina_{name}-1.0.dist-info"
        info.mkdir(parents=True)
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: karenina-{name}\nVersion: 1.0\n", "utf-8")
        (info / "entry_points.txt").write_text(f"[{group}]\n{name} = karenina_{name}\n", "utf-8")
        (site / f"karenina_{name}.py").write_text(source, "utf-8")
        monkeypatch.syspath_prepend(str(site))
        monkeypatch.delitem(sys.modules, f"karenina_{name}", raising=False)

    return make


def listed(name: str) -> tuple[str, str]:
    """State and reason of a plugin, as `karenina plugins` says."""
    document = json.loads(CliRunner().invoke(plugins, ["--json"]).stdout)
    info = next(info for info in document["plugins"] if info["name"] == name)
    return info["state"], info["reason"]


def problems() -> list[str]:
    found: list[str] = json.loads(CliRunner().invoke(doctor, ["--json"]).stdout)["problems"]
    return found


@pytest.mark.parametrize("declared", ["", f"KARENINA_API = {PLUGIN_API}\n", f"KARENINA_API: int = {PLUGIN_API}\n"])
def test_a_plugin_for_this_version_or_without_one_is_loaded(install: Any, declared: str) -> None:
    install("fitting", declared + SINK.format(name="fitting"))
    assert listed("fitting") == ("active", "")


NEWER = (
    f"it is written for version {PLUGIN_API + 1} of the plugin API, and the installed karenina-core has version "
    f"{PLUGIN_API}; update karenina-core, or install an older karenina-newer"
)


@pytest.mark.parametrize("more", ["", "from karenina_core import WhatComesNext\n", "import package_of_next_year\n"])
def test_a_plugin_for_a_newer_version_says_what_to_update(install: Any, more: str) -> None:
    """Also where it cannot be imported, as it needs what is not here yet."""
    install("newer", f"{more}KARENINA_API = {PLUGIN_API + 1}\n" + SINK.format(name="newer"))
    assert listed("newer") == ("failed", NEWER)
    assert f"plugin newer failed: {NEWER}" in problems()
    assert "newer" not in karenina_core.Karenina.installed().sinks


@pytest.mark.parametrize(
    ("declared", "silent"), [("KARENINA_API = 1\n", ""), ("", ", as its module has no KARENINA_API")]
)
def test_a_plugin_for_an_older_version_says_what_to_update(
    install: Any, monkeypatch: pytest.MonkeyPatch, declared: str, silent: str
) -> None:
    monkeypatch.setattr(api, "PLUGIN_API", 3)
    monkeypatch.setattr(api, "OLDEST_PLUGIN_API", 2)
    install("older", declared + SINK.format(name="older"))
    assert listed("older") == (
        "failed",
        f"it is written for version 1 of the plugin API{silent}, and the installed karenina-core supports versions 2 "
        "to 3; update karenina-older, or install an older karenina-core",
    )


@pytest.mark.parametrize("declared", ["'1'", "1.0", "True", "0", "(1, 2)"])
def test_what_is_no_version_is_refused(install: Any, declared: str) -> None:
    install("odd", f"KARENINA_API = {declared}\n" + SINK.format(name="odd"))
    assert listed("odd") == ("failed", f"its KARENINA_API is {declared}; set it to a whole number of at least 1")


def test_the_conformance_kit_says_so_too(module: Make) -> None:
    plugin = module(karenina_register_sinks=lambda registry: registry.add(dict, name="far"))
    plugin.KARENINA_API = 9  # type: ignore[attr-defined]
    loads = next(check for check in plugin_checks(plugin) if check.name == "loads")
    with pytest.raises(Exception, match=r"written for version 9 of the plugin API.*update karenina-core"):
        loads.run()


def test_an_object_has_the_version_of_its_module(monkeypatch: pytest.MonkeyPatch) -> None:
    class Plugin:
        @karenina_core.hookimpl
        def karenina_register_sinks(self, registry: Any) -> None:
            registry.add(dict, name="far")

    assert application(Plugin()).plugin("Plugin").state == "active"
    monkeypatch.setattr(sys.modules[__name__], "KARENINA_API", 9, raising=False)
    assert "written for version 9" in application(Plugin()).plugin("Plugin").reason


def test_what_declares_a_kind_is_looked_at_like_a_plugin(install: Any) -> None:
    install("views_of_tomorrow", "KARENINA_API = 9\n", "karenina.kinds")
    kinds = {kind.name: kind for kind in karenina_core.Karenina.installed().kinds}
    assert "written for version 9" in kinds["karenina_register_views_of_tomorrow"].reason


# Deprecation

WARNING = deprecation("the argument `outcome` of karenina_run_finished", instead="`status`", gone="0.3")
TEXT = (
    "the argument `outcome` of karenina_run_finished is deprecated and will be gone in karenina-core 0.3; use `status`"
)
OBSERVER = "from karenina_core import hookimpl\n\n@hookimpl\ndef karenina_run_finished({arguments}):\n    pass\n"


@pytest.fixture
def outcome(monkeypatch: pytest.MonkeyPatch) -> None:
    """A hook with an argument that is deprecated."""

    @hookspec(warn_on_impl_args={"outcome": WARNING})
    def karenina_run_finished(summary: Any, status: str, outcome: str, app: Any) -> None:
        """A run ended."""

    monkeypatch.setattr(hookspecs, "karenina_run_finished", karenina_run_finished)


@pytest.mark.usefixtures("outcome")
def test_a_deprecated_argument_of_a_hook_warns_who_takes_it(install: Any) -> None:
    install("taking", OBSERVER.format(arguments="summary, outcome"))
    with pytest.warns(KareninaDeprecationWarning, match=TEXT) as caught:
        app = karenina_core.Karenina.installed()
    assert [Path(warning.filename).name for warning in caught] == ["karenina_taking.py"]
    assert app.plugin("taking").state == "active"
    (told,) = [problem for problem in problems() if "deprecated" in problem]
    assert told.startswith(TEXT)
    assert told.endswith("karenina_taking.py, line 3)")


@pytest.mark.usefixtures("outcome")
def test_others_are_not_warned(install: Any) -> None:
    install("sparing", OBSERVER.format(arguments="summary, status"))
    karenina_core.Karenina.installed()  # a warning would be an error here
    assert not [problem for problem in problems() if "deprecated" in problem]


def test_a_deprecated_name_warns_each_place_once(install: Any, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setitem(names.NAMES["karenina_core"], "OldStage", "karenina_core.pipeline.stage")  # type: ignore[index]
    monkeypatch.setattr("karenina_core.pipeline.stage.OldStage", karenina_core.Stage, raising=False)
    monkeypatch.setitem(names.DEPRECATED, "karenina_core.OldStage", ("karenina_core.Stage", "0.3"))  # type: ignore[index]
    source = "import karenina_core\n\nfor _ in range(3):\n    karenina_core.OldStage\nkarenina_core.OldStage\n"
    install("naming", source + SINK.format(name="naming"))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        importlib.import_module("karenina_naming")
    said = "karenina_core.OldStage is deprecated and will be gone in karenina-core 0.3; use karenina_core.Stage"
    assert [(str(w.message), Path(w.filename).name, w.lineno) for w in caught] == [
        (said, "karenina_naming.py", 4),
        (said, "karenina_naming.py", 5),
    ]
    del sys.modules["karenina_naming"]
    assert [p for p in problems() if "deprecated" in p] == [
        f"{said} ({tmp_path / 'naming' / 'karenina_naming.py'}, line {line})" for line in (4, 5)
    ]


def test_a_name_of_another_distribution_can_be_deprecated(install: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    table = (
        '{"karenina_core": {"Layout": "karenina_layout"}, '
        '"deprecated": {"karenina_core.Layout": ("karenina_core.Page", "2.0")}}'
    )
    install("layout", f"Layout = 1\nTABLE = {table}\n", "karenina.names")
    points = next(Path(path) for path in sys.path if path.endswith("layout")) / "karenina_layout-1.0.dist-info"
    (points / "entry_points.txt").write_text("[karenina.names]\nlayout = karenina_layout:TABLE\n", "utf-8")
    with pytest.warns(
        KareninaDeprecationWarning, match=r"karenina_core\.Layout is deprecated.*use karenina_core\.Page"
    ):
        assert karenina_core.Layout == 1  # type: ignore[attr-defined]
    assert names.problems() == ()


def old_function(number: int) -> int:
    """Doubles."""
    warnings.warn(deprecation("old_function", instead="new_function()", gone="0.3"), stacklevel=2)
    return 2 * number


def test_a_deprecated_function_warns_its_callers() -> None:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("default")
        assert [old_function(number) for number in (1, 2, 3)] == [2, 4, 6]
    (warning,) = caught
    assert warning.filename == __file__
    assert str(warning.message).endswith(
        "old_function is deprecated and will be gone in karenina-core 0.3; use new_function()"
    )


def test_the_warning_is_one_that_pytest_shows() -> None:
    assert issubclass(KareninaDeprecationWarning, DeprecationWarning)
