"""What the conformance checks are given: a model that no server at an address of theirs can answer for."""

from __future__ import annotations

from karenina_core import ModelConfig

OPTIONS = {"claude_agent_sdk": {"config": ModelConfig(model_name="claude-x", interface="claude_agent_sdk")}}
