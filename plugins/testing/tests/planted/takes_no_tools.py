"""Says that it supports tools, and has no argument for them."""

from typing import Any

from karenina_openai_endpoint.port import OpenAIEndpoint

from karenina_core import AdapterSpec, ModelConfig
from karenina_core.ports import PortCapabilities


class Planted:
    capabilities = PortCapabilities(supports_tools=True)

    def __init__(self, config: ModelConfig) -> None:  # the fault
        self.inner = OpenAIEndpoint(config)

    async def ainvoke(self, messages: Any, *, output: Any = None, temperature: Any = None, call: Any = None) -> Any:
        return await self.inner.ainvoke(messages, output=output, temperature=temperature, call=call)

    async def aclose(self) -> None:
        await self.inner.aclose()


SPEC = AdapterSpec(interface="planted", description="supports tools in name only", llm_factory=Planted)
