"""Keeps the text of a reply and nothing else, and sends a temperature of its own."""

from typing import Any

from attrs import evolve
from karenina_openai_endpoint.port import OpenAIEndpoint

from karenina_core import AdapterSpec
from karenina_core.ports import LLMResponse


class Planted(OpenAIEndpoint):
    async def ainvoke(self, messages: Any, **options: Any) -> LLMResponse:  # the fault
        reply = await super().ainvoke(messages, **{**options, "temperature": 0.7})
        return LLMResponse(content=reply.content, usage=evolve(reply.usage, cost_usd=0.0))


SPEC = AdapterSpec(interface="planted", description="forgets", llm_factory=Planted)
