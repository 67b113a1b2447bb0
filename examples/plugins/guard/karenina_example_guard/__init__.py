"""A guard stage with settings: an answer that is too long fails, whatever it says."""

from typing import Any

from attrs import field, frozen, validators

from karenina_core import ArtifactKeys, Category, Key, Stage, VerificationContext, hookimpl

KARENINA_API = 1
WORDS: Key[int] = Key("guard.words", int)
"""Words of the answer. In a result: `extensions["guard"]["words"]`."""


@frozen
class GuardSettings:
    """The table `[plugins.example-guard]` of a configuration."""

    most_words: int = field(default=200, validator=validators.gt(0))
    """Words that an answer may have."""


class LengthGuard(Stage):
    """Counts the words of an answer, and fails those with too many. Its place follows from what it declares."""

    category = Category.GUARD
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (WORDS,)
    result_fields = (WORDS,)

    def __init__(self, settings: GuardSettings) -> None:
        self.most = settings.most_words

    def execute(self, context: VerificationContext) -> None:
        words = len(context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE).split())
        context.set_artifact_and_result(WORDS, words)
        if words > self.most:
            context.record(verdict=False, reason=f"the answer has {words} words, and {self.most} are allowed")


@hookimpl
def karenina_register_settings(registry: Any) -> None:
    registry.add(GuardSettings)


@hookimpl
def karenina_register_stages(registry: Any) -> None:
    registry.add(LengthGuard)
