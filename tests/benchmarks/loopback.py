"""A model server on this machine, in a process of its own: answers and judgments, each after the same time.

    python -m tests.benchmarks.loopback [--latency 0.2]

It speaks OpenAI chat completions on a free port of 127.0.0.1, which is its first line of output, and ends with its
standard input.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

from .workload import ANSWER, JUDGED, REPOSITORY

if TYPE_CHECKING:
    from aiohttp import web

__all__ = ["LATENCY", "server"]

LATENCY = 0.2
"""Seconds per reply."""


def _reply(content: str) -> bytes:
    choice = {"index": 0, "message": {"role": "assistant", "content": content}, "finish_reason": "stop"}
    usage = {"prompt_tokens": 200, "completion_tokens": 20, "total_tokens": 220}
    return json.dumps({"id": "x", "object": "chat.completion", "choices": [choice], "usage": usage}).encode()


REPLIES = {False: _reply(ANSWER), True: _reply(JUDGED)}


@contextmanager
def server(latency: float = LATENCY) -> Iterator[str]:
    """The base URL of a server that runs in its own process until the end."""
    command = [sys.executable, "-m", "tests.benchmarks.loopback", "--latency", str(latency)]
    with subprocess.Popen(command, cwd=REPOSITORY, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        port = process.stdout.readline().strip()
        if not port:
            raise RuntimeError("the server of the benchmark did not start")
        try:
            yield f"http://127.0.0.1:{port}/v1"
        finally:
            process.stdin.close()


async def _serve(latency: float) -> None:
    from aiohttp import web

    async def completions(request: web.Request) -> web.Response:
        judges = b'"json_schema"' in await request.read()
        await asyncio.sleep(latency)
        return web.Response(body=REPLIES[judges], content_type="application/json")

    app = web.Application()
    app.router.add_post("/v1/chat/completions", completions)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, backlog=1024).start()
    print(runner.addresses[0][1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    await runner.cleanup()


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks.loopback", description=__doc__)
    parser.add_argument("--latency", type=float, default=LATENCY, help=f"seconds per reply ({LATENCY})")
    with suppress(KeyboardInterrupt):
        asyncio.run(_serve(parser.parse_args().latency))


if __name__ == "__main__":
    main()
