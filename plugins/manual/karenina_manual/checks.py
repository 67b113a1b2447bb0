"""What the conformance checks are given: a model with recorded answers."""

from __future__ import annotations

from karenina_core import ModelConfig

OPTIONS = {"manual": {"config": ModelConfig(interface="manual", manual_traces={"capital": "Paris"})}}
