"""langchain's own ChatOpenAI over the scripted server."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from karenina_langchain import problems
from karenina_langchain.checks import NOWHERE
from karenina_langchain.port import LangchainModel

from karenina_core import Benchmark, Karenina, ModelConfig, VerificationConfig
from karenina_core.errors import AdapterUnavailableError, ConfigError, PortError
from karenina_core.ports.values import LLMResponse, OutputFormat, Tool
from karenina_core.testing import Reply, ScriptedServer, application
from karenina_core.values.message import Message, ToolUseBlock

pytestmark = pytest.mark.skipif(importlib.util.find_spec("langchain_openai") is None, reason="needs langchain-openai")

EXAMPLES = Path(__file__).parents[3] / "examples"
ASK = (Message.system("Be exact."), Message.user("What is the capital of France?"))
KEY = "sk-canary-0123456789-abcdef"
SCHEMA = {"type": "object", "properties": {"capital": {"type": "string"}}, "required": ["capital"]}


def model(url: str = NOWHERE, **fields: Any) -> ModelConfig:
    known = {"model_name": "m", "model_provider": "openai", "interface": "langchain", "endpoint_base_url": url}
    return ModelConfig(**{**known, "endpoint_api_key": KEY, **fields})


def ask(config: ModelConfig, messages: Any = ASK, **options: Any) -> LLMResponse:
    async def call() -> LLMResponse:
        port = LangchainModel(config)
        try:
            return await port.ainvoke(messages, **options)
        finally:
            await port.aclose()

    return asyncio.run(call())


def test_the_entry_module_imports_nothing_heavy() -> None:
    code = (
        "import sys, karenina_langchain; "
        "print(sorted({'langchain', 'langchain_core', 'langsmith', 'pydantic', 'asyncio'} & set(sys.modules)))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=30, check=True)
    assert done.stdout.strip() == "[]"


def test_a_conversation_with_tools_arrives_as_it_was() -> None:
    tool = Tool(name="look_up", description="Looks up.", input_schema=SCHEMA)
    called = ToolUseBlock("c1", "look_up", {"capital": "Paris"})
    messages = (*ASK, Message.assistant("Let me look.", [called]), Message.tool_result("c1", "no", is_error=True))
    with ScriptedServer("Paris") as server:
        ask(model(server.url), messages, tools=[tool])
        (request,) = server.requests
    roles = [(message["role"], message["content"]) for message in request.messages]
    assert roles == [
        ("system", "Be exact."),
        ("user", "What is the capital of France?"),
        ("assistant", "Let me look."),
        ("tool", "[ERROR] no"),
    ]
    (sent,) = request.messages[2]["tool_calls"]
    assert (sent["id"], sent["function"]["name"]) == ("c1", "look_up")
    assert [one["function"]["name"] for one in request.body["tools"]] == ["look_up"]
    assert request.key == KEY


@pytest.mark.parametrize(("reason", "partial"), [("stop", False), ("length", True)])
def test_the_reason_why_a_reply_ended_is_kept(reason: str, partial: bool) -> None:
    with ScriptedServer(Reply("Par", finish_reason=reason)) as server:
        reply = ask(model(server.url))
    assert (reply.finish_reason, reply.is_partial) == (reason, partial)


def test_reasons_of_other_providers_are_understood() -> None:
    from langchain_core.messages import AIMessage

    port = LangchainModel(model())
    for about, reason in (({"stop_reason": "max_tokens"}, "length"), ({"finish_reason": "STOP"}, "stop")):
        reply = port._reply(AIMessage(content="Par", response_metadata=about), None)
        assert reply.finish_reason == reason
    with pytest.raises(PortError) as caught:
        port._reply(AIMessage(content="", response_metadata={"finish_reason": "SAFETY"}), None)
    assert caught.value.kind == "content_filter"


def test_thinking_and_caches_of_other_providers_are_understood() -> None:
    from langchain_core.messages import AIMessage

    content = [{"type": "reasoning", "reasoning": "Hm."}, {"type": "text", "text": "Paris"}]
    details = {"cache_read": 3, "cache_creation": 2}
    usage = {"input_tokens": 10, "output_tokens": 4, "total_tokens": 14, "input_token_details": details}
    message = AIMessage(content=content, usage_metadata=usage, response_metadata={"model_name": "m-1"})  # type: ignore[arg-type]  # plain data, as providers' packages give it
    reply = LangchainModel(model())._reply(message, None)
    assert (reply.content, reply.thinking, reply.actual_model) == ("Paris", "Hm.", "m-1")
    assert (reply.usage.cache_read_tokens, reply.usage.cache_creation_tokens, reply.usage.total_tokens) == (3, 2, 14)


def test_arguments_that_cannot_be_read_are_malformed_calls() -> None:
    from langchain_core.messages import AIMessage

    broken = [{"id": "c1", "name": "look_up", "args": '{"a": ', "error": None, "type": "invalid_tool_call"}]
    reply = LangchainModel(model())._reply(AIMessage(content="", invalid_tool_calls=broken), None)  # type: ignore[arg-type]  # plain data
    assert (reply.malformed_calls, reply.tool_calls[0].name) == ((0,), "look_up")


def test_a_model_without_structured_output_refuses_the_channel() -> None:
    from langchain_core.language_models import FakeListChatModel

    port = LangchainModel(model())
    with pytest.raises(PortError) as caught:
        port._asked(FakeListChatModel(responses=["a"]), OutputFormat("json_schema", SCHEMA), None, ())
    assert (caught.value.kind, caught.value.status) == ("invalid_request", 501)


def test_an_argument_that_the_model_does_not_take_is_the_configurations_fault() -> None:
    with ScriptedServer("Paris") as server, pytest.raises(PortError, match="takes no such argument") as caught:
        ask(model(server.url, extra_kwargs={"model_kwargs": {"of_tomorrow": 1}}))
    assert caught.value.kind == "invalid_request"


def test_nothing_is_sent_to_a_tracing_service(monkeypatch: pytest.MonkeyPatch) -> None:
    with ScriptedServer("Paris") as server, ScriptedServer("") as service:
        monkeypatch.setenv("LANGSMITH_TRACING", "true")
        monkeypatch.setenv("LANGSMITH_API_KEY", "ls-0123456789")
        monkeypatch.setenv("LANGSMITH_ENDPOINT", service.url)
        assert ask(model(server.url)).content == "Paris"
        assert service.count == 0


def test_a_provider_without_its_package_is_named_with_what_to_install() -> None:
    with pytest.raises(AdapterUnavailableError, match="langchain-cohere"):
        asyncio.run(LangchainModel(model(model_provider="cohere", endpoint_base_url=None)).aopen())


def test_a_missing_key_is_a_problem_of_the_configuration(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY", raising=False)
    with pytest.raises(ConfigError, match="openai:m"):
        asyncio.run(LangchainModel(model(endpoint_base_url=None, endpoint_api_key=None)).aopen())


def test_a_server_of_the_users_choice_gets_no_key_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    with ScriptedServer("Paris") as server:
        ask(model(server.url, endpoint_api_key=None))
        assert server.requests[0].key == "no-key"


def test_arguments_that_karenina_sets_are_refused() -> None:
    config = model(extra_kwargs={"max_retries": 3, "reasoning_effort": "low"})
    assert list(problems(config)) == ["extra_kwargs.max_retries: is set by karenina; leave it out"]


def test_without_langchain_the_name_is_served_by_litellm() -> None:
    code = """
import sys
sys.modules["langchain"] = None
from karenina_core import Karenina
found = Karenina.installed().adapters.resolve_interface("langchain")
print(found.interface, "|", found.note)
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    interface, _, note = ran.stdout.strip().partition(" | ")
    assert interface == "litellm"
    assert note.endswith('langchain is not installed; pip install "karenina-langchain[library]"')
    assert Karenina.installed().adapters.resolve_interface("langchain").interface == "langchain"


def test_a_benchmark_is_verified_with_it() -> None:
    fields = {"pump": "sodium-potassium ATPase", "hypokalaemia_raises_risk": True}

    def script(request: Any) -> Any:
        return "It inhibits the sodium-potassium ATPase." if request.channel == "text" else fields

    with ScriptedServer(script) as server:
        config = VerificationConfig(answering_models=[model(server.url)], parsing_models=[model(server.url)])
        benchmark = Benchmark.load(EXAMPLES / "pharmacology.jsonld")
        (result,) = benchmark.run_verification(config, question_ids=["digoxin"], app=application(installed=True))
    assert str(result.outcome) == "passed", result.metadata.error
    assert result.template is not None
    assert result.template.judge_channel == "json_schema"
