"""Leaves a connection open."""

import socket
from urllib.parse import urlsplit

from karenina_openai_endpoint.port import OpenAIEndpoint

from karenina_core import AdapterSpec, ModelConfig

KEPT: list[socket.socket] = []


class Planted(OpenAIEndpoint):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.address = urlsplit(config.endpoint_base_url or "")

    async def aopen(self) -> None:
        KEPT.append(socket.create_connection((self.address.hostname, self.address.port)))

    async def aclose(self) -> None:  # the fault
        await super().aclose()


SPEC = AdapterSpec(interface="planted", description="stays open", llm_factory=Planted)
