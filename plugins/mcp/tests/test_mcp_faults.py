"""Servers that do not do what they should, and addresses that lead nowhere."""

from __future__ import annotations

import asyncio
import importlib.util
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from karenina_mcp.server import McpServer
from karenina_mcp.settings import McpSettings

from karenina_core.errors import AdapterUnavailableError, PortError

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("mcp") is None, reason='the SDK is missing: pip install "karenina-mcp[sdk]"'
)

Connect = Callable[..., Any]


async def calls(client: McpServer, tools: dict[str, Any]) -> Any:
    return await tools["tool"].run({})


def test_a_program_that_ends_at_once_is_reported_with_its_last_output(connect: Connect, plain: Any) -> None:
    with pytest.raises(PortError, match=r"exit code 1.*cannot find the file of settings") as caught:
        connect(plain("dies"), calls)
    assert caught.value.kind == "connection"


def test_a_secret_that_a_program_prints_is_not_in_the_error(connect: Connect, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOOL_KEY", "hunter2hunter2")
    leaky = f'{sys.executable} -c \'import os, sys; sys.exit("bad key " + os.environ["TOOL_KEY"])\''
    with pytest.raises(PortError, match=r"bad key \*\*\*") as caught:
        connect(leaky, calls, environment={"tools": ("TOOL_KEY",)})
    assert "hunter2" not in str(caught.value) + str(caught.value.raw)


def test_a_key_among_the_arguments_of_a_program_is_not_in_the_error(connect: Connect) -> None:
    leaky = f"{sys.executable} -c 'import sys; sys.exit(\"bad key \" + sys.argv[2])' --token hunter2hunter2"
    with pytest.raises(PortError, match=r"bad key \*\*\*") as caught:
        connect(leaky, calls)
    assert "hunter2" not in str(caught.value) + str(caught.value.raw)


def test_a_program_that_says_nothing_is_given_up(connect: Connect, plain: Any) -> None:
    started = time.monotonic()
    with pytest.raises(PortError, match="raise start_seconds") as caught:
        connect(plain("silent"), calls, start_seconds=0.5)
    assert caught.value.kind == "timeout"
    assert time.monotonic() - started < 5


def test_what_a_program_prints_beside_its_messages_does_no_harm(connect: Connect, plain: Any) -> None:
    assert connect(plain("chatty"), calls).content == "fine"


@pytest.mark.parametrize("fault", ["huge", "huge-id-last"])
def test_a_huge_answer_is_an_error_of_its_call_and_is_not_kept(
    connect: Connect, plain: Any, most_memory: Any, fault: str
) -> None:
    with most_memory() as most:
        outcome = connect(plain(fault), calls, call_seconds=20)
    assert outcome.is_error
    assert "longer than 4 MB" in outcome.content
    assert most[0] < 40 * 1024**2


def test_a_huge_answer_to_an_unknown_call_ends_the_session(connect: Connect, plain: Any) -> None:
    outcome = connect(plain("huge-no-id"), calls, call_seconds=20)
    assert outcome.is_error
    assert "broke" in outcome.content


def test_the_words_of_a_server_that_refuses_a_call_reach_the_model(connect: Connect, plain: Any) -> None:
    outcome = connect(plain("refuses"), calls)
    assert (outcome.content, outcome.is_error) == ("not today", True)


def test_an_answer_that_is_no_valid_message_is_an_error_of_its_call(connect: Connect, plain: Any) -> None:
    started = time.monotonic()
    outcome = connect(plain("half"), calls)
    assert (outcome.content, outcome.is_error) == ("the answer of the server is no valid message", True)
    assert time.monotonic() - started < 10


@pytest.mark.parametrize("arguments", [{"text": "\ud800"}, {"number": float("nan")}, {"what": object()}])
def test_arguments_that_are_no_json_cost_their_call_alone(
    connect: Connect, plain: Any, arguments: dict[str, Any]
) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        refused = await tools["tool"].run(arguments)
        assert refused.is_error
        assert "JSON" in refused.content
        assert (await tools["tool"].run({})).content == "fine"

    connect(plain("none"), use)


def test_a_start_that_is_cancelled_leaves_nothing_behind(plain: Any) -> None:
    async def run() -> None:
        client = McpServer("tools", plain("silent"))
        opening = asyncio.create_task(client.aopen())
        await asyncio.sleep(1.5)
        opening.cancel()
        await asyncio.wait({opening})
        assert opening.cancelled()
        started = time.monotonic()
        await client.aclose()
        assert time.monotonic() - started < 5
        assert asyncio.all_tasks() == {asyncio.current_task()}

    asyncio.run(run())


@pytest.mark.parametrize(("fault", "message"), [("twins", "two tools 'twin'"), ("endless", "does not end")])
def test_a_list_of_tools_that_makes_no_sense_is_refused(connect: Connect, plain: Any, fault: str, message: str) -> None:
    with pytest.raises(PortError, match=message) as caught:
        connect(plain(fault), calls)
    assert caught.value.kind == "bad_response"


@pytest.mark.parametrize(
    ("address", "message"),
    [
        ("", "the address is empty"),
        ("ftp://example.org/x", "begins with http:// or https://"),
        ("http://", "begins with http:// or https://"),
        ("/no/such/program --fast", "there is no program '/no/such/program'"),
        ("python 'unclosed", "check its quotation marks"),
    ],
)
def test_an_address_that_leads_nowhere_is_reported_before_anything_is_started(address: str, message: str) -> None:
    client = McpServer("tools", address)
    assert message in str(client.problem())
    with pytest.raises(PortError, match="tool server 'tools'") as caught:
        asyncio.run(client.aopen())
    assert message in str(caught.value)
    assert caught.value.kind == "invalid_request"


def test_a_missing_token_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("WEB_TOKEN", raising=False)
    client = McpServer("web", "http://127.0.0.1:1/mcp", McpSettings(token_env={"web": "WEB_TOKEN"}))
    assert "set the environment variable WEB_TOKEN" in str(client.problem())


def test_without_the_sdk_the_error_says_what_to_type(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "mcp", None)
    client = McpServer("web", "http://127.0.0.1:1/mcp")
    assert 'pip install "karenina-mcp[sdk]"' in str(client.problem())
    with pytest.raises(AdapterUnavailableError, match="pip install"):
        asyncio.run(client.aopen())


def test_a_program_that_ends_after_every_answer_is_started_for_every_call(connect: Connect, plain: Any) -> None:
    async def use(client: McpServer, tools: dict[str, Any]) -> None:
        sessions = []
        for _ in range(4):
            outcome = await tools["tool"].run({})
            assert (outcome.content, outcome.warning) == ("fine", None)
            sessions.append(client._session)
            await asyncio.sleep(0.3)
        assert len(set(map(id, sessions))) == 4

    connect(plain("leaves"), use)


# Time


@pytest.mark.parametrize("fault", ["listless", "slowly-endless"])
def test_a_list_of_tools_that_takes_too_long_is_given_up(connect: Connect, plain: Any, fault: str) -> None:
    started = time.monotonic()
    with pytest.raises(PortError, match=r"no list within 1\.5 s; raise start_seconds") as caught:
        connect(plain(fault), calls, start_seconds=1.5)
    assert caught.value.kind == "timeout"
    assert time.monotonic() - started < 8


def test_a_program_that_never_says_anything_of_use_is_given_up(connect: Connect, plain: Any, most_memory: Any) -> None:
    started = time.monotonic()
    with most_memory() as most, pytest.raises(PortError) as caught:
        connect(plain("babbling"), calls, start_seconds=1.5)
    assert caught.value.kind in ("timeout", "connection")
    assert time.monotonic() - started < 8
    assert most[0] < 40 * 1024**2


def test_a_program_that_floods_stderr_before_it_ends_is_reported_with_its_last_output(
    connect: Connect, plain: Any, most_memory: Any
) -> None:
    with most_memory() as most, pytest.raises(PortError, match="out of settings") as caught:
        connect(plain("flooding"), calls)
    assert caught.value.kind == "connection"
    assert len(str(caught.value)) < 3000
    assert most[0] < 40 * 1024**2


# Memory of the whole process, also what is allocated outside of Python

HUGE = """
import asyncio, os, resource, sys, traceback
from karenina_mcp.server import McpServer
from karenina_mcp.settings import McpSettings

async def main(tool, characters, address):
    client = McpServer("tools", address, McpSettings(environment={"tools": ("PYTHONPATH",)}))
    await client.aopen()
    tools = {tool.name: tool for tool in await client.alist()}
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    outcome = await tools[tool].run({"characters": int(characters)} if tool == "large" else {})
    kilobytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before
    await client.aclose()
    return outcome.is_error, len(outcome.content), kilobytes

client = McpServer("tools", "/no/such/program")
assert client.problem()  # imports the SDK
import mcp.client.sse, mcp.client.streamable_http, mcp.client.stdio
for line in sys.stdin:
    process = os.fork()
    if not process:
        try:
            print(*asyncio.run(main(*line.split(maxsplit=2))), flush=True)
        except BaseException:
            traceback.print_exc()
            print(flush=True)
        os._exit(0)
    status = os.waitpid(process, 0)[1]
    if status:
        print("ended with", os.waitstatus_to_exitcode(status), flush=True)
"""


@pytest.fixture(scope="module")
def apart() -> Iterator[Callable[[str, int, str], str]]:
    """`apart(tool, characters, address)` calls the tool in a process of its own, and gives what that prints: whether
    there was an error, the length of the answer, and by how many kilobytes the process has grown."""
    line = [sys.executable, "-c", HUGE]
    with subprocess.Popen(line, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as forks:
        into, out = forks.stdin, forks.stdout
        assert into is not None
        assert out is not None

        def called(tool: str, characters: int, address: str) -> str:
            into.write(f"{tool} {characters} {address}\n")
            into.flush()
            return out.readline()

        yield called


@pytest.mark.skipif(sys.platform != "linux", reason="ru_maxrss is counted in other units there")
@pytest.mark.parametrize("kind", ["program", "streamable", "sse"])
def test_a_hundred_megabytes_are_never_in_memory(apart: Any, plain: Any, on_http: Any, kind: str) -> None:
    address, tool = plain("huge"), "tool"
    if kind != "program":
        address, tool = f"http://127.0.0.1:{on_http.start(kind)}/{'sse' if kind == 'sse' else 'mcp'}", "large"
    is_error, length, kilobytes = apart(tool, 100 * 1024**2, address).split()
    assert (is_error, int(length) < 5000) == ("True", True)
    assert int(kilobytes) < 60 * 1024
