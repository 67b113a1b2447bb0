"""Benchmark files with code run without a decision: in the sandbox, with the results of a trusted run."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
from karenina_sandbox.runtime import SandboxRuntime
from karenina_vocabulary.kinds import runtime_of

from karenina_core import (
    Benchmark,
    CallableRubricTrait,
    Karenina,
    ModelConfig,
    Question,
    Rubric,
    VerificationConfig,
    VerificationResult,
)
from karenina_core.testing import ScriptedLLM, application
from karenina_core.values.convert import unstructure

OLDER = """
from karenina.schemas.entities import BaseAnswer
from pydantic import Field

class Answer(BaseAnswer):
    degrees: int = Field(description="Degrees Celsius")
    metals: list[str] = Field(description="Metals that are named")

    def model_post_init(self, __context):
        self.correct = {"degrees": {right}, "metals": ["iron"]}
        self.regex = {"number": {"pattern": "[0-9]+", "expected": "7", "match_type": "contains"}}

    def verify(self) -> bool:
        return self.degrees == self.correct["degrees"]

    def verify_granular(self) -> float:
        return sum(metal in self.correct["metals"] for metal in self.metals) / 2
"""
REPLY = {"degrees": 7, "metals": ["iron", "tin"]}
BROKEN = OLDER.replace("return self.degrees ==", "return self.nowhere ==")
ENDLESS = OLDER.replace("return self.degrees ==", "while True: pass\n        return self.degrees ==")


def benchmark(*templates: str) -> Benchmark:
    questions = [
        Question(
            id=f"q{number}", question="How warm?", raw_answer="7", answer_template=text, template_language="python"
        )
        for number, text in enumerate(templates)
    ]
    wanted = ("iron", "tin")
    rubric = Rubric.from_traits(
        [
            CallableRubricTrait.from_callable("named", lambda text: any(w in text for w in wanted), kind="boolean"),
            CallableRubricTrait.from_callable(
                "length", lambda text: len(text) / 2, kind="score", min_score=0, max_score=99
            ),
        ]
    )
    return Benchmark.create("warm").with_questions(questions).with_rubric(rubric)


def app_of(**settings: Any) -> Karenina:
    llm = ScriptedLLM(lambda call: REPLY if call.output else "7 degrees; tin is soft")
    return application(llm, installed=True, settings={"sandbox-runtime": settings} if settings else None)


def run(path: Path, policy: Any, app: Karenina) -> list[VerificationResult]:
    model = ModelConfig(model_name="m", interface="scripted")
    config = VerificationConfig(
        answering_models=[model],
        parsing_models=[model],
        code_policy=policy,
        evaluation_mode="template_and_rubric",
    )
    return list(asyncio.run(Benchmark.load(path, app=app).arun_verification(config, app=app)))


def told(result: VerificationResult) -> dict[str, Any]:
    """What a result says, without times and without how code was isolated."""
    return {
        "outcome": str(result.outcome),
        "template": unstructure(result.template),
        "scores": result.rubric.callable_trait_scores if result.rubric else None,
    }


@pytest.fixture
def path(tmp_path: Path) -> Path:
    texts = (OLDER.replace("{right}", "7"), OLDER.replace("{right}", "8"), BROKEN.replace("{right}", "7"))
    return benchmark(*texts).save(tmp_path / "warm.jsonld", app=app_of())


def test_a_file_with_code_runs_without_trust_and_says_the_same_as_with_it(path: Path) -> None:
    boxed, trusted = run(path, "sandbox", app_of()), run(path, "trusted", app_of())
    assert [told(result) for result in boxed] == [told(result) for result in trusted]
    assert [str(result.outcome) for result in boxed] == ["passed", "failed", "error(template)"]
    (level,) = {result.metadata.template_isolation for result in boxed}
    assert str(level).startswith("sandbox-")
    assert {result.metadata.template_isolation for result in trusted} == {"in-process"}
    for found in boxed[:2]:
        assert found.rubric.callable_trait_scores == {"named": True, "length": 11.0}
        assert found.rubric.trait_details["named"] == {"isolation": level}


def test_code_that_does_not_end_fails_its_item_and_no_other(tmp_path: Path) -> None:
    texts = [OLDER.replace("{right}", "7"), ENDLESS.replace("{right}", "7")]
    saved = benchmark(*texts).save(tmp_path / "endless.jsonld", app=app_of())
    first, second = run(saved, "sandbox", app_of(seconds=0.3))
    assert (str(first.outcome), str(second.outcome)) == ("passed", "error(template)")
    assert "stopped after 0.3 s of processor time" in str(second.metadata.error)


def test_a_policy_of_refusal_is_kept(path: Path) -> None:
    with pytest.raises(Exception, match=r"code_policy"):
        run(path, "refuse", app_of())


def test_one_sandbox_serves_all_runs_of_an_application(path: Path) -> None:
    app = app_of()
    run(path, "sandbox", app)
    runtime = runtime_of(app, "sandbox")
    assert isinstance(runtime, SandboxRuntime)
    server = runtime.pool.server.pid
    run(path, "sandbox", app)
    assert runtime.pool.server.pid == server
