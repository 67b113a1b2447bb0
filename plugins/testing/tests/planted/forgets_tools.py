"""Takes tools and does not send them."""

from typing import Any

from karenina_openai_endpoint.port import OpenAIEndpoint

from karenina_core import AdapterSpec


class Planted(OpenAIEndpoint):
    async def ainvoke(self, messages: Any, *, tools: Any = (), **options: Any) -> Any:  # the fault
        return await super().ainvoke(messages, **options)


SPEC = AdapterSpec(interface="planted", description="forgets the tools", llm_factory=Planted)
