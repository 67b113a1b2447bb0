"""A fresh process: what importing and using litellm through the port touches outside of it."""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from karenina_litellm import library

from karenina_core.testing import Reply, ScriptedServer

PROCESS = """
import asyncio, json, os, socket, sys

reached, resolved = [], []

def watch(event, arguments):
    if event in ("socket.connect", "socket.sendto"):
        reached.append(repr(arguments[1]))
    elif event in ("socket.getaddrinfo", "socket.gethostbyname"):
        resolved.append(repr(arguments[0]))

sys.addaudithook(watch)
from karenina_core.values.config import ModelConfig
from karenina_core.values.message import Message
from karenina_core.errors import PortError
from karenina_litellm.port import LiteLLM

before = dict(os.environ)
ask = [Message.user("Hello " * 50)]

async def one(port):
    try:
        return (await port.ainvoke(ask)).content
    except PortError as error:
        return error.kind

async def stream(port):
    try:
        return "".join([piece async for piece in port.astream(ask)])
    except PortError as error:
        return error.kind

async def main(url):
    answers = {}
    routes = [(None, "m"), ("openai", "llama-3-8b"), ("deepseek", "m"), ("hosted_vllm", "meta-llama/Llama-2-7b")]
    for provider, name in [*routes, ("anthropic", "claude-x")]:
        extra = {"extra_headers": {"anthropic-beta": "context-1m-2025-08-07"}} if provider == "anthropic" else {}
        port = LiteLLM(
            ModelConfig(
                model_name=name,
                model_provider=provider,
                endpoint_base_url=url,
                request_timeout=20,
                extra_kwargs=extra,
            )
        )
        answers[f"{provider}/{name}"] = await one(port)
        answers[f"{provider}/{name} stream"] = await stream(port)
        await port.aclose()
    return answers

answers = asyncio.run(main(sys.argv[1]))
import litellm
changed = {name: value for name, value in os.environ.items() if before.get(name) != value}
print(json.dumps({
    "answers": answers, "reached": reached, "resolved": resolved, "changed": changed,
    "callbacks": litellm.callbacks + litellm.success_callback + litellm.failure_callback, "cache": repr(litellm.cache),
}))
"""
HOSTILE = """
OPENAI_API_BASE=http://192.0.2.1/v1
OPENAI_BASE_URL=http://192.0.2.1/v1
OPENAI_API_KEY=sk-from-dotenv
ANTHROPIC_API_BASE=http://192.0.2.1
HTTP_PROXY=http://192.0.2.1:3128
HTTPS_PROXY=http://192.0.2.1:3128
LITELLM_LOG=DEBUG
LITELLM_DROP_PARAMS=true
"""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    """What a process did that used the port in a folder with a hostile `.env`; warnings are errors in it."""
    folder: Path = tmp_path_factory.mktemp("hostile")
    (folder / ".env").write_text(HOSTILE)
    kept = {name: value for name, value in os.environ.items() if not name.startswith(("LITELLM_", "OPENAI_"))}
    environment = {name: value for name, value in kept.items() if not name.lower().endswith("_proxy")}
    with ScriptedServer(Reply("fine", usage=None)) as server:
        done = subprocess.run(
            [sys.executable, "-W", "error", "-c", PROCESS, server.url],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
            timeout=60,
        )
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return {**found, "url": server.url, "stdout": done.stdout, "stderr": done.stderr}


def test_it_answers_there(seen: dict[str, Any]) -> None:
    answers = dict(seen["answers"])
    assert answers.pop("anthropic/claude-x") == "invalid_request"  # the server speaks another protocol
    assert answers.pop("anthropic/claude-x stream") == "invalid_request"
    assert set(answers.values()) == {"fine"}


def test_nothing_is_looked_up_or_reached_but_the_configured_server(seen: dict[str, Any]) -> None:
    host, port = seen["url"].removeprefix("http://").removesuffix("/v1").split(":")
    assert set(seen["reached"]) == {repr((host, int(port)))}
    assert set(seen["resolved"]) <= {repr(host), repr(host.encode()), "None"}


def test_a_file_of_variables_in_the_working_directory_is_not_read(seen: dict[str, Any]) -> None:
    assert set(seen["changed"]) <= {
        "LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS",
        "LITELLM_LOCAL_MODEL_COST_MAP",
        "LITELLM_MODE",
        "LITELLM_OFFLINE_MODE",
        "TIKTOKEN_CACHE_DIR",
    }


def test_nothing_is_printed_and_no_callback_is_called(seen: dict[str, Any]) -> None:
    assert seen["stdout"].count("\n") == 1
    assert seen["stderr"] == ""
    assert seen["callbacks"] == []
    assert seen["cache"] == "None"


@pytest.mark.parametrize("before", [True, False])
def test_no_garbage_is_looked_for_while_it_is_imported(before: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = []
    monkeypatch.setattr(importlib, "import_module", lambda name: seen.append(gc.isenabled()))
    try:
        if not before:
            gc.disable()
        library._imported()
        assert (seen, gc.isenabled()) == ([False], before)
    finally:
        gc.enable()
