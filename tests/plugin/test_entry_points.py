"""Installed plugins: real distributions on a real path, listed by a fresh interpreter."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

LIST = """
import json
from karenina_core import Karenina, StageOrchestrator
app = Karenina.installed()
print(json.dumps({
    "plugins": {p.name: [p.state, p.distribution, p.version, p.reason] for p in app.plugins},
    "stages": {name: app.stages[name].plugin for name in app.stages},
    "sinks": {name: app.sinks[name].plugin for name in app.sinks},
    "problems": StageOrchestrator.from_config(app=app).validate_dependencies(),
}))
"""
HOOK = "from karenina_core import hookimpl\n\n@hookimpl\ndef {hook}(registry):\n    {body}\n"
OURS = ("karenina-core", "karenina-generation", "karenina-template", "karenina-results")


def distribution(path: Path, name: str, modules: Mapping[str, str], points: Mapping[str, str] | None = None) -> None:
    """A folder that looks like an installed distribution: modules, and metadata with entry points."""
    for module, source in modules.items():
        (path / f"{module}.py").write_text(source, "utf-8")
    info = path / f"{name.replace('-', '_')}-1.2.dist-info"
    info.mkdir()
    (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {name}\nVersion: 1.2\n", "utf-8")
    named = points if points is not None else {module.replace("_", "-"): module for module in modules}
    lines = [f"{point} = {value}" for point, value in named.items()]
    (info / "entry_points.txt").write_text("\n".join(["[karenina.plugins]", *lines, ""]), "utf-8")


def listed(path: Path, **environment: str) -> dict[str, Any]:
    ran = subprocess.run(
        [sys.executable, "-c", LIST],
        env={**os.environ, "PYTHONPATH": str(path), "KARENINA_DISABLE": "", "KARENINA_PLUGINS": "", **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr == ""
    found: dict[str, Any] = json.loads(ran.stdout)
    return found


def adds(hook: str, body: str) -> str:
    return HOOK.format(hook=hook, body=body)


STAGE = (
    "from karenina_core import Stage, hookimpl\n\n"
    "class {name}(Stage):\n    def execute(self, context):\n        pass\n\n"
    "@hookimpl\ndef karenina_register_stages(registry):\n    registry.add({name})\n"
)


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """One environment with everything that can go wrong, beside one plugin that is fine."""
    path = tmp_path_factory.mktemp("site")
    modules = {
        "sample_syntax": "def broken(:\n",
        "sample_exit": "raise SystemExit(3)\n",
        "sample_assertion": "assert False, 'never true'\n",
        "sample_interrupted": "class Odd(BaseException): pass\nraise ImportError('cannot import name X')\n",
        "sample_missing": "import karenina_sample_dependency\n",
        "sample_prefixed": "import sample_prefix\n",
        "sample_misspelt": adds("karenina_register_stage", "pass"),
        "sample_clash": STAGE.format(name="VerifyTemplate")
        + "\n"
        + adds("karenina_register_sinks", "registry.add(dict, name='rolled-back')").split("\n\n", 1)[1],
        "sample_fine": STAGE.format(name="SampleStage"),
        "sample_twice": STAGE.format(name="NeverThere"),
    }
    distribution(path, "sample-plugins", modules)
    distribution(
        path,
        "another-sample",
        {"another_module": adds("karenina_register_sinks", "registry.add(dict, name='b')")},
        {"sample-twice": "another_module"},
    )
    distribution(path, "wrong-module", {}, {"nowhere": "sample_module_that_is_not_there"})
    distribution(path, "wrong-attribute", {}, {"no-attribute": "sample_fine:nothing"})
    return listed(path)


def failed(many: dict[str, Any], name: str) -> str:
    state, owner, version, reason = many["plugins"][name]
    assert (state, owner, version) == ("failed", "sample-plugins", "1.2")
    return str(reason)


def test_everything_else_stays_active(many: dict[str, Any]) -> None:
    ours = {name: plugin[0] for name, plugin in many["plugins"].items() if plugin[1] in OURS}
    assert len(ours) >= 10
    assert set(ours.values()) == {"active"}
    assert many["plugins"]["sample-fine"][0] == "active"
    assert many["stages"]["SampleStage"] == "sample-fine"
    assert many["problems"] == []


def test_a_syntax_error_names_file_and_line(many: dict[str, Any]) -> None:
    reason = failed(many, "sample-syntax")
    assert "sample_syntax.py, line 1" in reason
    assert "SyntaxError" in reason


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("sample-exit", "SystemExit: 3"),
        ("sample-assertion", "AssertionError: never true"),
        ("sample-interrupted", "ImportError: cannot import name X"),
    ],
)
def test_errors_at_import_are_told(many: dict[str, Any], name: str, words: str) -> None:
    assert f"cannot be imported: {words}" in failed(many, name)


def test_a_missing_package_is_told_from_a_broken_plugin(many: dict[str, Any]) -> None:
    assert failed(many, "sample-missing") == "needs the package 'karenina_sample_dependency', which is not installed"
    assert failed(many, "sample-prefixed") == "needs the package 'sample_prefix', which is not installed"
    assert "cannot be imported" in many["plugins"]["nowhere"][3]
    assert "sample_module_that_is_not_there" in many["plugins"]["nowhere"][3]
    assert many["plugins"]["no-attribute"][0] == "failed"


def test_a_misspelt_hook_is_told_with_a_suggestion(many: dict[str, Any]) -> None:
    assert "did you mean 'karenina_register_stages'" in failed(many, "sample-misspelt")


def test_a_built_in_stage_keeps_its_name_and_the_newcomer_is_rolled_back(many: dict[str, Any]) -> None:
    assert many["stages"]["VerifyTemplate"] == "verify-template"
    reason = failed(many, "sample-clash")
    assert "'verify-template'" in reason
    assert "'sample-clash'" in reason
    assert "rolled-back" not in many["sinks"]


def test_the_same_entry_point_name_from_two_distributions(many: dict[str, Any]) -> None:
    first, second = many["plugins"]["sample-twice"], many["plugins"]["sample-twice (sample-plugins)"]
    assert first[:2] == ["active", "another-sample"]
    assert (second[0], "NeverThere" in many["stages"]) == ("failed", False)
    assert "both provide a plugin called 'sample-twice'" in second[3]
    assert "another-sample" in second[3]
    assert "sample-plugins" in second[3]


def test_blocked_plugins_are_not_imported(tmp_path: Path) -> None:
    distribution(tmp_path, "noisy-sample", {"noisy_sample": "import sys\nsys.stderr.write('imported')\nsys.exit(1)\n"})
    assert listed(tmp_path, KARENINA_DISABLE="noisy-sample")["plugins"]["noisy-sample"][0] == "blocked"


def test_the_list_is_the_same_whatever_the_order_of_the_path(tmp_path: Path) -> None:
    paths = [tmp_path / name for name in ("one", "two", "three")]
    for path in paths:
        path.mkdir()
        body = f"registry.add(dict, name='shared'); registry.add(dict, name='{path.name}')"
        distribution(path, f"sample-{path.name}", {f"sample_{path.name}": adds("karenina_register_sinks", body)})
    forward = os.pathsep.join(map(str, paths))
    backward = os.pathsep.join(map(str, reversed(paths)))
    assert listed(Path(forward)) == listed(Path(backward))


def test_a_path_named_twice_lists_its_plugins_once(tmp_path: Path) -> None:
    distribution(tmp_path, "sample-once", {"sample_once": STAGE.format(name="Once")})
    twice = listed(Path(f"{tmp_path}{os.pathsep}{tmp_path}/."))
    assert twice["plugins"]["sample-once"][0] == "active"
    assert [name for name in twice["plugins"] if name.startswith("sample-once")] == ["sample-once"]
