"""All ports of an event loop share their connections, and the last one closes them."""

from __future__ import annotations

import asyncio

from aiohttp import web
from karenina_openai_endpoint.port import OpenAIEndpoint

from karenina_core import ModelConfig
from karenina_core.ports import Message

REPLY = {"choices": [{"index": 0, "message": {"role": "assistant", "content": "yes"}, "finish_reason": "stop"}]}


def test_an_answering_model_and_its_judge_use_one_connection_each_with_its_own_key() -> None:
    keys: list[str] = []
    peers: set[object] = set()

    async def completions(request: web.Request) -> web.Response:
        assert request.transport is not None
        keys.append(request.headers["Authorization"])
        peers.add(request.transport.get_extra_info("peername"))
        return web.json_response(REPLY)

    async def main() -> None:
        app = web.Application()
        app.router.add_post("/v1/chat/completions", completions)
        runner = web.AppRunner(app, access_log=None)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        url = f"http://127.0.0.1:{runner.addresses[0][1]}/v1"
        ports = [
            OpenAIEndpoint(
                ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url=url, endpoint_api_key=key)
            )
            for key in ("first", "second")
        ]
        for port in (*ports, *ports):
            assert (await port.ainvoke([Message.user("?")])).content == "yes"
        await ports[0].aclose()
        assert (await ports[1].ainvoke([Message.user("?")])).content == "yes", "the other one still has them"
        await ports[1].aclose()
        assert (await ports[0].ainvoke([Message.user("?")])).content == "yes", "a port can be used again"
        await ports[0].aclose()
        await runner.cleanup()

    asyncio.run(main())
    assert keys == [f"Bearer {key}" for key in ("first", "second", "first", "second", "second", "first")]
    assert len(peers) == 2, "one until all were closed, one afterwards"


def test_every_event_loop_has_connections_of_its_own() -> None:
    async def opened() -> int:
        port = OpenAIEndpoint(
            ModelConfig(model_name="m", interface="openai_endpoint", endpoint_base_url="http://127.0.0.1:9/v1")
        )
        await port.aopen()
        assert port._connections is not None
        found = id(port._connections.connector)
        kept.append(port)
        return found

    kept: list[OpenAIEndpoint] = []
    loops = [asyncio.Runner(), asyncio.Runner()]
    try:
        first, again, other = loops[0].run(opened()), loops[0].run(opened()), loops[1].run(opened())
        assert first == again
        assert first != other
        for loop, port in ((loops[0], kept[0]), (loops[0], kept[1]), (loops[1], kept[2])):
            loop.run(port.aclose())
    finally:
        for loop in loops:
            loop.close()
