"""A stage from another package with an option of the command line: counted words."""

from attrs import frozen

from karenina_core import ArtifactKeys, Key, Stage, VerificationContext, hookimpl
from karenina_core.errors import Problem

WORDS = Key("vocabulary.words", int)


@frozen
class Settings:
    """`[plugins.vocabulary]`."""

    distinct: bool = False
    """Count every word once."""


class Vocabulary(Stage):
    """Counts words. Its place in the pipeline follows from what it declares."""

    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (WORDS,)
    result_fields = (WORDS,)

    def __init__(self, settings: Settings) -> None:
        self.distinct = settings.distinct

    def check_config(self, config, app):
        if self.distinct:
            yield Problem("plugins.vocabulary.distinct", "The and the are two words", fatal=False)

    def execute(self, context: VerificationContext) -> None:
        words = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE).split()
        context.set_artifact_and_result(WORDS, len(set(words) if self.distinct else words))


@hookimpl
def karenina_register_stages(registry) -> None:
    registry.add(Vocabulary)


@hookimpl
def karenina_register_settings(registry) -> None:
    registry.add(Settings)
