"""A stage from another package, and the settings of a run that it reads."""

from attrs import frozen

from karenina_core import ArtifactKeys, Key, Stage, VerificationConfig, VerificationContext, feature, hookimpl
from karenina_core.errors import Problem
from karenina_core.values.sections import Section, flag, switch, whole

SHORT = Key("wordlimit.short", bool)


@frozen(kw_only=True, slots=False)
class WordLimitSettings(Section):
    """How long an answer may be."""

    word_limit_most: int = whole(100, least=1)
    """Words that an answer may have."""
    word_limit_unlimited: bool = flag(False)
    """Whether any length will do."""
    _word_limit_enabled: bool | None = switch("word_limit")

    @property
    def word_limit_enabled(self) -> bool:
        return "word_limit" in self.features

    def check_settings(self):
        if self.word_limit_unlimited and self.word_limit_most != 100:
            yield Problem("word_limit_most", "has no place beside word_limit_unlimited; remove one of them")


class WordLimit(Stage):
    """Says whether an answer is short enough."""

    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (SHORT,)
    result_fields = (SHORT,)
    included_when = feature("word_limit")
    settings = ("word_limit_most", "word_limit_unlimited")

    def execute(self, context: VerificationContext) -> None:
        config: VerificationConfig = context.config
        words = context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE).split()
        short = config.word_limit_unlimited or len(words) <= config.word_limit_most
        context.set_artifact_and_result(SHORT, short)


@hookimpl
def karenina_register_stages(registry) -> None:
    registry.add(WordLimit)
