"""Takes a cancellation for a failure of the model."""

import asyncio

from karenina_core import Key, Stage, VerificationContext
from karenina_core.errors import PortError
from karenina_core.ports import Message

REPLY = Key("planted.reply", str)


class Planted(Stage):
    produces = (REPLY,)

    async def execute(self, context: VerificationContext) -> None:
        try:
            response = await context.parsing.invoke("planted", [Message.user("Is it clear?")])  # the fault
        except (PortError, asyncio.CancelledError):
            context.set_artifact(REPLY, "")
        else:
            context.set_artifact(REPLY, response.content)
