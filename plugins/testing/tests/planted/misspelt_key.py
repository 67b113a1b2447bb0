"""Requires an artifact that nothing will ever produce."""

from karenina_core import Key, Stage, VerificationContext

LENGTH = Key("planted.length", int)


class Planted(Stage):
    requires = ("raw_llm_respons",)  # the fault
    produces = (LENGTH,)

    def execute(self, context: VerificationContext) -> None:
        context.set_artifact(LENGTH, len(str(context.get_artifact("raw_llm_respons"))))
