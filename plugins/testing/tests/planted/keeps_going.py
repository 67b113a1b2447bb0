"""Takes a cancellation for a timeout."""

import asyncio
from typing import Any

from karenina_openai_endpoint.port import OpenAIEndpoint

from karenina_core import AdapterSpec
from karenina_core.errors import PortError


class Planted(OpenAIEndpoint):
    async def ainvoke(self, messages: Any, **options: Any) -> Any:  # the fault
        try:
            return await super().ainvoke(messages, **options)
        except asyncio.CancelledError:
            raise PortError("cancelled", kind="timeout") from None


SPEC = AdapterSpec(interface="planted", description="does not stop", llm_factory=Planted)
