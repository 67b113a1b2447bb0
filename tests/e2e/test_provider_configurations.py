"""The configurations of docs/how-to/run-against-your-models.md, each run against a server with that provider's ways.

The snippets are taken from the page; only the address is replaced by that of a server on loopback.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, unquote

import pytest
from karenina_runs.config.config_file import load_config

from karenina_core import Benchmark
from karenina_core.testing import ChatCompletions, Reply, ScriptedServer, ServedRequest, Spoken, Wire
from karenina_core.values.result import VerificationResult

REPOSITORY = Path(__file__).resolve().parents[2]
PAGE = REPOSITORY / "docs" / "how-to" / "run-against-your-models.md"
KEY = "key-of-the-provider-0123456789"
ANSWER = "Digoxin inhibits the sodium-potassium ATPase. Hypokalaemia makes toxicity more likely."
FIELDS = {"pump": "sodium-potassium ATPase", "hypokalaemia_raises_risk": True}


class Azure(ChatCompletions):
    """A path for each deployment, a version in the query, a header of its own for the key, results of a filter.

    https://learn.microsoft.com/azure/ai-foundry/openai/reference
    """

    base = ""
    suffix = "/openai/deployments/my-deployment/chat/completions"

    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> ServedRequest:
        assert parse_qs(path.partition("?")[2]) == {"api-version": ["2024-10-21"]}
        assert "authorization" not in headers
        return super().read(path, {"authorization": f"Bearer {headers['api-key']}"}, body)

    def write(self, request: ServedRequest, reply: Spoken) -> Mapping[str, Any]:
        safe = {name: {"filtered": False, "severity": "safe"} for name in ("hate", "self_harm", "sexual", "violence")}
        body = super().write(request, reply)
        choices = [{**choice, "content_filter_results": safe} for choice in body["choices"]]
        return {
            **body,
            "choices": choices,
            "prompt_filter_results": [{"prompt_index": 0, "content_filter_results": safe}],
        }

    def error(self, reply: Reply) -> tuple[int, Mapping[str, Any]]:
        found = {"innererror": {"code": "ResponsibleAIPolicyViolation"}} if reply.code else {}
        return reply.status, {"error": {"message": reply.failure, "type": None, "code": reply.code, **found}}


class Converse(Wire):
    """Amazon Bedrock: https://docs.aws.amazon.com/bedrock/latest/APIReference/API_runtime_Converse.html.

    The signature (https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_sigv.html) is not verified, only that
    there is one, made with the right name of the key, region and service.
    """

    suffix = "/converse"

    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> ServedRequest:
        signed = re.fullmatch(
            r"AWS4-HMAC-SHA256 Credential=(\w+)/\d{8}/eu-central-1/bedrock/aws4_request, "
            r"SignedHeaders=[\w;-]+, Signature=[0-9a-f]{64}",
            headers["authorization"],
        )
        assert signed
        assert headers["x-amz-date"]
        tools = {
            tool["toolSpec"]["name"]: tool["toolSpec"]["inputSchema"]["json"]
            for tool in (body.get("toolConfig") or {}).get("tools", ())
        }
        forced = (((body.get("toolConfig") or {}).get("toolChoice") or {}).get("tool") or {}).get("name")
        wanted = ((body.get("outputConfig") or {}).get("textFormat") or {}).get("structure")
        schema = {"channel": "json_schema", "schema": json.loads(wanted["jsonSchema"]["schema"])} if wanted else {}
        turns = [
            {"role": turn["role"], "content": "".join(block.get("text", "") for block in turn["content"])}
            for turn in ({"role": "system", "content": body.get("system", ())}, *body["messages"])
        ]
        return ServedRequest(
            body=body,
            model=unquote(path.split("/")[-2]),
            messages=turns,
            tools=tools,
            tool_name=forced,
            temperature=body.get("inferenceConfig", {}).get("temperature"),
            key=signed[1],
            **schema,
        )

    def write(self, request: ServedRequest, reply: Spoken) -> Mapping[str, Any]:
        blocks: list[dict[str, Any]] = [{"text": reply.text}] if reply.text is not None else []
        blocks += [{"toolUse": {"toolUseId": call.id, "name": call.name, "input": call.input}} for call in reply.calls]
        assert reply.usage is not None
        used = {"inputTokens": reply.usage.input_tokens, "outputTokens": reply.usage.output_tokens}
        return {
            "output": {"message": {"role": "assistant", "content": blocks}},
            "stopReason": {"stop": "end_turn", "tool_calls": "tool_use"}[reply.finish_reason],
            "usage": {**used, "totalTokens": reply.usage.total_tokens},
            "metrics": {"latencyMs": 1},
        }

    def error(self, reply: Reply) -> tuple[int, Mapping[str, Any]]:
        return reply.status, {"message": reply.failure}


class BedrockChat(ChatCompletions):
    """Bedrock's chat completions: https://docs.aws.amazon.com/bedrock/latest/userguide/inference-chat-completions.html."""

    base = ""
    suffix = "/openai/v1/chat/completions"


class Ollama(ChatCompletions):
    """Keys are ignored, a tool cannot be forced, thoughts are `reasoning`: https://docs.ollama.com/api/openai-compatibility."""

    def read(self, path: str, headers: Mapping[str, str], body: Mapping[str, Any]) -> ServedRequest:
        return super().read(path, {}, {name: value for name, value in body.items() if name != "tool_choice"})

    def write(self, request: ServedRequest, reply: Spoken) -> Mapping[str, Any]:
        body = super().write(request, reply)
        for choice in body["choices"]:
            choice["message"]["reasoning"] = choice["message"].pop("reasoning_content", None) or "Let me see."
        return {**body, "system_fingerprint": "fp_ollama"}


