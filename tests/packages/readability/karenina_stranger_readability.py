"""A stage from another package that has a part of the result to itself."""

from karenina_core import ArtifactKeys, Stage, VerificationContext, hookimpl


class Readability(Stage):
    """Counts the words of every sentence."""

    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    result_fields = ("sentence_lengths", "longest_sentence")

    def execute(self, context: VerificationContext) -> None:
        sentences = [one.strip() for one in context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE).split(".")]
        lengths = {sentence: len(sentence.split()) for sentence in sentences if sentence}
        context.set_result_field("sentence_lengths", lengths)
        context.set_result_field("longest_sentence", max(lengths.values(), default=0))


@hookimpl
def karenina_register_stages(registry) -> None:
    registry.add(Readability)
