"""Imports pydantic whenever karenina starts."""

from pydantic import BaseModel  # the fault

from karenina_core import ArtifactKeys, Key, Stage, VerificationContext

LENGTH = Key("planted.length", int)


class Counted(BaseModel):
    length: int


class Planted(Stage):
    requires = (ArtifactKeys.RAW_LLM_RESPONSE,)
    produces = (LENGTH,)

    def execute(self, context: VerificationContext) -> None:
        counted = Counted(length=len(context.get_artifact(ArtifactKeys.RAW_LLM_RESPONSE)))
        context.set_artifact(LENGTH, counted.length)
