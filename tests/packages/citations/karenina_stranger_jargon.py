"""A trait type that asks the judge: is an answer free of words that only professionals know?"""

from typing import ClassVar

from attrs import frozen
from karenina_judging.asking import ask_judge, closed_object, presented
from karenina_judging.untrusted_text import UNTRUSTED_NOTE

from karenina_core import RubricTrait, TraitCase, TraitEvaluator, TraitScore, hookimpl
from karenina_core.errors import FillError

TASK = "List the words of a response that a patient would not understand, as they are written there. Reply with JSON."
SYSTEM = f"{TASK} {UNTRUSTED_NOTE}"
SCHEMA = closed_object({"words": {"type": "array", "items": {"type": "string"}}})


@frozen(kw_only=True)
class JargonTrait(RubricTrait):
    """Whether an answer has at most so many words that only professionals know."""

    type_name: ClassVar[str] = "jargon"
    most: int = 0


class JargonEvaluator(TraitEvaluator[JargonTrait]):
    name = "jargon"
    trait_class = JargonTrait
    asks_judge = True
    file_type = "JargonTrait"

    async def score(self, trait: JargonTrait, case: TraitCase) -> TraitScore:
        async def check(reply):
            if not isinstance(reply.get("words"), list):
                raise FillError("words must be a list of texts")
            if invented := [word for word in reply["words"] if str(word) not in case.given.text]:
                raise FillError(f"these are not in the response: {invented}")
            return reply["words"]

        async def ask():
            texts = (SYSTEM, presented(case.context.question_text, case.given))
            return await ask_judge(case.context, "jargon", texts, SCHEMA, validate=check)

        words = (await case.in_turn(ask)).parsed
        return TraitScore(value=len(words) <= trait.most, details={"words": words})


@hookimpl
def karenina_register_traits(registry) -> None:
    registry.add(JargonEvaluator)
