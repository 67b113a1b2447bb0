"""A real HTTP server on loopback that speaks the protocol of a provider and replies as a script says.

    with ScriptedServer(lambda request: "Paris" if request.channel == "text" else {"capital": "Paris"}) as server:
        model = ModelConfig(model_name="any", interface="openai_endpoint", endpoint_base_url=server.url)

It runs in a thread of its own, so that synchronous tests, asynchronous tests and subprocesses can use it alike.
"""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import Any, Self

from attrs import evolve

from .http_replies import Arrived, WatchedReader, deliver, read_request, resolved, write_response
from .replies import Reply, ServedRequest
from .wires import ChatCompletions, Wire

Answer = Reply | str | Mapping[str, Any]
Script = Answer | Sequence[Answer] | Callable[[ServedRequest], Answer | Awaitable[Answer]]
CHAT = ChatCompletions()
START_SECONDS = 10.0  # chosen, as the next, for a busy machine
STOP_SECONDS = 10.0


class ScriptedServer:
    """Serves the calls of a protocol while its `with` block runs: `POST {url}/chat/completions`, or those of `wire`.

    `script` is the same for every protocol, one of

    - a reply, given to every request;
    - a list of replies, given in the order in which requests arrive; the last one is repeated;
    - a function or coroutine function of a `ServedRequest` that returns a reply. It runs in the server's event loop: a
      plain function must not block.

    A reply is a `Reply`, a text, or a mapping that is sent as JSON. A script that raises is answered with status 500,
    and the error is raised again at the end of the `with` block. Any prefix before the wire's own path is served; other
    paths are answered with 404 and not counted.
    """

    def __init__(self, script: Script, *, wire: Wire = CHAT, port: int = 0) -> None:
        """`port` 0 takes a free one."""
        if isinstance(script, Sequence) and not isinstance(script, str) and not script:
            raise ValueError("script: an empty list says nothing; give at least one reply")
        self._script = script
        self.wire = wire
        self._port = port
        self._thread: threading.Thread | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stop: asyncio.Event | None = None
        self._connections: set[asyncio.Task[Any]] = set()
        self._started = threading.Event()
        self._arrival = threading.Condition()
        self._requests: list[ServedRequest] = []
        self._in_flight = 0
        self._peak = 0
        self._failures: list[Exception] = []

    @property
    def url(self) -> str:
        """The base URL, such as `http://127.0.0.1:40123/v1`; it ends in the wire's `base`."""
        if not self._started.is_set():
            raise RuntimeError("the server has no URL before it is started: use it in a with statement")
        return f"http://127.0.0.1:{self._port}{self.wire.base}"

    @property
    def requests(self) -> list[ServedRequest]:
        """Every call asked for so far, in the order of arrival."""
        with self._arrival:
            return list(self._requests)

    @property
    def count(self) -> int:
        return len(self.requests)

    @property
    def in_flight(self) -> int:
        """Requests that have arrived and are not answered yet; one counts until just after its last byte has left."""
        return self._in_flight

    @property
    def peak(self) -> int:
        """The highest number of requests that were in flight at the same time."""
        return self._peak

    @property
    def connections(self) -> int:
        """Connections that are open now, idle ones included."""
        return len(self._connections)

    def wait_for(self, count: int, timeout: float = 5.0) -> None:
        """Block until that many requests have arrived. Raises TimeoutError after `timeout` seconds.

        In a coroutine: `await asyncio.to_thread(server.wait_for, count)`.
        """
        with self._arrival:
            if not self._arrival.wait_for(lambda: len(self._requests) >= count, timeout):
                raise TimeoutError(f"{len(self._requests)} of {count} requests arrived within {timeout} s")

    def started(self) -> Self:
        """The same, serving; without a `with` block, until the process ends."""
        return self.__enter__()

    def __enter__(self) -> Self:
        if self._thread is not None:
            raise RuntimeError("a ScriptedServer runs once; make another one")
        self._thread = threading.Thread(target=self._run, name="scripted-server", daemon=True)
        self._thread.start()
        if not self._started.wait(START_SECONDS) or self._failures:
            self._thread.join(STOP_SECONDS)
            raise self._failures[0] if self._failures else TimeoutError("the scripted server did not start")
        return self

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        assert self._thread is not None
        if self._loop is not None and self._stop is not None:
            with contextlib.suppress(RuntimeError):  # the loop may have ended by itself
                self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(STOP_SECONDS)
        if self._thread.is_alive():
            raise TimeoutError("the scripted server did not stop: does its script block?") from error
        if self._failures and error is None:
            raise self._failures[0]

    def _run(self) -> None:
        try:
            asyncio.run(self._main())
        except OSError as error:  # the port is taken
            self._failures.append(error)
        finally:
            self._started.set()

    async def _main(self) -> None:
        self._loop, self._stop = asyncio.get_running_loop(), asyncio.Event()
        server = await self._loop.create_server(self._protocol, "127.0.0.1", self._port, backlog=2048)
        self._port = server.sockets[0].getsockname()[1]
        self._started.set()
        await self._stop.wait()
        # A connection that was just accepted needs some turns of the loop to get its task, and a server that closes
        # meanwhile would lose its socket: first accept no more, then wait, then close.
        for listener in server.sockets:
            self._loop.remove_reader(listener.fileno())
        for _ in range(4):
            await asyncio.sleep(0)
        server.close()
        for connection in list(self._connections):
            connection.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        await asyncio.sleep(0)

    def _protocol(self) -> asyncio.StreamReaderProtocol:
        reader = WatchedReader()

        def connected(_: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            def done(task: asyncio.Task[None]) -> None:
                self._connections.discard(task)
                writer.transport.abort()  # does nothing to a closed one; a cancelled task may not even have begun
                if not task.cancelled() and isinstance(error := task.exception(), Exception):
                    self._failures.append(error)

            task = asyncio.get_running_loop().create_task(self._converse(reader, writer))
            self._connections.add(task)
            task.add_done_callback(done)

        return asyncio.StreamReaderProtocol(reader, connected)

    async def _converse(self, reader: WatchedReader, writer: asyncio.StreamWriter) -> None:
        """Serve one connection until either side closes it."""
        # A client that has gone is no failure of the server.
        with contextlib.suppress(ConnectionError, asyncio.IncompleteReadError):
            try:
                while (arrived := await read_request(reader, writer)) and await self._serve(arrived, reader, writer):
                    pass
            except (ValueError, asyncio.LimitOverrunError) as error:
                refusal = Reply.error(400, f"this is not an HTTP/1.1 request: {error}")
                await write_response(writer, resolved(self.wire, refusal))
            writer.close()
            await writer.wait_closed()

    async def _serve(self, arrived: Arrived, reader: WatchedReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; whether the connection stays open."""
        closing = {} if arrived.keep_alive else {"Connection": "close"}
        try:
            body = json.loads(arrived.body)
        except ValueError:
            body = None
        if not self.wire.serves(arrived.path.split("?")[0]):
            served = f"{self.wire.base}{self.wire.suffix}"
            refusal = Reply.error(404, f"nothing is served at {arrived.path}, only at ...{served}")
        elif arrived.method != "POST":
            refusal = Reply.error(405, f"{arrived.method} is not served, only POST")
        elif not isinstance(body, dict):
            refusal = Reply.error(400, "the body of the request is not a JSON object")
        else:
            return await self._call(arrived, body, closing, reader, writer)
        await write_response(writer, resolved(self.wire, evolve(refusal, headers=closing)))
        return arrived.keep_alive

    async def _call(
        self,
        arrived: Arrived,
        body: dict[str, Any],
        closing: dict[str, str],
        reader: WatchedReader,
        writer: asyncio.StreamWriter,
    ) -> bool:
        """Answer one call; whether the connection stays open."""
        try:
            request = self._arrived(arrived, body)
        except Exception as error:  # a wire may be a stranger's; raised again at the end of the `with` block
            self._failures.append(error)
            refusal = Reply.error(500, f"the wire cannot read this: {type(error).__name__}: {error}")
            await write_response(writer, resolved(self.wire, evolve(refusal, headers=closing)))
            return arrived.keep_alive
        try:
            reply = resolved(self.wire, await self._answer(request))
            reply = evolve(reply, headers={**closing, **reply.headers})
            return await deliver(self.wire, request, reply, reader, writer) and arrived.keep_alive
        finally:
            with self._arrival:
                self._in_flight -= 1

    def _arrived(self, arrived: Arrived, body: dict[str, Any]) -> ServedRequest:
        read = self.wire.read(arrived.path, arrived.headers, body)
        with self._arrival:
            number = len(self._requests) + 1
            request = evolve(read, path=arrived.path, headers=arrived.headers, number=number)
            self._requests.append(request)
            self._in_flight += 1
            self._peak = max(self._peak, self._in_flight)
            self._arrival.notify_all()
        return request

    async def _answer(self, request: ServedRequest) -> Reply:
        script: Any = self._script
        try:
            if isinstance(script, Sequence) and not isinstance(script, str):
                answer = script[min(request.number, len(script)) - 1]
            elif callable(script):
                answer = script(request)
                if inspect.isawaitable(answer):
                    answer = await answer
            else:
                answer = script
            if isinstance(answer, str | Mapping):
                return Reply(answer)
            if not isinstance(answer, Reply):
                raise TypeError(f"a script answers with a Reply, a text or a mapping, not with {answer!r}")
            return answer
        except Exception as error:  # a script may raise anything; raised again at the end of the `with` block
            self._failures.append(error)
            return Reply.error(500, f"the script failed: {type(error).__name__}: {error}")
