"""A scripted server that also plays the batch interface: files of calls go up, and files of replies come back.

with ScriptedBatches(lambda request: "Paris") as server:
    model = ModelConfig(model_name="any", interface="openai_endpoint", endpoint_base_url=server.url, batch=True)
"""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import Callable, Sequence
from typing import Any

from attrs import define, field

from .http_replies import Arrived, WatchedReader, payload, resolved, write_response
from .replies import Reply, ServedRequest
from .server import Script, ScriptedServer

FILE = re.compile(rb'name="file".*?\r\n\r\n(.*)\r\n--', re.DOTALL)
BATCHES = re.compile(r"/batches(?:/(?P<id>[^/]+)(?P<cancel>/cancel)?)?$")
CONTENT = re.compile(r"/files/(?P<id>[^/]+)/content$")
NOT_OVER = ("validating", "in_progress")


@define(eq=False)
class ServedBatch:
    """A batch that was asked for."""

    id: str
    facts: dict[str, Any]
    """The body of the request."""
    calls: list[dict[str, Any]]
    """The lines of its file."""
    status: str = "validating"
    polls: int = 0
    answers: tuple[list[bytes], list[bytes]] = field(default=([], []))
    """Lines of its output file and of its error file."""

    def to_dict(self) -> dict[str, Any]:
        done, failed = self.answers
        over = self.status not in NOT_OVER
        return {
            "id": self.id,
            "object": "batch",
            **self.facts,
            "status": self.status,
            "errors": self.facts.get("errors"),
            "output_file_id": f"{self.id}-output" if done and over else None,
            "error_file_id": f"{self.id}-error" if failed and over else None,
            "request_counts": {"total": len(self.calls), "completed": len(done), "failed": len(failed)},
        }


class ScriptedBatches(ScriptedServer):
    """A `ScriptedServer` whose script also answers the calls of batches; `requests` has them, too.

    `polls` is how often a batch is not over when it is asked for. `ends` is how batches end: with a status other than
    `completed` their calls are not made, and `errors` is what a failed one says. `output` may change the lines of an
    output file. `fault(method, path, number)` may answer any request of the batch interface in its place; `number`
    counts equal requests from 1. While `held`, no batch is over. The reply to the request
    for a batch comes `late` seconds after it was made; each of `instead` replaces one such reply, though it was made.
    """

    def __init__(
        self,
        script: Script,
        *,
        polls: int = 0,
        ends: str = "completed",
        errors: Sequence[dict[str, Any]] = (),
        output: Callable[[list[bytes]], list[bytes]] = lambda lines: lines,
        fault: Callable[[str, str, int], Reply | None] = lambda method, path, number: None,
        held: bool = False,
        port: int = 0,
    ) -> None:
        super().__init__(script, port=port)
        self.polls, self.ends, self.errors, self.output, self.fault = polls, ends, list(errors), output, fault
        self.held = held
        self.late = 0.0
        self.instead: list[Reply] = []
        self.batches: list[ServedBatch] = []
        self.asked: list[tuple[str, str]] = []
        """Method and path of every request of the batch interface, without the prefix and the query."""
        self._files: dict[str, list[bytes]] = {}

    def wait_for_batches(self, count: int, timeout: float = 5.0) -> None:
        """Block until that many batches were made. Raises TimeoutError."""
        with self._arrival:
            if not self._arrival.wait_for(lambda: len(self.batches) >= count, timeout):
                raise TimeoutError(f"{len(self.batches)} of {count} batches were made within {timeout} s")

    async def _serve(self, arrived: Arrived, reader: WatchedReader, writer: asyncio.StreamWriter) -> bool:
        path = "/" + arrived.path.split("?")[0].removeprefix("/v1").lstrip("/")
        if not path.startswith(("/files", "/batches")):
            return await super()._serve(arrived, reader, writer)
        self.asked.append((arrived.method, path))
        number = self.asked.count((arrived.method, path))
        reply = self.fault(arrived.method, path, number) or await self._reply(arrived, path)
        if reply.delivery == "reset":
            writer.transport.abort()
            return False
        reply = resolved(self.wire, reply)
        await write_response(writer, reply, *payload(self.wire, ServedRequest(body={}), reply))
        return arrived.keep_alive

    async def _reply(self, arrived: Arrived, path: str) -> Reply:
        if (arrived.method, path) == ("POST", "/files"):
            if b'name="purpose"\r\n\r\nbatch\r\n' not in arrived.body or (file := FILE.search(arrived.body)) is None:
                return Reply.error(400, "this is no form with a file of the purpose batch")
            name = f"file-{len(self._files)}"
            self._files[name] = file[1].splitlines(keepends=True)
            return _object({"id": name, "object": "file", "purpose": "batch"})
        if arrived.method == "GET" and (content := CONTENT.search(path)):
            lines = self._files.get(content["id"])
            return _refused(f"no file {content['id']}") if lines is None else Reply(body=b"".join(lines))
        if (found := BATCHES.search(path)) is None:
            return _refused(path)
        if found["id"] is None:
            listed = [batch.to_dict() for batch in reversed(self.batches)]
            return await self._made(arrived) if arrived.method == "POST" else _object({"data": listed})
        batch = next((batch for batch in self.batches if batch.id == found["id"]), None)
        if batch is None:
            return _refused(f"no batch {found['id']}")
        if found["cancel"]:
            batch.status = "cancelled"
        elif batch.status in NOT_OVER and not self.held:
            batch.polls += 1
            batch.status = "in_progress"
            if batch.polls > self.polls:
                await self._end(batch)
        return _object(batch.to_dict())

    async def _made(self, arrived: Arrived) -> Reply:
        facts = json.loads(arrived.body)
        if facts.get("endpoint") != "/v1/chat/completions" or facts.get("completion_window") != "24h":
            return Reply.error(400, "this endpoint or window is not served")
        calls = [json.loads(line) for line in self._files[facts["input_file_id"]]]
        batch = ServedBatch(f"batch_{len(self.batches)}", facts, calls)
        with self._arrival:
            self.batches.append(batch)
            self._arrival.notify_all()
        await asyncio.sleep(self.late)
        return self.instead.pop(0) if self.instead else _object(batch.to_dict())

    async def _end(self, batch: ServedBatch) -> None:
        done: list[bytes] = []
        failed: list[bytes] = []
        for call in batch.calls if self.ends == "completed" else ():
            request = self._arrived(Arrived(call["method"], call["url"], {}, b"", True), call["body"])
            with self._arrival:
                self._in_flight -= 1
            reply = resolved(self.wire, await self._answer(request))
            try:
                body: Any = json.loads(payload(self.wire, request, reply)[1])
            except ValueError:
                body = None
            response = {"status_code": reply.status, "request_id": f"req-{request.number}", "body": body}
            line = {"id": f"line-{request.number}", "custom_id": call["custom_id"], "response": response, "error": None}
            (done if reply.status < 300 else failed).append(json.dumps(line).encode() + b"\n")
        if self.ends == "completed":
            batch.answers = (self.output(done), failed)
            self._files |= {f"{batch.id}-output": batch.answers[0], f"{batch.id}-error": failed}
        batch.status = self.ends
        batch.facts["errors"] = {"object": "list", "data": self.errors} if self.errors else None


def _object(data: dict[str, Any]) -> Reply:
    return Reply(body=json.dumps(data).encode())


def _refused(what: str) -> Reply:
    return Reply.error(404, f"nothing is served: {what}")
