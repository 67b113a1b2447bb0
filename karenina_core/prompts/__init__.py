"""Prompts: the task's own text, then adapter instructions, then the user's instructions."""

from __future__ import annotations

from .assembler import PromptAssembler
from .instructions import AdapterInstruction, AdapterInstructionRegistry
from .tasks import PromptTask
from .untrusted import untrusted

__all__ = ["AdapterInstruction", "AdapterInstructionRegistry", "PromptAssembler", "PromptTask", "untrusted"]
