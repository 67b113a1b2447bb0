"""Sets a result field that no sink can write."""

from karenina_core import ArtifactKeys, Stage, VerificationContext


class Planted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    result_fields = ("planted.share",)

    def execute(self, context: VerificationContext) -> None:  # the fault
        answer = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
        context.set_result_field("planted.share", len(answer.split()) / len(answer) if answer else float("nan"))
