"""Gives back the text of a reply, and not the tools that it calls."""

from typing import Any

from attrs import evolve
from karenina_openai_endpoint.port import OpenAIEndpoint

from karenina_core import AdapterSpec


class Planted(OpenAIEndpoint):
    async def ainvoke(self, messages: Any, **options: Any) -> Any:  # the fault
        return evolve(await super().ainvoke(messages, **options), tool_calls=())


SPEC = AdapterSpec(interface="planted", description="loses the calls of tools", llm_factory=Planted)
