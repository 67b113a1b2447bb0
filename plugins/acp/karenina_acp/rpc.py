"""JSON-RPC 2.0 between two programs that both ask, https://www.jsonrpc.org/specification."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

from karenina_calls.files.sandboxed_names import Refused

from karenina_core.errors import PortError, one_line

Answer = Callable[[Mapping[str, Any]], Awaitable[Any]]
Notice = Callable[[str, Mapping[str, Any]], None]
UNKNOWN_METHOD = -32601
INVALID_PARAMS = -32602
INTERNAL = -32603


class RpcError(Exception):
    """The other side refused a request."""

    def __init__(self, code: Any, message: str, data: Any = None) -> None:
        super().__init__(message)
        self.code, self.data = code, data


class Peer:
    """One side of a connection. `take` what arrives, in order; notifications are handled there and then."""

    def __init__(self, send: Callable[[str], Awaitable[None]], answers: Mapping[str, Answer], notice: Notice) -> None:
        self._send = send
        self._answers = answers
        self._notice = notice
        self._waiting: dict[int, asyncio.Future[Any]] = {}
        self._answering: set[asyncio.Task[None]] = set()
        self._broken: BaseException | None = None
        self._count = 0

    async def request(self, method: str, params: Mapping[str, Any]) -> Any:
        """Ask and wait. Raises RpcError, and whatever has ended the connection."""
        if self._broken is not None:
            raise self._broken
        self._count += 1
        number = self._count
        answer = self._waiting[number] = asyncio.get_running_loop().create_future()
        try:
            await self._write({"id": number, "method": method, "params": params})
            return await answer
        finally:
            del self._waiting[number]

    async def notify(self, method: str, params: Mapping[str, Any]) -> None:
        await self._write({"method": method, "params": params})

    def take(self, message: Mapping[str, Any]) -> None:
        """Raises PortError (`bad_response`) for what is no message of the protocol."""
        method, number, params = message.get("method"), message.get("id"), message.get("params") or {}
        if isinstance(method, str) and isinstance(params, dict):
            if "id" not in message:
                self._notice(method, params)
                return
            task = asyncio.create_task(self._answer(number, method, params))
            self._answering.add(task)
            task.add_done_callback(self._answering.discard)
        elif method is None and ("result" in message or "error" in message):
            waiting = self._waiting.get(number) if isinstance(number, int) else None
            if waiting is not None and not waiting.done():
                _settle(waiting, message)
        else:
            raise PortError("the program wrote a message that is not JSON-RPC", kind="bad_response")

    def fail(self, error: BaseException) -> None:
        """The connection is over: whoever waits gets the error."""
        self._broken = error
        for waiting in self._waiting.values():
            if not waiting.done():
                waiting.set_exception(error)

    async def aclose(self) -> None:
        """Stop answering."""
        for task in (tasks := list(self._answering)):
            task.cancel()
        if tasks:
            await asyncio.wait(tasks)

    async def _answer(self, number: Any, method: str, params: Mapping[str, Any]) -> None:
        answer = self._answers.get(method)
        try:
            if answer is None:
                raise RpcError(UNKNOWN_METHOD, f"there is no method {method}")
            reply = {"result": await answer(params)}
        except RpcError as error:
            reply = {"error": {"code": error.code, "message": str(error)}}
        except (Refused, KeyError, TypeError, ValueError, OSError) as error:
            reply = {"error": {"code": INVALID_PARAMS, "message": one_line(error)}}
        except PortError as error:  # a tool says that all is over
            self.fail(error)
            reply = {"error": {"code": INTERNAL, "message": one_line(error)}}
        await self._write({"id": number, **reply})

    async def _write(self, message: Mapping[str, Any]) -> None:
        await self._send(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def _settle(waiting: asyncio.Future[Any], message: Mapping[str, Any]) -> None:
    error = message.get("error")
    if error is None:
        waiting.set_result(message.get("result"))
    else:
        about = error if isinstance(error, dict) else {"message": error}
        waiting.set_exception(RpcError(about.get("code"), str(about.get("message")), about.get("data")))
