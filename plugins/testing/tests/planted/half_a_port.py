"""Lacks a method, and its checker speaks of a field that does not exist."""

from karenina_core import AdapterSpec, ModelConfig
from karenina_core.ports import PortCapabilities


class Planted:
    capabilities = PortCapabilities()

    def __init__(self, config: ModelConfig) -> None:  # the fault
        self.config = config

    async def ainvoke(self, messages: object) -> str:
        return ""


SPEC = AdapterSpec(
    interface="planted",
    description="is not finished",
    llm_factory=Planted,
    config_checker=lambda config: ["base_url: is missing"] if not config.endpoint_base_url else [],
)
