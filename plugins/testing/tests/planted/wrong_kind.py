"""Takes every failure for one of the server."""

from typing import Any

from karenina_openai_endpoint.port import OpenAIEndpoint

from karenina_core import AdapterSpec
from karenina_core.errors import PortError


class Planted(OpenAIEndpoint):
    async def ainvoke(self, messages: Any, **options: Any) -> Any:
        try:
            return await super().ainvoke(messages, **options)
        except PortError as error:
            raise PortError(str(error), kind="server") from None  # the fault


SPEC = AdapterSpec(interface="planted", description="calls everything server", llm_factory=Planted)
