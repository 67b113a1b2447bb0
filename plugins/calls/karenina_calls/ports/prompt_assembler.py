"""Putting a prompt together from its three sections; what adapters add to it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from attrs import field, frozen

from karenina_core.values.message import Message


@frozen(kw_only=True)
class AdapterInstruction:
    """Text that one adapter adds to a prompt; an empty text adds nothing."""

    system_addition: str = ""
    user_addition: str = ""


Additions = Callable[[str, str, Mapping[str, Any]], Iterable[AdapterInstruction]]
"""From the task, the interface and the context of a prompt to what is added to it."""


@frozen
class PromptAssembler:
    """Builds the messages of one task for one interface.

    Sections, in this order and each only ever appended: the task's own text; what adapters add; the user's
    instructions (to the system text). Sections are joined by a blank line. Nothing is formatted with braces: answers
    contain them.
    """

    task: str
    interface: str = ""
    supports_system_prompt: bool = True
    additions: Additions = field(default=lambda task, interface, context: (), repr=False)

    def assemble(
        self,
        system_text: str,
        user_text: str,
        user_instructions: str | None = None,
        instruction_context: Mapping[str, Any] | None = None,
    ) -> list[Message]:
        """`[system, user]`; only `[user]` where there is no system text or the model takes none."""
        system, user = self.assemble_text(system_text, user_text, user_instructions, instruction_context)
        if not self.supports_system_prompt:
            return [Message.user(_join(system, user))]
        return [Message.system(system), Message.user(user)] if system else [Message.user(user)]

    def assemble_text(
        self,
        system_text: str,
        user_text: str,
        user_instructions: str | None = None,
        instruction_context: Mapping[str, Any] | None = None,
    ) -> tuple[str, str]:
        """The system text and the user text."""
        added = list(self.additions(self.task, self.interface, instruction_context or {}))
        system = _join(system_text, *[one.system_addition for one in added], user_instructions or "")
        return system, _join(user_text, *[one.user_addition for one in added])


def _join(*sections: str) -> str:
    return "\n\n".join(filter(None, sections))
