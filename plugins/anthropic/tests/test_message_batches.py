"""Message batches: a server on loopback that keeps the documented states, and the port that asks it."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeVar

import pytest
from karenina_anthropic.batches import AnthropicBatches
from karenina_calls.ports.batch import BatchCall
from karenina_testing.adapters.http_replies import Arrived, WatchedReader, payload, resolved, write_response

from karenina_core import Benchmark, VerificationConfig
from karenina_core.errors import PortError
from karenina_core.ports import Message, OutputFormat
from karenina_core.testing import AnthropicMessages, Reply, ScriptedServer
from karenina_core.values.config import ModelConfig

EXAMPLES = Path(__file__).parents[3] / "examples"
T = TypeVar("T")
KEY = "sk-ant-canary-0123456789"
PATH = re.compile(r"/v1/messages/batches(?:/(?P<id>[^/]+)(?P<what>/cancel|/results)?)?$")
SCHEMA = {"type": "object", "properties": {"capital": {"type": "string"}}, "required": ["capital"]}


class MessageBatches(ScriptedServer):
    """Its script answers the calls of batches, too. A batch is over when it is looked at for the second time."""

    def __init__(self, script: Any, fault: Reply | None = None, lost: Mapping[str, Any] | None = None) -> None:
        super().__init__(script, wire=AnthropicMessages())
        self.batches: list[dict[str, Any]] = []
        self.looked: dict[str, int] = {}
        self.keys: set[str] = set()
        self.fault = fault
        self.lost = lost or {}
        """`custom_id` -> result in place of a reply."""

    async def _serve(self, arrived: Arrived, reader: WatchedReader, writer: asyncio.StreamWriter) -> bool:
        found = PATH.search(arrived.path)
        if found is None:
            return await super()._serve(arrived, reader, writer)
        self.keys.add(arrived.headers.get("x-api-key", ""))
        assert arrived.headers["anthropic-version"] == "2023-06-01"
        reply = self.fault or await self._about(arrived, found)
        await write_response(writer, resolved(self.wire, reply))
        return arrived.keep_alive

    async def _about(self, arrived: Arrived, found: re.Match[str]) -> Reply:
        if found["id"] is None:
            self.batches.append(json.loads(arrived.body))
            return self._state(f"msgbatch_{len(self.batches) - 1}")
        if found["what"] == "/results":
            requests = self.batches[int(found["id"].removeprefix("msgbatch_"))]["requests"]
            lines = [await self._line(request) for request in reversed(requests)]
            return Reply(body="".join(f"{json.dumps(line)}\n" for line in lines).encode())
        if found["what"] == "/cancel":
            self.looked[found["id"]] = -1
        elif self.looked.get(found["id"], 0) >= 0:
            self.looked[found["id"]] = self.looked.get(found["id"], 0) + 1
        return self._state(found["id"])

    def _state(self, batch_id: str) -> Reply:
        looked = self.looked.get(batch_id, 0)
        is_over = looked > 1 or looked < 0
        counts = {"processing": 0, "succeeded": 1, "errored": 2, "canceled": 3, "expired": 4}
        state = {
            "id": batch_id,
            "type": "message_batch",
            "processing_status": "ended" if is_over else "in_progress",
            "request_counts": counts,
            "cancel_initiated_at": "2026-01-01T00:00:00Z" if looked < 0 else None,
        }
        return Reply(body=json.dumps(state).encode())

    async def _line(self, given: dict[str, Any]) -> dict[str, Any]:
        custom_id = given["custom_id"]
        if custom_id in self.lost:
            return {"custom_id": custom_id, "result": self.lost[custom_id]}
        request = self._arrived(Arrived("POST", "/v1/messages", {}, b"", True), given["params"])
        with self._arrival:
            self._in_flight -= 1
        reply = resolved(self.wire, await self._answer(request))
        message = json.loads(payload(self.wire, request, reply)[1])
        return {"custom_id": custom_id, "result": {"type": "succeeded", "message": message}}


def config(url: str) -> ModelConfig:
    return ModelConfig(
        model_name="m", interface="anthropic", endpoint_base_url=url, endpoint_api_key=KEY, request_timeout=5.0
    )


def use(server: ScriptedServer, work: Callable[[AnthropicBatches], Awaitable[T]]) -> T:
    async def run() -> T:
        port = AnthropicBatches(config(server.url))
        try:
            return await work(port)
        finally:
            await port.aclose()

    return asyncio.run(run())


async def fetched(port: AnthropicBatches, batch_id: str) -> dict[str, Any]:
    return {custom_id: outcome async for custom_id, outcome in port.fetch(batch_id)}


def test_a_batch_from_its_calls_to_its_replies() -> None:
    output = OutputFormat("tool_call", SCHEMA)

    async def work(port: AnthropicBatches) -> Any:
        body = port.encode([Message.system("Be exact."), Message.user("Capital?")], output=output, temperature=0.5)
        batch_id = await port.submit("the-batch", [BatchCall("one", body), BatchCall("two", body)])
        assert await port.find("the-batch") is None
        states = [await port.poll(batch_id) for _ in range(2)]
        replies = await fetched(port, batch_id)
        return states, {name: port.decode(reply, output) for name, reply in replies.items()}

    with MessageBatches({"capital": "Paris"}) as server:
        (before, after), replies = use(server, work)
        (sent,) = server.batches
    assert (before.status, after.status, after.completed, after.failed) == ("running", "ended", 1, 9)
    assert [request["custom_id"] for request in sent["requests"]] == ["one", "two"]
    assert sent["requests"][0]["params"]["temperature"] == 0.5
    assert [json.loads(replies[name].structured) for name in ("one", "two")] == [{"capital": "Paris"}] * 2
    assert server.keys == {KEY}


def test_a_cancelled_batch_says_so() -> None:
    async def work(port: AnthropicBatches) -> str:
        batch_id = await port.submit("x", [BatchCall("one", "{}")])
        await port.cancel(batch_id)
        return (await port.poll(batch_id)).status

    with MessageBatches("x") as server:
        assert use(server, work) == "cancelled"


LOST = {
    "errored": (
        {"type": "errored", "error": {"type": "error", "error": {"type": "invalid_request_error", "message": "no"}}},
        "invalid_request",
    ),
    "overloaded": ({"type": "errored", "error": {"type": "error", "error": {"type": "api_error"}}}, "server"),
    "expired": ({"type": "expired"}, "timeout"),
    "canceled": ({"type": "canceled"}, "cancelled"),
    "odd": ({"type": "succeeded", "message": None}, "bad_response"),
}


def test_calls_without_a_reply_have_the_kind_of_their_end() -> None:
    async def work(port: AnthropicBatches) -> dict[str, Any]:
        batch_id = await port.submit("x", [BatchCall(name, "{}") for name in LOST])
        return await fetched(port, batch_id)

    with MessageBatches("x", lost={name: result for name, (result, _) in LOST.items()}) as server:
        found = use(server, work)
    assert {name: error.kind for name, error in found.items()} == {name: kind for name, (_, kind) in LOST.items()}


def test_a_fault_names_the_request_and_no_key() -> None:
    fault = Reply.error(429, f"slow, {KEY}", retry_after=4)
    with MessageBatches("x", fault=fault) as server, pytest.raises(PortError) as failed:
        use(server, lambda port: port.poll("b/1"))
    error = failed.value
    assert (error.kind, error.status, error.retry_after) == ("rate_limited", 429, 4.0)
    assert "GET" in str(error)
    assert "/v1/messages/batches/b%2F1" in str(error)
    assert KEY not in f"{error} {error.raw}"


def test_a_run_is_made_in_batches(tmp_path: Any) -> None:
    answer = "Digoxin inhibits the sodium-potassium ATPase. Hypokalaemia makes toxicity more likely."
    fields = {"pump": "sodium-potassium ATPase", "hypokalaemia_raises_risk": True}
    with MessageBatches(lambda request: answer if request.channel == "text" else fields) as server:
        model = ModelConfig(
            model_name="m",
            interface="anthropic",
            endpoint_base_url=server.url,
            batch=True,
            batch_wait_seconds=0.1,
        )
        run = VerificationConfig(answering_models=[model], parsing_models=[model])
        benchmark = Benchmark.load(EXAMPLES / "pharmacology.jsonld")
        (result,) = benchmark.run_verification(run, question_ids=["digoxin"], run_dir=tmp_path / "run")
    assert result.outcome == "passed"
    assert len(server.batches) == 2
