"""Reads an artifact that it does not declare."""

from karenina_core import ArtifactKeys, Key, Stage, VerificationContext

LENGTH = Key("planted.length", int)


class Planted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (LENGTH,)

    def execute(self, context: VerificationContext) -> None:
        answer = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
        if context.get_artifact(ArtifactKeys.ABSTENTION_DETECTED):  # the fault
            answer = ""
        context.set_artifact(LENGTH, len(answer))