class VLLM(ChatCompletions):
    """Errors by their status, fields that are null, arguments of its own beside those of OpenAI.

    https://docs.vllm.ai/en/latest/serving/openai_compatible_server/
    """

    def write(self, request: ServedRequest, reply: Spoken) -> Mapping[str, Any]:
        body = super().write(request, reply)
        for choice in body["choices"]:
            choice["message"] |= {"refusal": None, "audio": None, "tool_calls": [], "reasoning": None}
            choice |= {"logprobs": None, "stop_reason": None, "token_ids": None}
        return {**body, "prompt_logprobs": None, "kv_transfer_params": None}

    def error(self, reply: Reply) -> tuple[int, Mapping[str, Any]]:
        if reply.status == 401:
            return 401, {"error": "Unauthorized"}
        return reply.status, {"error": {"message": reply.failure, "type": "BadRequestError", "code": reply.status}}


CASES: dict[str, tuple[str, int, Wire, str]] = {
    "Azure OpenAI": ("Azure OpenAI", 0, Azure(), "https://my-resource.openai.azure.com"),
    "Bedrock": ("Amazon Bedrock", 0, Converse(), "https://bedrock-runtime.eu-central-1.amazonaws.com"),
    "Bedrock's chat completions": (
        "Amazon Bedrock",
        1,
        BedrockChat(),
        "https://bedrock-runtime.eu-central-1.amazonaws.com",
    ),
    "Ollama": ("Ollama", 0, Ollama(), "http://localhost:11434/v1"),
    "vLLM": ("vLLM", 0, VLLM(), "http://localhost:8000/v1"),
}
"""Heading of the page, which snippet below it, the server's ways, the address in the snippet."""
VARIABLES = ("AZURE_OPENAI_API_KEY", "AWS_BEARER_TOKEN_BEDROCK", "VLLM_API_KEY")


def snippet(heading: str, number: int) -> str:
    section = PAGE.read_text("utf-8").split(f"\n## {heading}\n")[1].split("\n## ")[0]
    return re.findall(r"```toml\n(.*?)```", section, re.DOTALL)[number]


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """`run(case, script)`: the result of one question, and the server that was asked."""

    def ran(case: str, script: Any) -> tuple[VerificationResult, ScriptedServer]:
        heading, number, wire, address = CASES[case]
        for name in VARIABLES:
            monkeypatch.delenv(name, raising=False)
        text = snippet(heading, number)
        for name in re.findall(r'api_key_env = "(\w+)"', text):
            monkeypatch.setenv(name, KEY)
        if isinstance(wire, Converse):
            monkeypatch.setenv("AWS_ACCESS_KEY_ID", "AKIDEXAMPLE")
            monkeypatch.setenv("AWS_SECRET_ACCESS_KEY", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY")
        assert text.count(address) == 1
        with ScriptedServer(script, wire=wire) as server:
            path = tmp_path / "karenina.toml"
            path.write_text(text.replace(address, server.url), "utf-8")
            loaded = load_config(path)
            benchmark = Benchmark.load(REPOSITORY / "examples" / "pharmacology.jsonld", app=loaded.app)
            (result,) = benchmark.run_verification(loaded.config, question_ids=["digoxin"], app=loaded.app)
        return result, server

    return ran


def answered(request: ServedRequest) -> Reply:
    return Reply(ANSWER if request.channel == "text" else FIELDS, usage=(10, 5))


@pytest.mark.parametrize("case", CASES)
def test_the_configuration_of_the_page_works(case: str, run: Any) -> None:
    result, server = run(case, answered)
    assert result.generation is not None
    assert result.template is not None
    assert (str(result.outcome), result.generation.raw_llm_response) == ("passed", ANSWER)
    assert result.template.parsed_llm_response == FIELDS
    assert result.template.judge_channel == "json_schema"
    assert [request.channel for request in server.requests] == ["text", "json_schema"]
    keys = {request.key for request in server.requests}
    expected = {"Bedrock": "AKIDEXAMPLE", "Ollama": None}.get(case, KEY)
    assert keys == {expected}


def test_what_the_snippets_add_reaches_the_server(run: Any) -> None:
    _, azure = run("Azure OpenAI", answered)
    _, bedrock = run("Bedrock", answered)
    _, ollama = run("Ollama", answered)
    _, vllm = run("vLLM", answered)
    assert azure.requests[0].path.startswith("/openai/deployments/my-deployment/chat/completions?")
    assert bedrock.requests[0].model == "eu.anthropic.claude-sonnet-4-5-20250929-v1:0"
    assert "aws_region_name" not in bedrock.requests[0].body
    assert ollama.requests[0].body["reasoning_effort"] == "low"
    assert vllm.requests[0].body["chat_template_kwargs"] == {"enable_thinking": False}
    assert vllm.requests[0].body["seed"] == 7


@pytest.mark.parametrize(
    ("case", "reply", "kind"),
    [
        ("Azure OpenAI", Reply.error(400, "The prompt triggered a policy.", code="content_filter"), "content_filter"),
        ("Azure OpenAI", Reply.error(401, "Access denied due to invalid subscription key"), "auth"),
        ("Bedrock", Reply.error(403, "The security token included in the request is invalid."), "auth"),
        ("Ollama", Reply.error(404, 'model "qwen3:8b" not found, try pulling it first'), "invalid_request"),
        ("vLLM", Reply.error(401), "auth"),
        ("vLLM", Reply.error(404, "The model `Qwen/Qwen3-8B` does not exist."), "invalid_request"),
    ],
)
def test_the_providers_own_errors_are_understood(case: str, reply: Reply, kind: str, run: Any) -> None:
    result, server = run(case, reply)
    assert str(result.outcome) == f"error({kind})"
    assert server.count == 1
