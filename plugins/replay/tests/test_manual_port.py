"""Recorded answers instead of a model: what is found, by which key, and the error when there is nothing."""

from __future__ import annotations

import asyncio
import hashlib
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from karenina_calls.models.model_ports import make_port
from karenina_calls.models.models import model_problems
from karenina_replay import manual
from karenina_replay.manual.port import ManualPort
from karenina_vocabulary.tasks import PromptTask

from karenina_core.errors import ParseError, PortError
from karenina_core.plugin.adapters import AdapterRegistry, AdapterSpec
from karenina_core.plugin.application import Karenina
from karenina_core.plugin.markers import hookimpl
from karenina_core.ports import CallContext, LLMPort, LLMResponse, ParsePortResult, ParserPort
from karenina_core.values.config import ManualAnswer, ModelConfig
from karenina_core.values.message import Message, ToolUseBlock

QUESTION = "What is the capital of France?"
MD5 = hashlib.md5(QUESTION.encode()).hexdigest()
SCHEMA = {"type": "object"}


def port(answers: Any) -> ManualPort:
    return ManualPort(ModelConfig(interface="manual", manual_traces=answers))


def answered(answers: Any, task: str = PromptTask.GENERATION, id: str = "q1", text: str = QUESTION) -> LLMResponse:
    return asyncio.run(port(answers).ainvoke([Message.user("ignored")], call=CallContext(task, id, text)))


def judged(answers: Any, task: str = PromptTask.PARSING, id: str = "q1") -> ParsePortResult:
    return asyncio.run(port(answers).aparse([Message.user("ignored")], SCHEMA, call=CallContext(task, id, QUESTION)))


def test_it_is_both_ports() -> None:
    made = port({"q1": "Paris"})
    assert isinstance(made, LLMPort)
    assert isinstance(made, ParserPort)
    assert made.capabilities.output_channels == ("text",)
    asyncio.run(made.aclose())


def test_the_entry_module_imports_the_core_only() -> None:
    late = "{'pydantic', 'karenina_replay.manual.port'}"
    code = f"import sys, karenina_replay.manual; print(sorted({late} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"


def test_the_application_makes_the_port_for_both_roles() -> None:
    app = Karenina({"manual": manual})
    resolution = app.adapters.resolve_interface("manual")
    config = ModelConfig(interface="manual", manual_traces={"q1": "Paris"})
    for factory in (resolution.spec.llm_factory, resolution.spec.parser_factory):
        assert factory is not None
        assert isinstance(make_port(app.adapters, factory, config, resolution.spec), ManualPort)


@pytest.mark.parametrize("key", ["q1", QUESTION, MD5])
def test_an_answer_is_found_by_id_text_or_md5_of_the_text(key: str) -> None:
    reply = answered({"other": "Rome", key: "Paris"})
    assert reply.content == "Paris"
    assert reply.actual_model == reply.usage.model == "manual"
    assert reply.usage.total_tokens == 0
    assert reply.usage.cost_usd == 0.0
    assert not reply.usage_unavailable
    assert not reply.is_partial
    assert reply.raw is None


def test_the_id_comes_before_the_text_and_the_text_before_its_md5() -> None:
    assert answered({MD5: "3", QUESTION: "2", "q1": "1"}).content == "1"
    assert answered({MD5: "3", QUESTION: "2"}).content == "2"


@given(st.text(max_size=30), st.text(max_size=30))
def test_no_answer_is_given_to_another_question(id: str, text: str) -> None:
    answers = {"q1": "Paris", QUESTION: "Paris", MD5: "Paris"}
    if not {id, text} & set(answers):
        with pytest.raises(PortError):
            answered(answers, id=id, text=text)


def test_recorded_messages_come_along() -> None:
    messages = (
        Message.assistant("", [ToolUseBlock("c1", "look")]),
        Message.tool_result("c1", "x"),
        Message.assistant("Paris"),
    )
    reply = answered({"q1": messages})
    assert reply.content == "Paris"
    assert reply.raw == messages


def test_odd_characters_are_made_writable() -> None:
    recorded = {"q1": ManualAnswer("a\ud800", {"x\ud800": ["\ud800", {"y": 1}]})}
    reply = answered(recorded)
    assert reply.content == "a\ufffd"
    assert reply.flags == ("lone_surrogate",)
    assert judged(recorded).data == {"x\ufffd": ["\ufffd", {"y": 1}]}


