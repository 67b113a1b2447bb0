"""Implements a hook that does not exist."""

from typing import Any

from karenina_core import ArtifactKeys, Key, Stage, VerificationContext, hookimpl

LENGTH = Key("planted.length", int)


class Length(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (LENGTH,)

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact(LENGTH, len(context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)))


@hookimpl  # the fault
def karenina_register_stage(registry: Any) -> None:
    registry.add(Length)
