"""One question to the judge with a typed reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from karenina_core import VerificationContext
from karenina_core.ports import ParsePortResult

__all__ = ["ask", "ask_for"]

T = TypeVar("T")


async def ask(
    context: VerificationContext,
    task: str,
    system: str,
    user: str,
    schema: Mapping[str, Any],
    read: Callable[[Mapping[str, Any]], T],
) -> T:
    """What `read` makes of the judge's reply; the reasons of a FillError are shown to the judge.

    Raises ParseError where no reply could be used, PortError where the judge could not be reached.
    """

    async def validate(data: Mapping[str, Any]) -> T:
        return read(data)

    result = await ask_for(context, task, (system, user), schema, validate)
    found: T = result.parsed
    return found


async def ask_for(
    context: VerificationContext, task: str, texts: tuple[str, str], schema: Mapping[str, Any], validate: Any
) -> ParsePortResult:
    """The same with system and user text as a pair and an asynchronous reader, for the whole result."""
    system, user = texts
    if own := context.system_prompt("parsing"):
        system = f"{own}\n\n{system}"
    shape = {"json_schema": schema, "format_instructions": ""}
    messages = context.parsing.prompt(task, system, user, shape)
    return await context.parsing.parse(task, messages, schema, validate=validate)
