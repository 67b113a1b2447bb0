"""An agent that speaks version 1 of the Agent Client Protocol on stdin and stdout, and does what the file beside it
scripts.

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
SESSION = "s-1"


def log(**facts: Any) -> None:
    with (HERE / "log.jsonl").open("a", encoding="utf-8") as file:
        file.write(json.dumps(facts) + "\n")


def say(message: dict[str, Any]) -> None:
    sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
    sys.stdout.flush()


class Client:
    """karenina, at the other end."""

    def __init__(self, script: dict[str, Any]) -> None:
        self.script = script
        self.count = 0
        self.answers: dict[int, dict[str, Any]] = {}
        self.prompt: int | None = None
        self.cwd = ""
        self.servers: list[dict[str, Any]] = []
        self.cancelled = False
        self.kept: dict[str, Any] = {}

    def read(self) -> bool:
        """Take one message, answer what belongs to the beginning; False at the end."""
        line = sys.stdin.readline()
        if not line:
            return False
        message: dict[str, Any] = json.loads(line)
        log(received=message)
        method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method is None:
            self.answers[message["id"]] = message
        elif method == "session/cancel":
            self.cancelled = True
        elif method == "session/prompt":
            self.prompt = number
        elif method in self.script["refused"]:
            say({"id": number, "error": self.script["refused"][method]})
        else:
            if method == "session/new":
                self.cwd, self.servers = params["cwd"], params["mcpServers"]
            say({"id": number, "result": self.script["answers"].get(method, {})})
        return True

    def ask(self, given: dict[str, Any]) -> None:
        """Send a request, wait for its answer, and write it down."""
        self.count += 1
        params = self.filled({"sessionId": SESSION, **given["params"]})
        say({"id": self.count, "method": given["method"], "params": params})
        while self.count not in self.answers:
            if not self.read():
                sys.exit(3)
        answer = self.answers.pop(self.count)
        log(answer={given["method"]: answer.get("result", answer.get("error"))})
        self.kept |= answer.get("result") or {} if given["method"] == "terminal/create" else {}

    def filled(self, value: Any) -> Any:
        """The value with `$cwd` and `$terminal` as they are."""
        text = json.dumps(value).replace("$cwd", self.cwd).replace("$terminal", str(self.kept.get("terminalId")))
        return json.loads(text)

    def update(self, update: dict[str, Any]) -> None:
        params = {"sessionId": SESSION, "update": self.filled(update)}
        say({"method": "session/update", "params": params})

    def stop(self, result: dict[str, Any]) -> None:
        say({"id": self.prompt, "result": result})

    def fail(self, error: dict[str, Any]) -> None:
        say({"id": self.prompt, "error": error})

    def until_cancelled(self, result: dict[str, Any]) -> None:
        while not self.cancelled:
            if not self.read():
                sys.exit(4)
        self.stop(result)

    def use(self, calls: list[dict[str, Any]]) -> None:
        """Call tools of the first server, as a client of the Model Context Protocol on its stdio, and report them."""
        server = self.servers[0]
        child = subprocess.Popen(
            [server["command"], *server["args"]], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        assert child.stdin is not None
        assert child.stdout is not None

        def request(number: int, method: str, params: dict[str, Any]) -> Any:
            child.stdin.write(json.dumps({"jsonrpc": "2.0", "id": number, "method": method, "params": params}) + "\n")
            child.stdin.flush()
            return json.loads(child.stdout.readline())

        about = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": {"name": "a", "version": "1"}}
        log(mcp=request(1, "initialize", about)["result"])
        child.stdin.write('{"jsonrpc": "2.0", "method": "notifications/initialized"}\n')
        log(tools=request(2, "tools/list", {})["result"]["tools"])
        for number, call in enumerate(calls, start=3):
            name = f"mcp__karenina__{call['name']}"
            known = {"toolCallId": f"c{number}", "title": name, "name": name, "kind": "other"}
            self.update({"sessionUpdate": "tool_call", **known, "rawInput": call["arguments"], "status": "pending"})
            answer = request(number, "tools/call", call)
            log(called=answer)
            result = answer.get("result") or {"content": [{"type": "text", "text": str(answer)}], "isError": True}
            content = [{"type": "content", "content": block} for block in result["content"]]
            status = "failed" if result["isError"] else "completed"
            done = {"toolCallId": f"c{number}", "status": status, "content": content}
            self.update({"sessionUpdate": "tool_call_update", **done})
        child.stdin.close()
        child.wait(5)


def spawn(seconds: float) -> None:
    """Start a process that leaves the group and ignores SIGTERM."""
    code = f"import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep({seconds})"
    log(spawned=subprocess.Popen([sys.executable, "-c", code], start_new_session=True).pid)


def write(given: dict[str, str]) -> None:
    for name, text in given.items():
        Path(name).write_text(text, encoding="utf-8")


def flood(given: dict[str, Any]) -> None:
    for _ in range(given["times"]):
        os.write(given["to"], given["text"].encode())


def steps_of(client: Client) -> dict[str, Callable[[Any], Any]]:
    return {
        "update": client.update,
        "ask": client.ask,
        "stop": client.stop,
        "fail": client.fail,
        "until_cancelled": client.until_cancelled,
        "use": client.use,
        "raw": lambda text: (sys.stdout.write(text), sys.stdout.flush()),
        "stderr": lambda text: (sys.stderr.write(text), sys.stderr.flush()),
        "flood": flood,
        "sleep": time.sleep,
        "ignore": lambda name: signal.signal(getattr(signal, name), signal.SIG_IGN),
        "spawn": spawn,
        "write": write,
        "exit": os._exit,
    }


def main() -> None:
    files = sorted(path.name for path in Path().iterdir())
    log(started=sys.argv[1:], environment=dict(os.environ), folder=os.getcwd(), pid=os.getpid(), files=files)
    script = json.loads((HERE / "script.json").read_text("utf-8"))
    client = Client(script)
    steps = steps_of(client)
    for kind, given in script["first"]:
        steps[kind](given)
    while client.prompt is None:
        if not client.read():
            sys.exit(4)
    for kind, given in script["steps"]:
        steps[kind](given)
    while client.read():
        pass
    log(ended=True)


main()
