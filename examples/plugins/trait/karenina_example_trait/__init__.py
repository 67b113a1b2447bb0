"""A trait type for rubrics: an answer that says "perhaps" too often scores False. No judge is asked."""

import re
from typing import Any, ClassVar

from attrs import field, frozen, validators

from karenina_core import RubricTrait, TraitCase, TraitEvaluator, TraitScore, hookimpl

KARENINA_API = 1
HEDGES = re.compile(r"\b(?:perhaps|maybe|possibly|probably|it seems|might|may be|could be)\b", re.IGNORECASE)


@frozen(kw_only=True)
class HedgingTrait(RubricTrait):
    """Whether an answer hedges at most `most` times."""

    type_name: ClassVar[str] = "hedging"
    most: int = field(default=0, validator=validators.ge(0))
    higher_is_better: bool | None = True


class HedgingEvaluator(TraitEvaluator[HedgingTrait]):
    """True or False, with the words that were found as details."""

    name = "hedging"
    trait_class = HedgingTrait
    file_type = "HedgingTrait"

    async def score(self, trait: HedgingTrait, case: TraitCase) -> TraitScore:
        found = HEDGES.findall(case.given.text)
        return TraitScore(value=len(found) <= trait.most, details={"found": found[:10], "count": len(found)})


@hookimpl
def karenina_register_traits(registry: Any) -> None:
    registry.add(HedgingEvaluator)
