"""A stage from another package: how many words an answer has."""

from karenina_core import ArtifactKeys, Key, Stage, VerificationContext, hookimpl

WORDS = Key("wordcount.words", int)


class WordCount(Stage):
    """Counts words. Its place in the pipeline follows from what it declares."""

    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (WORDS,)
    result_fields = (WORDS,)

    def execute(self, context: VerificationContext) -> None:
        answer = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)
        context.set_artifact_and_result(WORDS, len(answer.split()))


@hookimpl
def karenina_register_stages(registry) -> None:
    registry.add(WordCount)
