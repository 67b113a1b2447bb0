"""What a program has started ends with it, also in a session of its own; and what it answers is bounded in depth."""

from __future__ import annotations

import json
import shlex
import sys
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from karenina_calls.secrets.known_secrets import secrets_of
from karenina_mcp.tools import as_outcome

from karenina_core.testing import application

CHILD = "import time; time.sleep(300)"
SERVER = """
import json, subprocess, sys
def send(m): sys.stdout.write(json.dumps({"jsonrpc": "2.0", **m}) + chr(10)); sys.stdout.flush()
for line in sys.stdin:
    m = json.loads(line)
    if m.get("method") == "initialize":
        send({"id": m["id"], "result": {"protocolVersion": m["params"]["protocolVersion"],
             "capabilities": {"tools": {}}, "serverInfo": {"name": "s", "version": "1"}}})
    elif m.get("method") == "tools/list":
        send({"id": m["id"], "result": {"tools": [{"name": "t", "inputSchema": json.loads(sys.argv[1])}]}})
    elif m.get("method") == "tools/call":
        child = subprocess.Popen([sys.executable, "-c", sys.argv[2]], start_new_session=True,
                                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        send({"id": m["id"], "result": {"content": [{"type": "text", "text": str(child.pid)}]}})
    elif "id" in m:
        send({"id": m["id"], "error": {"code": -32601, "message": "no"}})
"""


def address(folder: Path, schema: Any) -> str:
    script = folder / "leaving.py"
    script.write_text(SERVER, "utf-8")
    return shlex.join([sys.executable, str(script), json.dumps(schema), CHILD])


def nested(levels: int) -> Any:
    value: Any = 1
    for _ in range(levels):
        value = {"a": value}
    return value


def is_there(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="only Linux shows the environment of processes")
def test_a_child_in_a_session_of_its_own_ends_with_the_program(tmp_path: Path, connect: Any) -> None:
    async def use(client: Any, tools: dict[str, Any]) -> int:
        pid = int((await tools["t"].run({})).content)
        assert is_there(pid)
        return pid

    pid = connect(address(tmp_path, {"type": "object"}), use)
    until = time.monotonic() + 3
    while is_there(pid) and time.monotonic() < until:
        time.sleep(0.02)
    assert not is_there(pid)


def test_a_schema_that_is_nested_too_deeply_is_refused_when_the_tools_are_listed(tmp_path: Path, connect: Any) -> None:
    async def use(client: Any, tools: dict[str, Any]) -> None: ...

    with pytest.raises(Exception, match="levels deep"):
        connect(address(tmp_path, {"type": "object", "properties": nested(70)}), use)


@pytest.mark.parametrize("levels", [65, 900])
def test_structured_content_that_is_nested_too_deeply_is_named_and_not_shown(levels: int) -> None:
    result = SimpleNamespace(content=[], structured_content=nested(levels), is_error=False)
    assert "more than 64 levels deep" in as_outcome(result).content


@pytest.mark.parametrize("settings", [{"token_env": {"library": "BOOKS"}}, {"environment": {"library": ["BOOKS"]}}])
def test_variables_that_servers_are_given_are_secrets_whatever_they_are_called(
    settings: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("BOOKS", "for the server alone")
    assert "for the server alone" in secrets_of(application(installed=True, settings={"mcp": settings}), [])
    assert "for the server alone" not in secrets_of(application(installed=True), [])
