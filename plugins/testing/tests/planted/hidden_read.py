"""Reads an artifact that it does not declare, and catches the error."""

from karenina_core import ArtifactKeys, Key, Stage, VerificationContext

LENGTH = Key("planted.length", int)


class Planted(Stage):
    produces = (LENGTH,)

    def execute(self, context: VerificationContext) -> None:
        try:
            length = len(context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE))  # the fault
        except Exception:
            length = 0
        context.set_artifact(LENGTH, length)
