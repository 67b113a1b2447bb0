"""A judge's reply as an instance of a pydantic model, in place of plain data."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from karenina_core.errors import ParseError
from karenina_core.ports.threads import BackgroundLoop
from karenina_core.ports.values import CallContext, ParsePortResult
from karenina_core.values.message import Message

if TYPE_CHECKING:
    from pydantic import BaseModel

M = TypeVar("M", bound="BaseModel")


class ParsesModels(ABC):
    """Base for a `ParserPort`: what `aparse` gives, read by a pydantic model, whose JSON Schema is asked for.

    It asks once, as `aparse` does: nothing is repaired and nothing tried again. That is the pipeline's work.
    """

    @abstractmethod
    async def aparse(
        self, messages: Sequence[Message], schema: Mapping[str, Any], *, call: CallContext | None = None
    ) -> ParsePortResult: ...

    async def aparse_to_pydantic(
        self, messages: Sequence[Message], model: type[M], *, call: CallContext | None = None
    ) -> M:
        """An instance of the model. Raises ParseError where the reply does not fit it, and what `aparse` raises."""
        found = await self.aparse(messages, model.model_json_schema(), call=call)
        try:
            return model.model_validate(found.data)
        except ValueError as error:  # pydantic's ValidationError is one
            raise ParseError(f"the reply is no {model.__name__}: {error}") from error

    def parse_to_pydantic(self, messages: Sequence[Message], model: type[M], *, call: CallContext | None = None) -> M:
        """The same for callers that are not asynchronous. All such calls of a port run in one event loop, in a thread
        of its own, so that its connections can be kept; a port that is used in another loop is to be awaited there."""
        loop: BackgroundLoop = self.__dict__.setdefault("_sync_loop", BackgroundLoop())
        return loop.run(self.aparse_to_pydantic(messages, model, call=call))
