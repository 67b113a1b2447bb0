"""Is in every second plan."""

import itertools

from karenina_core import ArtifactKeys, Stage, VerificationContext

_asked = itertools.count()


class Planted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    included_when = lambda request: next(_asked) % 2 == 0  # noqa: E731  # the fault

    def execute(self, context: VerificationContext) -> None:
        context.record(verdict=True)
