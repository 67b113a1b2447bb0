"""Sets a result field that it does not declare."""

from karenina_core import ArtifactKeys, Key, Stage, VerificationContext

LENGTH = Key("planted.length", int)


class Planted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (LENGTH,)

    def execute(self, context: VerificationContext) -> None:
        length = len(context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE))
        context.set_artifact(LENGTH, length)
        context.set_result_field(LENGTH, length)  # the fault
