"""Knows better about a field that it does not declare."""

from karenina_core import ArtifactKeys, Stage, VerificationContext


class Planted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    revises = ("judge_repairs",)

    def execute(self, context: VerificationContext) -> None:
        context.revise_result_field("judge_repairs", 0)
        context.revise_result_field("judge_channel", "text")  # the fault
