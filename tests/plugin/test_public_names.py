"""The public names: each is there, wherever its module is, and one that is not installed says what to install."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys
from pathlib import Path

import pytest

from karenina_core.names import NAMES, exports, problems, public_names


@pytest.mark.parametrize("package", sorted(NAMES))
def test_every_name_is_there_and_is_no_submodule(package: str) -> None:
    module, names = importlib.import_module(package), public_names(package)
    assert module.__all__ == sorted(names)
    assert names
    for name, home in names.items():
        found = getattr(module, name)
        assert name in dir(module)
        assert home.endswith(f".{name}") or found is getattr(importlib.import_module(home), name)
    # a submodule of the same name would take the place of the name as soon as it is imported
    assert not {found.name for found in pkgutil.iter_modules(module.__path__)} & (names.keys() - {"strategies"})


def test_the_core_lists_modules_of_its_own() -> None:
    assert {home.split(".")[0] for names in NAMES.values() for home in names.values()} == {"karenina_core"}


def test_nothing_that_is_installed_is_left_out() -> None:
    assert problems() == ()


def test_a_name_that_does_not_exist_is_an_attribute_error_that_says_what_to_install() -> None:
    import karenina_core

    with pytest.raises(AttributeError, match=r"'karenina_core' has no attribute 'Benchmarks'.*karenina-core\[all\]"):
        karenina_core.Benchmarks  # type: ignore[attr-defined]  # noqa: B018
    assert not hasattr(karenina_core, "_Benchmark")


def test_a_folder_without_modules_takes_the_place_of_no_name(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git leaves those of moved modules behind, with their caches."""
    import karenina_core.testing as kit

    (tmp_path / "ScriptedLLM" / "__pycache__").mkdir(parents=True)
    monkeypatch.setattr(kit, "__path__", [*kit.__path__, str(tmp_path)])
    monkeypatch.delitem(vars(kit), "ScriptedLLM", raising=False)
    assert isinstance(kit.ScriptedLLM, type)


def test_a_name_whose_distribution_is_missing_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(NAMES["karenina_core.ports"], "Far", "karenina_far_away.things")
    get, _ = exports("karenina_core.ports")
    with pytest.raises(ImportError, match=r"Far is in karenina-far-away, which is not installed: pip install karenina"):
        get("Far")


def test_what_is_broken_in_a_module_is_not_called_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path_factory: pytest.TempPathFactory
) -> None:
    folder = tmp_path_factory.mktemp("broken")
    (folder / "karenina_broken.py").write_text("import a_package_that_is_not_there\n", "utf-8")
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setitem(NAMES["karenina_core.ports"], "Far", "karenina_broken")
    get, _ = exports("karenina_core.ports")
    with pytest.raises(ModuleNotFoundError, match="a_package_that_is_not_there"):
        get("Far")


def test_importing_the_package_imports_no_other_module_of_it() -> None:
    code = "import sys, karenina_core; print(sorted(m for m in sys.modules if m.startswith('karenina')))"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "['karenina_core', 'karenina_core.names']"


def test_no_entry_point_is_read_for_names_and_modules_of_the_core() -> None:
    code = "import sys; from karenina_core import errors, hookimpl, log; print('importlib.metadata' in sys.modules)"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert ran.stdout.strip() == "False"
