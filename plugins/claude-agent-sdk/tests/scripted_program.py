"""A program that speaks like the one that the SDK drives: it prints what the file beside it scripts.

It is copied and started as a program of its own. What it is given is written down, one JSON object a line: its
arguments, environment and folder, and every message on stdin.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
SERVER = "karenina"


def log(**facts: Any) -> None:
    with (HERE / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(facts) + "\n")


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps(message) + "\n")
    sys.stdout.flush()


class Line:
    """The messages on stdin."""

    def __init__(self) -> None:
        self.answers: dict[str, dict[str, Any]] = {}
        self.asked: list[dict[str, Any]] = []
        self.count = 0

    def read(self) -> dict[str, Any] | None:
        text = sys.stdin.readline()
        if not text:
            return None
        message: dict[str, Any] = json.loads(text)
        log(received=message)
        if message["type"] == "control_response":
            self.answers[message["response"]["request_id"]] = message["response"]
        elif message["type"] == "user":
            self.asked.append(message)
        return message

    def request(self, request: dict[str, Any]) -> str:
        self.count += 1
        number = f"r{self.count}"
        say({"type": "control_request", "request_id": number, "request": request})
        return number

    def answer(self, number: str) -> dict[str, Any]:
        while number not in self.answers:
            if self.read() is None:
                sys.exit(3)
        return self.answers.pop(number)

    def mcp(self, method: str, params: dict[str, Any], number: int | None = None) -> str:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        if number is not None:
            message["id"] = number
        return self.request({"subtype": "mcp_message", "server_name": SERVER, "message": message})


def shake_hands(line: Line, servers: dict[str, Any]) -> list[str]:
    """Begin the session; returns the names of the tools of the in-process server."""
    while (message := line.read()) is not None and message["type"] != "control_request":
        pass
    assert message is not None
    assert message["request"]["subtype"] == "initialize"
    answer = {"subtype": "success", "request_id": message["request_id"], "response": {"commands": []}}
    say({"type": "control_response", "response": answer})
    if SERVER not in servers:
        return []
    client = {"name": "scripted", "version": "1"}
    line.answer(line.mcp("initialize", {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client}, 1))
    line.answer(line.mcp("notifications/initialized", {}))
    listed = line.answer(line.mcp("tools/list", {}, 2))["response"]["mcp_response"]["result"]["tools"]
    log(tools=listed)
    return [tool["name"] for tool in listed]


def call_tools(line: Line, calls: list[dict[str, Any]]) -> None:
    """Call tools of the server at the same time, and report their answers in the order of the calls."""
    begun = [
        line.mcp("tools/call", {"name": call["name"], "arguments": call["input"]}, 100 + line.count) for call in calls
    ]
    for call, number in zip(calls, begun, strict=True):
        outcome = line.answer(number)["response"]["mcp_response"]["result"]
        block = {"type": "tool_result", "tool_use_id": call["id"], "content": outcome["content"]}
        if outcome.get("isError"):
            block["is_error"] = True
        say({"type": "user", "message": {"role": "user", "content": [block]}, "session_id": "s-1"})


def spawn(seconds: float) -> None:
    """Start a process that leaves the group and ignores SIGTERM."""
    code = f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep({seconds})"
    started = subprocess.Popen([sys.executable, "-c", code], start_new_session=True)
    log(spawned=started.pid)


def write(given: dict[str, str]) -> None:
    for name, text in given.items():
        Path(name).write_text(text, encoding="utf-8")


def flood(given: dict[str, Any]) -> None:
    for _ in range(given["times"]):
        os.write(given["to"], given["text"].encode())


STEPS: dict[str, Callable[[Any], Any]] = {
    "say": say,
    "raw": lambda text: (sys.stdout.write(text), sys.stdout.flush()),
    "stderr": lambda text: (sys.stderr.write(text), sys.stderr.flush()),
    "flood": flood,
    "sleep": time.sleep,
    "ignore": lambda name: signal.signal(getattr(signal, name), signal.SIG_IGN),
    "spawn": spawn,
    "write": write,
    "echo_environment": lambda name: say(
        {
            "type": "assistant",
            "message": {"id": "e", "model": "m", "content": [{"type": "text", "text": os.environ.get(name, "unset")}]},
        }
    ),
    "exit": lambda code: os._exit(code),
}


def main() -> None:
    files = sorted(path.name for path in Path().iterdir())
    log(started=sys.argv[1:], environment=dict(os.environ), folder=os.getcwd(), pid=os.getpid(), files=files)
    script = json.loads((HERE / "script.json").read_text("utf-8"))
    steps = script["steps"] if "--json-schema" not in sys.argv else script["structured"]
    for kind, given in script["first"]:
        STEPS[kind](given)
    line = Line()
    arguments = sys.argv[1:]
    config = json.loads(arguments[arguments.index("--mcp-config") + 1]) if "--mcp-config" in arguments else {}
    shake_hands(line, config.get("mcpServers", {}))
    while not line.asked:
        if line.read() is None:
            sys.exit(4)
    for kind, given in steps:
        if kind == "call":
            call_tools(line, given)
        else:
            STEPS[kind](given)
    while line.read() is not None:
        pass
    log(ended=True)


main()
