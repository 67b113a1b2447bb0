"""Lets a random number decide."""

import random

from karenina_core import ArtifactKeys, Stage, VerificationContext


class Planted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)

    def execute(self, context: VerificationContext) -> None:  # the fault
        context.record(verdict=random.random() < 0.5, reason="a coin was tossed")