def test_a_question_without_an_answer_is_named_with_the_keys_that_would_do() -> None:
    with pytest.raises(PortError) as failed:
        answered({"capital-of-italy": "Rome", "capital-of-franc": "Paris"}, id="capital-of-france")
    assert failed.value.kind == "invalid_request"
    assert str(failed.value) == (
        f"no answer was recorded for question 'capital-of-france' ({QUESTION}) (did you mean 'capital-of-franc'?); "
        "the file has 2 answers. A key is a question's id, its exact text, or the MD5 of its text as 32 hexadecimal "
        "digits"
    )


def test_a_call_that_names_no_question_is_refused() -> None:
    with pytest.raises(PortError, match="names none") as failed:
        asyncio.run(port({"q1": "Paris"}).ainvoke([Message.user(QUESTION)]))
    assert failed.value.kind == "invalid_request"


def test_recorded_fields_are_the_judgment() -> None:
    result = judged({"q1": {"answer": "It is Paris.", "fields": {"capital": "Paris"}}})
    assert result.data == {"capital": "Paris"}
    assert result.channel is None
    assert result.usage.total_tokens == 0
    assert result.raw == ""


def test_fields_that_are_empty_are_a_judgment_too() -> None:
    assert judged({"q1": {"answer": "x", "fields": {}}}).data == {}


def test_without_fields_the_error_says_what_to_add() -> None:
    with pytest.raises(ParseError) as failed:
        judged({"q1": "Paris"})
    assert failed.value.kind == "judge"
    assert '{"answer": "...", "fields": {...}}' in str(failed.value)
    assert "--parsing-model" in str(failed.value)
    assert failed.value.raw_response == ""  # nothing that could be shown to a judge


@pytest.mark.parametrize("task", [task for task in PromptTask if task != PromptTask.GENERATION])
def test_an_answer_is_not_passed_off_as_a_judgment(task: PromptTask) -> None:
    with pytest.raises(PortError, match=f"cannot serve the task '{task}'"):
        answered({"q1": "Paris"}, task=str(task))


@pytest.mark.parametrize("task", [task for task in PromptTask if task != PromptTask.PARSING])
def test_template_fields_are_not_passed_off_as_another_judgment(task: PromptTask) -> None:
    with pytest.raises(PortError, match=f"cannot serve the task '{task}'"):
        judged({"q1": {"answer": "x", "fields": {}}}, task=str(task))


def test_a_task_of_somebody_elses_stage_gets_the_answer() -> None:
    assert answered({"q1": "Paris"}, task="acme_second_opinion").content == "Paris"


@pytest.mark.parametrize(
    "fields",
    [{"endpoint_base_url": "http://h"}, {"model_provider": "openai"}, {"api_key_env": "X"}, {"extra_kwargs": {"a": 1}}],
)
def test_settings_without_an_effect_are_complained_about(fields: dict[str, Any]) -> None:
    spec = Karenina({"manual": manual}).adapters.get_spec("manual")
    assert spec.config_checker is not None
    plain: dict[str, Any] = {"interface": "manual", "manual_traces": {"q1": "Paris"}}
    assert list(spec.config_checker(ModelConfig(**plain))) == []
    found = list(spec.config_checker(ModelConfig(**plain, **fields)))
    assert found == [f"{next(iter(fields))}: has no effect on recorded answers; leave it out"]


def test_without_recorded_answers_there_is_nothing_to_answer_from() -> None:
    spec = Karenina({"manual": manual}).adapters.get_spec("manual")
    assert spec.config_checker is not None
    found = list(spec.config_checker(ModelConfig(interface="manual", model_name="m")))
    assert found == ["manual_traces: the manual interface needs recorded answers (--manual-traces FILE)"]


def test_no_other_interface_takes_recorded_answers() -> None:
    spec = AdapterSpec(interface="other", llm_factory=ManualPort)
    app = Karenina({"manual": manual, "other": _Other(spec)})
    found = [
        [problem.path + ": " + problem.message for problem in model_problems(app, model, "answering", "run")]
        for model in (
            ModelConfig(interface=name, model_name="m", manual_traces={"q1": "Paris"}) for name in ("manual", "other")
        )
    ]
    assert found == [[], ["run: manual_traces: only an interface of recorded answers takes them, not 'other'"]]


class _Other:
    """A plugin with one adapter."""

    def __init__(self, spec: AdapterSpec) -> None:
        self._spec = spec

    @hookimpl
    def karenina_register_adapters(self, registry: AdapterRegistry) -> None:
        registry.register(self._spec)
