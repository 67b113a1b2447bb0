"""Answers with words where problems are asked for."""

from karenina_core import ArtifactKeys, Karenina, Stage, VerificationConfig, VerificationContext


class Planted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)

    def check_config(self, config: VerificationConfig, app: Karenina) -> list[str]:  # the fault
        return ["the weather is bad"]

    def execute(self, context: VerificationContext) -> None:
        context.record(verdict=True)
