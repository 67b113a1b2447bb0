"""Wants to run also after an error."""

from karenina_core import ArtifactKeys, Key, Stage, VerificationContext

LENGTH = Key("planted.length", int)


class Planted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (LENGTH,)

    def should_run(self, context: VerificationContext) -> bool:  # the fault
        return context.has_artifact(ArtifactKeys.RAW_LLM_RESPONSE)

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact(LENGTH, len(context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)))
