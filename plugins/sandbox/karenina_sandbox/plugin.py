"""Entry point `sandbox-runtime`: Python templates and functions of traits, executed in locked processes."""

from __future__ import annotations

from typing import Any

from karenina_core import hookimpl

from .settings import SandboxSettings


@hookimpl
def karenina_register_template_runtimes(registry: Any) -> None:
    registry.add("karenina_sandbox.runtime:SandboxRuntime", name="sandbox")


@hookimpl
def karenina_register_settings(registry: Any) -> None:
    registry.add(SandboxSettings)
