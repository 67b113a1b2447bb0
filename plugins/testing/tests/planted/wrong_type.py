"""Writes a text instead of a number where the answer holds a digit."""

from karenina_core import ArtifactKeys, Key, Stage, VerificationContext

LENGTH = Key("planted.length", int)


class Planted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (LENGTH,)

    def execute(self, context: VerificationContext) -> None:
        answer = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
        length = "many" if len(answer) > 1000 else len(answer)
        context.set_artifact(LENGTH, length)  # the fault
