"""Ports: how karenina calls models of any provider."""

from __future__ import annotations

from ..names import exports

__getattr__, __dir__ = exports(__name__)
