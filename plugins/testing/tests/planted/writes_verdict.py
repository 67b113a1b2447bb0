"""Writes the verdict like an artifact."""

from karenina_core import ArtifactKeys, Stage, VerificationContext


class Planted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (ArtifactKeys.VERIFY_RESULT,)

    def execute(self, context: VerificationContext) -> None:
        right = "42" in context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
        context.set_artifact(ArtifactKeys.VERIFY_RESULT, right)  # the fault
