"""Shows the key in its errors."""

from typing import Any

from karenina_openai_endpoint.port import OpenAIEndpoint

from karenina_core import AdapterSpec, ModelConfig
from karenina_core.errors import PortError


class Planted(OpenAIEndpoint):
    def __init__(self, config: ModelConfig) -> None:
        super().__init__(config)
        self.key = config.api_key()

    async def ainvoke(self, messages: Any, **options: Any) -> Any:
        try:
            return await super().ainvoke(messages, **options)
        except PortError as error:
            raise PortError(f"{error} (with the key {self.key})", kind=error.kind) from error  # the fault


SPEC = AdapterSpec(interface="planted", description="tells secrets", llm_factory=Planted)
