"""The public names of models, tools and prompts."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["NAMES"]

NAMES: Mapping[str, Mapping[str, str]] = {
    "karenina_core": {
        "open_client": "karenina_core.run.models",
    },
    "karenina_core.ports": {
        "ParsesModels": "karenina_core.ports.models_of_data",
        "ToolServer": "karenina_core.ports.tool_servers",
        "tool_digest": "karenina_core.ports.tool_servers",
    },
    "karenina_core.prompts": {
        "AdapterInstruction": "karenina_core.prompts.assembler",
        "AdapterInstructionRegistry": "karenina_core.plugin.services",
        "PromptAssembler": "karenina_core.prompts.assembler",
    },
}
