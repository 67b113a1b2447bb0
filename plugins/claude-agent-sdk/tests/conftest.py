"""The scripted program, what it says, and what it was given."""

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
from karenina_claude_agent_sdk.ports import ClaudeAgent, ClaudeModel
from karenina_claude_agent_sdk.settings import ClaudeAgentSdkSettings

from karenina_core import ModelConfig

Step = tuple[str, Any]
USAGE = {"input_tokens": 10, "output_tokens": 4, "cache_read_input_tokens": 3, "cache_creation_input_tokens": 2}
KEY = "sk-ant-canary-0123456789"


class Says:
    """Steps of the program."""

    @staticmethod
    def init() -> Step:
        return "say", {"type": "system", "subtype": "init", "session_id": "s-1", "tools": [], "model": "claude-x"}

    @staticmethod
    def reply(*blocks: Mapping[str, Any], id: str = "m1", usage: Mapping[str, Any] | None = USAGE) -> list[Step]:
        """One reply of the model, handed over block by block as the program does."""
        frames = []
        for block in blocks:
            message = {"id": id, "model": "claude-x-1", "role": "assistant", "content": [block], "usage": usage}
            frames.append(("say", {"type": "assistant", "message": message, "session_id": "s-1"}))
        return frames

    @staticmethod
    def text(text: str) -> dict[str, Any]:
        return {"type": "text", "text": text}

    @staticmethod
    def thinking(text: str) -> dict[str, Any]:
        return {"type": "thinking", "thinking": text, "signature": "sig"}

    @staticmethod
    def use(id: str, name: str, **given: Any) -> dict[str, Any]:
        return {"type": "tool_use", "id": id, "name": name, "input": given}

    @staticmethod
    def call(*calls: tuple[str, str, Mapping[str, Any]]) -> Step:
        return "call", [{"id": id, "name": name, "input": given} for id, name, given in calls]

    @staticmethod
    def answer(id: str, content: Any, is_error: bool = False) -> Step:
        block = {"type": "tool_result", "tool_use_id": id, "content": content, "is_error": is_error}
        return "say", {"type": "user", "message": {"role": "user", "content": [block]}, "session_id": "s-1"}

    @staticmethod
    def result(text: str | None = None, **facts: Any) -> Step:
        known = {
            "type": "result",
            "subtype": "success",
            "duration_ms": 5,
            "duration_api_ms": 4,
            "is_error": False,
            "num_turns": 1,
            "session_id": "s-1",
            "total_cost_usd": 0.25,
            "usage": {**USAGE, "output_tokens": 40},
            "result": text,
        }
        return "say", {**known, **facts}

    @staticmethod
    def refusal(error: str, text: str) -> Step:
        """What the program writes in place of a reply."""
        message = {"id": "x", "model": "<synthetic>", "content": [{"type": "text", "text": text}]}
        return "say", {"type": "assistant", "message": message, "error": error, "session_id": "s-1"}


@define(eq=False)
class Scripted:
    """The program in a folder of its own."""

    folder: Path

    @property
    def path(self) -> Path:
        return self.folder / "claude"

    @property
    def settings(self) -> ClaudeAgentSdkSettings:
        return ClaudeAgentSdkSettings(program=str(self.path))

    def log(self) -> list[dict[str, Any]]:
        file = self.folder / "log.jsonl"
        return [json.loads(line) for line in file.read_text("utf-8").splitlines()] if file.exists() else []

    def noted(self, name: str) -> list[Any]:
        return [row[name] for row in self.log() if name in row]

    @property
    def arguments(self) -> list[str]:
        return list(self.noted("started")[-1])

    def option(self, name: str) -> str | None:
        """The value of an option of the last start; an empty text where it has none, None where it is not given."""
        arguments = self.arguments
        for position, argument in enumerate(arguments):
            if argument == name:
                return arguments[position + 1] if position + 1 < len(arguments) else ""
            if argument.startswith(f"{name}="):
                return argument.partition("=")[2]
        return None

    @property
    def environment(self) -> dict[str, str]:
        return dict(self.noted("environment")[-1])

    @property
    def asked(self) -> list[str]:
        """The texts that the program was asked to reply to."""
        return [m["message"]["content"] for m in self.noted("received") if m["type"] == "user"]


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
    """`scripted(*steps, first=[...], structured=[...])`: a program that does these things.

    `first` is done before it answers anything, `structured` in place of the steps where data of a schema is asked for.
    """
    source = Path(__file__).with_name("scripted_program.py").read_text("utf-8")
    made: list[Scripted] = []

    def make(*steps: Any, first: Sequence[Step] = (), structured: Sequence[Step] = ()) -> Scripted:
        folder = tmp_path / f"program {len(made)}"
        folder.mkdir()
        script = {"steps": _flat(steps), "first": _flat(first), "structured": _flat(structured)}
        (folder / "script.json").write_text(json.dumps(script), encoding="utf-8")
        program = Scripted(folder)
        program.path.write_text(f"#!{sys.executable} -IS\n{source}", encoding="utf-8")
        program.path.chmod(program.path.stat().st_mode | stat.S_IXUSR)
        made.append(program)
        return program

    yield make
    left = [pid for program in made for pid in (*program.noted("pid"), *program.noted("spawned")) if alive(pid)]
    for pid in left:
        os.kill(pid, 9)
    assert not left, "a program survived its session"


def _flat(steps: Sequence[Any]) -> list[Step]:
    return [part for step in steps for part in (step if isinstance(step, list) else [step])]


def model(**fields: Any) -> ModelConfig:
    return ModelConfig(**{"model_name": "claude-x", "interface": "claude_agent_sdk", "endpoint_api_key": KEY, **fields})


@pytest.fixture
def agent() -> Callable[..., ClaudeAgent]:
    """`agent(program, **fields of the model's configuration)`."""
    return lambda program, **fields: ClaudeAgent(model(**fields), program.settings)


@pytest.fixture
def asked_model() -> Callable[..., ClaudeModel]:
    """The same for single calls."""
    return lambda program, **fields: ClaudeModel(model(**fields), program.settings)
