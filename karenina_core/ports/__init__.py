"""Ports: how karenina speaks to models, whoever provides them."""

from __future__ import annotations

from ..names import exports

__getattr__, __dir__, __all__ = exports(__name__)
