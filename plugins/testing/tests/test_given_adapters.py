"""An adapter or a stage that is given to `application` is known by the code of the module that it is from."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest
from karenina_calls.plugin_code import code_digest, code_of

from karenina_core import Benchmark, Karenina, ModelConfig, Question, VerificationConfig
from karenina_core.plugin.adapters import AdapterSpec
from karenina_core.testing import ScriptedLLM, application

MODELS = """\
from karenina_core import Stage
from karenina_core.values.message import UsageMetadata
from karenina_core.ports.values import LLMResponse, PortCapabilities

ANSWER = "Paris"
asked = []


class Model:
    capabilities = PortCapabilities(needs_provider=False)

    def __init__(self, config):
        self.config = config

    async def ainvoke(self, messages, *, output=None, temperature=None, call=None):
        asked.append(call.task)
        text = ANSWER if call.task == "generation" else '{"capital": "%s"}' % ANSWER
        return LLMResponse(content=text, usage=UsageMetadata(1, 1, 2))

    async def aclose(self):
        pass


class Maker:
    def __call__(self, config):
        return Model(config)


class Check(Stage):
    def execute(self, context):
        pass
"""
CAPITAL = {"name": "capital", "type": "str", "description": "The city", "ground_truth": "Paris"}
TEMPLATE = json.dumps({"class_name": "Answer", "fields": [{**CAPITAL, "verify_with": {"type": "ExactMatch"}}]})
QUESTION = Question(
    id="q", question="Which?", raw_answer="Paris", answer_template=TEMPLATE, template_language="karenina-template"
)


@pytest.fixture
def models(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Callable[..., ModuleType]]:
    """`models(answer)`: a module of somebody's with an adapter, as a new process imports it."""
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def written(answer: str = "Paris") -> ModuleType:
        (tmp_path / "my_models.py").write_text(MODELS.replace('"Paris"', repr(answer)), "utf-8")
        sys.modules.pop("my_models", None)
        importlib.invalidate_caches()
        code_digest.cache_clear()
        return importlib.import_module("my_models")

    yield written
    sys.modules.pop("my_models", None)
    code_digest.cache_clear()


def made(factory: Any, field: str = "llm_factory") -> Karenina:
    return application(AdapterSpec(interface="mine", **{field: factory}), installed=True)


def digest(app: Karenina, plugin: str = "mine") -> str:
    return (code_of(app, plugin) or {})["digest"]


@pytest.mark.parametrize("field", ["llm_factory", "parser_factory", "agent_factory"])
def test_the_code_of_an_adapter_is_that_of_its_factory(models: Callable[..., ModuleType], field: str) -> None:
    module = models()
    factories = [module.Model, "my_models:Model", partial(module.Model), partial(partial(module.Model)), module.Maker()]
    found = {digest(made(factory, field)) for factory in factories}
    assert found == {code_digest("my_models")} != {""}
    assert digest(application(module.Check), "Check") == code_digest("my_models")
    assert digest(application(module.Check()), "Check") == code_digest("my_models")
    assert digest(application(ScriptedLLM("x")), "scripted") == code_digest("karenina_testing")


@pytest.mark.parametrize(("later", "asked"), [("Paris", 0), ("Lyon", 2)], ids=["the same code", "other code"])
def test_replies_of_other_code_are_not_taken_over(
    models: Callable[..., ModuleType], tmp_path: Path, later: str, asked: int
) -> None:
    model = ModelConfig(model_name="m", interface="mine")
    config = VerificationConfig(answering_models=[model], parsing_models=[model])

    def run(module: ModuleType, **where: Any) -> str:
        results = Benchmark(name="b", questions=[QUESTION]).run_verification(config, app=made(module.Model), **where)
        return str(results[0].outcome)

    assert run(models(), run_dir=tmp_path / "first") == "passed"
    module = models(later)
    outcome = run(module, run_dir=tmp_path / "again", reuse=[tmp_path / "first"])
    assert (outcome, len(module.asked)) == ("passed" if later == "Paris" else "failed", asked)


def test_a_program_knows_its_own_code(tmp_path: Path) -> None:
    """The module of a script has no specification by which its file could be found."""
    ending = "\nfrom karenina_calls.plugin_code import code_digest\nprint(code_digest('__main__'))\n"
    found = []
    for answer in ("Paris", "Paris", "Lyon"):
        script = tmp_path / "program.py"
        script.write_text(MODELS.replace('"Paris"', repr(answer)) + ending, "utf-8")
        ran = subprocess.run([sys.executable, script], capture_output=True, text=True, timeout=60, check=True)
        found.append(ran.stdout.strip())
    assert found[0] == found[1] != found[2]
    assert len(found[0]) == 16
