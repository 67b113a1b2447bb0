"""One question to the judge with a typed reply."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from karenina_judging.asking import ask_judge

from karenina_core import VerificationContext
from karenina_core.ports import ParsePortResult

__all__ = ["Read", "ask", "replied"]

T = TypeVar("T")
Read = Callable[[Mapping[str, Any]], T]
"""Makes something of a reply. Raises FillError with what is wrong with it, in words for the judge."""


async def ask(
    context: VerificationContext,
    task: str,
    system: str,
    user: str,
    schema: Mapping[str, Any],
    read: Read[T],
) -> T:
    """What `read` makes of the judge's reply. Raises as `replied` does."""
    found: T = (await replied(context, task, (system, user), schema, read)).parsed
    return found


async def replied(
    context: VerificationContext, task: str, texts: tuple[str, str], schema: Mapping[str, Any], read: Read[Any]
) -> ParsePortResult:
    """The judge's reply, `parsed` by `read`. `texts` are the system text and the user text.

    Raises ParseError where no reply could be used, PortError where the judge could not be reached.
    """

    async def validate(data: Mapping[str, Any]) -> Any:
        return read(data)

    return await ask_judge(context, task, texts, schema, validate=validate)
