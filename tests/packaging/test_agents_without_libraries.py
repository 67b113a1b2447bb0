"""The plugins for agents are there without the libraries that they speak to agents and servers with, and say so."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., subprocess.CompletedProcess[str]]
AGENTS = ("karenina-agentic", "karenina-claude-agent-sdk", "karenina-mcp")
ENTRY_POINTS = {
    "agentic-parse-template": AGENTS[0],
    "agentic-rubric-evaluation": AGENTS[0],
    "claude_agent_sdk": AGENTS[1],
    "mcp": AGENTS[2],
}
MODEL = """\
from karenina_core import Benchmark, ModelConfig, VerificationConfig
from karenina_core.errors import ConfigError

judge = ModelConfig(model_name="m", interface="manual", manual_traces={"x": "y"})
model = ModelConfig(model_name="m", interface="claude_agent_sdk")
try:
    Benchmark.load("pharmacology.jsonld").run_verification(
        VerificationConfig(answering_models=[model], parsing_models=[judge])
    )
except ConfigError as error:
    print("\\n".join(map(str, error.problems)))
"""
SERVER = """\
from karenina_core import Karenina
from karenina_calls.services.shared import ToolServerRegistry

app = Karenina.installed()
server = app.registry(ToolServerRegistry).make("mcp", "lab", "http://127.0.0.1:9/mcp")
print(server.problem())
"""


@pytest.fixture(scope="module")
def venv(fresh: Callable[..., Path]) -> Path:
    """An environment with the plugins for agents and nothing beside what they cannot do without."""
    return fresh(*AGENTS)


@pytest.fixture
def karenina(venv: Path, run: Run, tmp_path: Path) -> Callable[..., Any]:
    """`karenina(...)`: the JSON document that a command prints in that environment."""
    return lambda *words: json.loads(run([venv / "bin" / "karenina", *words, "--json"], tmp_path).stdout)


def test_their_libraries_are_not_there(venv: Path, run: Run, tmp_path: Path) -> None:
    script = "import importlib.util as u; print([u.find_spec(name) for name in ('mcp', 'claude_agent_sdk', 'litellm')])"
    assert run([venv / "bin" / "python", "-c", script], tmp_path).stdout.strip() == "[None, None, None]"


def test_every_plugin_is_active(karenina: Callable[..., Any]) -> None:
    listed = {plugin["name"]: plugin for plugin in karenina("plugins")["plugins"]}
    found = {name: (listed[name]["distribution"], listed[name]["state"]) for name in ENTRY_POINTS}
    assert found == {name: (distribution, "active") for name, distribution in ENTRY_POINTS.items()}
    assert {name: plugin["reason"] for name, plugin in listed.items() if plugin["state"] != "active"} == {}


def test_agents_are_planned(karenina: Callable[..., Any]) -> None:
    names = [stage["name"] for stage in karenina("plan", "--with", "agentic_parsing")["stages"]]
    assert "AgenticParseTemplate" in names
    assert "ParseTemplate" not in names


@pytest.mark.parametrize(
    ("script", "install"),
    [
        (MODEL, 'pip install "karenina-claude-agent-sdk[sdk]"'),
        (SERVER, 'pip install "karenina-mcp[sdk]"'),
    ],
    ids=["claude_agent_sdk", "mcp"],
)
def test_what_needs_a_library_is_refused_with_what_to_type(
    script: str, install: str, venv: Path, run: Run, repository: Path
) -> None:
    assert install in run([venv / "bin" / "python", "-c", script], repository / "examples").stdout
