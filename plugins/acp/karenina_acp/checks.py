"""What the conformance checks are given: a model whose agent repeats its prompt."""

from __future__ import annotations

import sys

from karenina_core import ModelConfig

COMMAND = (sys.executable, "-m", "karenina_acp.echo_agent")
OPTIONS = {
    "acp": {"config": ModelConfig(model_name="default", interface="acp", extra_kwargs={"command": list(COMMAND)})}
}
