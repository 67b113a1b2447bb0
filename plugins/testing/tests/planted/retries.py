"""Asks a second time by itself."""

from typing import Any

from karenina_openai_endpoint.port import OpenAIEndpoint

from karenina_core import AdapterSpec
from karenina_core.errors import PortError


class Planted(OpenAIEndpoint):
    async def ainvoke(self, messages: Any, **options: Any) -> Any:  # the fault
        try:
            return await super().ainvoke(messages, **options)
        except PortError:
            return await super().ainvoke(messages, **options)


SPEC = AdapterSpec(interface="planted", description="asks twice", llm_factory=Planted)
