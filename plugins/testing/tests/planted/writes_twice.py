"""Changes its mind about an artifact."""

from karenina_core import ArtifactKeys, Key, Stage, VerificationContext

LENGTH = Key("planted.length", int)


class Planted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (LENGTH,)

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact(LENGTH, 0)
        if words := context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE).split():
            context.set_artifact(LENGTH, len(words))  # the fault
