"""Ports: how karenina speaks to models, whoever provides them."""

from __future__ import annotations

from ..model.message import Message, TextBlock, ThinkingBlock, ToolResultBlock, ToolUseBlock, UsageMetadata
from .protocols import AgentPort, LLMPort, ParserPort, StreamingLLMPort
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
    "PortCapabilities",
    "StreamingLLMPort",
    "StreamingLLMResponse",
    "TextBlock",
    "ThinkingBlock",
    "Tool",
    "ToolResultBlock",
    "ToolUseBlock",
    "UsageMetadata",
]
