"""One benchmark and one configuration: only the string that names the model is another, and the verdicts are the same.

One server on loopback speaks all five protocols, each at its own path.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Iterator, Mapping
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from karenina_runs.config.config_file import Flags, configure, read_layer

from karenina_core import Benchmark, Karenina
from karenina_core.testing import (
    AnthropicMessages,
    ChatCompletions,
    GeminiGenerateContent,
    Reply,
    ScriptedServer,
    ServedRequest,
    Spoken,
    Wire,
    application,
)

REPOSITORY = Path(__file__).resolve().parents[2]
CONFIGURATION = """
[run]
answering_models = ["model"]
parsing_models = ["model"]

[models.model]
model_name = "{model}"
endpoint_base_url = "{url}"
api_key_env = "SWAPPED_KEY"
temperature = 0.0
"""
MODELS = {
    "openai_endpoint:gpt-4.1": "/v1/chat/completions",
    "openai/gpt-4.1": "/v1/chat/completions",
    "anthropic:claude-sonnet-4-5": "/v1/messages",
    "gemini:gemini-2.5-flash": "/v1beta/models/gemini-2.5-flash:generateContent",
    "acme:anvil-2": "/generate",
}
"""The string that names the model, and the path of the protocol in which it is asked."""
ANSWERS = {
    "digoxin": "Digoxin inhibits the sodium-potassium ATPase. Hypokalaemia makes toxicity more likely.",
    "paracetamol": "It is NAPQI. Nothing helps.",
}
FIELDS: dict[str, dict[str, Any]] = {
    "digoxin": {"pump": "sodium-potassium ATPase", "hypokalaemia_raises_risk": True},
    "paracetamol": {"metabolite": "NAPQI", "antidote": "other"},
}


class Every(Wire):
    """The protocols side by side."""

    def __init__(self, wires: Iterable[Wire]) -> None:
        self.wires = list(wires)

    def of(self, path: str) -> Wire:
        return next(wire for wire in self.wires if wire.serves(path.partition("?")[0]))

    def serves(self, path: str) -> bool:
        return any(wire.serves(path) for wire in self.wires)

    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> ServedRequest:
        return self.of(path).read(path, headers, body)

    def write(self, request: ServedRequest, reply: Spoken) -> Mapping[str, Any]:
        return self.of(request.path).write(request, reply)


@pytest.fixture
def acme(monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[ModuleType, Wire]]:
    """The example adapter for an invented protocol, as if it were installed, and that protocol."""
    monkeypatch.syspath_prepend(str(REPOSITORY / "examples" / "plugins" / "acme"))
    yield import_module("karenina_example_acme"), import_module("karenina_example_acme.checks").AcmeWire()
    for name in [name for name in sys.modules if name.startswith("karenina_example_acme")]:
        del sys.modules[name]


def script(request: ServedRequest) -> Reply | str:
    question = "digoxin" if "igoxin" in request.text else "paracetamol"
    return ANSWERS[question] if request.channel == "text" else Reply(json.dumps(FIELDS[question]))


def verdicts(app: Karenina, configuration: Path, benchmark: Path) -> list[tuple[Any, ...]]:
    def resolve(model: str) -> str | None:
        found: str | None = app.hooks.karenina_resolve_model(model=model)
        return found

    run = configure([read_layer(configuration)], Flags(), resolve)
    results = Benchmark.load(benchmark, app=app).run_verification(run, question_ids=list(ANSWERS), app=app)
    found = []
    for result in results:
        assert result.generation is not None
        assert result.template is not None
        answer, template = result.generation.raw_llm_response, result.template
        data = (dict(template.parsed_llm_response or {}), dict(template.field_results or {}))
        found.append((result.metadata.question_id, str(result.outcome), answer, *data, template.judge_channel))
    return sorted(found, key=lambda verdict: str(verdict[0]))


def test_only_the_string_that_names_the_model_is_another(
    acme: tuple[ModuleType, Wire], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SWAPPED_KEY", "k" * 20)
    plugin, wire = acme
    app = application(plugin, installed=True)
    found = {}
    for model, path in MODELS.items():
        wires = [ChatCompletions(), AnthropicMessages(), GeminiGenerateContent(), wire]
        with ScriptedServer(script, wire=Every(wires)) as server:
            configuration = tmp_path / "swap.toml"
            configuration.write_text(CONFIGURATION.format(model=model, url=server.url), "utf-8")
            found[model] = verdicts(app, configuration, REPOSITORY / "examples" / "pharmacology.jsonld")
            assert {request.path for request in server.requests} == {path}
            assert {request.key for request in server.requests} == {"k" * 20}
            assert len({request.model for request in server.requests}) == 1
            assert ":" not in server.requests[0].model
    first = next(iter(found.values()))
    assert [verdict[1] for verdict in first] == ["passed", "failed"]
    assert [verdict[2] for verdict in first] == [ANSWERS[verdict[0]] for verdict in first]
    assert found == dict.fromkeys(MODELS, first)
