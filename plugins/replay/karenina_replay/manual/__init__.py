"""karenina's adapter for answers that were recorded beforehand: no model is asked."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from karenina_core.plugin.markers import hookimpl

if TYPE_CHECKING:
    from karenina_core.plugin.adapters import AdapterRegistry
    from karenina_core.values.config import ModelConfig

__all__ = ["karenina_register_adapters"]

PORT = "karenina_replay.manual.port:ManualPort"
MEANINGLESS = ("model_provider", "endpoint_base_url", "endpoint_api_key", "api_key_env", "extra_kwargs")


@hookimpl
def karenina_register_adapters(registry: AdapterRegistry) -> None:
    """Register `manual`, which answers and judges from `ModelConfig.manual_traces`."""
    from karenina_core.plugin.adapters import AdapterSpec  # help of the command line imports this package too

    registry.register(
        AdapterSpec(
            interface="manual",
            description="answers recorded beforehand, with the fields that a judge would extract from them",
            llm_factory=PORT,
            parser_factory=PORT,
            config_checker=_problems,
            judge_tasks=("parsing",),
            is_recorded=True,
        )
    )


def _problems(config: ModelConfig) -> Iterator[str]:
    if config.manual_traces is None:
        yield "manual_traces: the manual interface needs recorded answers (--manual-traces FILE)"
    for name in MEANINGLESS:
        if getattr(config, name):
            yield f"{name}: has no effect on recorded answers; leave it out"
