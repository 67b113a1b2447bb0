"""`karenina plugins` and `karenina doctor`: what is installed, and whether it works."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import Result

import karenina_core
from karenina_core import Karenina

Run = Callable[..., Result]
Files = Callable[..., Path]
ADAPTER = """\
from karenina_core import AdapterSpec, hookimpl

@hookimpl
def karenina_register_adapters(registry):
    registry.register(AdapterSpec(interface="hollow", llm_factory="hollow_port:Port"))
    registry.register(AdapterSpec(interface="absent", llm_factory="x:Y", requires_modules=("no_such_module",)))
    registry.register(AdapterSpec(interface="moody", llm_factory="x:Y", availability_checker=lambda: "not today"))
    registry.register(AdapterSpec(interface="rude", llm_factory="x:Y", availability_checker=lambda: 1 / 0))
"""


def test_plugins_as_json(run: Run) -> None:
    result = run("plugins", "--json")
    rows = json.loads(result.stdout)
    assert result.exit_code == 0
    assert [set(row) for row in rows] == [{"name", "kinds", "distribution", "version", "state", "reason"}] * len(rows)
    assert {
        "name": "local-executor",
        "kinds": ["executor"],
        "distribution": "karenina-core",
        "version": karenina_core.__version__,
        "state": "active",
        "reason": "",
    } in rows


def test_plugins_that_are_not_active_say_why(run: Run, install: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    install("karenina-bad", {"bad": "bad_plugin"}, group="karenina.plugins", bad_plugin="import no_such_module")
    monkeypatch.setenv("KARENINA_DISABLE", "jsonl,jsonm")
    result = run("plugins")
    assert result.exit_code == 0
    assert re.search(r"bad +karenina-bad +1\.0 +failed +needs the package 'no_such_module'", result.stdout)
    assert re.search(r"jsonl +karenina-results +\S+ +blocked +blocked by configuration", result.stdout)
    assert "no plugin is called 'jsonm' (did you mean 'jsonl'?)" in result.stderr


def test_a_plugin_that_prints_does_not_spoil_the_json(run: Run, install: Files) -> None:
    install("karenina-loud", {"loud": "loud_plugin"}, group="karenina.plugins", loud_plugin="print('LOUD')")
    result = run("plugins", "--json")
    assert any(row["name"] == "loud" for row in json.loads(result.stdout))
    assert "LOUD" in result.stderr


def test_a_healthy_installation(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-this-is-secret")
    result = run("doctor", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0, result.stderr
    assert document["usable"] is True
    assert document["problems"] == []
    assert document["karenina_core"] == karenina_core.__version__
    assert "OPENAI_API_KEY" in document["environment"]
    assert "sk-this-is-secret" not in result.output
    assert document["run_directory"] == {"path": "karenina-runs", "writable": True, "reason": ""}
    assert {"karenina-core", "attrs", "click", "karenina-jsonld"} <= set(document["packages"])
    states = {adapter["interface"]: adapter["state"] for adapter in document["adapters"]}
    assert states["openai_endpoint"] == "available"
    runtimes = {runtime["name"]: runtime["isolation"] for runtime in document["template_runtimes"]}
    assert runtimes["declarative"] == "no-code"
    assert not Path("karenina-runs").exists()


def test_for_people(run: Run) -> None:
    result = run("doctor")
    assert result.exit_code == 0
    assert re.search(r"openai_endpoint +openai_endpoint +available", result.stdout)
    assert "karenina can be used here." in result.stdout


def test_a_failed_plugin_is_exit_code_1(run: Run, install: Files) -> None:
    install("karenina-bad", {"bad": "bad_plugin2"}, group="karenina.plugins", bad_plugin2="def (")
    result = run("doctor", "--json")
    assert result.exit_code == 1
    assert json.loads(result.stdout)["usable"] is False
    assert "Problem: plugin bad failed: cannot be imported" in result.stderr


def test_no_adapter_is_exit_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARENINA_PLUGINS", "jsonld,local-executor")
    result = run("doctor")
    assert result.exit_code == 1
    assert "Problem: no adapter can be used" in result.stderr
    assert "karenina cannot be used as it is here." in result.stdout


def test_not_installed_and_broken_are_told_apart(run: Run, install: Files) -> None:
    install(
        "karenina-hollow",
        {"hollow": "hollow_plugin"},
        group="karenina.plugins",
        hollow_plugin=ADAPTER,
        hollow_port="raise RuntimeError('hollow inside')",
    )
    found = {a["interface"]: a for a in json.loads(run("doctor", "--json").stdout)["adapters"]}
    assert found["hollow"]["state"] == "available"
    assert found["absent"]["state"] == "not_installed"
    assert "no_such_module is not installed" in found["absent"]["reason"]
    assert found["moody"]["state"] == "broken"
    assert "not today" in found["moody"]["reason"]
    assert found["rude"]["state"] == "broken"
    assert "ZeroDivisionError" in found["rude"]["reason"] or "division" in found["rude"]["reason"]


def test_a_deep_look_imports_what_adapters_need(
    run: Run, install: Files, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    (tmp_path / "hollow_port.py").write_text("raise SystemExit('from the working directory')", "utf-8")
    folder = install(
        "karenina-hollow",
        {"hollow": "hollow_plugin"},
        group="karenina.plugins",
        hollow_plugin=ADAPTER.replace('interface="rude"', 'interface="rude", fallback_interface="hollow"'),
        hollow_port="raise RuntimeError('hollow inside')",
    )
    monkeypatch.setenv("PYTHONPATH", str(folder))
    monkeypatch.setenv("KARENINA_PLUGINS", "hollow,openai_endpoint")
    found = {a["interface"]: a for a in json.loads(run("doctor", "--deep", "--json").stdout)["adapters"]}
    assert found["hollow"] == {
        "interface": "hollow",
        "plugin": "hollow",
        "state": "broken",
        "reason": "RuntimeError: hollow inside",
    }
    assert found["openai_endpoint"]["state"] == "available"


def test_a_folder_that_cannot_be_written_is_told(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "karenina-runs").touch()
    document = json.loads(run("doctor", "--json").stdout)
    assert document["run_directory"]["writable"] is False
    assert "--out DIR" in document["run_directory"]["reason"]


def test_findings_of_an_application_in_memory() -> None:
    from karenina_core.cli.examination import findings

    found = findings(Karenina({}))
    assert (found["usable"], found["adapters"], found["plugins"]) == (False, [], [])
