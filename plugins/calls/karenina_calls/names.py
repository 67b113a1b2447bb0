"""The public names of models, tools and prompts."""

from __future__ import annotations

from collections.abc import Mapping

NAMES: Mapping[str, Mapping[str, str]] = {
    "karenina_core": {
        "open_client": "karenina_calls.models.models",
        "redactor": "karenina_calls.secrets.redaction",
    },
    "karenina_core.ports": {
        "EmbedderPort": "karenina_calls.services.embedding",
        "Embeddings": "karenina_calls.services.embedding",
        "Endpoint": "karenina_calls.wire.endpoints",
        "HttpPort": "karenina_calls.wire.http",
        "ParsesModels": "karenina_calls.models.pydantic_replies",
        "SearchResult": "karenina_calls.tools.search",
        "SearchTool": "karenina_calls.tools.search",
        "StructuredParser": "karenina_calls.ports.structured",
        "ToolServer": "karenina_calls.tools.tool_servers",
        "messages_to_wire": "karenina_calls.wire.openai_wire",
        "output_to_wire": "karenina_calls.wire.openai_wire",
        "reply_from_wire": "karenina_calls.wire.openai_wire",
        "run_agent_loop": "karenina_calls.tools.agent_loop",
        "sanitize": "karenina_calls.ports.text",
        "tool_digest": "karenina_calls.tools.tool_servers",
        "tools_to_wire": "karenina_calls.wire.openai_wire",
    },
    "karenina_core.prompts": {
        "AdapterInstruction": "karenina_calls.ports.prompt_assembler",
        "AdapterInstructionRegistry": "karenina_calls.services.shared",
        "PromptAssembler": "karenina_calls.ports.prompt_assembler",
    },
}
