"""Writes while it is asked whether it wants to run."""

from karenina_core import ArtifactKeys, Skip, Stage, VerificationContext


class Planted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)

    def should_run(self, context: VerificationContext) -> bool | Skip:  # the fault
        context.warn("asked")
        return super().should_run(context)

    def execute(self, context: VerificationContext) -> None:
        context.record(verdict=True)
