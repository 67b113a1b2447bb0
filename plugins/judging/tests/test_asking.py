"""What a judge that is no model is given beside the prompt."""

from __future__ import annotations

from typing import Any

import pytest
from karenina_runs.execute.item_verifier import run_single_model_verification

from karenina_core import AdapterSpec, ModelConfig, Question, VerificationConfig, hookimpl
from karenina_core.pipeline.item import CachedAnswer
from karenina_core.ports import ParsePortResult, PortCapabilities
from karenina_core.testing import application

TEMPLATE = """
class Answer(BaseAnswer):
    target: str = VerifiedField(description="the target", ground_truth="BCL2", verify_with=ExactMatch())
"""
ROWS = (
    {"role": "assistant", "content": "let me look"},
    {"role": "tool", "content": "MCL1"},
    {"role": "assistant", "content": "It is BCL2."},
)


class Judge:
    """A parser port and its plugin."""

    capabilities = PortCapabilities()

    def __init__(self) -> None:
        self.calls: list[Any] = []

    async def aparse(self, messages: Any, schema: Any, *, call: Any = None) -> ParsePortResult:
        self.calls.append(call)
        return ParsePortResult(data={"target": call.answer.removeprefix("It is ").rstrip(".")})

    async def aclose(self) -> None:
        pass

    @hookimpl
    def karenina_register_adapters(self, registry: Any) -> None:
        registry.register(AdapterSpec(interface="rules", description="x", parser_factory=lambda config: self))


@pytest.mark.parametrize("full", [True, False])
def test_a_parser_port_gets_the_final_message_the_question_and_the_model_whatever_the_prompt_shows(full: bool) -> None:
    judge = Judge()
    answering = ModelConfig(model_name="a", interface="manual", manual_traces={"q": "unused"})
    result = run_single_model_verification(
        Question(id="q", question="Which protein?", answer_template=TEMPLATE, template_language="python"),
        answering,
        ModelConfig(model_name="r", interface="rules"),
        config=VerificationConfig(use_full_trace_for_template=full, code_policy="trusted"),
        cached_answer_data=CachedAnswer(raw_llm_response="let me look ... It is BCL2.", trace_messages=ROWS),
        app=application(judge, installed=True),
    )
    (call,) = judge.calls
    assert (call.answer, call.question_text, call.task) == ("It is BCL2.", "Which protein?", "parsing")
    assert call.answering_model == result.metadata.answering_model
    assert str(result.outcome) == "passed"
