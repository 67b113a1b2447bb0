"""Patterns of templates that take too long for some answers: the item is an error, and others continue meanwhile."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from karenina_judging.services import LOAD_TEMPLATE

from karenina_core import Benchmark, ModelConfig, Question, VerificationConfig
from karenina_core.testing import ScriptedLLM, application

Make = Callable[..., Any]
SLOW = "(?!x)(a|aa)+$"
TRAP = "a" * 60 + "b"
OF_TRACE = {
    "name": "target",
    "type": "bool",
    "description": "x",
    "ground_truth": True,
    "is_trace": True,
    "verify_with": {"type": "TraceRegex", "pattern": SLOW},
}
OF_VALUE = OF_TRACE | {
    "type": "str",
    "ground_truth": "N/A",
    "is_trace": False,
    "verify_with": {"type": "RegexMatch", "pattern": SLOW},
}
SELF_REGEX = f"""
class Answer(BaseAnswer):
    def ground_truth(self):
        self.regex = {{"slow": {{"pattern": {SLOW!r}, "expected": "a"}}}}
"""
TEMPLATES = [json.dumps({"fields": [OF_TRACE]}), json.dumps({"fields": [OF_VALUE]}), SELF_REGEX]


@pytest.mark.usefixtures("quick")
@pytest.mark.parametrize("template", TEMPLATES)
def test_such_a_pattern_is_an_error_of_the_template(template: str, context: Make, run: Make) -> None:
    about = context(template, ScriptedLLM({"target": TRAP}), answer=TRAP)
    assert run(about)["VerifyTemplate"][0] == "failed"
    assert str(about.outcome) == "error(template)"
    assert "was stopped after 0.1 s; rewrite it so that no repetition holds another one" in str(about.error)
    assert about.verdict.verdict is None


@pytest.mark.parametrize("template", TEMPLATES)
def test_the_event_loop_goes_on_meanwhile(template: str, context: Make, limit: Callable[[float], None]) -> None:
    limit(0.5)

    async def main() -> int:
        about = context(template)
        handle = await about.service(LOAD_TEMPLATE)(about.question.template)
        filled = await handle.build({"target": TRAP})
        search = asyncio.ensure_future(filled.regex(TRAP) if template is SELF_REGEX else filled.verify(TRAP))
        turns = 0
        while not search.done():
            await asyncio.sleep(0.005)
            turns += 1
        assert "was stopped after 0.5 s" in str(search.exception())
        return turns

    assert asyncio.run(main()) >= 5  # a search in the event loop itself gives none


@pytest.mark.usefixtures("quick")
def test_other_items_of_a_run_are_decided() -> None:
    quick = json.dumps({"fields": [OF_TRACE | {"verify_with": {"type": "TraceRegex", "pattern": "b$"}}]})
    questions = [
        Question(
            id=f"q{n}", question=f"{n}?", raw_answer="x", answer_template=text, template_language="karenina-template"
        )
        for n, text in enumerate([*TEMPLATES[:2], quick])
    ]
    models = (
        ScriptedLLM(lambda call: TRAP).adapter("answering"),
        ScriptedLLM(lambda call: {"target": TRAP}).adapter("judging"),
    )
    config = VerificationConfig(
        answering_models=[ModelConfig(model_name="a", interface="answering")],
        parsing_models=[ModelConfig(model_name="j", interface="judging")],
    )
    benchmark = Benchmark.create("b").with_questions(questions)
    results = benchmark.run_verification(config, app=application(*models, installed=True))
    outcomes = {result.metadata.question_id: str(result.outcome) for result in results}
    assert outcomes == {**dict.fromkeys(("q0", "q1"), "error(template)"), "q2": "passed"}
