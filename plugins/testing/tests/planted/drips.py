"""Counts its time limit anew with every byte."""

import asyncio
import json
from typing import Any
from urllib.parse import urlsplit

from karenina_core import AdapterSpec, ModelConfig
from karenina_core.errors import PortError
from karenina_core.ports import LLMResponse, Message, PortCapabilities


class Planted:
    capabilities = PortCapabilities()

    def __init__(self, config: ModelConfig) -> None:
        self.config = config

    async def ainvoke(self, messages: list[Message], **options: Any) -> LLMResponse:  # the fault
        address = urlsplit(self.config.endpoint_base_url or "")
        reader, writer = await asyncio.open_connection(address.hostname, address.port)
        body = json.dumps({"model": "m", "messages": [{"role": "user", "content": messages[-1].text}]})
        writer.write(f"POST /v1/chat/completions HTTP/1.1\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode())
        received = b""
        try:
            while not received.endswith(b"}"):
                received += await asyncio.wait_for(reader.read(1), self.config.request_timeout)
        except TimeoutError:
            raise PortError("no byte arrived", kind="timeout") from None
        finally:
            writer.close()
        return LLMResponse(content=received.decode())

    async def aclose(self) -> None:
        pass


SPEC = AdapterSpec(interface="planted", description="is never in time", llm_factory=Planted)
