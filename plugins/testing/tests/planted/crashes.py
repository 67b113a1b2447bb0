"""Has not thought of an answer without words."""

from karenina_core import ArtifactKeys, Key, Stage, VerificationContext

WORD = Key("planted.word", str)


class Planted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (WORD,)

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact(WORD, context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE).split()[0])  # the fault
