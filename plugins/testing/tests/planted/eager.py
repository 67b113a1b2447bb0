"""Connects when it is made."""

import socket
from typing import Any

from karenina_core import AdapterSpec, ModelConfig
from karenina_core.ports import LLMResponse, PortCapabilities


class Planted:
    capabilities = PortCapabilities()

    def __init__(self, config: ModelConfig) -> None:
        self.config = config
        with socket.socket() as probe:
            probe.connect_ex(("127.0.0.1", 9))  # the fault

    async def ainvoke(self, messages: Any, **options: Any) -> LLMResponse:
        return LLMResponse(content="")

    async def aclose(self) -> None:
        pass


SPEC = AdapterSpec(interface="planted", description="looks whether the server is there", llm_factory=Planted)
