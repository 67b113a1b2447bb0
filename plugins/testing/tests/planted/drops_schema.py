"""Offers channels that it does not use."""

from typing import Any

from karenina_openai_endpoint.port import OpenAIEndpoint

from karenina_core import AdapterSpec


class Planted(OpenAIEndpoint):
    async def ainvoke(self, messages: Any, *, output: Any = None, **options: Any) -> Any:  # the fault
        return await super().ainvoke(messages, **options)


SPEC = AdapterSpec(interface="planted", description="asks for text only", llm_factory=Planted)
