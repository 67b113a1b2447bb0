"""Waits for something that the kit cannot know."""

from karenina_core import Key, Skip, Stage, VerificationContext

SECRET = Key("planted.secret", str)


class Planted(Stage):
    requires = (SECRET,)

    def should_run(self, context: VerificationContext) -> bool | Skip:  # the fault
        allowed = super().should_run(context)
        if allowed and context.get_artifact(SECRET) != "open sesame":
            return Skip("it is not the word")
        return allowed

    def execute(self, context: VerificationContext) -> None:
        context.record(verdict=True)
