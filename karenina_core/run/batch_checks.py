"""What keeps a model from being asked in batches, seen before the run."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import fields

from ..model.config import ModelConfig
from ..plugin.adapters import AdapterSpec

__all__ = ["batch_complaints"]

ONLY_BATCHED = ("batch_max_calls", "batch_wait_seconds")
ONE_BY_ONE = ("requests_per_minute", "tokens_per_minute")


def batch_complaints(spec: AdapterSpec, model: ModelConfig) -> Iterator[str]:
    """As `field: message` lines."""
    defaults = {attribute.name: attribute.default for attribute in fields(ModelConfig)}
    if not model.batch:
        for name in ONLY_BATCHED:
            if getattr(model, name) != defaults[name]:
                yield f"{name}: has no effect on a model that is not asked in batches; set batch = true, or remove it"
        return
    if spec.batch_factory is None:
        yield f"batch: the interface {spec.interface!r} has no batch interface; set batch = false"
    if model.mcp_urls_dict:
        yield "batch: a model with tools is asked turn by turn, not in batches; set batch = false, or remove the tools"
    for name in ONE_BY_ONE:
        if getattr(model, name) is not None:
            yield f"{name}: the provider itself decides when calls of a batch are made; remove it, or set batch = false"
