"""Produces an artifact of no particular type."""

from karenina_core import ArtifactKeys, Stage, VerificationContext


class Planted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = ("planted.length",)  # the fault

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact("planted.length", len(context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)))
