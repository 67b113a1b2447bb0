"""The scripted agent, what it says, and what it was given."""

from __future__ import annotations

import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from attrs import define
from karenina_acp.ports import AcpAgent, AcpModel
from karenina_acp.settings import AcpSettings

from karenina_core import ModelConfig

Step = tuple[str, Any]
USAGE = {"totalTokens": 19, "inputTokens": 10, "outputTokens": 4, "cachedReadTokens": 3, "cachedWriteTokens": 2}
BEGINNING: Mapping[str, Any] = {
    "initialize": {
        "protocolVersion": 1,
        "agentCapabilities": {"mcpCapabilities": {"http": True}},
        "agentInfo": {"name": "scripted", "version": "1"},
        "authMethods": [],
    },
    "session/new": {"sessionId": "s-1"},
}


class Says:
    """Steps of the agent."""

    @staticmethod
    def text(text: str, kind: str = "message", **more: Any) -> Step:
        content = {"type": "text", "text": text}
        return "update", {"sessionUpdate": f"agent_{kind}_chunk", "content": content, **more}

    @staticmethod
    def thought(text: str) -> Step:
        return Says.text(text, "thought")

    @staticmethod
    def call(id: str, kind: str = "read", **more: Any) -> Step:
        known = {"toolCallId": id, "title": f"a call to {kind}", "kind": kind, "status": "pending"}
        return "update", {"sessionUpdate": "tool_call", **known, **more}

    @staticmethod
    def done(id: str, text: str = "", status: str = "completed", **more: Any) -> Step:
        content = [{"type": "content", "content": {"type": "text", "text": text}}] if text else []
        known = {"toolCallId": id, "status": status, "content": content}
        return "update", {"sessionUpdate": "tool_call_update", **known, **more}

    @staticmethod
    def ask(method: str, **params: Any) -> Step:
        return "ask", {"method": method, "params": params}

    @staticmethod
    def permission(id: str, **about: Any) -> Step:
        options = [
            {"optionId": "no", "name": "Reject", "kind": "reject_once"},
            {"optionId": "always", "name": "Always", "kind": "allow_always"},
            {"optionId": "yes", "name": "Allow", "kind": "allow_once"},
        ]
        return Says.ask("session/request_permission", toolCall={"toolCallId": id, **about}, options=options)

    @staticmethod
    def used(tokens: int, cost: float | None = None, currency: str = "USD") -> Step:
        about = {} if cost is None else {"cost": {"amount": cost, "currency": currency}}
        return "update", {"sessionUpdate": "usage_update", "used": tokens, "size": 200_000, **about}

    @staticmethod
    def stop(reason: str = "end_turn", usage: Mapping[str, Any] | None = None) -> Step:
        return "stop", {"stopReason": reason, **({"usage": usage} if usage else {})}


@define(eq=False)
class Scripted:
    """The agent in a folder of its own."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / "agent"

    def log(self) -> list[dict[str, Any]]:
        file = self.folder / "log.jsonl"
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []

    def noted(self, name: str) -> list[Any]:
        return [row[name] for row in self.log() if name in row]

    def asked(self, method: str) -> list[Any]:
        """The parameters of the requests and notifications of this method."""
        return [message.get("params") for message in self.noted("received") if message.get("method") == method]

    def answers(self, method: str) -> list[Any]:
        """What karenina answered to the agent's requests of this method."""
        return [row[method] for row in self.noted("answer") if method in row]


def alive(pid: int) -> bool:
    """Whether a process still runs; one that is only waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def has_ended(pid: int, seconds: float = 2.0) -> bool:
    until = time.monotonic() + seconds
    while alive(pid):
        if time.monotonic() > until:
            return False
        time.sleep(0.02)
    return True


@pytest.fixture
def says() -> type[Says]:
    return Says


@pytest.fixture
def process_has_ended() -> Callable[[int], bool]:
    return has_ended


@pytest.fixture
def scripted(tmp_path: Path) -> Iterator[Callable[..., Scripted]]:
    """`scripted(*steps, first=[...], answers={...}, refused={...})`: an agent that does these things.

    `first` is done before it answers anything; `answers` and `refused` are what it says to methods of the beginning.
    """
    source = Path(__file__).with_name("scripted_agent.py").read_text("utf-8")
    made: list[Scripted] = []

    def make(
        *steps: Step,
        first: Sequence[Step] = (),
        answers: Mapping[str, Any] | None = None,
        refused: Mapping[str, Any] | None = None,
    ) -> Scripted:
        folder = tmp_path / f"agent {len(made)}"
        folder.mkdir()
        given = {"steps": steps, "first": first, "answers": {**BEGINNING, **(answers or {})}, "refused": refused or {}}
        (folder / "script.json").write_text(json.dumps(given), encoding="utf-8")
        agent = Scripted(folder)
        agent.path.write_text(f"#!{sys.executable} -IS\n{source}", encoding="utf-8")
        agent.path.chmod(agent.path.stat().st_mode | stat.S_IXUSR)
        made.append(agent)
        return agent

    yield make
    left = [pid for agent in made for pid in (*agent.noted("pid"), *agent.noted("spawned")) if alive(pid)]
    for pid in left:
        os.kill(pid, 9)
    assert not left, "an agent survived its session"


def model(program: Scripted, **fields: Any) -> ModelConfig:
    extra = {"command": [str(program.path)], **fields.pop("extra_kwargs", {})}
    return ModelConfig(**{"model_name": "default", "interface": "acp", "extra_kwargs": extra, **fields})


@pytest.fixture
def agent() -> Callable[..., AcpAgent]:
    """`agent(program, settings={...}, **fields of the model's configuration)`."""
    return lambda program, settings=None, **fields: AcpAgent(model(program, **fields), AcpSettings(**(settings or {})))


@pytest.fixture
def asked_model() -> Callable[..., AcpModel]:
    """The same for single calls."""
    return lambda program, **fields: AcpModel(model(program, **fields))
