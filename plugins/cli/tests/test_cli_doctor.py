"""`karenina plugins` and `karenina doctor`: what is installed, and whether it works."""

from __future__ import annotations

import importlib.util
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


SEARCHING = """\
from karenina_core import hookimpl
from karenina_core.errors import PluginError

class Embedder:
    def __init__(self, model):
        self.model = model

    def problem(self):
        return None if self.model == "mine" else f"there is no model {self.model};\\nwrite mine"

class Heavy(Embedder):
    def __init__(self, model):
        raise PluginError("the weights are damaged; install them again")

class Rude(Embedder):
    def problem(self):
        return 1 / 0

@hookimpl
def karenina_register_embedders(registry):
    registry.add(Embedder, name="mine")
    registry.add(Heavy, name="heavy")
    registry.add(Rude, name="rude")
    registry.add("no_such_module:Embedder", name="absent")

@hookimpl
def karenina_register_search_tools(registry):
    registry.add(lambda query: [], name="plain")
    registry.add(3, name="number")
"""

SERVING = """\
from karenina_core import hookimpl

class Client:
    def __init__(self, name, address): ...

class Lacking(Client):
    @staticmethod
    def unavailable():
        return "the package wire is not installed: pip install wire"

class Rude(Client):
    @staticmethod
    def unavailable():
        return 1 / 0

@hookimpl
def karenina_register_tool_servers(registry):
    registry.add(Client, name="silent")
    registry.add(Lacking, name="lacking")
    registry.add(Rude, name="rude")
    registry.add("no_such_module:Client", name="absent")
"""


def test_plugins_as_json(run: Run) -> None:
    result = run("plugins", "--json")
    document = json.loads(result.stdout)
    assert result.exit_code == 0
    assert list(document) == ["plugins", "kinds", "run_settings", "result_parts"]
    for name, rows in document.items():
        assert rows
        more = {"brings"} if name == "plugins" else set()
        assert all(set(row) == {"name", "kinds", "distribution", "version", "state", "reason"} | more for row in rows)
    kinds = {row["name"]: row["kinds"] for row in document["kinds"]}
    assert {
        "name": "local-executor",
        "kinds": ["executor"],
        "distribution": "karenina-runs",
        "version": karenina_core.__version__,
        "state": "active",
        "reason": "",
        "brings": {"executor": ["local"]},
    } in document["plugins"]
    assert kinds["karenina_register_executors"] == ["executor"]


