"""Prompts: the task's own text, then adapter instructions, then the user's instructions."""

from __future__ import annotations

from ..names import exports

__getattr__, __dir__ = exports(__name__)
