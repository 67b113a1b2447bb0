"""Tools for testing plugins and benchmarks without a provider. Every name is imported at its first use."""

from __future__ import annotations

from karenina_core.names import exports

__getattr__, __dir__ = exports(__name__)
