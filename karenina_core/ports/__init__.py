"""Ports: how karenina speaks to models, whoever provides them."""

from __future__ import annotations

from ..model.message import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, UsageMetadata
from .models_of_data import ParsesModels
from .protocols import AgentPort, LLMPort, ParserPort, StreamingLLMPort
from .tool_servers import ToolServer, tool_digest
from .values import (
    AgentConfig,
    AgentResult,
    CallContext,
    LLMResponse,
    OutputFormat,
    ParsePortResult,
    PortCapabilities,
    StreamingLLMResponse,
    Tool,
    ToolOutcome,
)

__all__ = [
    "AgentConfig",
    "AgentPort",
    "AgentResult",
    "CallContext",
    "LLMPort",
    "LLMResponse",
    "Message",
    "OutputFormat",
    "ParsePortResult",
    "ParserPort",
    "ParsesModels",
    "PortCapabilities",
    "StreamingLLMPort",
    "StreamingLLMResponse",
    "TextBlock",
    "ThinkingBlock",
    "Tool",
    "ToolOutcome",
    "ToolResultBlock",
    "ToolServer",
    "ToolUseBlock",
    "UsageMetadata",
    "tool_digest",
]
