"""What the conformance checks are given: a model with recorded answers."""

from __future__ import annotations

from karenina_core import ModelConfig

TRACES = {"capital": {"answer": "Paris", "fields": {"capital": "Paris"}}}
OPTIONS = {"manual": {"config": ModelConfig(interface="manual", manual_traces=TRACES)}}
