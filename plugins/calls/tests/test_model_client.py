"""A model as stages see it: prompts of three sections, every use on the account, foreign errors given a kind."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from typing import Any

import pytest
from karenina_calls.ports.client import Model, ModelClient

from karenina_core import Karenina, ModelConfig, PromptConfig, hookimpl
from karenina_core.errors import AdapterUnavailableError, FillError, ParseError, PortError, TemplateError
from karenina_core.ports.model_client import CallRecord
from karenina_core.ports.values import LLMResponse, OutputFormat, PortCapabilities
from karenina_core.prompts import AdapterInstruction, AdapterInstructionRegistry
from karenina_core.testing import ScriptedLLM
from karenina_core.values.config import AttemptPolicy, RetryPolicy
from karenina_core.values.message import Message, UsageMetadata

QUICK = RetryPolicy(
    rate_limited=AttemptPolicy(3), server=AttemptPolicy(2), timeout=AttemptPolicy(2), connection=AttemptPolicy(2)
)
SCHEMA = {"type": "object"}
ASKED = [Message.user("Why?")]


def client(llm: ScriptedLLM | None, **facts: Any) -> ModelClient:
    config = ModelConfig(model_name="m", interface="scripted", retry_policy=QUICK, max_retries=1)
    return ModelClient(Model(config=config, llm=llm, **facts), [], "q1", "Why?", 3)


def only(calls: list[CallRecord]) -> CallRecord:
    assert len(calls) == 1
    return calls[0]


def test_a_call_is_on_the_account_with_its_attempts() -> None:
    limited = PortError("slow down", kind="rate_limited")
    model = client(ScriptedLLM(limited, limited, "BCL2", usage=UsageMetadata(3, 4, 7)))
    response = asyncio.run(model.invoke("generation", ASKED, temperature=0.5))
    assert response.content == "BCL2"
    record = only(model.calls)
    assert (record.task, record.model) == ("generation", "scripted:m")
    assert (record.attempts, record.retries, record.error_kind) == (3, {"rate_limited": 2}, None)
    assert record.usage == UsageMetadata(3, 4, 7)
    assert record.seconds >= 0


def test_the_model_is_given_the_purpose_of_the_call() -> None:
    llm = ScriptedLLM("BCL2")
    asyncio.run(client(llm).invoke("generation", ASKED, temperature=0.5, output=OutputFormat("text", SCHEMA)))
    call = llm.calls[0]
    assert call.context is not None
    assert (call.context.task, call.context.question_id, call.context.question_text, call.context.replicate) == (
        "generation",
        "q1",
        "Why?",
        3,
    )
    assert (call.temperature, call.output) == (0.5, OutputFormat("text", SCHEMA))


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (PortError("who are you", kind="auth"), "auth"),
        (ConnectionResetError("reset"), "connection"),
        (OSError("no route"), "connection"),
        (ValueError("bug in the adapter"), "plugin"),
        (KeyError("choices"), "plugin"),
        (TimeoutError(), "timeout"),
    ],
)
def test_failures_get_a_kind_and_are_on_the_account(error: Exception, kind: str) -> None:
    for use in ("invoke", "parse"):
        model = client(ScriptedLLM(lambda call: error))
        arguments: tuple[Any, ...] = (ASKED, SCHEMA) if use == "parse" else (ASKED,)
        with pytest.raises(PortError) as caught:
            asyncio.run(getattr(model, use)("task", *arguments))
        assert caught.value.kind == kind
        assert only(model.calls).error_kind == kind


def test_plugins_may_name_the_kind_of_a_foreign_error() -> None:
    model = client(ScriptedLLM(LookupError("429")), classify=lambda error: "budget")
    with pytest.raises(PortError, match="LookupError: 429") as caught:
        asyncio.run(model.invoke("task", ASKED))
    assert caught.value.kind == "budget"


async def fits(data: Mapping[str, Any]) -> Mapping[str, Any]:
    if "target" not in data:
        raise FillError("target is missing")
    return data


def test_repairs_are_one_use_with_the_sum_of_their_costs() -> None:
    model = client(ScriptedLLM("no idea", PortError("x", kind="server"), {"target": "BCL2"}, channels=["json_object"]))
    result = asyncio.run(model.parse("parsing", ASKED, SCHEMA, validate=fits))
    assert result.parsed == {"target": "BCL2"}
    record = only(model.calls)
    assert (record.attempts, record.repairs, record.channel) == (3, 1, "json_object")
    assert record.retries == {"server": 1}
    assert record.usage == UsageMetadata(20, 10, 30)


def test_useless_replies_are_paid_for_also_when_it_fails() -> None:
    model = client(ScriptedLLM({"a": 1}, "no"))
    with pytest.raises(ParseError):
        asyncio.run(model.parse("parsing", ASKED, SCHEMA, validate=fits))
    record = only(model.calls)
    assert (record.attempts, record.repairs, record.error_kind, record.channel) == (2, 1, "judge", "text")
    assert record.usage == UsageMetadata(20, 10, 30)


@pytest.mark.parametrize(
    ("most", "limit"), [(9, "max_tokens of the model, 9"), (None, "the server's own limit, no max_tokens is set")]
)
def test_a_reply_that_was_cut_off_names_the_limit_that_was_sent(most: int | None, limit: str) -> None:
    config = ModelConfig(model_name="m", interface="scripted", max_tokens=most, max_retries=0)
    llm = ScriptedLLM(LLMResponse(content='{"a": "b', finish_reason="length", is_partial=True))
    with pytest.raises(ParseError, match=rf"cut off.* \({limit}\) before its JSON object"):
        asyncio.run(ModelClient(Model(config=config, llm=llm), []).parse("parsing", ASKED, SCHEMA))


def test_a_useless_reply_is_paid_for_when_the_provider_fails_afterwards() -> None:
    model = client(ScriptedLLM("no", PortError("who", kind="auth")))
    with pytest.raises(PortError, match="who"):
        asyncio.run(model.parse("parsing", ASKED, SCHEMA, validate=fits))
    record = only(model.calls)
    assert (record.error_kind, record.usage) == ("auth", UsageMetadata(10, 5, 15))


@pytest.mark.parametrize(
    ("error", "kind"), [(TemplateError("the template's own code failed"), "template"), (ValueError("a bug"), "stage")]
)
def test_a_reply_is_paid_for_when_what_is_made_of_it_fails(error: Exception, kind: str) -> None:
    async def fails(data: Mapping[str, Any]) -> None:
        raise error

    model = client(ScriptedLLM({"target": "BCL2"}))
    with pytest.raises(type(error)):
        asyncio.run(model.parse("parsing", ASKED, SCHEMA, validate=fails))
    record = only(model.calls)
    assert (record.attempts, record.error_kind) == (1, kind)
    assert record.usage == UsageMetadata(10, 5, 15)


def test_a_price_that_is_unknown_once_is_unknown_in_the_sum() -> None:
    reply = LLMResponse(content='{"target": "x"}', usage=UsageMetadata(1, 1, 2, 0.5))
    known = client(ScriptedLLM(LLMResponse(content="no", usage=UsageMetadata(1, 1, 2, 0.25)), reply))
    asyncio.run(known.parse("parsing", ASKED, SCHEMA, validate=fits))
    assert only(known.calls).usage.cost_usd == 0.75
    unknown = client(ScriptedLLM(LLMResponse(content="no", usage=UsageMetadata(1, 1, 2)), reply))
    asyncio.run(unknown.parse("parsing", ASKED, SCHEMA, validate=fits))
    assert only(unknown.calls).usage.cost_usd is None


def test_what_an_interface_cannot_do_is_refused_without_a_call() -> None:
    model = client(None)
    with pytest.raises(AdapterUnavailableError, match="'scripted' cannot return text"):
        asyncio.run(model.invoke("generation", ASKED))
    with pytest.raises(AdapterUnavailableError, match="'scripted' cannot return data"):
        asyncio.run(model.parse("parsing", ASKED, SCHEMA))


# Prompts


class Adds:
    """A plugin that adds to prompts."""

    def __init__(self, thing: Any) -> None:
        self.thing = thing

    @hookimpl
    def karenina_register_instructions(self, registry: AdapterInstructionRegistry) -> None:
        registry.add(self.thing)


def always(task: str, interface: str, context: Any) -> AdapterInstruction:
    return AdapterInstruction(system_addition=f"B {task} {interface}")


def of_parsing(task: str, interface: str, context: Any) -> AdapterInstruction | None:
    return AdapterInstruction(user_addition=f"A {sorted(context)}") if task == "parsing" else None


def test_a_prompt_is_the_task_then_adapters_then_the_user() -> None:
    app = Karenina({"b": Adds(always), "a": Adds(of_parsing)})
    model = client(
        ScriptedLLM(),
        prompts=PromptConfig(parsing="Mine {braces}"),
        additions=app.registry(AdapterInstructionRegistry).additions,
    )
    system, user = model.prompt("parsing", "Task {x}", "Question {y}", {"json_schema": {}})
    assert (system.role, user.role) == ("system", "user")
    assert system.text == "Task {x}\n\nB parsing scripted\n\nMine {braces}"
    assert user.text == "Question {y}\n\nA ['json_schema']"
    assert [m.text for m in model.prompt("generation", "Task", "Question")] == [
        "Task\n\nB generation scripted",
        "Question",
    ]


def test_plugins_add_to_a_prompt_in_the_order_of_their_names() -> None:
    texts = {name: AdapterInstruction(system_addition=name.upper()) for name in ("c", "a", "b")}
    app = Karenina({name: Adds(lambda *_, made=made: made) for name, made in texts.items()})
    found = app.registry(AdapterInstructionRegistry).additions("parsing", "scripted", {})
    assert [one.system_addition for one in found] == ["A", "B", "C"]


def test_what_cannot_be_called_adds_nothing() -> None:
    app = Karenina({"odd": Adds(3)})
    assert app.plugin("odd").state == "failed"
    assert "3 is not an adapter instruction" in app.plugin("odd").reason


def test_without_a_system_text_there_is_no_system_message() -> None:
    assert client(ScriptedLLM()).prompt("generation", "", "Question") == [Message.user("Question")]


def test_a_model_that_takes_no_system_prompt_gets_one_message() -> None:
    llm = ScriptedLLM()
    llm.capabilities = PortCapabilities(supports_system_prompt=False)
    assert client(llm).prompt("generation", "Task", "Question") == [Message.user("Task\n\nQuestion")]


@pytest.mark.parametrize(
    ("task", "config", "expected"),
    [
        ("generation", PromptConfig(generation="G"), "G"),
        ("rubric_metric_trait", PromptConfig(rubric_evaluation="R"), "R"),
        ("dj_rubric_reasoning", PromptConfig(deep_judgment="D"), "D"),
        ("agentic_parsing_decision", PromptConfig(agentic_parsing="A"), "A"),
        ("abstention_detection", PromptConfig(abstention_detection="X", parsing="Y"), "X"),
        ("sufficiency_detection", PromptConfig(sufficiency_detection="S"), "S"),
        ("parsing", PromptConfig(), None),
    ],
)
def test_instructions_are_found_by_task_or_family(task: str, config: PromptConfig, expected: str | None) -> None:
    assert config.get_for_task(task) == expected


def test_a_task_may_ask_a_judge_for_a_temperature_of_its_own() -> None:
    llm = ScriptedLLM('{"a": 1}', '{"a": 1}')
    asyncio.run(client(llm).parse("abstention_detection", ASKED, SCHEMA, temperature=0.0))
    asyncio.run(client(llm).parse("abstention_detection", ASKED, SCHEMA))
    assert [call.temperature for call in llm.calls] == [0.0, None]
    assert [call.context.temperature for call in llm.calls if call.context] == [0.0, None]


def test_a_model_that_refuses_temperatures_is_sent_none() -> None:
    llm = ScriptedLLM('{"a": 1}', "BCL2")
    model = client(llm)
    model.model.config = ModelConfig(model_name="m", interface="scripted", temperature=None)
    asyncio.run(model.parse("abstention_detection", ASKED, SCHEMA, temperature=0.0))
    asyncio.run(model.invoke("generation", ASKED, temperature=0.0))
    assert [call.temperature for call in llm.calls] == [None, None]


def test_interrupted_calls_are_on_the_account() -> None:
    class Hanging(ScriptedLLM):
        async def ainvoke(self, *given: Any, **named: Any) -> LLMResponse:
            await asyncio.Event().wait()
            raise AssertionError

    async def run(use: str, *more: Any) -> None:
        model = client(Hanging("unused"))
        task = asyncio.create_task(getattr(model, use)("task", ASKED, *more))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        record = only(model.calls)
        assert (record.error_kind, record.attempts, record.usage_unavailable) == ("cancelled", 1, True)

    asyncio.run(run("invoke"))
    asyncio.run(run("parse", SCHEMA))


def test_replies_of_a_judge_without_usage_are_on_the_account_as_such() -> None:
    def reply(text: str, unmeasured: bool) -> LLMResponse:
        return LLMResponse(content=text, usage=UsageMetadata(1, 1, 2), usage_unavailable=unmeasured)

    async def valid(data: Mapping[str, Any]) -> None: ...

    for first, second in ((True, False), (False, True), (False, False)):
        model = client(ScriptedLLM(reply("no object", first), reply("{}", second)))
        asyncio.run(model.parse("task", ASKED, SCHEMA, validate=valid))
        assert only(model.calls).usage_unavailable == (first or second)
        failing = client(ScriptedLLM(reply("no object", first), reply("none again", second)))
        with pytest.raises(ParseError) as caught:
            asyncio.run(failing.parse("task", ASKED, SCHEMA))
        assert only(failing.calls).usage_unavailable == caught.value.usage_unavailable == (first or second)
