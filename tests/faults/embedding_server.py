"""An HTTP server on loopback that serves `POST {url}/embeddings`, and counts. Loaded by path; no test is in here."""

from __future__ import annotations

import json
import sys
import threading
import time
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Answer = tuple[int, dict[str, Any], dict[str, str]]


class _Patient(ThreadingHTTPServer):
    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that has hung up is no failure of the server; anything else is shown."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class EmbeddingServer:
    """Says what `script(texts)` says, a status, a body and headers, while its `with` block runs. All texts are alike by
    default, and a call takes `tokens`."""

    def __init__(self, script: Callable[[list[str]], Answer] | None = None, tokens: int | None = 5) -> None:
        self.script, self.tokens = script or self.vectors, tokens
        self.requests: list[tuple[str, ...]] = []
        self.times: list[float] = []
        """When each of them came in, as `time.monotonic` counts."""
        self.peak = 0
        """Requests at the same time, at most."""
        self._under_way = 0
        self._lock = threading.Lock()

    @property
    def count(self) -> int:
        return len(self.requests)

    def vectors(self, texts: list[str]) -> Answer:
        rows = [{"object": "embedding", "index": place, "embedding": [1.0, 0.1]} for place in range(len(texts))]
        usage = {} if self.tokens is None else {"usage": {"prompt_tokens": self.tokens, "total_tokens": self.tokens}}
        return 200, {"object": "list", "model": "m", "data": rows, **usage}, {}

    def __enter__(self) -> EmbeddingServer:
        server = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                texts = json.loads(self.rfile.read(int(self.headers["Content-Length"])))["input"]
                server._begun(texts)
                status, said, headers = server.script(texts)
                data = json.dumps(said).encode()
                with server._lock:
                    server._under_way -= 1
                self.send_response(status)
                for name, value in {"Content-Type": "application/json", **headers}.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(data)))
                self.end_headers()
                self.wfile.write(data)

            def log_message(self, *_: Any) -> None:
                """Say nothing."""

        self._http = _Patient(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._http.server_port}/v1"
        self._thread = threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.01})
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._http.shutdown()
        self._thread.join()
        self._http.server_close()

    def _begun(self, texts: list[str]) -> None:
        with self._lock:
            self.requests.append(tuple(texts))
            self.times.append(time.monotonic())
            self._under_way += 1
            self.peak = max(self.peak, self._under_way)