def test_plugins_that_are_not_active_say_why(run: Run, install: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    install("karenina-bad", {"bad": "bad_plugin"}, group="karenina.plugins", bad_plugin="import no_such_module")
    monkeypatch.setenv("KARENINA_DISABLE", "jsonl,jsonm")
    result = run("plugins")
    assert result.exit_code == 0
    assert re.search(r"bad +failed +karenina-bad +needs the package 'no_such_module'", result.stdout)
    assert re.search(r"jsonl +blocked +karenina-results +blocked by configuration", result.stdout)
    assert re.search(r"result-sinks +sinks csv, parquet, postgres, sqlite\n", result.stdout)
    assert "Kinds of things" not in result.stdout
    assert re.search(r"karenina_register_sinks +sink +karenina-core", run("plugins", "--all").stdout)
    assert "no plugin is called 'jsonm' (did you mean 'jsonl'?)" in result.stderr


def test_a_plugin_that_prints_does_not_spoil_the_json(run: Run, install: Files) -> None:
    install("karenina-loud", {"loud": "loud_plugin"}, group="karenina.plugins", loud_plugin="print('LOUD')")
    result = run("plugins", "--json")
    assert any(row["name"] == "loud" for row in json.loads(result.stdout)["plugins"])
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
    assert {"karenina-core", "attrs", "structlog", "karenina-jsonld", "karenina-calls"} <= set(document["packages"])
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


def test_embedders_and_search_tools_say_what_is_missing(
    run: Run, install: Files, monkeypatch: pytest.MonkeyPatch
) -> None:
    install("karenina-finds", {"finds": "finds_plugin"}, group="karenina.plugins", finds_plugin=SEARCHING)
    monkeypatch.setenv("EMBEDDING_CHECK_MODEL", "theirs")
    monkeypatch.delenv("TAVILY_API_KEY", raising=False)
    result = run("doctor", "--json")
    document = json.loads(result.stdout)
    embedders = {row["name"]: row for row in document["embedders"]}
    tools = {row["name"]: row for row in document["search_tools"]}
    assert embedders["mine"] == {
        "name": "mine",
        "plugin": "finds",
        "model": "theirs",
        "state": "not_ready",
        "reason": "there is no model theirs; write mine",
    }
    assert (embedders["minilm"]["plugin"], embedders["minilm"]["state"]) == ("embedder-minilm", "not_ready")
    assert "no other model" in embedders["minilm"]["reason"]
    assert (embedders["heavy"]["state"], embedders["heavy"]["reason"]) == (
        "broken",
        "the weights are damaged; install them again",
    )
    assert (embedders["rude"]["state"], embedders["rude"]["reason"]) == (
        "broken",
        "ZeroDivisionError: division by zero",
    )
    assert (embedders["absent"]["state"], "no_such_module" in embedders["absent"]["reason"]) == ("broken", True)
    assert set(tools["tavily"]) == {"name", "plugin", "state", "reason"}
    assert tools["tavily"]["state"] == "not_ready"
    assert "set TAVILY_API_KEY" in tools["tavily"]["reason"]
    assert (tools["plain"]["state"], tools["plain"]["reason"]) == ("available", "")
    assert (tools["number"]["state"], "cannot search" in tools["number"]["reason"]) == ("broken", True)
    assert (result.exit_code, document["usable"], document["problems"]) == (0, True, [])


def test_an_environment_that_cannot_be_used_is_reported(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EMBEDDING_CHECK_THRESHOLD", "very")
    document = json.loads(run("doctor", "--json").stdout)
    (problem,) = document["problems"]
    assert "EMBEDDING_CHECK_THRESHOLD" in problem
    assert {row["model"] for row in document["embedders"]} == {"all-MiniLM-L6-v2"}


def test_embedders_and_search_tools_for_people(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EMBEDDING_CHECK_MODEL", raising=False)
    monkeypatch.setenv("TAVILY_API_KEY", "tvly-this-is-secret")
    monkeypatch.setenv("COLUMNS", "400")
    result = run("doctor")
    assert result.exit_code == 0
    assert re.search(r"(?m)^ *minilm +all-MiniLM-L6-v2 +available *$", result.stdout)
    assert re.search(r"litellm +all-MiniLM-L6-v2 +not_ready +the embedder 'litellm' needs a provider", result.stdout)
    assert re.search(r"(?m)^ *tavily +available *$", result.stdout)
    assert "tvly-this-is-secret" not in result.output


def test_clients_of_tool_servers_say_what_is_missing(run: Run, install: Files, monkeypatch: pytest.MonkeyPatch) -> None:
    install("karenina-serves", {"serves": "serves_plugin"}, group="karenina.plugins", serves_plugin=SERVING)
    monkeypatch.setenv("COLUMNS", "400")
    result = run("doctor", "--json")
    clients = {row["name"]: row for row in json.loads(result.stdout)["tool_servers"]}
    reason = "the package wire is not installed: pip install wire"
    assert clients["lacking"] == {"name": "lacking", "plugin": "serves", "state": "not_ready", "reason": reason}
    assert (clients["silent"]["state"], clients["silent"]["reason"]) == ("available", "")
    assert (clients["rude"]["state"], "ZeroDivisionError" in clients["rude"]["reason"]) == ("broken", True)
    assert (clients["absent"]["state"], "no_such_module" in clients["absent"]["reason"]) == ("broken", True)
    assert clients["mcp"]["plugin"] == "mcp"
    there = importlib.util.find_spec("mcp") is not None
    assert (clients["mcp"]["state"] == "available", "karenina-mcp[sdk]" in clients["mcp"]["reason"]) == (
        there,
        not there,
    )
    assert re.search(rf"(?m)^ *lacking +not_ready +{reason}$", run("doctor").stdout)
    assert result.exit_code == 0


def test_no_adapter_is_exit_code_1(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KARENINA_PLUGINS", "jsonld,local-executor")
    result = run("doctor")
    assert result.exit_code == 1
    assert "Problem: no adapter can be used" in result.stderr
    assert "karenina cannot be used here." in result.stdout


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


def test_a_folder_that_cannot_be_written_is_reported(run: Run, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "karenina-runs").touch()
    document = json.loads(run("doctor", "--json").stdout)
    assert document["run_directory"]["writable"] is False
    assert "--out DIR" in document["run_directory"]["reason"]


def test_findings_of_an_application_in_memory() -> None:
    from karenina_cli.doctor.examination import findings

    found = findings(Karenina({}))
    assert (found["usable"], found["adapters"], found["plugins"]) == (False, [], [])
