"""Counts the items that it is working on, and forgets to count down when it is cancelled."""

from karenina_core import Key, Stage, VerificationContext
from karenina_core.errors import PortError
from karenina_core.ports import Message

REPLY = Key("planted.reply", str)


class Planted(Stage):
    produces = (REPLY,)

    def __init__(self) -> None:
        self.busy = 0

    async def execute(self, context: VerificationContext) -> None:  # the fault
        self.busy += 1
        if self.busy > 1:
            context.warn("several items at once")
        try:
            response = await context.parsing.invoke("planted", [Message.user("Is it clear?")])
        except PortError as error:
            self.busy -= 1
            context.set_artifact(REPLY, str(error))
            return
        self.busy -= 1
        context.set_artifact(REPLY, response.content)
