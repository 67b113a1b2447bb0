"""A run that is resumed after something that affects its numbers has changed: refused and named, and forked at no more
than what is new."""

from __future__ import annotations

import importlib.util
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from karenina_vocabulary.prompt_config import PromptConfig

from karenina_core import VerificationConfig
from karenina_core.errors import ConfigError
from karenina_core.testing import ScriptedServer

SPEC = importlib.util.spec_from_file_location("fault_world", Path(__file__).with_name("fault_world.py"))
assert SPEC is not None
world: Any = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(world)  # type: ignore[union-attr] # a file that is there has a loader

QUESTIONS = 6
Change = Callable[[Any, VerificationConfig], VerificationConfig]


def question(here: Any, **facts: Any) -> None:
    """Another third question."""
    questions = list(here.benchmark.questions)
    questions[2] = evolve(questions[2], **facts)
    here.benchmark = evolve(here.benchmark, questions=questions)


def template(here: Any, config: VerificationConfig) -> VerificationConfig:
    question(here, answer_template=world.TEMPLATE.replace("ExactMatch", "LiteralMatch").replace("BCL2", "BCL2A1"))
    return config


def description(here: Any, config: VerificationConfig) -> VerificationConfig:
    question(here, answer_template=world.TEMPLATE.replace("that the response names", "that is named"))
    return config


def text(here: Any, config: VerificationConfig) -> VerificationConfig:
    question(here, question="What does drug 2 act on?")
    return config


def answering(**facts: Any) -> Change:
    return lambda here, config: evolve(config, answering_models=[evolve(config.answering_models[0], **facts)])


def judging(**facts: Any) -> Change:
    return lambda here, config: evolve(config, parsing_models=[evolve(config.parsing_models[0], **facts)])


def prompt(here: Any, config: VerificationConfig) -> VerificationConfig:
    return evolve(config, prompt_config=PromptConfig(parsing="Read it twice."))


def plugin(here: Any, config: VerificationConfig) -> VerificationConfig:
    """As if a package that makes numbers had another version."""
    path = here.folder / "fingerprint.json"
    told = json.loads(path.read_text("utf-8"))
    told["plugins"]["verify-template"]["version"] = "0.0.1"
    path.write_text(json.dumps(told), "utf-8")
    return config


CHANGES: dict[str, tuple[Change, str, int]] = {
    "what a template expects": (template, "q2", 0),
    "what a judge is told of a field": (description, "q2", 1),
    "the text of a question": (text, "q2", 2),
    "the temperature": (answering(temperature=0.7), "temperature was 0.1 and is 0.7", QUESTIONS),
    "the system prompt": (answering(system_prompt="Be brief."), "system_prompt", QUESTIONS),
    "the answering model": (answering(model_name="b"), "openai_endpoint:b", QUESTIONS),
    "the judge": (judging(model_name="k"), "openai_endpoint:k", QUESTIONS),
    "a prompt": (prompt, "prompt_config", QUESTIONS),
    "the version of a plugin": (plugin, "verify-template", 0),
}
"""What is changed; what the refusal names; how many calls a fork makes: the same answers have the same judgments."""


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_is_refused_by_its_name_and_a_fork_asks_what_is_new(tmp_path: Path, name: str) -> None:
    change, named, new = CHANGES[name]
    here = world.World(tmp_path / "run", questions=QUESTIONS)
    with ScriptedServer(world.right) as server:
        config = here.config(server.url)
        here.run(config)
        kept = {path.name: path.read_bytes() for path in here.folder.iterdir()}
        changed = change(here, config)
        if name == "the version of a plugin":
            kept["fingerprint.json"] = (here.folder / "fingerprint.json").read_bytes()
        count = server.count
        with pytest.raises(ConfigError) as caught:
            here.resume(changed)
        assert any(named in str(problem) for problem in caught.value.problems), str(caught.value)
        assert server.count == count, "nobody is asked"
        assert {path.name: path.read_bytes() for path in here.folder.iterdir()} == kept
        here.resume(changed, fork=tmp_path / "fork")
        assert server.count == count + new
        forked = evolve(here, folder=tmp_path / "fork")
        assert sum(forked.outcomes().values()) == QUESTIONS
        world.invariants.assert_run(forked.folder)
        world.invariants.assert_run(here.folder)
