"""Leaves a task running."""

import asyncio

from karenina_openai_endpoint.port import OpenAIEndpoint

from karenina_core import AdapterSpec


class Planted(OpenAIEndpoint):
    async def aopen(self) -> None:
        await super().aopen()
        self.heartbeat = asyncio.ensure_future(asyncio.sleep(3600))

    async def aclose(self) -> None:  # the fault
        await super().aclose()


SPEC = AdapterSpec(interface="planted", description="keeps a heartbeat", llm_factory=Planted)
